"""How a record's codes lead to its stratum: the tables of `polyseme.strata`, by code instead of by spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.schema import Domain
from polyseme.spelling import spelling
from polyseme.strata import Strata

__all__ = ["placing_of"]


def placing_of(strata: Strata, opened: Mapping[str, Domain]) -> dict[str, Any]:
    """The entry `placing` of a campaign document."""
    placing = strata.placing
    steps = [
        {
            "column": step.name,
            "classes": [step.classes.get(spelling(label), 0) for label in opened[step.name].values],
            "next": step.table.tolist(),
        }
        for step in placing.steps
    ]
    return {"steps": steps, "strata": strata.numbers.tolist()}
