"""Full-domain generalization as a policy asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.errors import PolicyError, Problem
from polyseme.methods.full_domain.optimum import full_domain
from polyseme.methods.grouping import Generalizing, GroupingMethod, Task
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Recoding

__all__ = ["METHOD", "FullDomain"]


class FullDomain(Generalizing):
    """One level for each quasi-identifier, of least loss."""

    name: ClassVar[str] = "full-domain"

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        return True

    def group(self, task: Task) -> Recoding:
        task.require_goal(self.name)
        asked = task.parameters
        return full_domain(
            task.data,
            task.goal,
            loss=Loss(asked["loss"], self._weights(asked["weights"], task)),
            suppression=float(asked["suppression"]),
            local_recoding=asked["local-recoding"],
            time_limit=asked["time-limit"],
            cancellation=task.cancellation,
        )

    def _weights(self, given: Mapping[str, Any] | None, task: Task) -> dict[str, float]:
        """How much each quasi-identifier counts; every problem at once."""
        where = f"$.method.{self.name}.weights"
        problems = [
            Problem(f"{where}.{name}", "expected a number of at least 0")
            for name, weight in (given or {}).items()
            if isinstance(weight, bool) or not isinstance(weight, int | float)
        ]
        problems += [
            Problem(f"{where}.{name}", "no such quasi-identifier")
            for name in given or {}
            if name not in task.data.names
        ]
        if problems:
            raise PolicyError(problems)
        return {name: float(weight) for name, weight in (given or {}).items()}


METHOD: GroupingMethod = FullDomain()
