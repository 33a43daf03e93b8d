"""The public Python functions. They are forward only: a torch tensor that a gradient is asked of is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from features.errors import WorkloadError, show
from features.workload import Workload, workload
from kernels.arrays import Buffer, buffer, current_stream, empty_like, refuse_read_only, stream_pointer
from kernels.errors import LaunchError
from kernels.guard import Span, span
from kernels.target import Target
from policy.profile import Profile
from policy.select import recorded
from policy.select import select as decide
from policy.selection import Selection
from rowsmith.live import Dispatcher, Ready, dispatcher
from rowsmith.operands import NOTHING, Given
from rowsmith.profiles import profile_for


def select(
    op: str,
    shape: Sequence[int],
    dtype: str,
    *,
    strides: Sequence[int] | None = None,
    alignment_bytes: int = 16,
    numerics: str = "any",
    profile: Profile | str | None = None,
    target: Target | None = None,
    regime: str | None = None,
    recipe: str | None = None,
) -> Selection:
    """Choose a recipe for a workload and say why, from recorded receipts: no GPU is asked and nothing is timed.

    Parameters
    ----------
    op, shape, dtype, strides, alignment_bytes, numerics : as `features.workload.workload` takes them.
    profile : a profile, its name, or None for the one active profile of the regime.
    regime : `hot` (the same buffers again and again, the default) or `cold` (data that are not in L2).
    target : the silicon and toolchain to decide for; the profile's own when omitted.
    recipe : force this recipe; the policy's own pick is carried beside it.

    Raises
    ------
    FeatureError : no kernel takes the workload.
    PolicyError : the profile is unknown, or the forced recipe is not to be had.
    """
    work = workload(op, shape, dtype, strides=strides, alignment_bytes=alignment_bytes, numerics=numerics)
    chosen = profile if isinstance(profile, Profile) else profile_for(profile, regime)
    return decide(work, target or chosen.target, chosen, recorded(chosen), forced=recipe)


def scan(x: Any, out: Any = None, stream: Any = None) -> Any:
    """Inclusive sum along the last axis: FP32 additions in any order, one cast to the storage dtype at the end.

    Parameters
    ----------
    x : torch CUDA tensor (float16, bfloat16, float32) or CuPy array (float16, float32) whose last axis is contiguous.
    out : array to write, of the same shape and dtype; it may be `x`. A new one when omitted.
    stream : torch or CuPy stream or its pointer; the array library's own current stream when omitted.

    Raises
    ------
    FeatureError : no kernel takes the dtype or the layout, which must be rows of adjacent elements.
    KernelError : the array is of no GPU, or the launch is not safe.

    A row of negative zeros sums to +0.0: the additions start from zero.
    """
    return _run("scan", x, out, stream)


def row_sum(x: Any, out: Any = None, nan: str = "propagate", stream: Any = None) -> Any:
    """Sum of the last axis: FP32 additions in any order, one cast to the storage dtype at the end. Of no element, 0.

    Parameters
    ----------
    x : torch CUDA tensor (float16, bfloat16, float32) or CuPy array (float16, float32) whose last axis is contiguous.
    out : array to write, of x's dtype and of its shape without the last axis. A new one when omitted.
    nan : `propagate`, or `suppress` to leave NaN out.
    stream : torch or CuPy stream or its pointer; the array library's own current stream when omitted.

    Raises
    ------
    FeatureError : no kernel takes the dtype or the layout, which must be rows of adjacent elements.
    KernelError : the array is of no GPU, or the launch is not safe.
    """
    return _run(_reducing("sum", nan), x, out, stream)


def row_max(x: Any, out: Any = None, nan: str = "propagate", stream: Any = None) -> Any:
    """Largest element of the last axis, exactly; -0.0 is less than +0.0. As `sum`, but rows must have an element.

    With `suppress` a row of NaN alone gives -inf.
    """
    return _run(_reducing("max", nan), x, out, stream)


def row_min(x: Any, out: Any = None, nan: str = "propagate", stream: Any = None) -> Any:
    """Least element of the last axis, exactly; -0.0 is less than +0.0. As `sum`, but rows must have an element.

    With `suppress` a row of NaN alone gives +inf.
    """
    return _run(_reducing("min", nan), x, out, stream)


def row_mean(x: Any, out: Any = None, nan: str = "propagate", stream: Any = None) -> Any:
    """Sum of the last axis over its length, divided in FP32. As `sum`, but rows must have an element.

    With `suppress` NaN are left out of the sum and of the count, and a row of NaN alone gives NaN.
    """
    return _run(_reducing("mean", nan), x, out, stream)


def softmax(x: Any, out: Any = None, stream: Any = None) -> Any:
    """Exponentials of the last axis over their sum, in FP32, with arguments and errors as `scan` has them.

    Rows of -inf, or with a NaN or +inf, give NaN.
    """
    return _run("softmax", x, out, stream)


def rmsnorm(x: Any, gamma: Any = None, eps: float = 1e-6, out: Any = None, stream: Any = None) -> Any:
    """x / sqrt(mean x^2 + eps) along the last axis, times gamma, in FP32, one cast to the storage dtype at the end.

    Parameters
    ----------
    x : torch CUDA tensor (float16, bfloat16, float32) or CuPy array (float16, float32) whose last axis is contiguous.
    gamma : vector of an element for each of a row, of x's dtype; it must not overlap `out`. None multiplies by nothing.
    eps : a finite number of at least 0. A graph holds the one that it was captured with, and gamma's address: keep
        gamma for as long as the graph is replayed.
    out : array to write, of the same shape and dtype; it may be `x`. A new one when omitted.
    stream : torch or CuPy stream or its pointer; the array library's own current stream when omitted.

    Raises
    ------
    FeatureError : no kernel takes the dtype or the layout, which must be rows of adjacent elements.
    KernelError : an array is of no GPU, a weight or eps is not what it must be, or the launch is not safe.

    The square of 1e20 is inf in FP32, and such a row 0; with `eps` 0 a row of zeros is NaN.
    """
    return _weighed("rmsnorm", x, out, stream, eps, gamma=gamma)


def layernorm(
    x: Any, gamma: Any = None, beta: Any = None, eps: float = 1e-5, out: Any = None, stream: Any = None
) -> Any:
    """(x - mean x) / sqrt(mean (x - mean x)^2 + eps) along the last axis, times gamma, plus beta, as `rmsnorm`.

    `beta` needs a `gamma`. A constant row is 0 before beta, and with `eps` 0 NaN; so is one with a NaN or an infinity.
    Where squared differences overflow, at 1e19 or so, a row is 0 before beta, as long as elements lie within 1.7e38.
    """
    if beta is not None and gamma is None:
        raise LaunchError("beta is given without gamma, and no kernel adds it alone; pass gamma, too, of ones")
    return _weighed("layernorm", x, out, stream, eps, gamma=gamma, beta=beta)


def _weighed(op: str, x: Any, out: Any, stream: Any, eps: float, **weights: Any) -> Any:
    """Run the program of an op with those of the weights that are there: each has a name of its own."""
    there = {name: weight for name, weight in weights.items() if weight is not None}
    return _run("_".join((op, *there)), x, out, stream, Given(there, {"eps": eps}))


def channel_rms(x: Any, eps: float = 1e-5, out: Any = None, stream: Any = None) -> Any:
    """Divide by the root of (mean square of the channels + eps), in FP32; one cast to the storage dtype at the end.

    Parameters
    ----------
    x : contiguous torch CUDA tensor (float16, bfloat16, float32) or CuPy array (float16, float32) of images, channels
        and any number of further extents; the channels are those of one position of an image.
    eps : finite, 0 or more.
    out : contiguous array to write, of the same shape and dtype; it may be `x`. A new one when omitted.
    stream : torch or CuPy stream or its pointer; the array library's own current stream when omitted.

    Raises
    ------
    FeatureError : no kernel takes the dtype or the layout, which must have no gaps.
    KernelError : the array is of no GPU, eps is no such number, or the launch is not safe.
    """
    return _run("channel_rms", x, out, stream, Given({}, {"eps": eps}))


def channel_mean_abs(x: Any, out: Any = None, stream: Any = None) -> Any:
    """Divide by the mean magnitude of the channels. As `channel_rms`; positions whose channels are all 0 give NaN."""
    return _run("channel_mean_abs", x, out, stream)


def channel_l2(x: Any, out: Any = None, stream: Any = None) -> Any:
    """Divide by the L2 norm of the channels. As `channel_rms`; positions whose channels are all 0 give NaN."""
    return _run("channel_l2", x, out, stream)


# What goes before an op's name for a NaN policy.
_NAN_OPS = {"propagate": "", "suppress": "nan"}


def _reducing(op: str, nan: str) -> str:
    if nan not in _NAN_OPS:
        raise WorkloadError("nan_policy_unknown", "nan", f"nan {show(nan)} is not one of {', '.join(_NAN_OPS)}")
    return _NAN_OPS[nan] + op


def prepare(op: str, x: Any, *, recipe: str | None = None, scratch: bool = False) -> Ready:
    """Compile, decide and load for arrays like `x`, so that a graph capture that follows needs none of it.

    `scratch` reserves a copy of x for an `out` that overlaps it in part. The answer holds the selection and the search.

    An op with weights has a name of its own: `rmsnorm_gamma`, `layernorm_gamma`, `layernorm_gamma_beta`. What is
    prepared serves all weights and every eps.

    A recipe that splits rows takes a workspace for each capture. Every call keeps 16 ready for the captures to come; a
    capture that finds none records the original. Two graphs made from one capture must not run at the same time.
    """
    source = buffer(x, "x")
    work = _workload(op, source, "x")
    ready = _dispatcher(source).ready(work, forced=recipe)
    ready.prepared.expect_captures()
    if scratch:
        ready.prepared.reserve(_span(source, work).bytes + 16)
    return ready


def _run(op: str, x: Any, out: Any, stream: Any, given: Given = NOTHING) -> Any:
    source = buffer(x, "x")
    work = _workload(op, source, "x")
    operands = given.operands(source)
    asked = None if stream is None else stream_pointer(stream)
    reduces = work.program.expression.type()[1] == "scalar"
    wanted = evolve(source, shape=source.shape[:-1]) if reduces else source
    result = empty_like(x, wanted, asked) if out is None else out
    target = buffer(result, "out")
    refuse_read_only(result, "out")
    if (target.shape, target.dtype, target.device) != (wanted.shape, wanted.dtype, wanted.device):
        raise LaunchError(
            f"out is {target.dtype} {target.shape} on device {target.device}; "
            f"it must be {wanted.dtype} {wanted.shape} on device {wanted.device}, " + _LIKE[reduces]
        )
    onto = _workload(op, _with_last_axis(target) if reduces else target, "out")
    pointer = current_stream(x, source.device) if asked is None else asked
    _dispatcher(source).run(work, _span(source, work), _span(target, onto), pointer, operands)
    return result


_LIKE = {False: "like x", True: "like x without its last axis"}


def _with_last_axis(target: Buffer) -> Buffer:
    """Return results as rows of one element."""
    return evolve(target, shape=(*target.shape, 1), strides=(*target.strides, 1))


def _workload(op: str, source: Buffer, name: str) -> Workload:
    try:
        return workload(op, source.shape, source.dtype, strides=source.strides)
    except WorkloadError as error:
        raise WorkloadError(error.code, name, f"{name}: {error}") from None


def _span(source: Buffer, work: Workload) -> Span:
    return span(source.address, work.rows, work.width, work.row_pitch, work.dtype, work.inner)


def _dispatcher(source: Buffer) -> Dispatcher:
    return dispatcher(source.device)
