"""A fit is the nonnegative minimum of relative errors: planted coefficients come back, and nothing else can move it."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from calibration.errors import FitError
from calibration.fit import choose_sharing, designs_of, fit_cohort
from calibration.nnls import RelativeNNLS, certify, objective, solve
from features.schemas import schemas_of
from kernels.identity import canonical_json, digest
from kernels.recipes import RECIPES, recipe
from kernels.reductions import SHORT
from kernels.scans import BROAD, FLAT
from tests.calibration.planted import COMMIT, ENVIRONMENT, NARROWER, PLANTED, planted_cohort, receipts
from tests.made import H200


def problem(seed: int, rows: int = 60, columns: int = 4, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Return a design whose columns differ by orders of magnitude, as features do, and noisy times."""
    rng = np.random.default_rng(seed)
    design = rng.lognormal(0, 1.5, (rows, columns)) * 10.0 ** rng.integers(-2, 4, columns)
    planted = np.where(rng.random(columns) < 0.3, 0.0, rng.random(columns) + 0.1) / design.mean(axis=0)
    planted[0] = 1 / design[:, 0].mean()
    return design, design @ planted * (1 + noise * rng.uniform(-1, 1, rows))


SEEDS = st.integers(0, 10**6)


@given(SEEDS)
def test_the_certificate_holds_only_at_the_optimum(seed: int) -> None:
    """Coefficients and gradient are nonnegative, and where one is positive the other vanishes."""
    design, target_us = problem(seed)
    solution = solve(design, target_us)
    assert (solution.coefficients >= 0).all()
    assert solution.certificate.worst < 1e-10
    largest = int(np.argmax(solution.coefficients * solution.scales))
    moved = solution.coefficients.copy()
    moved[largest] *= 1.001
    assert certify(design, target_us, moved).worst > 1e-8
    assert objective(design, target_us, moved) > solution.objective


@given(SEEDS)
def test_the_order_of_rows_changes_nothing_but_the_last_bits(seed: int) -> None:
    design, target_us = problem(seed)
    order = np.random.default_rng(seed).permutation(len(target_us))
    one, other = solve(design, target_us), solve(design[order], target_us[order])
    np.testing.assert_allclose(design @ one.coefficients, design @ other.coefficients, rtol=1e-8)


@given(SEEDS)
def test_a_column_in_another_unit_is_the_same_fit_in_that_unit(seed: int) -> None:
    design, target_us = problem(seed)
    units = 10.0 ** np.random.default_rng(seed).integers(-6, 7, design.shape[1])
    one, other = solve(design, target_us), solve(design * units, target_us)
    np.testing.assert_allclose(one.coefficients, other.coefficients * units, rtol=1e-7, atol=1e-12)
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


@given(SEEDS)
def test_times_in_another_unit_scale_the_coefficients(seed: int) -> None:
    """The objective is relative: it has no unit, and a row of a thousand microseconds weighs as much as one of one."""
    design, target_us = problem(seed)
    one, other = solve(design, target_us), solve(design, target_us * 1000)
    np.testing.assert_allclose(one.coefficients * 1000, other.coefficients, rtol=1e-7, atol=1e-12)
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    np.testing.assert_allclose(one.weights, 1 / target_us)


def test_a_relative_error_weighs_alike_at_every_size() -> None:
    """Two rows that disagree by the same factor about one coefficient meet as 1/t weights say, whatever their size."""
    solution = solve([[1.0], [1000.0]], [1.0, 2000.0])
    ratios = np.array([1.0, 0.5])  # x / t of each row
    assert solution.coefficients[0] == pytest.approx(ratios.sum() / np.square(ratios).sum())


@given(SEEDS)
def test_planted_coefficients_come_back_without_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.lognormal(0, 1, (40, 3))
    planted = np.array([rng.random() + 0.1, 0.0, rng.random() + 0.1])
    np.testing.assert_allclose(solve(design, design @ planted).coefficients, planted, rtol=1e-7, atol=1e-9)


def test_a_column_of_zeros_has_scale_one_and_coefficient_zero() -> None:
    design, target_us = problem(3)
    with_zeros = np.insert(design, 1, 0.0, axis=1)
    solution = solve(with_zeros, target_us)
    assert (solution.scales[1], solution.coefficients[1]) == (1.0, 0.0)
    np.testing.assert_allclose(np.delete(solution.coefficients, 1), solve(design, target_us).coefficients, rtol=1e-9)
    assert solution.condition == pytest.approx(solve(design, target_us).condition)


def test_dependent_columns_have_no_condition_number_and_one_prediction() -> None:
    design, target_us = problem(5)
    doubled = np.column_stack([design, design[:, 0]])
    solution = solve(doubled, target_us)
    assert solution.condition is None
    np.testing.assert_allclose(
        doubled @ solution.coefficients, design @ solve(design, target_us).coefficients, rtol=1e-7
    )


