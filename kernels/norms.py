"""Row normalizations as tables: forms, algebras, and the ways through rows that hold or stream them.

Numbers are whole numbers, or arrays of them.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from kernels.dtypes import STORAGE
from kernels.recipe import Recipe

Number = Any  # an int, or a NumPy array of them

FAMILY = "rownorm"


@frozen
class Norm:
    """What the programs of a form make of a row. `op` names it for people.

    Attributes
    ----------
    algebra : what the templates are compiled with.
    weights : vectors that all rows share: times the first, plus the second.
    parameters : names of the scalars that its kernels take.
    fitted : whether the family's fit is of its programs, too. One form of each algebra is, with as many weights as
        people use; what the others cost lies between.
    """

    op: str
    form: str
    algebra: str
    weights: int
    parameters: tuple[str, ...]
    fitted: bool

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What a template is compiled with."""
        return (
            ("ALGEBRA", self.algebra.capitalize()),
            ("WEIGHTS", str(self.weights)),
            ("PARAMETERS", str(len(self.parameters))),
        )


SOFTMAX = "divide(map.exp.subtract(x,reduce.max),reduce.sum.map.exp.subtract(x,reduce.max))"
_CENTRED = "subtract(x,map.divide_by_count.reduce.sum)"
RMSNORM = "multiply(x,map.rsqrt.add(map.divide_by_count.reduce.sum.map.square,eps))"
LAYERNORM = f"multiply({_CENTRED},map.rsqrt.add(map.divide_by_count.reduce.sum.map.square.{_CENTRED},eps))"
_EPS = ("eps",)
NORMS: dict[str, Norm] = {
    norm.form: norm
    for norm in (
        Norm("softmax", SOFTMAX, "softmax", 0, (), fitted=True),
        Norm("rmsnorm", RMSNORM, "rms", 0, _EPS, fitted=False),
        Norm("rmsnorm_gamma", f"multiply({RMSNORM},w0)", "rms", 1, _EPS, fitted=True),
        Norm("layernorm", LAYERNORM, "layer", 0, _EPS, fitted=False),
        Norm("layernorm_gamma", f"multiply({LAYERNORM},w0)", "layer", 1, _EPS, fitted=False),
        Norm("layernorm_gamma_beta", f"add(multiply({LAYERNORM},w0),w1)", "layer", 2, _EPS, fitted=True),
    )
}


@frozen
class Algebra:
    """What kernels carry of a row, and how its error grows.

    Attributes
    ----------
    state, state_bytes : what a step leaves for the next one where a row is read in steps.
    reductions : over the lanes of a row, one after the other, where they hold it.
    in_pack, a_pack, a_merge, at_last : roundings of 2^-24 of the scale of `kernels.norm_references`: an element of a
        pack that a lane sums, a pack that joins its state, a merge of two states, and what a result takes besides.
    """

    state: str
    state_bytes: int
    reductions: int
    in_pack: int
    a_pack: int
    a_merge: int
    at_last: int


# `rsqrtf` and `ex2` err by 2 ulp, four roundings each. Of a softmax, a state that joins another is multiplied by an
# exponential, and a result is made of two of them, three products and a division. Of the others a result takes a square
# or a difference, a division, eps, `rsqrtf`, a product and two weights. Differences from a mean are up to twice the
# elements, and a merge of means takes a quotient, a product and a sum.
ALGEBRAS = {
    "softmax": Algebra("(largest element, sum of exponentials)", 8, 2, in_pack=1, a_pack=6, a_merge=6, at_last=16),
    "rms": Algebra("sum of squares", 4, 1, in_pack=1, a_pack=1, a_merge=1, at_last=10),
    "layer": Algebra(
        "(count, mean, sum of squared differences from it)", 12, 2, in_pack=2, a_pack=3, a_merge=3, at_last=12
    ),
}
# Rows of at most this many elements are a warp's in the original, longer ones a CTA's: to be measured.
LAST_WARP_WIDTH = 1024

LANES_HELD = "norm_held.cu"
_ANYWHERE = ("any", "any")
_ROWS_ALIGNED = ("rows", "rows")


