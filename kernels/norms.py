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
    held_words : words that the lanes of a row combine where they hold it.
    in_pack, a_pack, a_merge, at_last : roundings of 2^-24 of the scale of `kernels.norm_references`: an element of a
        pack that a lane sums, a pack that joins its state, a merge of two states, and what a result takes besides.
    a_lane : a merge of what two lanes of a warp hold.
    work : instructions that an element takes of lanes that hold it (SASS of sm_90: what 32 elements a lane take more
        than 16); a weight is one and a half more.
    """

    state: str
    state_bytes: int
    held_words: int
    in_pack: int
    a_pack: int
    a_lane: int
    a_merge: int
    at_last: int
    work: int


# `rsqrtf`, `ex2` and a quotient by a reciprocal err by 2 ulp, four roundings each. Of a softmax, a state that joins
# another is multiplied by an exponential, and a result is made of two of them, three products and a division. Of the
# others a result takes a square or a difference, a quotient, eps, `rsqrtf`, a product and two weights. Differences from
# a mean are up to twice the elements, and a merge of means takes a reciprocal, two products and a sum.
ALGEBRAS = {
    "softmax": Algebra(
        "(largest element, sum of exponentials)", 8, 2, in_pack=1, a_pack=6, a_lane=1, a_merge=6, at_last=18, work=12
    ),
    "rms": Algebra("sum of squares", 4, 1, in_pack=1, a_pack=1, a_lane=1, a_merge=1, at_last=13, work=5),
    "layer": Algebra(
        "(count, mean, sum of squared differences from it)",
        *(12, 2),
        in_pack=2,
        a_pack=6,
        a_lane=1,
        a_merge=6,
        at_last=15,
        work=12,
    ),
}
# Rows of at most this many elements are a warp's in the original, longer ones a CTA's: to be measured.
LAST_WARP_WIDTH = 1024

LANES_HELD = "norm_held.cu"
_ANYWHERE = ("any", "any")
ROWS_ALIGNED = ("rows", "rows")


@frozen
class Holding:
    """A way that keeps rows on chip; `<op>.<name>` is its recipe. Those of as many elements a lane share a role.

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
    def role(self) -> str:
        """The column set of the schema that prices it."""
        return f"{'held' if self.moves == 'vectors' else 'cover'}{8 * self.phases}"

    @property
    def threads(self) -> int:
        """Threads a CTA: 128, or as many as a row takes."""
        return max(128, self.lanes)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Those of which a lane's elements are registers enough: of 64 beside 1024 threads, 32 of FP32 left too few."""
        return tuple(s.name for s in STORAGE.values() if self.threads * self.phases * s.bytes <= 8192)

    @property
    def proofs(self) -> tuple[str, ...]:
        """What it needs besides the expression."""
        aligned = ("row_in_lanes", "aligned_rows") if self.moves == "vectors" else ("row_in_cover",)
        return (*aligned, "lanes_are_filled")

    @property
    def alignment(self) -> tuple[str, str]:
        """What a launch demands of x and y."""
        return ROWS_ALIGNED if self.moves == "vectors" else _ANYWHERE

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What the template is compiled with."""
        return (("LANES", str(self.lanes)), ("MOVES", self.moves))


# Lanes, and packs of eight elements a lane. Two packs are best of most rows, one where few rows wait for each other,
# four of many wide ones, and three of rows of three times a power of two: 4096 x 12288, softmax in BF16: 512 lanes take
# 50.2 us by three packs and 58.0 by four, 1024 take 65.1 by two (H200, 2026-12-01). Fewer lanes of more elements, such
# as 2 of 32 for rows of 64, were slower everywhere.
_HELD = (
    *((1, 2), (2, 2), (4, 2), (8, 1), (8, 2), (16, 2), (32, 1), (32, 2), (32, 3), (32, 4), (64, 1), (64, 2), (64, 3)),
    *((64, 4), (128, 1), (128, 2), (128, 3), (128, 4), (256, 1), (256, 2), (256, 3), (256, 4), (512, 1), (512, 2)),
    *((512, 3), (512, 4), (1024, 1), (1024, 2), (1024, 4)),
)
_COVERED = (
    *((1, 2), (2, 2), (4, 2), (8, 2), (16, 2), (32, 2), (32, 4), (64, 2), (128, 1), (128, 2), (128, 4), (256, 2)),
    *((256, 4), (512, 1), (512, 2), (512, 4), (1024, 2), (1024, 4)),
)
HOLDINGS = tuple(
    Holding(lanes, phases, moves) for moves, ways in (("vectors", _HELD), ("cover", _COVERED)) for lanes, phases in ways
)

# Threads a row and packs of eight elements a thread at a step, of rows that are read twice.
STREAMS = ((256, 2), (512, 2), (1024, 2))


@frozen
class Clustering:
    """A way whose rows the CTAs of a cluster share; `<op>.<name>` is its recipe. Clusters of every size share a role.

    Attributes
    ----------
    ctas, threads : CTAs a cluster, threads of each.
    phases : packs of eight elements a thread, in all where CTAs hold the row and at a step where they read it twice.
    moves : as of a `Holding`; `steps` where a row of any base is read twice.
    kept : where a thread's elements are: in `registers`, or in `shared` memory.
    """

    ctas: int
    threads: int
    phases: int
    moves: str
    kept: str = "registers"

    @property
    def held(self) -> bool:
        """Whether the CTAs hold the row."""
        return self.moves != "steps"

    @property
    def name(self) -> str:
        """CTAs, threads of each, and elements a thread where they are held."""
        if not self.held:
            return f"cluster{self.ctas}x{self.threads}"
        ways = ("c" if self.moves == "cover" else "") + ("s" if self.kept == "shared" else "")
        return f"cluster{self.ctas}x{self.threads}x{8 * self.phases}{ways}"

    @property
    def role(self) -> str:
        """The column set of the schema that prices it."""
        if not self.held:
            return "cluster_steps"
        return "cluster_shared" if self.kept == "shared" else "cluster"

    @property
    def template(self) -> str:
        """The file of its kernels."""
        return CLUSTER_HELD if self.held else CLUSTER_STREAMED

    @property
    def proofs(self) -> tuple[str, ...]:
        """What it needs besides the expression."""
        return ("row_in_cluster", *_CLUSTER_PROOFS[self.moves])

    @property
    def alignment(self) -> tuple[str, str]:
        """What a launch demands of x and y."""
        return ROWS_ALIGNED if self.moves == "vectors" else _ANYWHERE

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What the template is compiled with."""
        return (("WHOLE", "true" if self.moves == "vectors" else "false"), ("KEPT", self.kept)) if self.held else ()

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Those of which a thread's elements are registers enough."""
        each = {s.name: 8 * self.phases * s.bytes for s in STORAGE.values()}
        if self.kept == "shared":
            return tuple(name for name, size in each.items() if size == _SHARED_BYTES)
        return tuple(name for name, size in each.items() if self.threads * size <= 2**17)


