"""From the bytes of a question to the bytes of its answer: parse, decide, store, render."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from kernels.receipt import Receipt
from kernels.recipe import Recipe
from policy.profile import Known
from policy.select import ReceiptSource, recorded, select
from server.answer import Links, answer_bytes, links_of, node_of_selection
from server.ask import ask_of
from server.live import Live
from server.metrics import Metrics
from server.node import Node, Stored
from server.profiles import choose
from server.store import Store
from server.strict_json import read_json

# A longer question is answered the same way, from the database.
_CACHED_QUESTION_BYTES = 2_048


@frozen(eq=False)
class Answer:
    """The body of an answer and the address of its selection."""

    body: bytes
    location: str
    new: bool


@frozen(eq=False)
class Judged:
    """A decision that waits to be stored."""

    node: Node
    links: Links

    def answer(self, stored: Stored) -> Answer:
        """Return the answer, now that the selection is durable."""
        return Answer(answer_bytes(stored, self.links), self.links["self"], stored.new)


@frozen(eq=False)
class Asking:
    """Answers questions. The same bytes asked again are answered from memory: a stored selection never changes."""

    store: Store
    profiles: Sequence[Known]
    live: Live | None
    metrics: Metrics
    cache_entries: int
    _cache: OrderedDict[bytes, Answer] = field(factory=OrderedDict, init=False)

    def known(self, raw: bytes) -> Answer | None:
        """Return the answer of a question that was asked in these very bytes."""
        answer = self._cache.get(raw)
        if answer is not None:
            self._cache.move_to_end(raw)
        return answer

    async def answer(self, raw: bytes) -> Answer:
        """Decide and store; return when durable. Raises what `judge` raises, and Problem from the writer."""
        judged = self.judge(read_json(raw))
        (stored,) = await self.store.writer.submit((judged.node,))
        answer = judged.answer(stored)
        self._remember(raw, Answer(answer.body, answer.location, new=False))
        return answer

    def judge(self, value: Any) -> Judged:
        """Return the decision on one question; pure but for counting.

        Raises
        ------
        Problem, FeatureError, KernelError, PolicyError : the question is refused.
        """
        ask = ask_of(value)
        choice = choose(ask, self.profiles, self.live)
        receipts = recorded(choice.profile) if choice.live is None else _lookup(choice.live.receipts)
        selection = select(ask.workload, choice.target, choice.profile, receipts, forced=ask.recipe or None)
        self.metrics.decided(selection.decision.reason)
        return Judged(node_of_selection(selection, choice.live), links_of(selection))

    def _remember(self, raw: bytes, answer: Answer) -> None:
        if not self.cache_entries or len(raw) > _CACHED_QUESTION_BYTES:
            return
        self._cache[raw] = answer
        if len(self._cache) > self.cache_entries:
            self._cache.popitem(last=False)


def _lookup(receipts: Mapping[tuple[str, str], Receipt]) -> ReceiptSource:
    def source(recipe: Recipe, dtype: str) -> Receipt | None:
        return receipts.get((recipe.id, dtype))

    return source
