"""Naming a target on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from kernels.target import Target
from policy.errors import TargetError
from policy.target_facts import target_from_facts
from rowsmith.profiles import profile_for


def target_from(text: str) -> Target:
    """Return the target that `live`, a bundled profile's name or a JSON file of target facts stands for."""
    if text == "live":
        from kernels import driver

        return driver.live_target(driver.current_device())
    path = Path(text)
    if path.suffix != ".json":
        return profile_for(text).target
    try:
        return target_from_facts(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise TargetError(
            f"target file {text} cannot be read ({error}); it is a JSON object of target facts"
        ) from error
    except TargetError as error:
        raise TargetError(f"target file {text}: {error}; `rowsmith select … --json` prints a whole target") from error
