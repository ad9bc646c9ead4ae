"""The ground on which closeness moves probability, from what is known of an attribute's values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from polyseme.distances.base import Distance
from polyseme.distances.ground import Ground, ground_from
from polyseme.distances.tree import TreeDistance
from polyseme.errors import PolicyError, Problem
from polyseme.models.model import Background
from polyseme.spelling import Label, spellings, written
from polyseme.tables.classes import Counts

__all__ = ["ground_of"]


def ground_of(counts: Counts, background: Background, name: str) -> Ground | None:
    """The ground that closeness names, for one attribute; None where it needs a hierarchy and there is none."""
    if name != "hierarchical":
        return ground_from(name)
    hierarchy = _hierarchy(counts, background)
    return None if hierarchy is None else ground_from(name, hierarchy)


def _hierarchy(counts: Counts, background: Background) -> Distance | None:
    """A hierarchy of the values; None without one that covers every value.

    A declared one comes first; otherwise that of the semantic distance.
    """
    if counts.attribute not in background.hierarchies:
        distance = background.distances.get(counts.attribute)
        return distance if distance is not None and distance.size == counts.domain_size else None
    paths = _paths(background.hierarchies[counts.attribute], f"hierarchies.{counts.attribute}")
    labels = [label for label in counts.labels if label is not None]
    rows = [paths.get(name, []) for name in spellings(labels)]
    if len(labels) < len(counts.labels) or not rows or not all(rows):
        return None
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2 or len(set(spellings(row[-1] for row in rows))) != 1:
        raise PolicyError(
            Problem(
                f"hierarchies.{counts.attribute}",
                "the paths are not equally long, or do not all end in one root",
                "write leaf first, root last, and repeat a node to fill a path",
            )
        )
    return TreeDistance.from_paths(rows, beyond=list(paths.values()))


def _paths(declared: Sequence[Sequence[Label]], where: str) -> dict[str, list[str]]:
    """The path of each value by its spelling; a value may be there twice only if both paths are the same."""
    rows = [[written(node) for node in path] for path in declared]
    labels = list(dict.fromkeys(chain.from_iterable(rows)))
    spelled = dict(zip(labels, spellings(labels)))
    first: dict[str, int] = {}
    for place, row in enumerate(rows):
        before = first.setdefault(spelled[row[0]], place)
        if [spelled[label] for label in rows[before]] != [spelled[label] for label in row]:
            what = f"paths {before + 1} and {place + 1} are of one value, and differ"
            raise PolicyError(Problem(where, what, "each value has one place in a hierarchy"))
    return {name: rows[place] for name, place in first.items()}
