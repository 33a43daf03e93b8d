"""Canonical JSON is RFC 8785's: compared with an independent implementation over everything JSON can hold."""

from __future__ import annotations

import math
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from kernels.identity import canonical_json, canonical_number, digest

SAFE = 2**53 - 1  # rfc8785's bound, one less than ours
KEYS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)  # lone surrogates have no UTF-8
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**22), 10**22).map(float)
LEAVES = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | FLOATS | TEXT
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=30
)


@given(VALUES)
@example({"a": [1e-5, 1e-7, 1e16, 1e21, 1e22, -0.0, 5e-324, 1.7976931348623157e308]})
@example([12.0])
@example({"x": 1.0, "y": [2.0, {"z": 3.0}]})
@example("\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/\u2028\U0001f600\x7f")
@example({"text": "e-5 and .0, and :1234567890123456"})
def test_the_text_is_that_of_rfc_8785(value: Any) -> None:
    """Numbers of every magnitude, escapes, nesting and key order."""
    assert canonical_json(value).encode() == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_itself(value: float) -> None:
    """Shortest digits lose nothing."""
    assert float(canonical_number(value)) == value


@given(FLOATS)
def test_a_number_is_written_alike_alone_and_inside(value: float) -> None:
    """The quick path and the thorough one agree."""
    assert canonical_json([value, {"a": value}]) == f'[{canonical_number(value)},{{"a":{canonical_number(value)}}}]'


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"a": {"b": [0, v]}}])
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 2**53 + 1, -(2**53) - 1, 10**30, pytest.param(10**5000, id="huge")]
)
def test_what_another_reader_would_read_differently_is_refused(value: float, wrap: Any) -> None:
    """NaN, infinities and integers that a double does not hold."""
    with pytest.raises(ValueError):  # noqa: PT011 - the message is Python's own for NaN
        canonical_json(wrap(value))


def test_the_largest_exact_integers_are_written() -> None:
    """Up to two to the 53rd, either sign."""
    assert canonical_json([2**53, -(2**53)]) == "[9007199254740992,-9007199254740992]"


def test_text_that_no_utf_8_can_hold_is_refused() -> None:
    """A lone surrogate is an error, not a replacement character."""
    with pytest.raises(UnicodeEncodeError):
        digest({"a": "\ud800"})


@given(st.dictionaries(KEYS, st.integers(0, 9), min_size=2, max_size=6))
def test_the_order_of_members_does_not_matter(value: dict[str, int]) -> None:
    """A digest is of the value, not of how it was put together."""
    assert digest(value) == digest(dict(reversed(value.items())))


def test_a_digest_is_of_the_canonical_bytes() -> None:
    """SHA-256 of {"a":1} as any other tool computes it."""
    assert digest({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
