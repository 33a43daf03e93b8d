"""Every reason code, what it means and what the reader can do about it. A code is never used for two things."""

from __future__ import annotations

from attrs import frozen

from policy.judging import COLD, HOT

REQUEST = "request"
DECISION = "decision"
CANDIDATE = "recipe"
CALIBRATE = "calibrate it: `rowsmith calibrate --out packet.zip`, about seven minutes a family"
CALIBRATE_IN = {HOT: CALIBRATE, COLD: CALIBRATE.replace("--out", "--regime cold --out")}


@frozen
class Reason:
    """`of` tells whether the code refuses a request, or explains a decision or a recipe; some do two, by one fact."""

    code: str
    of: tuple[str, ...]
    meaning: str
    remedy: str


_Q, _D, _R = (REQUEST,), (DECISION,), (CANDIDATE,)

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
            f"Where this machine is meant, {CALIBRATE}.",
        ),
        Reason(
            "outside_calibrated_domain",
            (DECISION, CANDIDATE),
            "A feature lies outside the range that the fit was calibrated on; nothing is extrapolated.",
            "Calibrate with a plan that spans this shape, or force a recipe.",
        ),
        Reason(
            "no_fit",
            (DECISION, CANDIDATE),
            "The profile holds no coefficients for the program, the dtype or the recipe's role.",
            "Use a profile that covers the program, or calibrate one.",
        ),
        Reason(
            "original_changed",
            _D,
            "The original is made from another source or with other options than the profile was calibrated with.",
            "Calibrate again, or use the release that the profile came with.",
        ),
        Reason(
            "original_unknown",
            _D,
            "The schema asks for the original's capacity and its receipt does not tell it, so it has no score.",
            "Query the receipts again with rowsmith doctor.",
        ),
        Reason("forced", _D, "The request named the recipe.", "Leave the recipe out to ask the policy."),
        Reason(
            "width_not_divisible",
            _R,
            "The width is not a multiple of the recipe's chunk.",
            "Pad rows to a multiple of the chunk, or use a recipe with a smaller one.",
        ),
        Reason(
            "width_too_small",
            _R,
            "The width is less than one chunk of the recipe, no more than one part where CTAs share a row, or would "
            "leave most of a row's threads idle.",
            "Use a recipe with a smaller chunk or part, or fewer threads a row.",
        ),
        Reason(
            "too_many_rows",
            _R,
            "The recipe spreads a row widely, and there are more rows than that pays for.",
            "Nothing to do: with so many rows, others fill the GPU and were faster nearly wherever it was measured.",
        ),
        Reason(
            "too_many_parts",
            _R,
            "Splitting the rows over CTAs takes more of them than its workspace holds.",
            "Nothing to do: CTAs that take whole rows, or larger parts of them, fill the GPU.",
        ),
        Reason(
            "dtype_unsupported", _R, "The recipe has no kernel for this storage dtype.", "Use a dtype from its list."
        ),
        Reason(
            "shape_invalid",
            _Q,
            "The shape is not a list of 1 to 64 nonnegative whole extents.",
            "Send the array's shape, the row last.",
        ),
        Reason(
            "empty_row",
            _Q,
            "A row has no element and the program has no result of none: an extreme, or a mean.",
            "Give every row an element; a sum takes empty rows.",
        ),
        Reason(
            "layout_unsupported",
            _Q,
            "The strides are not rows of adjacent elements one pitch apart.",
            "Copy to contiguous rows first.",
        ),
        Reason(
            "alignment_invalid",
            _Q,
            "The alignment is not a power of two of bytes.",
            "Leave it out for 16, or send the power of two that divides every base address.",
        ),
        Reason("numerics_unknown", _Q, "The numerics demanded are not known.", "Use any or bit_equal."),
        Reason(
            "misaligned",
            (REQUEST, CANDIDATE),
            "A base or the row pitch is not a multiple of what one access reads: an element, or 16 bytes for a recipe.",
            "Align allocations to 16 bytes and pad rows to whole vectors.",
        ),
        Reason(
            "index_overflow",
            (REQUEST, CANDIDATE),
            "A tensor, a grid or an index is larger than a GPU or the launch can hold.",
            "Split the tensor.",
        ),
        Reason("empty", _R, "There is no element to work on.", "Nothing to do: nothing is launched."),
        Reason(
            "ordered", _R, "The program demands ordered additions and the recipe reorders them.", "Allow reordering."
        ),
        Reason(
            "not_closed_prefix",
            _R,
            "The program is not one load, one prefix along the row and one store.",
            "Express the work as a closed prefix, or leave it to the original.",
        ),
        Reason(
            "not_closed_reduction",
            _R,
            "The program is not one load, one reduction of the row, at most a division by the count, and one store.",
            "Express the work as a closed reduction.",
        ),
        Reason(
            "not_normalization",
            _R,
            "The program is not the softmax, RMSNorm or LayerNorm that the recipe computes, with its weights.",
            "Express the work as one of them in FP32, of the whole row.",
        ),
        Reason(
            "not_channel_norm",
            _R,
            "The program is not the channels of a position over their root mean square, mean magnitude or L2 norm.",
            "Express the work as a channel norm in FP32 of all channels.",
        ),
        Reason(
            "channels_differ",
            _R,
            "The recipe is compiled for another number of channels.",
            "Nothing to do: recipes of any number of channels take these.",
        ),
        Reason(
            "positions_not_divisible",
            _R,
            "The positions of an image are not a multiple of those that a thread takes at once.",
            "Pad images to a multiple of 8 positions, or use a recipe of one position a thread.",
        ),
        Reason(
            "too_many_positions",
            _R,
            "Neighbouring threads would take neighbouring channels, which lie an image's positions apart.",
            "Nothing to do: recipes whose neighbouring threads take positions take these.",
        ),
        Reason("identity_unknown", _R, "The combination has no recognised identity.", "Use a sum, a max or a min."),
        Reason(
            "nan_policy_unknown",
            (REQUEST, CANDIDATE),
            "The reduction's NaN policy is not known.",
            "Use propagate or suppress.",
        ),
        Reason(
            "not_more_programs",
            _R,
            "The original already takes as few rows a program at this width, so nothing would be regrouped.",
            "Nothing to do.",
        ),
        Reason(
            "width_too_large",
            _R,
            "The width is more than the recipe takes: a few vectors a lane, or what shared memory holds.",
            "Use a recipe with more lanes a row.",
        ),
        Reason(
            "rows_are_vectors",
            _R,
            "Every row is whole 16-byte vectors on boundaries, so the recipe's care for the ends of rows is lost.",
            "Nothing to do: recipes that move nothing but vectors take these rows.",
        ),
        Reason(
            "too_few_rows",
            _R,
            "Lanes that take several rows each would leave SMs without any.",
            "Nothing to do: recipes of one row a lane take these rows.",
        ),
        Reason(
            "rows_not_contiguous",
            _R,
            "There are gaps between the rows and the recipe moves them as one span.",
            "Copy to rows without gaps.",
        ),
        Reason(
            "incomplete_subgroup",
            _R,
            "A row is not taken by complete subgroups of 32 lanes.",
            "Use a recipe of whole warps a row.",
        ),
        Reason(
            "arithmetic_unsupported",
            _R,
            "The program does not compute in FP32.",
            "Cast to float32 before the collective.",
        ),
        Reason(
            "numerics_not_permitted",
            _R,
            "The request demands results bit-equal to the original and the recipe reorders additions.",
            "Ask with numerics any.",
        ),
        Reason(
            "compile_failed",
            _R,
            "The kernel did not compile or load.",
            "Read the receipt's failure; run rowsmith doctor.",
        ),
        Reason(
            "resource_unknown",
            _R,
            "The receipt is missing, or one of its facts is unknown.",
            "Run rowsmith doctor on a GPU.",
        ),
        Reason(
            "not_calibrated",
            _R,
            "The profile was made without this recipe, or without this dtype of it.",
            "Calibrate again to let it compete.",
        ),
        Reason(
            "source_changed",
            _R,
            "The receipt is of another source or other options than the catalogue's or the profile's.",
            "Calibrate again: a changed kernel needs a new fit.",
        ),
        Reason(
            "local_memory",
            _R,
            "The compiled kernel uses local memory.",
            "Nothing to do: spilling kernels are not scored.",
        ),
        Reason(
            "zero_capacity",
            _R,
            "Not one CTA of the kernel fits on an SM, or not one cluster of them on the GPU.",
            "Nothing to do.",
        ),
        Reason(
            "clusters_unsupported",
            _R,
            "The recipe is launched in clusters of CTAs, which the target's compute capability does not have.",
            "Nothing to do: GPUs of compute capability 9.0 and later have clusters.",
        ),
        Reason(
            "launch_contradiction",
            _R,
            "The receipt contradicts the launch: another kernel or architecture, or more than the target holds.",
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
