"""Buckets: like Anatomy, but the values of a group must also mean different things.

    |G| >= l,   any two records of G have values at least d apart (more than e apart, with e)      for every group G

where
    G  a group of records; each of them shows the values of all, in no order
    d  the least semantic distance between two of them
    e  of the (l, e) paper: two values are e-similar when their lowest common ancestor is at most e levels up

`algorithm: mbf` is that paper's maximal-bucket-first; the default is exact. See `bucketization`.

Wang, Han, Wang and Wang (2013).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import PolicyError, Problem
from polyseme.methods.bucketization import Grouping, Places, bucketize, dissimilar, planned
from polyseme.methods.goal import DealingMethod, Task, grouped_attribute
from polyseme.schema import Attribute
from polyseme.semantics.distances.base import Structure

__all__ = ["METHOD", "Buckets"]


class Buckets:
    """Groups of at least l records whose values are far apart."""

    name: ClassVar[str] = "buckets"

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        attribute = grouped_attribute(self.name, parameters, sensitive)
        _require_meaning(parameters, attribute)
        common = {"l": parameters["l"], "attribute": attribute.name}
        if parameters["e"] is not None:
            return ({"le-diversity": {**common, "e": parameters["e"]}},)
        return ({"semantic-diversity": {**common, "d": parameters["d"], "reading": "strict"}},)

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def places(self, parameters: Mapping[str, Any], attribute: Attribute, counts: Ints) -> Places:
        structure = _structure(parameters, attribute)
        return planned(counts, structure, parameters["l"], parameters["algorithm"], _left_out(parameters))

    def group(self, task: Task) -> Grouping:
        attribute = grouped_attribute(self.name, task.parameters, task.sensitive)
        codes, parameters = task.data.sensitive[attribute.name].codes, task.parameters
        structure = _structure(parameters, attribute)
        return bucketize(codes, structure, parameters["l"], task.stream, parameters["algorithm"], _left_out(parameters))


def _structure(parameters: Mapping[str, Any], attribute: Attribute) -> Structure:
    """Which values may share a group."""
    if attribute.distance is None:
        raise ValueError("buckets need a distance")
    if parameters["e"] is not None:
        return dissimilar(attribute.distance, parameters["e"])
    return attribute.distance.structure(parameters["d"])


def _left_out(parameters: Mapping[str, Any]) -> float | None:
    """The paper's own algorithm leaves out what it leaves out."""
    return float(parameters["left-out"]) if parameters["algorithm"] == "exact" else None


def _require_meaning(parameters: Mapping[str, Any], attribute: Attribute) -> None:
    problems = []
    if (parameters["e"] is None) is (parameters["d"] is None):
        problems.append(Problem("$.method.buckets", "expected one of e and d", "d: 2, or e: 1 as in the (l, e) paper"))
    if attribute.distance is None:
        what = "the values have no distance, so that none are far apart"
        problems.append(
            Problem(f"$.attributes.{attribute.name}", what, "distance: {tree: FILE.csv}, or method: anatomy")
        )
    if parameters["algorithm"] == "mbf" and parameters["left-out"] < 1:
        what = "maximal-bucket-first does not choose what it leaves out"
        problems.append(Problem("$.method.buckets.left-out", what, "algorithm: exact"))
    if problems:
        raise PolicyError(problems)


METHOD: DealingMethod = Buckets()
