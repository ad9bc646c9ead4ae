"""Anatomy: quasi-identifiers as they are, sensitive values in groups of l different ones.

    |G| >= l,   no value twice in G      for every group G

where
    G  a group of records; each of them shows the values of all, in no order

An attacker who finds a person's record in a group, and knows nothing else, is right about the value with probability
1/|G|. What suppresses the fewest records, and makes the most groups, is known in closed form: see `bucketization`.

Xiao and Tao (2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.kernel.arrays import Ints
from polyseme.methods.bucketization import Grouping, Places, bucketize, distinct, planned
from polyseme.methods.goal import DealingMethod, Task, grouped_attribute
from polyseme.schema import Attribute

__all__ = ["METHOD", "Anatomy"]


class Anatomy:
    """Groups of at least l records with different values."""

    name: ClassVar[str] = "anatomy"

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        attribute = grouped_attribute(self.name, parameters, sensitive)
        return ({"frequency-diversity": {"l": parameters["l"], "attribute": attribute.name}},)

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def places(self, parameters: Mapping[str, Any], attribute: Attribute, counts: Ints) -> Places:
        return planned(counts, distinct(len(counts)), parameters["l"], left_out=parameters["left-out"])

    def group(self, task: Task) -> Grouping:
        values, parameters = (
            task.data.sensitive[grouped_attribute(self.name, task.parameters, task.sensitive).name],
            task.parameters,
        )
        structure = distinct(len(values.labels))
        return bucketize(values.codes, structure, parameters["l"], task.stream, left_out=parameters["left-out"])


METHOD: DealingMethod = Anatomy()
