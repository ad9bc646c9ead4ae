"""Designs from manifests and sampling documents: nothing is fitted again or taken on trust.

The design of a sampling document has the weights of the document, so that analysts estimate with the channel from which
devices drew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from polyseme.designs.base import SET_LIMIT, Design
from polyseme.designs.circle import ROOTED_LIMIT, CircleDesign, RootedDesign
from polyseme.designs.clusters import ClustersDesign, cluster_masses
from polyseme.designs.distribution import MaximumEntropy, compatibility, compatible_sets, count_sets, list_sets
from polyseme.designs.duplicate import Duplicate
from polyseme.designs.line import LineDesign
from polyseme.designs.maximum_entropy import EnumeratedDesign
from polyseme.designs.ring import clockwise, neighbors
from polyseme.designs.sequential import Simple, SimplePrinted
from polyseme.designs.sharp import SHARP_LIMIT, SharpDesign
from polyseme.device.sampler import Sampling
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import CampaignError, PolicyError, Problem, nearest
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure
from polyseme.semantics.distances.registry import stored_floats, stored_ints

__all__ = ["DESIGNS", "described", "design_from", "structure_of"]

DESIGNS = ("balanced", "sharp", "least-risk", "simple", "simple-printed", "duplicate")
"""The words for designs in manifests; those of policies, but for `simple-printed`: simple with `check: printed`."""

_UNFITTED: Mapping[str, Callable[[Structure, int], Design]] = MappingProxyType(
    {"simple": Simple, "simple-printed": SimplePrinted, "duplicate": Duplicate}
)
"""Designs that have no weights."""

_TOLERANCE = 1e-6
"""How far shares or probabilities from a manifest may be from adding up to one: they are written with 15 digits, and
other programs may round more. Chosen by judgment."""


def design_from(name: str, structure: Structure, l: int, parameters: Mapping[str, Any]) -> Design:
    """The design whose `parameters()` these are.

    Raises `PolicyError` with places relative to the mechanism when they are not those of a distribution over sets of
    `l` values in which every value has a chance.
    """
    if name not in DESIGNS:
        raise PolicyError(Problem("design", f"unknown design '{name}'", nearest(name, DESIGNS)))
    if not 1 <= l <= structure.size:
        raise PolicyError(Problem("l", f"sets of {l:,} candidates from {structure.size:,} values"))
    # What overflows here is found by the check that follows.
    with np.errstate(all="ignore"):
        design = _Parameters(parameters).design(name, structure, l)
        flaw = design.flaw()
    if flaw is not None:
        raise PolicyError(Problem("parameters", flaw))
    return design


class _Parameters:
    """The parameters of a design, each read once."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given

    def known(self, *keys: str) -> None:
        unknown = [key for key in self.given if key not in keys]
        if unknown:
            raise PolicyError(
                Problem(f"parameters.{key}", "no parameter of this design", f"known: {', '.join(keys) or 'none'}")
                for key in unknown
            )

    def floats(self, key: str, size: int) -> Floats | None:
        return stored_floats(self.given[key], f"parameters.{key}", size) if key in self.given else None

    def ascending(self, key: str, high: int) -> Ints:
        """Whole numbers below `high`, each of them once."""
        numbers = stored_ints(self.given.get(key, []), f"parameters.{key}", 0, high)
        if np.any(np.diff(numbers) <= 0):
            raise PolicyError(Problem(f"parameters.{key}", "expected ascending numbers, each of them once"))
        return numbers

    def design(self, name: str, structure: Structure, l: int) -> Design:
        if name in _UNFITTED:
            self.known()
            return _UNFITTED[name](structure, l)
        if name == "sharp":
            return self._sharp(structure, l)
        if isinstance(structure, Clusters):
            return self._clusters(name, structure, l)
        if isinstance(structure, Circle) and not self.given:
            return self._circle(name, structure, l)
        weights = self.floats("log_weights", structure.size)
        if weights is None:
            raise PolicyError(Problem("parameters.log_weights", f"missing: {structure.size:,} numbers are needed"))
        if isinstance(structure, Line):
            self.known("log_weights", "tight")
            return LineDesign(structure, l, weights, self.ascending("tight", structure.size), name)
        if isinstance(structure, Circle) and "excluded" not in self.given:
            return self._rooted(name, structure, l, weights)
        self.known("log_weights", "excluded")
        listed = len(list_sets(structure, l))
        excluded = self.ascending("excluded", listed)
        if len(excluded) == listed:
            raise PolicyError(Problem("parameters.excluded", "all sets are excluded, or there are none"))
        return EnumeratedDesign(structure, l, weights, excluded, name)

    def _sharp(self, structure: Structure, l: int) -> MaximumEntropy:
        self.known("probabilities")
        count = count_sets(structure, l)
        if not 0 < count <= SHARP_LIMIT:
            raise PolicyError(Problem("l", f"{count:,} valid sets, where one to {SHARP_LIMIT:,} can be listed"))
        chance = self.floats("probabilities", count)
        if chance is None:
            raise PolicyError(Problem("parameters.probabilities", f"missing: {count:,} numbers are needed"))
        if np.any(chance < 0.0) or abs(float(chance.sum()) - 1.0) > _TOLERANCE:
            raise PolicyError(Problem("parameters.probabilities", "expected probabilities that add up to one"))
        return SharpDesign(structure, l, chance)

    def _clusters(self, name: str, clusters: Clusters, l: int) -> MaximumEntropy:
        self.known("log_weights", "shares", "full")
        if l > clusters.count:
            raise PolicyError(Problem("l", f"sets of {l:,} candidates from {clusters.count:,} groups of close values"))
        weights, shares = self.floats("log_weights", clusters.count), self.floats("shares", clusters.size)
        if shares is not None and not (
            np.all(shares > 0.0) and np.allclose(cluster_masses(clusters, shares), 1.0, rtol=0.0, atol=_TOLERANCE)
        ):
            what = "expected positive shares that add up to one within each group of close values"
            raise PolicyError(Problem("parameters.shares", what))
        full = self.ascending("full", clusters.count)
        if weights is None and 0 < len(full) < l:
            raise PolicyError(
                Problem("parameters.full", "groups that are in every set, although all have the same probability")
            )
        return ClustersDesign(clusters, l, weights, shares, full, name)

    def _circle(self, name: str, circle: Circle, l: int) -> MaximumEntropy:
        if circle.spacing is None:
            raise PolicyError(Problem("parameters.log_weights", "missing: the values are not equally spaced"))
        if l * circle.spacing > circle.size:
            raise PolicyError(Problem("l", f"{l:,} candidates, {circle.spacing:,} apart, from {circle.size:,} values"))
        return CircleDesign(circle, l, name)

    def _rooted(self, name: str, circle: Circle, l: int, weights: Floats) -> MaximumEntropy:
        self.known("log_weights")
        if l < 2 or circle.size > ROOTED_LIMIT:
            what = f"required for sets of one value, and on circles of more than {ROOTED_LIMIT:,} values"
            raise PolicyError(Problem("parameters.excluded", what))
        return RootedDesign(circle, l, weights, name)


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
        return bool(neighbors(compatibility(structure)) == document["neighbours"])
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
