"""How the launches of a reduction's original and of its splits are shaped, for whole numbers or arrays of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from kernels.reductions import MOST_PARTS

Number = Any  # an int, or a NumPy array of them


@frozen
class Form:
    """How the kernel of the original and of `aligned` goes through rows: the cases of its switch, in order."""

    lanes: int
    phases: int
    rows_per_cta: int


# In the order of the switch. A lane alone takes four rows; 8 lanes may take more rows than a grid holds, in rounds.
ORIGINAL_FORMS = (
    Form(1, 1, 1024),
    Form(2, 4, 128),
    Form(4, 4, 64),
    Form(8, 4, 32),
    Form(32, 4, 8),
    Form(64, 8, 4),
    Form(256, 8, 4),
)
IN_ROUNDS = 3
# The last widths that a lane, 2, 4, 8, 32 and 64 lanes take, of few rows and of many. The rows a program follow from
# rows and width alone, so that a proof can tell them. Microseconds of FP16 SUM, H200, 2026-11-30, by lanes a row:
#   many rows  1000000 x 16 13.2 by 2, 24.4 by 4; x 33 22.4, 34.7; x 64 35.1, 39.1, 69.9 by 8; x 127 68.7, 63.4, 87.4;
#              65537 x 340 9.3, 10.2, 11.9, 20.0 by a warp; 20000 x 1000 10.0, 7.7, 9.5, 8.2
#   few rows   257 x 128 1.46 by a warp, 1.62 by 8; 300 x 1000 1.70 by a warp, 1.66 by two; 1024 x 512 1.67, 1.75; FP32
#              17 x 1024 1.94, 1.49
MANY_ROWS = 16384
LAST_WIDTHS_OF_FEW = (8, 28, 60, 96, 1023, 16383)
LAST_WIDTHS_OF_MANY = (8, 64, 1024, 1024, 1024, 16383)
_FEW_ROWS, _FEW_ROWS_WIDE = 2, 2048  # a row or two of more than that: all of the CTA's lanes
# What a grid holds, by the form with the fewest rows a CTA.
_MOST_ROWS = 4 * (2**31 - 1)
_MOST_WIDTH = 2**63 - 1


def original_form(rows: Number, width: Number) -> Number:
    """Return the form of the original's launch: more lanes a row as rows get long, all of the CTA's for one or two."""
    many = 1 * (rows >= MANY_ROWS)
    lasts = zip(LAST_WIDTHS_OF_FEW, LAST_WIDTHS_OF_MANY, strict=True)
    past = [(1 - many) * (width > of_few) + many * (width > of_many) for of_few, of_many in lasts]
    wide = 1 * (past.pop() | ((rows <= _FEW_ROWS) & (width > _FEW_ROWS_WIDE)))
    form = sum(past) + wide
    return form + (IN_ROUNDS - form) * (rows > _MOST_ROWS)


def original_ranges() -> Iterator[tuple[Form, int, int]]:
    """Yield forms with the least and the most width they meet; rows so many that rounds take them are short."""
    yield ORIGINAL_FORMS[IN_ROUNDS], 1, LAST_WIDTHS_OF_FEW[IN_ROUNDS]
    yield ORIGINAL_FORMS[-1], _FEW_ROWS_WIDE + 1, _MOST_WIDTH
    for lasts in (LAST_WIDTHS_OF_FEW, LAST_WIDTHS_OF_MANY):
        for form, before, last in zip(ORIGINAL_FORMS, (0, *lasts), (*lasts, _MOST_WIDTH), strict=True):
            if before < last:
                yield form, before + 1, last


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
