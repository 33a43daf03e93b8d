"""Prints the figures that the service promises, reached or short, with the machine they were taken on."""

from __future__ import annotations

import argparse
import tempfile

from benchmarks import inprocess, service
from benchmarks.machine import machine
from benchmarks.subject import profile


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


if __name__ == "__main__":
    main()
