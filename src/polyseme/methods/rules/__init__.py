"""Semantic rules: diverse classes that still reveal something are merged or suppressed.

    E is vulnerable   if some rule `never-all A` is effective on it: a record in E meets A and none contradicts it

where
    E  a class: records with the same quasi-identifiers
    A  the rule's condition on sensitive attributes

Another method forms the classes (`start`). Then, until no rule is effective on any class, the cheapest of the allowed
actions is taken: two classes are merged, values or records are suppressed; or, where that costs less, all records are
generalized by full-domain search with the rules among its models. See `costs` for what an action costs.

Elabd, Abdulkader and Mubark (2015), whose other action, changing sensitive values, is taken only on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.methods.goal import GroupingMethod, Task
from polyseme.methods.microdata import Recoding
from polyseme.methods.rules.repair import anonymized, effective_rules
from polyseme.methods.rules.state import RuleOptions
from polyseme.schema import Attribute

__all__ = ["METHOD", "Rules", "effective_rules"]


class Rules:
    """Actions by cost until no rule is effective."""

    name: ClassVar[str] = "rules"

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        RuleOptions.of(parameters)
        return ()

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def group(self, task: Task) -> Recoding:
        return anonymized(task, RuleOptions.of(task.parameters))


METHOD: GroupingMethod = Rules()
