"""The table of reason codes is complete and holds nothing that cannot happen."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import features.proof
import rowsmith
from features.errors import Refused, WorkloadError
from features.expression import Cast, Load, Map, Prefix, Reduce, Store
from features.program import Program
from features.proof import Proved, prove
from features.workload import Workload, workload
from kernels.recipe import ORIGINAL
from kernels.recipes import RECIPES, recipe
from kernels.source import SourceIdentity, identity
from policy.catalogue import Catalogue, shipped_catalogue
from policy.exclusion import exclusion
from policy.reasons import CANDIDATE, DECISION, REASONS, REQUEST
from tests.made import H200, made_receipt
from tests.policy.cases import ask, profile_priced_by, profile_with, with_receipts

ROOT = Path(__file__).parents[2]
CLUSTERED = recipe("softmax.cluster2x512x32")
EVERYTHING, NOTHING = [0.0, 1e12], [-2.0, -1.0]
HALF = ("float16",)
WIDE = Cast(Load("float16"), "float32")


def decides(**asked: Any) -> Callable[[], str]:
    """Return the reason of a decision."""
    return lambda: ask(128, asked.pop("width", 8192), **asked).decision.reason


def excludes(**changes: Any) -> Callable[[], str]:
    """Return why a recipe is excluded when its receipt is changed so."""
    return lambda: _excluded(receipts=with_receipts(lambda receipt: evolve(receipt, **changes)))


def _excluded(**asked: Any) -> str:
    found = ask(128, 8192, **asked).candidate("scan.cub1024").excluded
    assert found is not None
    return found.code


def refuses(shape: tuple[int, ...], recipe_id: str = "scan.cub128", **layout: Any) -> Callable[[], str]:
    """Return why a recipe is refused."""
    return lambda: _refused(workload("scan", shape, "float16", **layout), recipe_id)


def program(expression: Any) -> Callable[[], str]:
    """Return why scan.cub128 is refused for a program."""
    return lambda: _refused(Workload(Program(Store(expression, "float16")), 4, 1024, 1024))


def reduces(expression: Any) -> Callable[[], str]:
    """Return why sum.rows1 is refused for a program."""
    return lambda: _refused(Workload(Program(Store(expression, "float16")), 4, 1024, 1024), "sum.rows1")


def _refused(work: Workload, recipe_id: str = "scan.cub128") -> str:
    return _code(prove(work, recipe(recipe_id)))


def without_clusters() -> str:
    """Return why a recipe of clusters is excluded on a GPU that has none."""
    older, now = evolve(H200, compute_capability="8.9"), identity(CLUSTERED, "float16")
    return _code(exclusion(CLUSTERED, "float16", None, None, now, older))


def _code(verdict: Proved | Refused | None) -> str:
    assert isinstance(verdict, Refused)
    return verdict.code


def rejects(shape: Any, **layout: Any) -> Callable[[], str]:
    """Return why a request is an error."""

    return lambda: _rejected(lambda: workload("scan", shape, "float32", **layout))


def _rejected(ask_for: Callable[[], object]) -> str:
    with pytest.raises(WorkloadError) as caught:
        ask_for()
    return caught.value.code


def unearned() -> str:
    """Return why an experimental recipe is not admitted."""
    with pytest.MonkeyPatch.context() as patch:
        rows = tuple(evolve(row, experimental=row.role != ORIGINAL) for row in RECIPES if row.form == "prefix.sum")
        patch.setattr(features.proof, "recipes_of", lambda form: rows)
        return _excluded()


CHANGED = Catalogue(
    "0" * 64,
    lambda row, dtype: (
        SourceIdentity("0" * 64, "0" * 64) if row.role == ORIGINAL else shipped_catalogue().identity(row, dtype)
    ),
)
RECIPES_OUTSIDE = profile_with(ranges={"recipe": [NOTHING, EVERYTHING, EVERYTHING, EVERYTHING]})
ORIGINAL_OUTSIDE = profile_with(ranges={ORIGINAL: [NOTHING, EVERYTHING, EVERYTHING]})

PRODUCED: dict[tuple[str, str], Callable[[], str]] = {
    (DECISION, "admitted"): decides(),
    (DECISION, "not_below_threshold"): decides(profile=profile_with(recipe=[1e6, 0.0, 0.0, 0.0])),
    (DECISION, "no_proved_recipe"): decides(numerics="bit_equal"),
    (DECISION, "no_eligible_recipe"): decides(receipts=with_receipts(lambda receipt: None)),
    (DECISION, "target_mismatch"): decides(target=evolve(H200, sm_count=114)),
    (DECISION, "outside_calibrated_domain"): decides(profile=ORIGINAL_OUTSIDE),
    (DECISION, "no_fit"): decides(profile=profile_with(fits=[])),
    (DECISION, "original_changed"): decides(catalogue=CHANGED),
    (DECISION, "original_unknown"): decides(
        profile=profile_priced_by("scan/2", 1.0),
        receipts=lambda row, dtype: made_receipt(row, dtype, resident_ctas_per_sm=None),
    ),
    (DECISION, "forced"): decides(forced="scan.cub128"),
    (REQUEST, "shape_invalid"): rejects(()),
    (REQUEST, "layout_unsupported"): rejects((4, 8), strides=(8, 2)),
    (REQUEST, "alignment_invalid"): rejects((4, 8), alignment_bytes=3),
    (REQUEST, "numerics_unknown"): rejects((4, 8), numerics="exact"),
    (REQUEST, "misaligned"): rejects((4, 8), alignment_bytes=2),
    (REQUEST, "index_overflow"): rejects((2**48,)),
    (REQUEST, "empty_row"): lambda: _rejected(lambda: workload("max", (4, 0), "float32")),
    (REQUEST, "nan_policy_unknown"): lambda: _rejected(lambda: rowsmith.sum(None, nan="ignore")),
    (CANDIDATE, "nan_policy_unknown"): reduces(Cast(Reduce(WIDE, nan="ignore"), "float16")),
    (CANDIDATE, "not_closed_reduction"): reduces(Cast(Prefix(WIDE), "float16")),
    (CANDIDATE, "not_normalization"): lambda: _refused(
        Workload(Program(Store(Cast(Map(WIDE, "exp"), "float16"), "float16")), 4, 1024, 1024), "softmax.held32x32"
    ),
    (CANDIDATE, "not_more_programs"): lambda: _refused(workload("sum", (9, 2048), "float16"), "sum.rows4"),
    (CANDIDATE, "width_too_large"): lambda: _refused(workload("sum", (9, 2048), "float16"), "sum.short8"),
    (CANDIDATE, "rows_not_contiguous"): lambda: _refused(
        workload("sum", (9, 16), "float16", strides=(24, 1)), "sum.staged64"
    ),
    (CANDIDATE, "incomplete_subgroup"): lambda: _code(
        prove(workload("sum", (9, 16), "float16"), evolve(recipe("sum.subgroup_e1u1"), rows_per_cta=8, dtypes=HALF))
    ),
    (CANDIDATE, "rows_are_vectors"): refuses((9, 56), "scan.cover32x8"),
    (CANDIDATE, "too_few_rows"): refuses((255, 64), "scan.vector8x8r4"),
    (CANDIDATE, "width_not_divisible"): refuses((4, 1025)),
    (CANDIDATE, "width_too_small"): refuses((4, 513)),
    (CANDIDATE, "too_many_rows"): refuses((49, 9000), "scan.split2048"),
    (CANDIDATE, "too_many_parts"): refuses((48, 2**19), "scan.split2048"),
    (CANDIDATE, "misaligned"): refuses((4, 1024), alignment_bytes=8),
    (CANDIDATE, "index_overflow"): refuses((2**31, 1024)),
    (CANDIDATE, "empty"): refuses((0, 1024)),
    (CANDIDATE, "numerics_not_permitted"): refuses((4, 1024), numerics="bit_equal"),
    (CANDIDATE, "dtype_unsupported"): program(Cast(Prefix(Cast(Load("bfloat16"), "float32")), "float16")),
    (CANDIDATE, "ordered"): program(Cast(Prefix(WIDE, ordered=True), "float16")),
    (CANDIDATE, "identity_unknown"): program(Cast(Prefix(WIDE, "xor"), "float16")),
    (CANDIDATE, "arithmetic_unsupported"): program(Prefix(Load("float16"))),
    (CANDIDATE, "not_closed_prefix"): program(Cast(Prefix(Map(WIDE, "abs")), "float16")),
    (CANDIDATE, "compile_failed"): excludes(failure="error"),
    (CANDIDATE, "resource_unknown"): excludes(registers=None),
    (CANDIDATE, "source_changed"): excludes(source="0" * 64),
    (CANDIDATE, "not_calibrated"): lambda: _excluded(
        profile=profile_with(receipts=[]), receipts=with_receipts(lambda receipt: receipt)
    ),
    (CANDIDATE, "local_memory"): excludes(local_bytes=4),
    (CANDIDATE, "zero_capacity"): excludes(resident_ctas_per_sm=0),
    (CANDIDATE, "launch_contradiction"): excludes(cluster_ctas=2),
    (CANDIDATE, "outside_calibrated_domain"): lambda: _excluded(profile=RECIPES_OUTSIDE),
    (CANDIDATE, "no_fit"): lambda: _excluded(profile=_without_recipes()),
    (CANDIDATE, "clusters_unsupported"): without_clusters,
    (CANDIDATE, "experimental_not_earned"): unearned,
    (CANDIDATE, "not_channel_norm"): lambda: _refused(
        workload("channel_l2", (2, 64, 4096), "float16"), "channel_rms.retained64"
    ),
    (CANDIDATE, "channels_differ"): lambda: _refused(
        workload("channel_l2", (2, 65, 4096), "float16"), "channel_l2.retained64"
    ),
    (CANDIDATE, "positions_not_divisible"): lambda: _refused(
        workload("channel_l2", (2, 64, 49), "float16"), "channel_l2.vector4"
    ),
    (CANDIDATE, "too_many_positions"): lambda: _refused(
        workload("channel_l2", (2, 256, 4096), "float16"), "channel_l2.tile1x128x8"
    ),
}


def _without_recipes() -> Any:
    """Return a profile that prices the original alone."""
    fit = profile_with().fits[0]
    priced = tuple(block for block in fit.blocks if block.role == ORIGINAL)
    return evolve(profile_with(), fits=(evolve(fit, blocks=priced),))


@pytest.mark.parametrize(("code", "produce"), [(key[1], f) for key, f in PRODUCED.items()], ids=map("-".join, PRODUCED))
def test_every_reason_happens(code: str, produce: Callable[[], str]) -> None:
    """There is an input for each."""
    assert produce() == code


def test_the_table_holds_what_happens_and_nothing_else() -> None:
    """Each code in each of its uses has an example above, and each example a row."""
    assert {(of, reason.code) for reason in REASONS.values() for of in reason.of} == set(PRODUCED)


def test_every_row_says_what_it_means_and_what_to_do() -> None:
    """In sentences."""
    for reason in REASONS.values():
        assert reason.meaning.endswith(".")
        assert reason.remedy.endswith(".")
    assert len({reason.meaning for reason in REASONS.values()}) == len(REASONS)


def emitted() -> Iterator[tuple[str, str]]:
    """Yield (place, code) for each code that the sources of these rooms write out."""
    for path in sorted([*(ROOT / "features").glob("*.py"), *(ROOT / "policy").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts: list[ast.expr] = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                parts = node.args if node.func.id in ("Refused", "WorkloadError") else []
            elif isinstance(node, ast.Tuple) and len(node.elts) == 3 and isinstance(node.elts[2], ast.Lambda):
                parts = node.elts
            if parts and isinstance(parts[0], ast.Constant) and isinstance(parts[0].value, str):
                yield f"{path.name}:{node.lineno}", parts[0].value


def test_every_code_in_the_sources_is_in_the_table() -> None:
    """Refusals, exclusions and errors alike."""
    found = list(emitted())
    assert len({code for _, code in found}) > 20
    assert not [(place, code) for place, code in found if code not in REASONS]
