"""Loading every recipe that a plan measures: kernels, receipts, and why the others cannot be measured."""

from __future__ import annotations

from calibration.plan import Plan
from kernels import driver
from kernels.errors import CompileError
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import RECIPES
from kernels.source import identity
from policy.exclusion import exclusion

EMPTY = Recipe("baseline.empty", "none", "baseline", "empty.cu", 1, 1, 1, (), "bit_equal")


def load_all(
    plan: Plan, device: int
) -> tuple[dict[tuple[str, str], driver.Kernel], list[Receipt], dict[tuple[str, str], tuple[str, str]]]:
    """Load and query every recipe of the plan's forms: kernels, every receipt, and why the unusable ones are."""
    kernels: dict[tuple[str, str], driver.Kernel] = {}
    receipts: list[Receipt] = []
    excluded: dict[tuple[str, str], tuple[str, str]] = {}
    target = driver.live_target(device)
    for recipe in _recipes(plan):
        for dtype in recipe.dtypes:
            try:
                kernel = driver.load(recipe, dtype, device)
            except CompileError as error:
                receipts.append(driver.failed_receipt(recipe, dtype, device, error))
                excluded[recipe.id, dtype] = ("failed_compile", str(error))
                continue
            receipts.append(kernel.receipt)
            made_from = identity(recipe, dtype)
            unclean = exclusion(recipe, dtype, kernel.receipt, kernel.receipt, made_from, target)
            if unclean is None or recipe.role == ORIGINAL:
                kernels[recipe.id, dtype] = kernel
            else:
                excluded[recipe.id, dtype] = ("excluded", f"{unclean.code}: {unclean.fact}")
    return kernels, receipts, excluded


def _recipes(plan: Plan) -> tuple[Recipe, ...]:
    return tuple(recipe for recipe in RECIPES if recipe.form in plan.forms)
