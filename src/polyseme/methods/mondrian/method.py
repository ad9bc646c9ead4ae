"""Mondrian as a policy asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.methods.grouping import Generalizing, GroupingMethod, Task
from polyseme.methods.microdata import Recoding
from polyseme.methods.mondrian.partitioning import mondrian

__all__ = ["METHOD", "Mondrian"]


class Mondrian(Generalizing):
    """Classes that are cut as long as the goal allows."""

    name: ClassVar[str] = "mondrian"

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        # The relaxed mode separates records that are alike by lot.
        return bool(parameters["mode"] == "strict")

    def group(self, task: Task) -> Recoding:
        task.require_goal(self.name)
        return mondrian(task.data, task.goal, task.stream, mode=task.parameters["mode"], cancellation=task.cancellation)


METHOD: GroupingMethod = Mondrian()
