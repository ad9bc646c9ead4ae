"""Mondrian as a policy asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.methods.grouping import GroupingMethod, Task
from polyseme.methods.microdata import Recoding
from polyseme.methods.mondrian.partitioning import mondrian
from polyseme.schema import Attribute

__all__ = ["METHOD", "Mondrian"]


class Mondrian:
    """Classes that are cut as long as the goal allows."""

    name: ClassVar[str] = "mondrian"

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        """None by itself: classes are formed for the policy's models."""
        return ()

    def group(self, task: Task) -> Recoding:
        task.require_goal(self.name)
        return mondrian(task.data, task.goal, task.stream, mode=task.parameters["mode"], cancellation=task.cancellation)


METHOD: GroupingMethod = Mondrian()
