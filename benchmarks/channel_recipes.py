"""The recipes of a norm over channels on the device at hand, as calls on a torch tensor that allocate their results."""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

from attrs import evolve, frozen

from benchmarks.channel_baselines import EPS
from benchmarks.replays import Run, captured, timed
from features.proof import Proved, candidates
from features.workload import Workload
from kernels import driver
from kernels.channel_references import is_close
from kernels.channels import CHANNEL_NORMS
from kernels.compile import cache_folder
from kernels.compile_all import compile_all
from kernels.errors import CompileError
from kernels.execute import Prepared, prepare
from kernels.guard import Span, Verdict, span
from kernels.operands import Operands
from kernels.recipe import Recipe
from kernels.recipes import original_of, recipes_of
from kernels.source import identity
from policy.exclusion import exclusion

ORIGINAL, RETAINED, REREAD, PICKED, BEST = OURS = ("original", "retained", "reread", "picked", "best")
SCOUT_ROUNDS = 7


@frozen
class Candidate:
    """What runs in a case, or why it does not; `recipe` and `receipt` where it is one of ours."""

    name: str
    run: Run | str
    recipe: Recipe | None = None
    receipt: Any = None
    told: str = ""


class Recipes:
    """Loads what is asked for once; kernels stay, for graphs hold them."""

    def __init__(self) -> None:
        self._device = driver.current_device()
        self._target = driver.live_target(self._device)
        self._loaded: dict[str, driver.Kernel] = {}

    def compile(self) -> None:
        """Fill the cubin cache, several kernels at a time."""
        rows = [row for form in CHANNEL_NORMS for row in recipes_of(form)]
        compile_all((driver.architecture(self._device),), rows, folder=cache_folder())

    def legal(self, work: Workload, x: Any) -> list[Candidate]:
        """Return every recipe that is proved, the original first; of one that its receipt excludes, that is told."""
        found = []
        for row, proof in candidates(work):
            if not isinstance(proof, Proved) or work.dtype not in row.dtypes:
                continue
            try:
                kernel = self._kernel(row, work.dtype)
            except CompileError as error:
                print(f"{row.id} does not compile: {error}", file=sys.stderr)
                continue
            unclean = exclusion(
                row, work.dtype, kernel.receipt, kernel.receipt, identity(row, work.dtype), self._target
            )
            told = "" if unclean is None else f"excluded: {unclean.fact}"
            found.append(Candidate(row.id.partition(".")[2], self._forced(row, work, x), row, kernel.receipt, told))
        return found

    def picked(self, work: Workload, x: Any) -> Candidate:
        """Return what the real dispatch path takes, with the reason of its decision."""
        from rowsmith.live import dispatcher

        ready = dispatcher(self._device).ready(work)
        chosen = ready.prepared.chosen
        told = "no profile is of this device" if ready.selection is None else ready.selection.decision.reason
        run = _launch(ready.prepared, chosen.recipe, work, x)
        return Candidate(PICKED, run, chosen.recipe, chosen.receipt, told)

    def _forced(self, row: Recipe, work: Workload, x: Any) -> Run:
        original, chosen = (self._kernel(which, work.dtype) for which in (original_of(row.form), row))
        return _launch(prepare(original, chosen, work.rows, work.width, self._target.sm_count), row, work, x)

    def _kernel(self, row: Recipe, dtype: str) -> driver.Kernel:
        if row.id not in self._loaded:
            self._loaded[row.id] = driver.load(row, dtype, self._device)
        return self._loaded[row.id]


def _launch(prepared: Prepared, row: Recipe, work: Workload, x: Any) -> Run:
    import torch

    given = Operands((), (EPS,) if row.parameters else ())

    def spanned(t: Any) -> Span:
        return span(t.data_ptr(), work.rows, work.width, work.row_pitch, work.dtype, work.inner)

    def launch() -> Any:
        y = torch.empty_like(x)
        verdict = prepared.run(spanned(x), spanned(y), torch.cuda.current_stream().cuda_stream, given)
        if verdict is not Verdict.RECIPE:
            raise RuntimeError(f"{row.id} was not run: {verdict.value}")
        return y

    return launch


def ours(recipes: Recipes, work: Workload, x: Any, reference: Any) -> list[Candidate]:
    """Return the original, the report's two ways, the pick, and the fastest clean recipe of a few rounds before."""
    import torch

    known = {c.name: c for c in recipes.legal(work, x)}
    clean = {name: c.run for name, c in known.items() if not c.told and not isinstance(c.run, str)}
    right = {name: run for name, run in clean.items() if is_close(torch, reference, run())}
    graphs = {name: graph for name, run in right.items() if not isinstance(graph := captured(run, 1), str)}
    scouted = timed(graphs, SCOUT_ROUNDS, 1)
    named = {
        ORIGINAL: ORIGINAL,
        RETAINED: f"retained{work.width}",
        REREAD: f"reread{work.width}",
        BEST: min(scouted, key=lambda name: median(scouted[name])),
    }
    found = {role: evolve(known[name], name=role) for role, name in named.items() if name in known}
    found[PICKED] = recipes.picked(work, x)
    return [found.get(role, Candidate(role, "no such recipe takes this shape")) for role in OURS]
