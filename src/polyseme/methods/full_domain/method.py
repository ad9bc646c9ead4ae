"""Full-domain search as a policy names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from polyseme.methods.full_domain.optimum import full_domain
from polyseme.methods.grouping import GroupingMethod, Task
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Recoding
from polyseme.schema import Attribute

__all__ = ["METHOD", "FullDomain"]


class FullDomain:
    """One level for each quasi-identifier, the best there is."""

    name: ClassVar[str] = "full-domain"

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        return ()

    def group(self, task: Task) -> Recoding:
        asked = task.parameters
        return full_domain(
            task.data,
            task.goal,
            loss=Loss(asked["loss"], asked["weights"] or {}),
            suppression=asked["suppression"],
            local_recoding=asked["local-recoding"],
            time_limit=asked["time-limit"],
            cancellation=task.cancellation,
        )


METHOD: GroupingMethod = FullDomain()