@pytest.mark.parametrize("time_us", [0.0, -1.0, np.nan, np.inf])
def test_a_time_without_a_relative_error_is_refused(time_us: float) -> None:
    with pytest.raises(FitError, match="not positive and finite"):
        solve([[1.0], [2.0]], [1.0, time_us])


def test_scikit_learns_model_selection_works_on_the_estimator() -> None:
    design, target_us = problem(8)
    groups = np.arange(len(target_us)) // 3
    scores = cross_val_score(clone(RelativeNNLS()), design, target_us, groups=groups, cv=GroupKFold(5))
    assert scores.shape == (5,)
    assert (scores > -0.2).all()
    search = GridSearchCV(RelativeNNLS(), {}, cv=3).fit(design, target_us)
    np.testing.assert_allclose(search.predict(design), design @ search.best_estimator_.coef_, rtol=1e-12)


def fitted(records: tuple) -> list[dict]:  # type: ignore[type-arg]
    return fit_cohort(records, receipts(), H200, environment=digest(ENVIRONMENT), source_commit=COMMIT)


def test_a_cohort_gives_back_the_coefficients_that_made_it() -> None:
    """Without noise the planted coefficients return, at any order of records; with 1 % of noise what they predict does.

    Columns that are the same at every point cannot be told apart: what they cost together returns. So it is with all
    columns of short rows, of which the planted plan has two widths, and nearly so with the many columns of steps: of
    sixteen warps, those that take one chunk at a step do so beyond L2 nowhere.
    """
    for noise, tolerance in ((0.0, 0.01), (0.01, 0.02)):
        records = planted_cohort(noise)
        *others, fit = fitted(records)  # the planted times follow the newest schema
        schemas = schemas_of(records[0].form)
        assert [f["feature_schema"] for f in (*others, fit)] == [s.id for s in schemas]
        assert fit["form"] == records[0].form
        assert {block["role"] for block in fit["blocks"]} == {*PLANTED} - NARROWER
        for block in fit["blocks"]:
            planted = np.array([PLANTED[block["role"]][feature.name] for feature in schemas[-1].roles[block["role"]]])
            found, design = np.array(block["coefficients"]), np.array(block["design"])
            np.testing.assert_allclose(design @ found, design @ planted, rtol=tolerance)
            if noise == 0 and block["role"] not in (SHORT, FLAT, BROAD):
                varies = np.ptp(design, axis=0) > 0
                np.testing.assert_allclose(found[varies], planted[varies], rtol=0.05)
            assert block["active"] == [c > 0 for c in block["coefficients"]]
            assert len(block["points"]) == len(block["design"]) == len(block["target_us"]) == len(block["weights"])
        assert canonical_json(fitted(records[::-1])) == canonical_json([*others, fit])


def test_every_recipe_is_in_the_planted_cohort_for_every_dtype() -> None:
    """A recipe that no test plants a time of would be fitted by none. The planted widths begin at 1024."""
    planted = Counter((m.name, record.dtype) for record in planted_cohort(0.01) for m in record.recipes())
    narrow = {row.id for row in RECIPES if row.role in (SHORT, FLAT, *NARROWER)}
    assert set(planted) >= {(r.recipe, r.dtype) for r in receipts() if r.recipe not in narrow}
    assert {recipe(name).role for name, _ in planted} == {*PLANTED} - NARROWER
    assert min(times for (name, _), times in planted.items() if recipe(name).role not in (SHORT, FLAT)) >= 12


def test_only_what_was_measured_enters_and_the_cohort_names_everything() -> None:
    from attrs import evolve

    records = planted_cohort(0.01)
    original = records[0].measurements[0]
    slower = evolve(original, recheck_ns=tuple(round(s * 1.05) for s in original.samples_ns))
    moved = evolve(records[0], status="drifted", measurements=(slower, *records[0].measurements[1:]))
    fit, other = fitted(records)[0], fitted((moved, *records[1:]))[0]
    used = {point[0] for block in other["blocks"] for point in block["points"]}
    assert moved.digest not in used
    assert len(used) == len(records) - 1
    assert fit["cohort"] != other["cohort"]
    assert designs_of((moved,), receipts(), H200) == ()


def test_a_measured_recipe_without_a_receipt_is_an_error_that_names_it() -> None:
    without = [r for r in receipts() if r.recipe != "scan.cub128"]
    with pytest.raises(FitError, match=r"scan\.cub128 was measured, but there is no receipt"):
        fit_cohort(planted_cohort(0.01), without, H200, environment="0" * 64, source_commit=COMMIT)


def test_dtypes_share_a_block_unless_held_out_regret_is_lower_apart() -> None:
    table = [{"sharing": "shared", "regret_geomean": 1.02}, {"sharing": "separate", "regret_geomean": 1.01}]
    assert choose_sharing(table) == "separate"
    table[1]["regret_geomean"] = 1.02
    assert choose_sharing(table) == "shared"