@frozen
class Holding:
    """A way that keeps rows on chip; `<op>.<name>` is its recipe, and `name` its role: lanes cost what they cost.

    Attributes
    ----------
    moves : `vectors` of rows that are whole vectors on boundaries, or vectors that `cover` a row of any base.
    phases : packs of eight elements a lane.
    """

    lanes: int
    phases: int
    moves: str

    @property
    def name(self) -> str:
        """Lanes a row, and elements a lane."""
        return f"{'held' if self.moves == 'vectors' else 'cover'}{self.lanes}x{8 * self.phases}"

    @property
    def threads(self) -> int:
        """Threads a CTA: 128, or as many as a row takes."""
        return max(128, self.lanes)

    @property
    def proofs(self) -> tuple[str, ...]:
        """What it needs besides the expression."""
        return ("row_in_lanes", "aligned_rows") if self.moves == "vectors" else ("row_in_cover",)

    @property
    def alignment(self) -> tuple[str, str]:
        """What a launch demands of x and y."""
        return _ROWS_ALIGNED if self.moves == "vectors" else _ANYWHERE

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What the template is compiled with."""
        return (("LANES", str(self.lanes)), ("MOVES", self.moves))


# Lanes and packs, from rows of a lane each to those of a whole CTA. Four packs a lane are 16 registers, 32 of FP32.
_HELD = ((1, 2), (8, 1), (32, 1), (32, 2), (32, 4), (128, 2), (128, 4), (256, 4), (512, 4), (1024, 4))
HOLDINGS = tuple(Holding(lanes, phases, moves) for moves in ("vectors", "cover") for lanes, phases in _HELD)

# Threads a row and packs of eight elements a thread at a step, of rows that are read twice.
STREAMS = ((256, 2), (512, 2), (1024, 2))


@frozen
class Clustering:
    """A way whose rows the CTAs of a cluster share; `<op>.<name>` is its recipe, and `name` its role.

    Attributes
    ----------
    ctas, threads : CTAs a cluster, threads of each.
    phases : packs of eight elements a thread, in all where CTAs hold the row and at a step where they read it twice.
    """

    ctas: int
    threads: int
    phases: int
    held: bool = True
    dtypes: tuple[str, ...] = tuple(STORAGE)

    @property
    def name(self) -> str:
        """CTAs, threads of each, and elements a thread where they are held."""
        return f"cluster{self.ctas}x{self.threads}" + (f"x{8 * self.phases}" if self.held else "")

    @property
    def template(self) -> str:
        """The file of its kernels."""
        return CLUSTER_HELD if self.held else CLUSTER_STREAMED


CLUSTER_HELD, CLUSTER_STREAMED = "norm_cluster.cu", "norm_cluster_streamed.cu"
_HALVES = ("float16", "bfloat16")
# From rows of 2k elements, of which each CTA has as little as it can, to rows of 2^20, of which 16 CTAs hold as much as
# their registers do: 64 elements of 2 bytes a thread, or 32 of FP32. Only rows beyond are worth reading twice.
CLUSTERINGS = (
    Clustering(2, 512, 2),
    Clustering(4, 256, 2),
    Clustering(8, 256, 2),
    Clustering(16, 256, 2),
    Clustering(4, 1024, 4),
    Clustering(16, 1024, 2),
    Clustering(16, 1024, 4, dtypes=("float32",)),
    Clustering(16, 1024, 8, dtypes=_HALVES),
    Clustering(16, 512, 4, held=False),
)


def original_lanes(width: Number) -> Number:
    """Return the lanes that take a row of the original."""
    return 32 + (256 - 32) * (width > LAST_WARP_WIDTH)


def algebra_of(recipe: Recipe) -> Algebra:
    """Return the algebra of a normalization's recipe."""
    return ALGEBRAS[NORMS[recipe.form].algebra]


def holds(recipe: Recipe) -> bool:
    """Tell whether the threads of a row hold it, so that it is read once; else it is read twice, in steps."""
    return recipe.template in (LANES_HELD, CLUSTER_HELD)


def loads(recipe: Recipe) -> int:
    """Return how often a recipe of any family reads an element of x."""
    return 2 if recipe.form in NORMS and not holds(recipe) else 1


def combined(recipe: Recipe) -> int:
    """Return the values that the lanes of a row combine one after the other: reductions, or words of a state."""
    algebra = algebra_of(recipe)
    return algebra.reductions if recipe.template == LANES_HELD else algebra.state_bytes // 4


def _halvings(lanes: int) -> int:
    return (lanes - 1).bit_length()


def _steps_chain(recipe: Recipe, lanes: int, width: int) -> int:
    """An element of a pack, a pack of the row, which may begin before it, and a merge for each halving of the lanes."""
    algebra = algebra_of(recipe)
    lanes *= recipe.cluster
    packs = -(-(width + recipe.items - 1) // (lanes * recipe.items)) + recipe.phases
    merges = algebra.a_merge * _halvings(lanes)
    return algebra.in_pack * recipe.items + algebra.a_pack * packs + merges + algebra.at_last


def original_chain(recipe: Recipe, width: int) -> int:
    """Return those of a row of this or a lesser width: of the widest that a warp takes, or of a CTA's."""
    widths = (min(width, LAST_WARP_WIDTH), width)
    return max(_steps_chain(recipe, int(original_lanes(w)), w) for w in widths)


def streamed_chain(recipe: Recipe, width: int) -> int:
    """Return those of a CTA, or of a cluster."""
    return _steps_chain(recipe, recipe.threads, width)


def held_chain(recipe: Recipe, width: int) -> int:
    """Return 1 an element of a piece, 1 a piece of a lane, 1 a halving of a warp's lanes, a merge a halving of warps.

    A piece has eight elements, or four of FP32, and there are twice as many of those.
    """
    algebra, shuffled = algebra_of(recipe), min(recipe.lanes, 32)
    merges = algebra.a_merge * _halvings(recipe.lanes // shuffled)
    return recipe.items + 2 * recipe.phases + _halvings(shuffled) + merges + algebra.at_last


def cluster_chain(recipe: Recipe, width: int) -> int:
    """Return those of vectors that threads hold, one of which may be a single element: of FP32 two a pack."""
    algebra = algebra_of(recipe)
    merges = algebra.a_merge * _halvings(recipe.threads * recipe.cluster)
    return algebra.in_pack * recipe.items + algebra.a_pack * (2 * recipe.phases + 1) + merges + algebra.at_last
