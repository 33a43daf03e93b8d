"""Row reductions as tables: what each program reduces by, the ways through rows, and how their launches are shaped.

The catalogue is arrangements x reductions. Shapes of launches are functions of whole numbers, or of arrays of them.
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
    reorders: bool = True
    alignment: tuple[str, str] = ("any", "any")
    constants: tuple[tuple[str, str], ...] = ()
    dtypes: tuple[str, ...] = tuple(STORAGE)
    experimental: bool = False


# Roles beside those of every family: what each has of its own to pay for.
LEAN, SHORT, STAGED, FLAT, SPLIT, SUBGROUP, SCALAR, CHUNK = (
    "lean",
    "short",
    "staged",
    "flat",
    "split",
    "subgroup",
    "streamed_scalar",
    "streamed_chunk",
)
_CARRIES = {SUBGROUP: "lane", SCALAR: "scalar", CHUNK: "chunk_shaped"}
MOST_PARTS = 128
STAGE_BYTES = 16384
FLAT_ROWS, FLAT_WIDTH = 8, 8  # rows that a thread takes, and the elements that each has at most
# FP16 differs from BF16 in one conversion, and every kernel costs a compilation on six architectures.
_TRIED_DTYPES = ("bfloat16", "float32")
_PLAIN, _ALIGNED = (("ALIGNED", "0"),), (("ALIGNED", "1"),)
_ROWS_ALIGNED = ("rows", "any")


def _rows(name: str, threads: int, rows: int, phases: int, rarest: int = ALL) -> Arrangement:
    proofs = ("independent_rows", "regrouped")
    return Arrangement(
        name, "recipe", "reduce_rows.cu", threads, rows, phases, proofs, rarest, constants=(("ROWS", str(rows)),)
    )


def _short(lanes: int, rarest: int = ALL) -> Arrangement:
    rows, proofs = 256 // lanes, ("independent_rows", "short_rows")
    return Arrangement(
        f"short{lanes}", SHORT, "reduce_rows.cu", 256, rows, 4, proofs, rarest, constants=(("ROWS", str(rows)),)
    )


def _lean(lanes: int, rows: int, phases: int, rarest: int = ALL) -> Arrangement:
    return Arrangement(
        f"lean{lanes}",
        LEAN,
        "reduce_lean.cu",
        lanes * rows,
        rows,
        phases,
        ("independent_rows", "aligned_rows", "narrow_indices"),
        rarest,
        alignment=_ROWS_ALIGNED,
        constants=(("ROWS", str(rows)),),
    )


def _staged(threads: int) -> Arrangement:
    proofs = ("independent_rows", "staged_rows")
    return Arrangement(
        f"staged{threads}", STAGED, "reduce_staged.cu", threads, threads, 1, proofs, alignment=("span", "any")
    )


def _streamed(name: str, role: str, threads: int, rows: int, items: int, unroll: int, aligned: bool) -> Arrangement:
    proofs = ("independent_rows", "subgroups", *(("aligned_rows",) if aligned else ()))
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
        "recipe",
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
    _lean(512, 1, 4),
    _lean(1024, 1, 4),
    _short(2),
    _short(4),
    _short(8, MAIN),
    _staged(64),
    _staged(256),
    Arrangement(
        "flat",
        FLAT,
        "reduce_flat.cu",
        128,
        128 * FLAT_ROWS,
        1,
        ("independent_rows", "flat_rows"),
        alignment=("span", "any"),
    ),
    Arrangement("split", SPLIT, "reduce_split.cu", 256, 1, 8, ("independent_rows", "spread_rows"), MAIN),
    _streamed("subgroup_e1u1", SUBGROUP, 128, 2, 1, 1, aligned=False),
    _streamed("subgroup_e1u8", SUBGROUP, 128, 2, 1, 8, aligned=False),
    *(_streamed("subgroup_e8u1", SUBGROUP, 128, 2, 8, 1, aligned) for aligned in (False, True)),
    *(_streamed("subgroup_e8u8", SUBGROUP, 128, 2, 8, 8, aligned) for aligned in (False, True)),
    *(_streamed("streamed_scalar", SCALAR, 256, 1, 8, 1, aligned) for aligned in (False, True)),
    *(_streamed("streamed_chunk", CHUNK, 256, 1, 8, 1, aligned) for aligned in (False, True)),
)


@frozen
class Form:
    """How the kernel of the original and of `aligned` goes through rows: the cases of its switch, in order."""

    lanes: int
    phases: int
    rows_per_cta: int


# In the order of the switch. The first takes more rows than a grid holds, in rounds; a lane alone takes four rows.
ORIGINAL_FORMS = (
    Form(8, 4, 32),
    Form(1, 1, 1024),
    Form(2, 4, 128),
    Form(4, 4, 64),
    Form(32, 4, 8),
    Form(64, 8, 4),
    Form(256, 8, 4),
)
# Where the forms change, in elements: the last widths that a lane, 2, 4, 8, 32 and 64 lanes take. The rows a program
# follow from rows and width alone, so that a proof can tell them. The figures are microseconds of FP16 SUM on an H200,
# 2026-11-30, when 8 lanes took a row of up to 64, a warp one of up to 1024, and both cut it into head, body and tail.
#   8     an estimate, to be measured: 1000000 x 5 took 39.3 by 8 lanes, 20.9 by 4, 12.8 by 2; torch.compile 3.0
#   28    an estimate: what 2 lanes take in one step of 4 vectors, in FP32
#   60    an estimate, likewise by 4 lanes: 1000000 x 33 took 81.3 by a warp, 61.1 by 8 lanes, 34.7 by 4
#   128   1000000 x 127 took 323.5 by a warp, 127.1 by 16 lanes, 76.8 by 8; 65537 x 128 14.7, 8.0 and 4.8; 257 x 128 is
#         indifferent to it (1.48, 1.48, 1.51)
#   1024  1024 x 512 took 1.67 by a warp, 1.75 by two; 20000 x 340 6.2 and 8.6; 300 x 1000 1.70 and 1.66
_ALONE, _TWO, _FOUR, _EIGHT, _MEDIUM, _WIDE = LAST_WIDTHS = 8, 28, 60, 128, 1024, 16383
_FEW_ROWS, _FEW_ROWS_WIDE = 2, 2048
# The least widths that 8 lanes (in rounds, any), 2, 4, a warp, two warps and the CTA take.
FIRST_WIDTHS = (1, _ALONE + 1, _TWO + 1, _EIGHT + 1, _MEDIUM + 1, _FEW_ROWS_WIDE + 1)
# What a grid holds, by the form with the fewest rows a CTA; more rows are taken in rounds, by the form that has them.
_MOST_ROWS = 4 * (2**31 - 1)


def original_form(rows: Number, width: Number) -> Number:
    """Return the form of the original's launch: more lanes a row as rows get long, all of the CTA's for one or two."""
    in_turn = (width > _WIDE) | ((rows <= _FEW_ROWS) & (width > _FEW_ROWS_WIDE))
    few = (width > _ALONE) & (width <= _FOUR)
    warps = 4 + 1 * (width > _MEDIUM) + 1 * in_turn
    form = 1 * (width <= _ALONE) + (2 + 1 * (width > _TWO)) * few + warps * (width > _EIGHT)
    return form * (rows <= _MOST_ROWS)


def original_rows(rows: Number, width: Number) -> Number:
    """Return how many rows one CTA of the original takes at a time."""
    return _of_form(original_form(rows, width), "rows_per_cta")


def original_spread(rows: Number, width: Number) -> tuple[Number, Number, Number]:
    """Return lanes a row, vectors a step and rows a CTA of the original's launch."""
    form = original_form(rows, width)
    return _of_form(form, "lanes"), _of_form(form, "phases"), _of_form(form, "rows_per_cta")


def _of_form(form: Number, name: str) -> Number:
    return sum(getattr(entry, name) * (form == number) for number, entry in enumerate(ORIGINAL_FORMS))


def split_parts(threads: int, rows: Number, width: Number, sm_count: int) -> tuple[Number, Number]:
    """Return how many CTAs share a row of at least one element, and the 8-element units that each takes.

    A part has at least four units a thread, and about four CTAs an SM are enough; never fewer than two parts, or it
    would be no split.
    """
    units = -(-width // 8)
    by_work = -(-units // (4 * threads))
    by_sms = -(-4 * sm_count // (rows + (rows == 0)))
    parts = _less(_less(by_work, by_sms), MOST_PARTS)
    parts = parts + (2 - parts) * (parts < 2)
    return parts, -(-units // parts)


def split_workspace_bytes(rows: int, parts: int) -> int:
    """Return the bytes of a split launch's workspace: for each row a counter and a slot for each part, of 8 bytes."""
    return 8 * rows * (parts + 1)


def _less(one: Number, other: Number) -> Number:
    return one + (other - one) * (other < one)
