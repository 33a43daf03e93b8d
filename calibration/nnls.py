"""Relative-error-weighted nonnegative least squares: the one solver of this project, its certificate, its estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import asdict, frozen
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from calibration.errors import FitError

Floats = NDArray[np.float64]


@frozen
class Certificate:
    """The Karush-Kuhn-Tucker residuals of the scaled problem; all are zero at an exact optimum.

    With A the weighted and scaled design, z the scaled coefficients and b = 1 the weighted target:

    Attributes
    ----------
    negative : the largest amount by which a coefficient is below zero.
    gradient : the largest amount by which a component of A'(Az - b) is below zero, over `scale`.
    slackness : the largest |z_i g_i|, over `scale` squared.
    scale : the Euclidean length of b, the largest that a gradient component can be at z = 0.
    """

    negative: float
    gradient: float
    slackness: float
    scale: float

    @property
    def worst(self) -> float:
        """The largest of the three residuals."""
        return max(self.negative / self.scale, self.gradient, self.slackness)

    def to_json(self) -> dict[str, float]:
        """Return the certificate as it is stored."""
        return asdict(self)


@frozen(eq=False)
class Solution:
    """Coefficients in microseconds a unit of each feature, and how they were found."""

    coefficients: Floats
    weights: Floats
    scales: Floats
    objective: float
    certificate: Certificate
    condition: float | None


def scaled(design: ArrayLike, target_us: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    """Return design, target, weights 1 / t and column scales; `FitError` where a relative error has no meaning.

    Rows times weights have columns of length `scales`; a column of zeros gets scale 1.
    """
    x = np.ascontiguousarray(design, dtype=np.float64)
    t = np.ascontiguousarray(target_us, dtype=np.float64)
    if x.ndim != 2 or t.shape != x.shape[:1] or not t.size:
        raise FitError(f"a design of shape {x.shape} and {t.size} times do not make a least-squares problem")
    if not (np.isfinite(t).all() and (t > 0).all()):
        raise FitError("a time that is not positive and finite has no relative error")
    if not np.isfinite(x).all():
        raise FitError("a feature is not finite")
    weights = 1.0 / t
    lengths = np.sqrt(np.sum(np.square(x * weights[:, None]), axis=0))
    return x, t, weights, np.where(lengths > 0, lengths, 1.0)


def coefficients_of(design: ArrayLike, target_us: ArrayLike) -> Floats:
    """Return the coefficients that `solve` finds, without its certificate and condition, which take as long again."""
    x, t, weights, scales = scaled(design, target_us)
    try:
        found, _ = nnls(x * weights[:, None] / scales, np.ones_like(t))
    except RuntimeError as error:
        raise FitError(f"nonnegative least squares did not end: {error}") from error
    return np.where(np.any(x != 0, axis=0), found / scales, 0.0)


def solve(design: ArrayLike, target_us: ArrayLike) -> Solution:
    """Minimise the sum of ((design . c - t) / t)^2 over c >= 0, columns scaled to unit length.

    Raises
    ------
    FitError : a time is not positive, a feature is not finite, or the active-set method did not end.
    """
    x, t, weights, scales = scaled(design, target_us)
    matrix = x * weights[:, None] / scales
    coefficients = coefficients_of(design, target_us)
    return Solution(
        coefficients=coefficients,
        weights=weights,
        scales=scales,
        objective=objective(x, t, coefficients),
        certificate=certify(x, t, coefficients),
        condition=_condition(matrix),
    )


def objective(design: ArrayLike, target_us: ArrayLike, coefficients: ArrayLike) -> float:
    """Return the sum of squared relative errors."""
    x, t, _, _ = scaled(design, target_us)
    return float(np.sum(np.square((x @ np.asarray(coefficients, dtype=np.float64) - t) / t)))


def certify(design: ArrayLike, target_us: ArrayLike, coefficients: ArrayLike) -> Certificate:
    """Return how far coefficients are from the conditions that only an optimum fulfils."""
    x, t, weights, scales = scaled(design, target_us)
    matrix = x * weights[:, None] / scales
    z = np.asarray(coefficients, dtype=np.float64) * scales
    gradient = matrix.T @ (matrix @ z - np.ones_like(t))
    scale = float(np.sqrt(t.size))
    return Certificate(
        negative=max(0.0, float(-z.min())),
        gradient=max(0.0, float(-gradient.min())) / scale,
        slackness=float(np.max(np.abs(z * gradient))) / scale**2,
        scale=scale,
    )


def _condition(matrix: Floats) -> float | None:
    """Return the condition number of the columns that are not zero, or None where they are dependent."""
    used = matrix[:, np.any(matrix != 0, axis=0)]
    values = np.linalg.svd(used, compute_uv=False) if used.size else np.array([])
    if not values.size or values[-1] <= values[0] * np.finfo(np.float64).eps * max(used.shape):
        return None
    return float(values[0] / values[-1])


class RelativeNNLS(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """`solve` as a scikit-learn regressor, so that its splitters, scorers and `clone` work on it."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> RelativeNNLS:
        """Solve for nonnegative coefficients; `X` is the design, `y` the times in microseconds."""
        x = check_array(X, dtype=np.float64)
        self.solution_ = solve(x, y)
        self.coef_ = self.solution_.coefficients
        self.n_features_in_ = x.shape[1]
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Return the predicted microseconds of each row, columns added left to right as the policy does."""
        check_is_fitted(self, "coef_")
        x = check_array(X, dtype=np.float64)
        total: Floats = np.zeros(x.shape[0])
        for column, coefficient in zip(x.T, self.coef_, strict=True):
            total = total + column * coefficient
        return total

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return minus the root mean square relative error: what is minimised, and larger is better."""
        error = self.predict(X) / np.asarray(y, dtype=np.float64) - 1.0
        return -float(np.sqrt(np.average(np.square(error), weights=sample_weight)))
