"""Row reductions as tables: what each program reduces by, and the ways through rows.

The catalogue is arrangements x reductions. `kernels.reduction_shapes` shapes the launches of originals and splits.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from kernels.dtypes import STORAGE

Number = Any  # an int, or a NumPy array of them

FAMILY = "reduce"


@frozen
class Reduction:
    """What the programs of a form make of a row. `op` names it for people; `variety` says how many ways it has."""

    op: str
    form: str
    algebra: str
    suppress: bool
    mean: bool
    variety: int

    @property
    def exact(self) -> bool:
        """Whether the order of combination cannot be seen in the result."""
        return self.algebra != "sum"

    @property
    def counts(self) -> bool:
        """Whether the elements that entered are counted: the slots through which CTAs talk have no room for that."""
        return self.mean and self.suppress

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What a template is compiled with."""
        return (("ALGEBRA", self.algebra), ("SUPPRESS", str(int(self.suppress))), ("MEAN", str(int(self.mean))))


# Every arrangement, all but the experiments, those that most shapes are best served by, or the few without which a
# program would be slow. Every kernel is compiled for six architectures and measured by every sweep.
EVERY, ALL, MAIN, FEW = 4, 3, 2, 1

REDUCTIONS: dict[str, Reduction] = {
    reduction.form: reduction
    for reduction in (
        Reduction("sum", "reduce.sum", "sum", suppress=False, mean=False, variety=EVERY),
        Reduction("max", "reduce.max", "max", suppress=False, mean=False, variety=ALL),
        Reduction("min", "reduce.min", "min", suppress=False, mean=False, variety=MAIN),
        Reduction("mean", "map.divide_by_count.reduce.sum", "sum", suppress=False, mean=True, variety=MAIN),
        Reduction("nansum", "reduce.sum.suppress", "sum", suppress=True, mean=False, variety=FEW),
        Reduction("nanmax", "reduce.max.suppress", "max", suppress=True, mean=False, variety=FEW),
        Reduction("nanmin", "reduce.min.suppress", "min", suppress=True, mean=False, variety=FEW),
        Reduction("nanmean", "map.divide_by_count.reduce.sum.suppress", "sum", suppress=True, mean=True, variety=FEW),
    )
}


def out_width(form: str, width: Number) -> Number:
    """Return the elements of a result row: one where programs of the form reduce a row, else as many as it has."""
    return 1 if form in REDUCTIONS else width


@frozen
class Arrangement:
    """One way through rows; `<op>.<name>` is its recipe. Fields that are not told here are those of `Recipe`.

    Attributes
    ----------
    phases : 16-byte vectors that a lane asks for before it waits; chunks, where an experimental recipe unrolls.
    rarest : the least variety of reductions that have it.
    reorders : whether a sum is added in another order than the original's.
    constants : what the template is compiled with, besides the reduction's own.
    """

    name: str
    role: str
    template: str
    threads: int
    rows_per_cta: int
    phases: int
    proofs: tuple[str, ...]
    rarest: int = ALL
    items: int = 8
    rows_each: int = 1
    reorders: bool = True
    alignment: tuple[str, str] = ("any", "any")
    constants: tuple[tuple[str, str], ...] = ()
    dtypes: tuple[str, ...] = tuple(STORAGE)
    experimental: bool = False


# Roles beside those of every family: what each has of its own to pay for. Those of `_rows`, `_lean` and `_held` have
# their own names: how many lanes a row has is what common coefficients price worst (docs/decisions/0012).
SHORT, SEVERAL, STAGED, FLAT, SPLIT, SUBGROUP, SCALAR, CHUNK = (
    "short",
    "several",
    "staged",
    "flat",
    "split",
    "subgroup",
    "streamed_scalar",
    "streamed_chunk",
)
_CARRIES = {SUBGROUP: "lane", SCALAR: "scalar", CHUNK: "chunk_shaped"}
MOST_PARTS = 128
# Lanes that hold a row have more than this part of their elements in it: with less, a recipe of fewer lanes is there.
LEAST_SHARE = 8
# Lanes that take several rows each are there for many: with fewer CTAs, one row each spreads them over more SMs.
LEAST_CTAS = 4
# Steps that lanes take of a row at most, but for those that take the most bytes of it at once, 1024 lanes of 4 vectors.
# Fewer lanes won 20 of the 202 training geometries beyond that, by 2.4 % in the geometric mean, and were picked
# wrongly: held-out regret was 1.0114, 1.0536 at the 95th percentile, with 2 regressions; so it is 1.0109, 1.0481 and 0.
MOST_STEPS, WIDEST_STEP_BYTES = 8, 65536
STAGE_BYTES = 16384
FLAT_ROWS, FLAT_WIDTH = 8, 8  # rows that a thread takes, and the elements that each has at most
# FP16 differs from BF16 in one conversion, and every kernel costs a compilation on six architectures.
_TRIED_DTYPES = ("bfloat16", "float32")
_PLAIN, _ALIGNED = (("ALIGNED", "0"),), (("ALIGNED", "1"),)
_ROWS_ALIGNED = ("rows", "any")


def _rows(name: str, threads: int, rows: int, phases: int, rarest: int = ALL) -> Arrangement:
    proofs = ("independent_rows", "regrouped", "lanes_have_work", "few_steps")
    return Arrangement(
        name, name, "reduce_rows.cu", threads, rows, phases, proofs, rarest, constants=(("ROWS", str(rows)),)
    )


def _short(lanes: int, rarest: int = ALL) -> Arrangement:
    rows, proofs = 256 // lanes, ("independent_rows", "short_rows")
    return Arrangement(
        f"short{lanes}", SHORT, "reduce_rows.cu", 256, rows, 4, proofs, rarest, constants=(("ROWS", str(rows)),)
    )


