"""The kinds of distances by name: those of the package and those of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from polyseme.distances.base import Distance
from polyseme.distances.declared import DECLARED, Values
from polyseme.distances.restored import RESTORED
from polyseme.errors import InvalidInput, PolicyError, Problem, nearest
from polyseme.files.folder import Folder, as_folder
from polyseme.plugins import Registry

__all__ = ["KINDS", "Kind", "distance_from", "distance_from_policy"]


class Declare(Protocol):
    """Builds the distance that a policy declares."""

    def __call__(self, argument: Any, values: Values, folder: Folder, /) -> Distance:
        """The distance over `values`; `argument` is what the policy says after the kind, files are in `folder`."""
        ...


class Restore(Protocol):
    """Builds the distance that a manifest describes."""

    def __call__(self, argument: Any, size: int, /) -> Distance:
        """The distance over `size` values; `argument` is what `parameters` gave, untrusted."""
        ...


@dataclass(frozen=True)
class Kind:
    """How a kind of distance is built from a policy, and again from its parameters in a manifest.

    restore  None for a kind that is stored as another one, as a taxonomy is stored as a tree
    """

    declare: Declare
    restore: Restore | None


KINDS = Registry(
    "polyseme.distances", {name: Kind(declare, RESTORED.get(name)) for name, declare in DECLARED.items()}, Kind
)
"""The words a policy may use, with what builds them."""


def distance_from_policy(spec: Any, values: Values, base_folder: Folder | Path | str) -> Distance:
    """The distance that a policy declares over the domain `values`; `where` in its problems is relative to `spec`."""
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise PolicyError(
            "a distance is one word with its argument", f"for instance {{line: rank}}; the words are {', '.join(KINDS)}"
        )
    ((kind, argument),) = spec.items()
    if kind not in KINDS:
        raise PolicyError(Problem("", f"unknown distance '{kind}'", nearest(str(kind), KINDS)))
    try:
        distance = KINDS[kind].declare(argument, values, as_folder(base_folder))
        if distance.size != len(values):
            came, wanted = f"{distance.size:,}", f"{len(values):,}"
            raise PolicyError(f"it describes {came} values, but the domain has {wanted}")
    except InvalidInput as error:
        places = [".".join(filter(None, (kind, problem.where))) for problem in error.problems]
        moved = [Problem(where, problem.what, problem.hint) for where, problem in zip(places, error.problems)]
        raise type(error)(moved) from error
    return distance


def distance_from(parameters: Mapping[str, Any], size: int) -> Distance:
    """The distance that `parameters` describe over `size` values: the inverse of `Distance.parameters`.

    Whatever is wrong with them is a `PolicyError` whose places are relative to the parameters.
    """
    if len(parameters) != 1:
        raise PolicyError(f"the parameters of a distance have one kind, not {len(parameters)}")
    ((kind, argument),) = parameters.items()
    restore = KINDS[kind].restore if kind in KINDS else RESTORED.get(kind)
    if restore is None:
        stored = [name for name in KINDS if name in RESTORED or name not in DECLARED]
        what = f"unknown distance '{kind}': it is not built in, and no installed plugin provides it"
        raise PolicyError(what, nearest(str(kind), stored))
    distance = restore(argument, size)
    if distance.size != size:
        what = f"this {kind} distance is over {distance.size:,} values, but the domain has {size:,}"
        raise PolicyError(Problem(kind, what))
    return distance
