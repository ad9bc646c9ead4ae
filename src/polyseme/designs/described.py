"""The design that a sampling document describes.

Its weights are those of the document, so that analysts estimate with the channel from which devices drew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.designs.base import SET_LIMIT, Design
from polyseme.designs.listing import compatibility, compatible_sets, count_sets, list_sets
from polyseme.designs.portable import neighbours
from polyseme.designs.ring import clockwise
from polyseme.designs.stored import design_from
from polyseme.device.sampling import Sampling
from polyseme.distances.structure import Circle, Clusters, Graph, Line, Structure
from polyseme.errors import CampaignError, Problem

__all__ = ["described", "structure_of"]


def described(document: Mapping[str, Any], structure: Structure | None = None, name: str | None = None) -> Design:
    """The design of a document.

    structure  what the values' distance says; taken from the document by default, and refused where the two differ
    name       the policy's word for the design
    """
    checked = Sampling.read(document).document
    if structure is None:
        structure = structure_of(checked)
    elif not _fits(checked, structure):
        raise CampaignError(
            Problem("document", f"not that of this {type(structure).__name__.lower()} with {structure.size:,} values")
        )
    name = name or ("sharp" if checked["kind"] == "table" else "balanced")
    return design_from(name, structure, checked["l"], _PARAMETERS[checked["kind"]](checked, structure))


def structure_of(document: Mapping[str, Any]) -> Structure:
    """Which values may share a set, as the document alone says it."""
    kind = document["kind"]
    if kind == "clusters":
        return Clusters(_labels(document))
    if kind == "line":
        return Line(np.array(document["order"], dtype=np.int64), np.array(document["ahead"], dtype=np.int64))
    if kind == "circle":
        return _circle(document)
    if kind == "listed":
        return Graph(_matrix(document["neighbours"]))
    return Graph(_pairs(document["sets"], document["size"]))


def _circle(document: Mapping[str, Any]) -> Structure:
    order, ahead = (np.array(document[key], dtype=np.int64) for key in ("order", "ahead"))
    steps = ahead - np.arange(len(order))
    if np.ptp(steps) == 0:
        spacing = int(steps[0])
        return Circle(order, np.arange(len(order), dtype=np.float64), float(len(order)), float(spacing), spacing)
    # Where the values lie is not part of a document; which of them may stand together is all that counts.
    together = np.zeros((len(order), len(order)), dtype=bool)
    for place, first in enumerate(ahead.tolist()):
        others = np.arange(first, place + len(order))
        last = others[ahead[others % len(order)] + others // len(order) * len(order) <= place + len(order)]
        together[order[place], order[last % len(order)]] = True
    return Graph(together)


def _matrix(rows: list[list[int]]) -> Bools:
    together = np.zeros((len(rows), len(rows)), dtype=bool)
    for code, row in enumerate(rows):
        together[code, row] = together[row, code] = True
    return together


def _pairs(sets: list[list[int]], size: int) -> Bools:
    together = np.zeros((size, size), dtype=bool)
    for members in sets:
        together[np.ix_(members, members)] = True
    np.fill_diagonal(together, False)
    return together


def _fits(document: Mapping[str, Any], structure: Structure) -> bool:
    """Whether a document was written for a structure."""
    kind = document["kind"]
    if kind == "clusters":
        return isinstance(structure, Clusters) and np.array_equal(structure.labels, _labels(document))
    if kind == "line":
        return isinstance(structure, Line) and _as_lists(structure.order, structure.ahead) == _ordered(document)
    if kind == "circle":
        return isinstance(structure, Circle) and _as_lists(structure.order, clockwise(structure)) == _ordered(document)
    if kind == "listed":
        return bool(neighbours(compatibility(structure)) == document["neighbours"])
    sets = np.array(document["sets"], dtype=np.int64)
    return bool(structure.size == document["size"] and compatible_sets(structure, sets).all())


def _as_lists(order: Ints, ahead: Ints) -> tuple[list[int], list[int]]:
    return order.tolist(), ahead.tolist()


def _ordered(document: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    return document["order"], document["ahead"]


def _labels(document: Mapping[str, Any]) -> Ints:
    return np.array(document["labels"] if "labels" in document else range(document["size"]), dtype=np.int64)


def _logs(weights: list[int]) -> Floats:
    return np.log(np.array(weights, dtype=np.float64))


def _by_code(document: Mapping[str, Any]) -> list[float]:
    logs = np.empty(len(document["order"]))
    logs[document["order"]] = _logs(document["weights"])
    return [float(one) for one in logs]


def _of_clusters(document: Mapping[str, Any], structure: Structure) -> dict[str, Any]:
    found: dict[str, Any] = {"full": document.get("full", [])}
    if "weights" in document:
        found["log_weights"] = _logs(document["weights"]).tolist()
    if "shares" in document and isinstance(structure, Clusters):
        shares = np.array(document["shares"], dtype=np.float64)
        found["shares"] = (shares / np.bincount(structure.labels, shares)[structure.labels]).tolist()
    return found


def _of_line(document: Mapping[str, Any], _: Structure) -> dict[str, Any]:
    return {"log_weights": _by_code(document), "tight": document["tight"]}


def _of_circle(document: Mapping[str, Any], structure: Structure) -> dict[str, Any]:
    if "weights" not in document:
        return {}
    found: dict[str, Any] = {"log_weights": _by_code(document)}
    few = document["l"] == 1 or not isinstance(structure, Circle) or count_sets(structure, document["l"]) <= SET_LIMIT
    return {**found, "excluded": []} if few else found


def _of_listed(document: Mapping[str, Any], structure: Structure) -> dict[str, Any]:
    never = {tuple(members) for members in document["excluded"]}
    sets = list_sets(structure, document["l"]).tolist()
    excluded = [number for number, members in enumerate(sets) if tuple(members) in never]
    return {"log_weights": _logs(document["weights"]).tolist(), "excluded": excluded}


def _of_table(document: Mapping[str, Any], structure: Structure) -> dict[str, Any]:
    weights = np.array(document["weights"], dtype=np.float64)
    chance = dict(zip(map(tuple, document["sets"]), (weights / weights.sum()).tolist(), strict=True))
    sets = list_sets(structure, document["l"]).tolist()
    return {"probabilities": [chance.get(tuple(members), 0.0) for members in sets]}


_PARAMETERS = {
    "clusters": _of_clusters,
    "line": _of_line,
    "circle": _of_circle,
    "listed": _of_listed,
    "table": _of_table,
}