_CLUSTER_PROOFS = {"vectors": ("aligned_rows",), "cover": ("ragged_rows",), "steps": ()}
# Of a thread in shared memory: 32 KiB of 256 threads, so that an SM has room for seven CTAs.
_SHARED_BYTES = 128
CLUSTER_HELD, CLUSTER_STREAMED = "norm_cluster.cu", "norm_cluster_streamed.cu"
# From rows of 8k elements on, one way or more for each power of two. What holds less than a whole row leaves SMs idle.
_CLUSTERED = (
    *((4, 256, 2), (8, 256, 2), (16, 256, 2), (4, 256, 4), (8, 256, 4), (2, 512, 4), (8, 512, 4), (16, 512, 2)),
    *((16, 512, 4), (16, 1024, 4)),
)
_CLUSTER_COVERED = ((4, 256, 4), (8, 256, 4), (8, 512, 4), (16, 512, 4), (16, 1024, 4))
_CLUSTER_SHARED = tuple((ctas, 256, phases) for ctas in (2, 4, 8, 16) for phases in (4, 8))
_COVERED_SHARED = tuple((ctas, 256, phases) for ctas in (4, 8) for phases in (4, 8))
CLUSTERINGS = (
    *(Clustering(*way, "vectors") for way in _CLUSTERED),
    *(Clustering(*way, "cover") for way in _CLUSTER_COVERED),
    *(Clustering(*way, "vectors", "shared") for way in _CLUSTER_SHARED),
    *(Clustering(*way, "cover", "shared") for way in _COVERED_SHARED),
    Clustering(16, 1024, 2, "steps"),
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
    """Return the words that the lanes of a row combine."""
    algebra = algebra_of(recipe)
    return algebra.held_words if recipe.template == LANES_HELD else algebra.state_bytes // 4


def work(recipe: Recipe) -> float:
    """Return the instructions that an element takes, to the half."""
    return algebra_of(recipe).work + 1.5 * recipe.weights


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
    """Return 1 an element of a piece, 1 a piece of a lane, and what a halving of a warp's lanes and of warps takes.

    A piece has eight elements, or four of FP32, and there are twice as many of those.
    """
    algebra, shuffled = algebra_of(recipe), min(recipe.lanes, 32)
    merges = algebra.a_lane * _halvings(shuffled) + algebra.a_merge * _halvings(recipe.lanes // shuffled)
    return algebra.in_pack * (recipe.items + 2 * recipe.phases) + merges + algebra.at_last


def cluster_chain(recipe: Recipe, width: int) -> int:
    """Return those of vectors that threads hold, one of which may be a single element: of FP32 two a pack."""
    algebra = algebra_of(recipe)
    merges = algebra.a_merge * _halvings(recipe.threads * recipe.cluster)
    return algebra.in_pack * recipe.items + algebra.a_pack * (2 * recipe.phases + 1) + merges + algebra.at_last
