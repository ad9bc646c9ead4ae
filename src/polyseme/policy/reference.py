"""The reference population of a policy: the people among whom a person of the table may be any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polyseme.errors import PolicyError, Problem
from polyseme.policy import Policy
from polyseme.policy.opening import open_for
from polyseme.tables.counting.distinct import frame_of
from polyseme.tables.io.source import Source

__all__ = ["models_of", "population_frame", "population_of"]


def population_of(policy: Policy) -> Source | None:
    """The table of the population that was given beside the policy, or that k-map names; None without one."""
    if policy.population is not None:
        return open_for(policy.population, policy)
    given = {name for model in policy.models if isinstance(name := model.parameters.get("reference"), str)}
    if len(given) > 1:
        raise PolicyError(Problem("$.models", "more than one reference table", "write one policy for each"))
    if not given:
        return None
    try:
        path = policy.files.file(given.pop())
    except PolicyError as error:
        raise PolicyError(Problem("$.models", found.what, found.hint) for found in error.problems) from None
    return open_for(path, policy)


def population_frame(policy: Policy, names: Sequence[str] | None = None) -> pl.DataFrame | None:
    """Its columns, or these of them that it has, one row for each person."""
    table = population_of(policy)
    if table is None:
        return None
    wanted = [name for name in table.schema.names if names is None or name in names]
    rows = ((batch, None) for batch in table.batches(wanted))
    return frame_of(rows, wanted, policy.table.missing_values)[0]


def models_of(policy: Policy) -> tuple[Mapping[str, Any], ...]:
    """The models that a release promises; where the population is kept is not told."""
    return tuple(
        {model.name: {name: value for name, value in model.parameters.items() if name != "reference"}}
        for model in policy.models
    )
