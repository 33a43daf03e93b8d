"""A whole calibration on a tiny plan, as a process that a test may kill: `python -m tests.gpu.tiny_sweep FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import evolve

from calibration import sweep
from calibration.plan import DOCUMENTED, Plan, Planned
from kernels import driver
from rowsmith.live import Dispatcher

MOST_ELEMENTS = 2**20
EVERY = 3


def tiny(plan: Plan) -> Plan:
    """Return every third geometry of those that take no time."""

    def few(points: Iterable[Planned]) -> tuple[Planned, ...]:
        return tuple(point for point in points if point.rows * point.width <= MOST_ELEMENTS)[::EVERY]

    return evolve(plan, training=few(plan.training), validation=few(plan.validation)[::2])


def main(folder: Path) -> None:
    """Calibrate into the folder, or go on with what is there."""
    draw = sweep.draw_plan

    def draw_tiny(*arguments: Any, **options: Any) -> Plan:
        return tiny(draw(*arguments, **options))

    sweep.draw_plan = draw_tiny
    device = driver.current_device()
    target = driver.live_target(device)
    options = sweep.Options(("scan",), "tiny", folder, folder / "packet.zip", seed=1, peers=False, inventory=DOCUMENTED)
    sweep.calibrate(options, lambda profile: Dispatcher(device, target, profile).ready)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
