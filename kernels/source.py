"""The text that is compiled, and its digests: templates, every header of ours they reach, macros and options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from attrs import frozen

from kernels.dtypes import storage
from kernels.errors import KernelError
from kernels.identity import digest, digest_bytes
from kernels.recipe import Recipe
from kernels.recipes import RECIPES

# Strict FP32: a contracted multiply-add, a flushed subnormal or an approximate root would be another answer.
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "-default-device",
)
_OUR_INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@frozen
class SourceIdentity:
    """The digests that tie a receipt to what was compiled."""

    source: str
    options: str


def entry(recipe: Recipe, dtype: str) -> str:
    """Return the symbol of the kernel; it names recipe and dtype, so that a captured graph can be read back."""
    return f"rowsmith_{recipe.id.replace('.', '_')}_{storage(dtype).name}"


def macros(recipe: Recipe, dtype: str) -> tuple[str, ...]:
    """Return the definitions that turn the template into this recipe's kernel."""
    return (
        f"-DROWSMITH_ENTRY={entry(recipe, dtype)}",
        f"-DROWSMITH_STORAGE={storage(dtype).cuda}",
        f"-DROWSMITH_THREADS={recipe.threads}",
        f"-DROWSMITH_ITEMS={recipe.items}",
        f"-DROWSMITH_PHASES={recipe.phases}",
        *(f"-DROWSMITH_{name}={value}" for name, value in recipe.constants),
        *((f"-DROWSMITH_CLUSTER={recipe.cluster}",) if recipe.cluster > 1 else ()),
    )


@cache
def device_file(name: str) -> bytes:
    """Return a file of `kernels/device`, or raise `KernelError`."""
    try:
        return files("kernels").joinpath("device", name).read_bytes()
    except OSError as error:
        raise KernelError(f"device source {name!r} cannot be read ({error}); reinstall rowsmith") from error


def reached(template: str, read: Callable[[str], bytes]) -> dict[str, bytes]:
    """Return the template and every header of ours that it reaches, by name; `read` returns a file's bytes."""
    found: dict[str, bytes] = {}
    waiting = [template]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = read(name)
            waiting += [match.decode() for match in _OUR_INCLUDE.findall(found[name])]
    return dict(sorted(found.items()))


def sources(template: str) -> dict[str, bytes]:
    """Return the template and every header of ours that it reaches in `kernels/device`, by name."""
    return reached(template, device_file)


def source_document(template: str, read: Callable[[str], bytes], definitions: Iterable[str]) -> dict[str, Any]:
    """Return the document whose digest names a kernel's source: every file reached, and the macros."""
    texts = {name: digest_bytes(text) for name, text in reached(template, read).items()}
    return {"schema": "rowsmith.source/1", "files": texts, "macros": list(definitions)}


def options_document(options: Iterable[str]) -> dict[str, Any]:
    """Return the document whose digest names the compiler's options."""
    return {"schema": "rowsmith.options/1", "options": list(options)}


@cache
def identity(recipe: Recipe, dtype: str) -> SourceIdentity:
    """Return the source and options digests of a recipe's kernel."""
    source = source_document(recipe.template, device_file, macros(recipe, dtype))
    return SourceIdentity(digest(source), digest(options_document(OPTIONS)))


@cache
def catalogue_digest() -> str:
    """Return the digest of the whole catalogue: every row, and the source of every kernel."""
    rows = [{**row.facts(), "source": {dtype: identity(row, dtype).source for dtype in row.dtypes}} for row in RECIPES]
    return digest({"schema": "rowsmith.catalogue/1", "recipes": rows})
