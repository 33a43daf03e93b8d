"""Every reason code, what it means and what the reader can do about it. A code is never used for two things."""

from __future__ import annotations

from attrs import frozen

DECISION = "decision"
CANDIDATE = "recipe"


@frozen
class Reason:
    """`of` tells whether the code explains a decision or one recipe; some explain both, by the same fact."""

    code: str
    of: tuple[str, ...]
    meaning: str
    remedy: str


_D, _R = (DECISION,), (CANDIDATE,)

REASONS: dict[str, Reason] = {
    reason.code: reason
    for reason in (
        Reason(
            "admitted",
            _D,
            "A recipe scores strictly below 95 % of the original.",
            "Nothing to do; the score ranks, it does not promise a run time.",
        ),
        Reason(
            "not_below_threshold",
            _D,
            "The best eligible recipe does not score strictly below 95 % of the original, which is kept.",
            "Nothing to do; name a recipe to force it.",
        ),
        Reason(
            "no_proved_recipe",
            _D,
            "No recipe besides the original is proved legal for this workload.",
            "Read each recipe's refusal; a width that fits a recipe's chunk, or 16-byte aligned rows, opens more.",
        ),
        Reason(
            "no_eligible_recipe",
            _D,
            "Every proved recipe is excluded by its receipt, its domain or its standing.",
            "Read each recipe's exclusion; `rowsmith doctor` shows receipts that do not match.",
        ),
        Reason(
            "target_mismatch",
            _D,
            "The profile was calibrated on other silicon or another toolchain, so its scores do not apply.",
            "Calibrate this machine: rowsmith calibrate --out packet.zip (about three minutes a family).",
        ),
        Reason(
            "outside_calibrated_domain",
            (DECISION, CANDIDATE),
            "A feature lies outside the range that the fit was calibrated on; nothing is extrapolated.",
            "Calibrate with a plan that spans this shape, or force a recipe.",
        ),
        Reason(
            "no_fit",
            _D,
            "The profile holds no fit for this program and dtype, or one of another original.",
            "Use a profile that covers the program, or calibrate one.",
        ),
        Reason("forced", _D, "The request named the recipe.", "Leave the recipe out to ask the policy."),
        Reason(
            "width_not_divisible",
            _R,
            "The width is not a multiple of the recipe's chunk.",
            "Pad rows to a multiple of the chunk, or use a recipe with a smaller one.",
        ),
        Reason("width_too_small", _R, "The width is less than one chunk of the recipe.", "Use a recipe with fewer threads."),
        Reason("dtype_unsupported", _R, "The recipe has no kernel for this storage dtype.", "Use a dtype from its list."),
        Reason(
            "layout_unsupported",
            _R,
            "The strides are not rows of adjacent elements one pitch apart.",
            "Copy to contiguous rows first.",
        ),
        Reason(
            "misaligned",
            _R,
            "A base or the row pitch is not a multiple of 16 bytes.",
            "Align allocations to 16 bytes and pad rows to whole vectors.",
        ),
        Reason("index_overflow", _R, "A grid or an index exceeds what the launch can hold.", "Split the tensor."),
        Reason("empty", _R, "There is no element to work on.", "Nothing to do: nothing is launched."),
        Reason("ordered", _R, "The program demands ordered additions and the recipe reorders them.", "Allow reordering."),
        Reason(
            "not_closed_prefix",
            _R,
            "The program is not one load, one prefix along the row and one store.",
            "Express the work as a closed prefix, or leave it to the original.",
        ),
        Reason("identity_unknown", _R, "The combination has no recognised identity.", "Use a sum."),
        Reason("arithmetic_unsupported", _R, "The program does not compute in FP32.", "Cast to float32 before the collective."),
        Reason("not_resident", _R, "CTAs that must meet are not all resident at once.", "Use fewer rows or another recipe."),
        Reason(
            "numerics_not_permitted",
            _R,
            "The request demands results bit-equal to the original and the recipe reorders additions.",
            "Ask with numerics any.",
        ),
        Reason("compile_failed", _R, "The kernel did not compile or load.", "Read the receipt's failure; run rowsmith doctor."),
        Reason("resource_unknown", _R, "The receipt is missing, or one of its facts is unknown.", "Run rowsmith doctor on a GPU."),
        Reason(
            "source_changed",
            _R,
            "The receipt was made from another source or other options than the catalogue holds or the profile was made with.",
            "Calibrate again: a changed kernel needs a new fit.",
        ),
        Reason("local_memory", _R, "The compiled kernel uses local memory.", "Nothing to do: spilling kernels are not scored."),
        Reason("zero_capacity", _R, "Not one CTA of the kernel fits on an SM.", "Nothing to do."),
        Reason(
            "launch_contradiction",
            _R,
            "The receipt contradicts the launch: more threads, registers or shared bytes than the target has.",
            "Query the receipts again with rowsmith doctor.",
        ),
        Reason(
            "experimental_not_earned",
            _R,
            "The recipe is experimental and no validation of this profile earned it.",
            "Force it by name.",
        ),
    )
}
