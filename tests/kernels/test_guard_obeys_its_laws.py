"""The guard: what may run depends on the byte intervals and boundaries alone, and every case has one verdict."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kernels.dtypes import STORAGE
from kernels.guard import VECTOR_BYTES, Span, Verdict, judge, span


@st.composite
def spans(draw: st.DrawFn, element_bytes: int | None = None) -> Span:
    """Small spans close together, so that they often meet."""
    size = element_bytes or draw(st.sampled_from([2, 4]))
    rows, width = draw(st.integers(0, 4)), draw(st.integers(0, 12))
    pitch = width + draw(st.sampled_from([0, 0, 1, 3, 8]))
    return Span(draw(st.integers(0, 120)) * size, rows, width, pitch, size)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Span, Span]:
    """Input and output as a launch has them: of one shape and dtype, their pitches apart."""
    x = draw(spans())
    y = evolve(x, address=draw(st.integers(0, 120)) * x.element_bytes, pitch=x.width + draw(st.sampled_from([0, 1, 8])))
    return draw(st.sampled_from([(x, y), (x, x)]))


def occupied(s: Span) -> set[int]:
    """Every byte from the first element to the last one, gaps between rows included."""
    if s.rows == 0 or s.width == 0:
        return set()
    return set(range(s.address, s.address + ((s.rows - 1) * s.pitch + s.width) * s.element_bytes))


@given(spans(), spans())
def test_overlap_is_having_a_byte_in_common_and_symmetric(one: Span, other: Span) -> None:
    assert one.overlaps(other) == bool(occupied(one) & occupied(other))
    assert one.overlaps(other) == other.overlaps(one)
    assert one.overlaps(one) == (one.bytes > 0)


@given(spans())
def test_bytes_are_those_of_the_whole_interval(one: Span) -> None:
    assert one.bytes == len(occupied(one))


@given(spans())
def test_aligned_means_that_every_row_starts_on_a_vector_boundary(one: Span) -> None:
    starts = [one.address + row * one.pitch * one.element_bytes for row in range(max(one.rows, 1))]
    assert one.aligned == all(start % VECTOR_BYTES == 0 for start in starts)


@given(pairs())
def test_every_pair_of_buffers_has_the_verdict_that_its_bytes_give(pair: tuple[Span, Span]) -> None:
    x, y = pair
    if occupied(x) & occupied(y):
        expected = Verdict.IN_PLACE if x == y else Verdict.OVERLAP
    else:
        expected = Verdict.RECIPE if x.aligned and y.aligned else Verdict.MISALIGNED
    assert judge(x, y) is expected


@given(pairs())
def test_input_and_output_may_change_places(pair: tuple[Span, Span]) -> None:
    assert judge(*pair) is judge(*reversed(pair))


@given(pairs(), st.integers(1, 2**40))
def test_moving_both_by_whole_vectors_changes_nothing(pair: tuple[Span, Span], vectors: int) -> None:
    moved = [evolve(s, address=s.address + vectors * VECTOR_BYTES) for s in pair]
    assert judge(*moved) is judge(*pair)


def test_cases_that_people_meet() -> None:
    """A slice beside its other half overlaps it as an interval; rows that only touch do not overlap."""
    x = span(4096, 4, 1024, 1024, "float16")
    beside = evolve(x, address=x.address + x.bytes)
    assert judge(x, beside) is Verdict.RECIPE
    assert judge(x, evolve(beside, address=beside.address - 2)) is Verdict.OVERLAP
    assert judge(x, evolve(x, address=x.address + 2 * 1024)) is Verdict.OVERLAP  # shifted by one row
    left, right = span(4096, 4, 8, 16, "float16"), span(4112, 4, 8, 16, "float16")
    assert judge(left, right) is Verdict.OVERLAP
    assert judge(x, evolve(beside, address=beside.address + 2)) is Verdict.MISALIGNED
    assert judge(x, evolve(beside, pitch=1028)) is Verdict.MISALIGNED
    assert judge(evolve(x, rows=1, pitch=1025), evolve(beside, rows=1)) is Verdict.RECIPE


@given(pairs())
def test_rows_without_gaps_may_start_anywhere(pair: tuple[Span, Span]) -> None:
    """What a recipe demands that takes rows as one run: every byte from the first to the last is an element's."""
    x, y = pair
    if occupied(x) & occupied(y):
        return
    elements = [s.rows * s.width * s.element_bytes == len(occupied(s)) for s in pair]
    expected = Verdict.RECIPE if all(elements) else Verdict.MISALIGNED
    assert judge(x, y, ("packed", "packed")) is expected or 0 in (x.rows, x.width)


def test_a_span_knows_its_elements_size() -> None:
    assert [span(0, 1, 1, 1, dtype).bytes for dtype in STORAGE] == [2, 2, 4]
