"""Tables for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from calibration.packet import Packet
from calibration.report import table as figures_table
from features.proof import Refused
from policy.selection import Candidate, Selection
from rowsmith.doctor import Check


def _console() -> Console:
    """Return a console that prints brackets as they are: messages of compilers and names of extras have them."""
    return Console(markup=False, highlight=False)


def selection_table(made: Selection) -> None:
    """Print a selection: the decision's sentence, then every candidate."""
    console = _console()
    decision = made.decision
    console.print(Text.assemble((decision.recipe, "bold"), f"  ({decision.reason})"))
    console.print(decision.sentence)
    grid = Table("recipe", "score, us", "of original", "features", "why not")
    for candidate in made.candidates:
        ratio = (
            f"{candidate.score_us / decision.original_score_us:.3f}"
            if candidate.score_us is not None and decision.original_score_us
            else ""
        )
        score = "" if candidate.score_us is None else f"{candidate.score_us:.3f}"
        named = ", ".join(f"{f.name} {f.value:.6g}" for f in candidate.features)
        grid.add_row(candidate.recipe.id, score, ratio, named, _why_not(candidate))
    console.print(grid)
    console.print(f"profile {made.provenance['profile_name']} ({made.provenance['profile'][:12]}); selection {made.id}")


def packet_tables(held: Packet) -> None:
    """Print what a packet holds."""
    console = _console()
    contents = held.contents
    console.print(Text.assemble((held.name, "bold"), f"  packet {held.digest}"))
    grid = Table("part", "bytes", "sha256")
    for part in held.manifest["parts"]:
        grid.add_row(part["name"], str(part["bytes"]), part["sha256"][:16])
    console.print(grid)
    console.print(f"{len(contents.cohort)} training and {len(contents.validation_records)} validation records")
    if contents.validation is not None:
        console.print(figures_table(contents.validation))


def doctor_table(found: Iterable[Check]) -> None:
    """Print what was found on this machine."""
    console = _console()
    grid = Table("what", "state", "found", "what to do")
    for check in found:
        grid.add_row(check.what, check.state, check.found, check.remedy)
    console.print(grid)


def _why_not(candidate: Candidate) -> str:
    refused = candidate.proof if isinstance(candidate.proof, Refused) else candidate.excluded
    return "" if refused is None else f"{refused.code}: {refused.fact}"
