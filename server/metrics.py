"""Prometheus figures, in a registry of their own so that two applications in one process do not mix."""

from __future__ import annotations

from attrs import field, frozen
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from policy.reasons import DECISION, REASONS


@frozen(eq=False)
class Metrics:
    """Counted where it happens; label values come from fixed lists, never from a client."""

    registry: CollectorRegistry = field(factory=CollectorRegistry)
    requests: Counter = field(init=False)
    seconds: Histogram = field(init=False)
    decisions: Counter = field(init=False)
    rows: Gauge = field(init=False)
    waiting: Gauge = field(init=False)

    @requests.default
    def _requests(self) -> Counter:
        return Counter("rowsmith_requests", "Requests by route and status", ["route", "status"], registry=self.registry)

    @seconds.default
    def _seconds(self) -> Histogram:
        return Histogram(
            "rowsmith_request_seconds",
            "Time from the first to the last byte of a request",
            ["route"],
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=self.registry,
        )

    @decisions.default
    def _decisions(self) -> Counter:
        counter = Counter("rowsmith_decisions", "Decisions computed, by reason", ["reason"], registry=self.registry)
        for reason in REASONS.values():
            if DECISION in reason.of:
                counter.labels(reason.code)
        return counter

    @rows.default
    def _rows(self) -> Gauge:
        return Gauge("rowsmith_stored_rows", "Rows in the store: the chain's count", registry=self.registry)

    @waiting.default
    def _waiting(self) -> Gauge:
        return Gauge("rowsmith_writer_waiting", "Submissions that wait for the writer", registry=self.registry)

    def decided(self, reason: str) -> None:
        """Count one computed decision."""
        self.decisions.labels(reason).inc()

    def answered(self, route: str, status: int, elapsed_s: float) -> None:
        """Count one request."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(elapsed_s)

    def text(self) -> bytes:
        """Return the figures in Prometheus' text form."""
        return generate_latest(self.registry)
