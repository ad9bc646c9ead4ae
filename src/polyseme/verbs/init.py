"""`init`: a first policy for a table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Unpack

import pyarrow as pa

from polyseme.kernel.documents import parse
from polyseme.kernel.errors import ImpossibleError, Problem
from polyseme.kernel.work import verb
from polyseme.policy import MethodSpec, Policy
from polyseme.policy.drafting import Draft, Observed
from polyseme.policy.resolution import column_values
from polyseme.publishing.inputs import table_given
from polyseme.publishing.publication import prepare
from polyseme.semantics.hierarchies import read_hierarchy, values_of
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import TableOptions
from polyseme.tables.profile import Profile

__all__ = ["init", "unknown_values"]

_TRIED = 20_000
"""Records on which single levels are tried out, about; with more of them levels can only be finer."""
_SECONDS = 10
"""For that search."""
_HIDDEN = 0.75
"""The share of quasi-identifiers that may come out as `*` for single levels to be proposed; a judgment."""
_log = logging.getLogger(__name__)


@verb(read=2, levels=1)
def init(data: Any, **written: Unpack[TableOptions]) -> Draft:
    """A commented first policy for a table, as YAML text; it works as it is.

    The text also knows the guess, the reason and the alternatives for each column.
    """
    observed = Observed.of(Profile(table_given(data, **written)))
    made = observed.draft(single_levels=True)
    if not observed.proposals or (observed.searchable and _levels_show_something(observed, Policy.loads(made))):
        return made
    return observed.draft(single_levels=False)


def unknown_values(text: str, data: Any, **written: Unpack[TableOptions]) -> tuple[Problem, ...]:
    """The values that a drafted policy counts as other, because a taxonomy does not know them."""
    policy, source = Policy.loads(text), Profile(table_given(data, **written))
    hierarchies = {
        name: entry["hierarchy"] for name, entry in parse(text)["attributes"].items() if "hierarchy" in entry
    }
    source.hold(list(hierarchies))
    found = []
    for name, hierarchy in hierarchies.items():
        if isinstance(hierarchy, Mapping) and "unknown" in hierarchy:
            rule = read_hierarchy({"taxonomy": hierarchy["taxonomy"]}).open(policy.files)
            seen = values_of(column_values(source, name, policy.table.missing_values)).strangers(rule)
            what = f"values that the taxonomy {hierarchy['taxonomy']} does not know"
            found.append(Problem.in_rows(f"column '{name}'", what, "", seen, source.row_numbers))
    return tuple(found)


def _levels_show_something(drafted: Observed, policy: Policy) -> bool:
    """Whether one level per quasi-identifier leaves enough of the table, by its first rows."""
    source = drafted.source
    head = FrameSource(pa.Table.from_batches(islice(source.batches(), 1)).slice(0, _TRIED), source.name)
    grouping = policy.grouping or MethodSpec()
    tried = replace(policy, grouping=replace(grouping, parameters={**grouping.parameters, "time-limit": _SECONDS}))
    try:
        decided = prepare(tried, head).decided
    except ImpossibleError:
        return False
    levels = {} if decided is None else decided.applied.levels
    hidden = sum(level == drafted.proposals[name].levels - 1 for name, level in levels.items())
    _log.debug("init: single levels would hide %d of %d columns", hidden, len(levels))
    return hidden <= _HIDDEN * len(levels)
