"""Publish records as sets of distant candidates; recover the true cross-tabulations.

Every name below is imported when it is first used, so `import polyseme` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from polyseme.version import __version__ as __version__

if TYPE_CHECKING:
    from polyseme.errors import (
        ImpossibleError,
        InvalidInput,
        PolicyError,
        PolysemeError,
        QuestionError,
        ReleaseError,
        TableError,
    )
    from polyseme.estimators.estimate import Estimate
    from polyseme.pipeline import (
        Evaluation,
        adopt,
        anonymize,
        attack,
        estimate,
        evaluate,
        init,
        plan,
        report,
        save,
        verify,
    )
    from polyseme.planning import Plan
    from polyseme.policy import Policy
    from polyseme.release import Release
    from polyseme.verification import Verification

_HOMES = {
    "Estimate": "estimators.estimate",
    "Evaluation": "pipeline",
    "ImpossibleError": "errors",
    "InvalidInput": "errors",
    "Plan": "planning",
    "Policy": "policy",
    "PolicyError": "errors",
    "PolysemeError": "errors",
    "QuestionError": "errors",
    "Release": "release",
    "ReleaseError": "errors",
    "TableError": "errors",
    "Verification": "verification",
    "adopt": "pipeline",
    "anonymize": "pipeline",
    "attack": "pipeline",
    "estimate": "pipeline",
    "evaluate": "pipeline",
    "init": "pipeline",
    "plan": "pipeline",
    "report": "pipeline",
    "save": "pipeline",
    "verify": "pipeline",
}

__all__ = [
    "Estimate",
    "Evaluation",
    "ImpossibleError",
    "InvalidInput",
    "Plan",
    "Policy",
    "PolicyError",
    "PolysemeError",
    "QuestionError",
    "Release",
    "ReleaseError",
    "TableError",
    "Verification",
    "adopt",
    "anonymize",
    "attack",
    "estimate",
    "evaluate",
    "init",
    "plan",
    "report",
    "save",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"polyseme.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'polyseme' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