def _lean(lanes: int, rows: int, phases: int, rarest: int = ALL) -> Arrangement:
    return Arrangement(
        f"lean{lanes}",
        f"lean{lanes}",
        "reduce_lean.cu",
        lanes * rows,
        rows,
        phases,
        ("independent_rows", "aligned_rows", "narrow_indices", "lanes_have_work", "few_steps"),
        rarest,
        alignment=_ROWS_ALIGNED,
        constants=(("ROWS", str(rows)),),
    )


def _held(lanes: int, elements: int, rarest: int = ALL, threads: int = 128) -> Arrangement:
    return Arrangement(
        f"lanes{lanes}x{elements}",
        f"lanes{lanes}x{elements}",
        "reduce_lanes.cu",
        threads,
        threads // lanes,
        elements,
        ("independent_rows", "narrow_indices", "held_rows"),
        rarest,
        items=1,
        constants=(("LANES", str(lanes)),),
    )


def _several(lanes: int, vectors: int, each: int, rarest: int = ALL) -> Arrangement:
    return Arrangement(
        f"several{lanes}x{vectors}",
        SEVERAL,
        "reduce_several.cu",
        256,
        256 // lanes * each,
        vectors,
        ("independent_rows", "narrow_indices", "held_rows", "many_rows", "aligned_rows"),
        rarest,
        rows_each=each,
        alignment=_ROWS_ALIGNED,
        constants=(("LANES", str(lanes)), ("EACH", str(each))),
    )


def _staged(threads: int) -> Arrangement:
    proofs = ("independent_rows", "staged_rows")
    return Arrangement(
        f"staged{threads}", STAGED, "reduce_staged.cu", threads, threads, 1, proofs, alignment=("span", "any")
    )


def _streamed(name: str, role: str, threads: int, rows: int, items: int, unroll: int, aligned: bool) -> Arrangement:
    proofs = ("independent_rows", "subgroups", *(("aligned_rows",) if aligned else ()), "lanes_have_work", "few_steps")
    return Arrangement(
        name + ("_aligned" if aligned else ""),
        role,
        "reduce_streamed.cu",
        threads,
        rows,
        unroll,
        proofs,
        EVERY,
        items=items,
        alignment=_ROWS_ALIGNED if aligned else ("any", "any"),
        constants=(("ROWS", str(rows)), ("CARRY", _CARRIES[role]), *(_ALIGNED if aligned else _PLAIN)),
        dtypes=_TRIED_DTYPES,
        experimental=True,
    )


ARRANGEMENTS: tuple[Arrangement, ...] = (
    Arrangement(
        "original",
        "original",
        "reduce_original.cu",
        256,
        4,
        8,
        ("independent_rows",),
        FEW,
        reorders=False,
        constants=_PLAIN,
    ),
    Arrangement(
        "aligned",
        "aligned",
        "reduce_original.cu",
        256,
        4,
        8,
        ("independent_rows", "aligned_rows"),
        reorders=False,
        alignment=_ROWS_ALIGNED,
        constants=_ALIGNED,
    ),
    _rows("rows4", 256, 4, 4),
    _rows("rows2", 256, 2, 8),
    _rows("rows1", 256, 1, 8, FEW),
    _rows("rows1t128", 128, 1, 8),
    _lean(8, 32, 4),
    _lean(32, 8, 4),
    _lean(64, 4, 8, MAIN),
    _lean(128, 1, 8),
    _lean(256, 1, 8, MAIN),
    _lean(1024, 1, 4),
    _short(4),
    _short(8, MAIN),
    _held(1, 4, FEW),
    _held(1, 8),
    _held(8, 4, FEW),
    _held(32, 4, FEW),
    _held(32, 8),
    _held(128, 8, FEW),
    _held(256, 16, threads=256),
    _several(2, 1, 8),
    _several(2, 2, 4),
    _several(4, 2, 4),
    _staged(64),
    Arrangement(
        "flat",
        FLAT,
        "reduce_flat.cu",
        128,
        128 * FLAT_ROWS,
        1,
        ("independent_rows", "flat_rows"),
        rows_each=FLAT_ROWS,
        alignment=("span", "any"),
    ),
    Arrangement("split", SPLIT, "reduce_split.cu", 256, 1, 8, ("independent_rows", "spread_rows"), FEW),
    _streamed("subgroup_e1u1", SUBGROUP, 128, 2, 1, 1, aligned=False),
    _streamed("subgroup_e1u8", SUBGROUP, 128, 2, 1, 8, aligned=False),
    *(_streamed("subgroup_e8u1", SUBGROUP, 128, 2, 8, 1, aligned) for aligned in (False, True)),
    *(_streamed("subgroup_e8u8", SUBGROUP, 128, 2, 8, 8, aligned) for aligned in (False, True)),
    *(_streamed("streamed_scalar", SCALAR, 256, 1, 8, 1, aligned) for aligned in (False, True)),
    *(_streamed("streamed_chunk", CHUNK, 256, 1, 8, 1, aligned) for aligned in (False, True)),
)


def proofs(reduction: Reduction, way: Arrangement) -> tuple[str, ...]:
    """Return what a recipe needs: where elements are counted, no split takes rows of many steps from fewer lanes."""
    return tuple(proof for proof in way.proofs if not (reduction.counts and proof == "few_steps"))


def has(reduction: Reduction, way: Arrangement) -> bool:
    """Tell whether there is a recipe of a reduction by an arrangement."""
    return reduction.variety >= way.rarest and not (reduction.counts and way.role == SPLIT)
