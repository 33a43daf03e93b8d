"""The recipe: one physical way to run every program of a form."""

from __future__ import annotations

from typing import Any

from attrs import Factory, frozen

from kernels.dtypes import STORAGE

Number = Any  # an int, or a NumPy array of them
ORIGINAL = "original"
RECIPE = "recipe"
SPLIT = "split"
CLUSTERS_FROM = 90  # sm_90, compute capability 9.0


def architecture_number(architecture: str) -> int:
    """Return 90 of `sm_90`, and of `sm_90a`."""
    return int(architecture.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz"))


@frozen(cache_hash=True)
class Recipe:
    """One physical way to run every program of a form.

    Attributes
    ----------
    id : unique name, for people, requests and tie-breaks.
    form : the normal form of the programs it runs, computed from their expression by `features.proof`.
    role : the column set of the schemas that price it: `original` (takes every legal workload), `recipe`, `any` and
        `narrow` for one form of the original by itself, `split` where several CTAs share a row, `short` where lanes
        hold a row and `cover` where its ends are moved apart from its vectors, `flat` where a CTA takes rows as one
        run, `tiny` where a thread takes eight. A reduction's role is a name of `kernels.reductions`.
    threads : threads a CTA.
    items : contiguous storage elements a thread and step.
    rows_per_cta : rows one CTA works on; the grid is ceil(rows / rows_per_cta), times the parts of a split row. A flat
        recipe's CTA works on as many whole rows as fit it, one at least.
    proofs : names of the proofs that make it legal, in the order in which they are tried.
    numerics : `bit_equal` to the original, or `reordered` within the stated bound.
    phases : chunks of threads x items elements that share one block scan; vectors that a reduction asks for together.
    rows_each : rows that the same lanes take at once.
    experimental : admitted only where a profile says that validation earned it.
    family : the forms that share a schema, a fit and a grid; a form is a family of its own where none is given.
    alignment : what a launch demands of the 16-byte boundaries of x and of y, by the names of `kernels.guard.DEMANDS`.
    constants : further names and values that the template is compiled with.
    weights : vectors of a row's width that its kernels take besides x and y.
    parameters : names of the float scalars that they take (`kernels.operands` has the order of arguments).
    cluster : CTAs of a thread block cluster, which take a row together; 1 where CTAs know nothing of each other.
    """

    id: str
    form: str
    role: str
    template: str
    threads: int
    items: int
    rows_per_cta: int
    proofs: tuple[str, ...]
    numerics: str
    phases: int = 1
    rows_each: int = 1
    dtypes: tuple[str, ...] = tuple(STORAGE)
    experimental: bool = False
    family: str = Factory(lambda self: self.form, takes_self=True)
    alignment: tuple[str, str] = ("rows", "rows")
    constants: tuple[tuple[str, str], ...] = ()
    weights: int = 0
    parameters: tuple[str, ...] = ()
    cluster: int = 1

    def runs_on(self, architecture: str) -> bool:
        """Tell whether an architecture such as `sm_90` has what the recipe is made of: clusters."""
        return self.cluster == 1 or architecture_number(architecture) >= CLUSTERS_FROM

    @property
    def lanes(self) -> int:
        """The lanes of a CTA that take a row together, where the launch does not say otherwise."""
        return self.threads * self.rows_each // self.rows_per_cta

    def facts(self) -> dict[str, Any]:
        """Return the row as JSON-ready facts; those of the last seven where they are not the plain ones."""
        further = {
            "rows_each": None if self.rows_each == 1 else self.rows_each,
            "family": None if self.family == self.form else self.family,
            "alignment": None if self.alignment == ("rows", "rows") else list(self.alignment),
            "constants": dict(self.constants) or None,
            "weights": self.weights or None,
            "parameters": list(self.parameters) or None,
            "cluster": None if self.cluster == 1 else self.cluster,
        }
        return {
            "id": self.id,
            "form": self.form,
            "role": self.role,
            "template": self.template,
            "threads": self.threads,
            "items": self.items,
            "rows_per_cta": self.rows_per_cta,
            "proofs": list(self.proofs),
            "numerics": self.numerics,
            "phases": self.phases,
            "dtypes": list(self.dtypes),
            "experimental": self.experimental,
            **{name: value for name, value in further.items() if value is not None},
        }


def split_parts(recipe: Recipe, width: Number) -> Number:
    """Return how many CTAs share a row. It may begin up to a vector less one element after a vector boundary."""
    part = recipe.threads * recipe.items * recipe.phases
    return -(-(width + recipe.items - 1) // part)
