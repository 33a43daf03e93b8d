"""The recipe table: one row a recipe. A new family adds rows here and templates in `kernels/device`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from kernels import channels, norms, reductions
from kernels.dtypes import STORAGE
from kernels.errors import KernelError
from kernels.norms import NORMS, Norm
from kernels.recipe import ORIGINAL, RECIPE, SPLIT, Recipe
from kernels.reductions import ARRANGEMENTS, REDUCTIONS, Arrangement, Reduction
from kernels.scans import WAYS, Way

# Chunks that share a block scan. Two cut few wide rows by a third or more (16 x 131072: 256 threads 16.6 -> 11.6 us),
# but their registers lower the capacity that many one-chunk rows live on (32768 x 1024: 128 threads 33.9 -> 38.7 us).
# H200, FP16, 2026-11-29.
_SCAN_PHASES = {128: 1, 256: 2, 512: 2, 1024: 2}


def _scan_cub(threads: int) -> Recipe:
    return Recipe(
        id=f"scan.cub{threads}",
        form="prefix.sum",
        role=RECIPE,
        template="scan_cub.cu",
        threads=threads,
        items=8,
        rows_per_cta=1,
        proofs=("closed_prefix", "whole_chunks", "aligned_load"),
        numerics="reordered",
        phases=_SCAN_PHASES[threads],
    )


def _scan_split(threads: int, phases: int) -> Recipe:
    return Recipe(
        id=f"scan.split{threads * phases * 8}",
        form="prefix.sum",
        role=SPLIT,
        template="scan_split.cu",
        threads=threads,
        items=8,
        rows_per_cta=1,
        proofs=("closed_prefix", "row_parts"),
        numerics="reordered",
        phases=phases,
        alignment=("any", "any"),
    )


def _scan_way(way: Way) -> Recipe:
    return Recipe(
        id=f"scan.{way.name}",
        form="prefix.sum",
        role=way.role,
        template=way.template,
        threads=way.threads,
        items=way.items,
        rows_per_cta=way.rows_per_cta,
        proofs=way.proofs,
        numerics="reordered",
        phases=way.phases,
        rows_each=way.rows_each,
        alignment=way.alignment,
        constants=way.constants,
    )


def _reducing(reduction: Reduction, way: Arrangement) -> Recipe:
    return Recipe(
        id=f"{reduction.op}.{way.name}",
        form=reduction.form,
        role=way.role,
        template=way.template,
        threads=way.threads,
        items=way.items,
        rows_per_cta=way.rows_per_cta,
        proofs=reductions.proofs(reduction, way),
        numerics="reordered" if way.reorders and not reduction.exact else "bit_equal",
        phases=way.phases,
        rows_each=way.rows_each,
        dtypes=way.dtypes,
        experimental=way.experimental,
        family=reductions.FAMILY,
        alignment=way.alignment,
        constants=(*reduction.constants, *way.constants),
    )


def _normalizing(
    norm: Norm,
    name: str,
    role: str,
    template: str,
    threads: int,
    proofs: tuple[str, ...] = (),
    *,
    rows_per_cta: int = 1,
    phases: int = 1,
    dtypes: tuple[str, ...] = tuple(STORAGE),
    alignment: tuple[str, str] = ("any", "any"),
    constants: tuple[tuple[str, str], ...] = (),
    cluster: int = 1,
) -> Recipe:
    return Recipe(
        id=f"{norm.op}.{name}",
        form=norm.form,
        role=role,
        template=template,
        threads=threads,
        items=8,
        rows_per_cta=rows_per_cta,
        proofs=("row_normalization", *proofs),
        numerics="bit_equal" if role == ORIGINAL else "reordered",
        phases=phases,
        dtypes=dtypes,
        family=norms.FAMILY,
        alignment=alignment,
        constants=(*norm.constants, *constants),
        weights=norm.weights,
        parameters=norm.parameters,
        cluster=cluster,
    )


def _holding(norm: Norm, way: norms.Holding) -> Recipe:
    return _normalizing(
        norm,
        way.name,
        way.role,
        norms.LANES_HELD,
        way.threads,
        way.proofs,
        rows_per_cta=way.threads // way.lanes,
        phases=way.phases,
        dtypes=way.dtypes,
        alignment=way.alignment,
        constants=way.constants,
    )


def _streaming(norm: Norm, threads: int, phases: int) -> Recipe:
    name = f"streamed{threads}"
    return _normalizing(norm, name, name, "norm_streamed.cu", threads, ("row_in_steps",), phases=phases)


def _clustering(norm: Norm, way: norms.Clustering) -> Recipe:
    return _normalizing(
        norm,
        way.name,
        way.role,
        way.template,
        way.threads,
        way.proofs,
        phases=way.phases,
        dtypes=way.dtypes,
        alignment=way.alignment,
        constants=way.constants,
        cluster=way.ctas,
    )


def _norm_recipes(norm: Norm) -> Iterator[Recipe]:
    yield _normalizing(norm, ORIGINAL, ORIGINAL, "norm_original.cu", 256)
    yield from (_holding(norm, way) for way in norms.HOLDINGS)
    yield from (_streaming(norm, threads, phases) for threads, phases in norms.STREAMS)
    yield from (_clustering(norm, way) for way in norms.CLUSTERINGS)


def _channel_original(norm: channels.ChannelNorm) -> Recipe:
    return Recipe(
        id=f"{norm.op}.original",
        form=norm.form,
        role=ORIGINAL,
        template="channel_original.cu",
        threads=256,
        items=1,
        rows_per_cta=256,
        proofs=("channels_closed",),
        numerics="bit_equal",
        phases=8,
        family=channels.FAMILY,
        alignment=("any", "any"),
        constants=(*norm.constants, ("POSITIONS", "1")),
        parameters=norm.parameters,
    )


def _channel_way(norm: channels.ChannelNorm, way: channels.Way) -> Recipe:
    return Recipe(
        id=f"{norm.op}.{way.name}",
        form=norm.form,
        role=way.role,
        template=way.template,
        threads=way.threads,
        items=1,
        rows_per_cta=way.rows_per_cta,
        proofs=("channels_closed", *way.proofs),
        numerics="reordered" if way.reorders else "bit_equal",
        phases=way.channels,
        rows_each=way.positions,
        dtypes=way.dtypes,
        family=channels.FAMILY,
        alignment=way.alignment,
        constants=(*norm.constants, *way.constants),
        parameters=norm.parameters,
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        id="scan.original",
        form="prefix.sum",
        role=ORIGINAL,
        template="scan_original.cu",
        threads=256,
        items=8,
        rows_per_cta=1,
        proofs=("closed_prefix",),
        numerics="bit_equal",
    ),
    *(_scan_cub(threads) for threads in (128, 256, 512, 1024)),
    *(_scan_split(threads, phases) for threads, phases in ((256, 1), (256, 2), (512, 2))),
    *map(_scan_way, WAYS),
    *(_reducing(r, a) for r in REDUCTIONS.values() for a in ARRANGEMENTS if reductions.has(r, a)),
    *(row for norm in NORMS.values() for row in _norm_recipes(norm)),
    *map(_channel_original, channels.CHANNEL_NORMS.values()),
    *(_channel_way(norm, way) for norm in channels.CHANNEL_NORMS.values() for way in channels.WAYS),
)


def recipe(recipe_id: str) -> Recipe:
    """Return the recipe with this id, or raise `KernelError` listing those there are."""
    for row in RECIPES:
        if row.id == recipe_id:
            return row
    raise KernelError(f"recipe {recipe_id!r} is not known; use one of {', '.join(row.id for row in RECIPES)}")


@cache
def recipes_of(form: str) -> tuple[Recipe, ...]:
    """Return the recipes of a form in catalogue order, the original first; empty for a form without kernels."""
    rows = [row for row in RECIPES if row.form == form]
    return tuple(sorted(rows, key=lambda row: row.role != ORIGINAL))


@cache
def family_of(form: str) -> str:
    """Return the family of a form: what its recipes say; a form without kernels is a family of its own."""
    return next((row.family for row in recipes_of(form)), form)


def is_fitted_on(form: str) -> bool:
    """Tell whether a family is fitted on programs of a form: all but those with a part of its recipes, or between two.

    Reductions say so by their variety, normalizations in their table.
    """
    if form in NORMS:
        return NORMS[form].fitted
    if form in channels.CHANNEL_NORMS:
        return form == channels.FITTED
    return form not in REDUCTIONS or REDUCTIONS[form].variety >= reductions.ALL


def original_of(form: str) -> Recipe:
    """Return the original of a form, or raise `KernelError`."""
    rows = recipes_of(form)
    if not rows:
        raise KernelError(f"no original kernel runs programs of form {form!r}")
    return rows[0]
