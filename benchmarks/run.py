"""Prints the figures that the service promises, reached or short, with the machine they were taken on."""

from __future__ import annotations

import argparse
import tempfile

from benchmarks import inprocess, live, service
from benchmarks.machine import machine
from benchmarks.subject import profile
from kernels.driver import device_count


def main() -> None:
    """Measure everything that can be measured here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="length of each load over HTTP")
    seconds = parser.parse_args().seconds
    print(f"machine: {machine()}")
    print(f"profile: {profile().name}; database: SQLite in {tempfile.gettempdir()}")
    for measured in (inprocess.figures(), service.figures(seconds)):
        for figure in measured:
            print(figure.row(), flush=True)
    if device_count():
        live.main([])
    else:
        print("live search: skipped, no CUDA device here; docs/records/h200-live-search.txt holds the last")


if __name__ == "__main__":
    main()
