"""Publish records as sets of distant candidates; recover the true cross-tabulations.

Every public name is imported when it is first used, so `import polyseme` costs next to nothing.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from polyseme.kernel.version import __version__ as __version__

# What a type checker reads. `_NAMES` below says the same while the program runs; a test compares the two.
if TYPE_CHECKING:
    from polyseme.inference.sets.estimate import Estimate as Estimate
    from polyseme.kernel.errors import CampaignError as CampaignError
    from polyseme.kernel.errors import Cancelled as Cancelled
    from polyseme.kernel.errors import ImpossibleError as ImpossibleError
    from polyseme.kernel.errors import InvalidInput as InvalidInput
    from polyseme.kernel.errors import PluginError as PluginError
    from polyseme.kernel.errors import PolicyError as PolicyError
    from polyseme.kernel.errors import PolicyWarning as PolicyWarning
    from polyseme.kernel.errors import PolysemeError as PolysemeError
    from polyseme.kernel.errors import PolysemeWarning as PolysemeWarning
    from polyseme.kernel.errors import PrivacyWarning as PrivacyWarning
    from polyseme.kernel.errors import QuestionError as QuestionError
    from polyseme.kernel.errors import ReleaseError as ReleaseError
    from polyseme.kernel.errors import RiskError as RiskError
    from polyseme.kernel.errors import TableError as TableError
    from polyseme.kernel.work import Cancellation as Cancellation
    from polyseme.kernel.work import Progress as Progress
    from polyseme.kernel.work import working as working
    from polyseme.policy import Policy as Policy
    from polyseme.policy.drafting import Draft as Draft
    from polyseme.policy.edit import edit as edit
    from polyseme.release import Release as Release
    from polyseme.results.attackers import Finding as Finding
    from polyseme.results.attackers import Findings as Findings
    from polyseme.results.ledger import Exposure as Exposure
    from polyseme.results.ledger import Exposures as Exposures
    from polyseme.results.ledger import Ledger as Ledger
    from polyseme.results.plan import Plan as Plan
    from polyseme.results.prior import Prior as Prior
    from polyseme.results.risk import Risk as Risk
    from polyseme.results.verification import Evaluation as Evaluation
    from polyseme.results.verification import Verification as Verification
    from polyseme.verbs.adopt import adopt as adopt
    from polyseme.verbs.anonymize import anonymize as anonymize
    from polyseme.verbs.attack import attack as attack
    from polyseme.verbs.estimate import estimate as estimate
    from polyseme.verbs.evaluate import evaluate as evaluate
    from polyseme.verbs.init import init as init
    from polyseme.verbs.ledger import exposures as exposures
    from polyseme.verbs.ledger import record as record
    from polyseme.verbs.plan import Planner as Planner
    from polyseme.verbs.plan import plan as plan
    from polyseme.verbs.prior import prior_from_release as prior_from_release
    from polyseme.verbs.prior import prior_from_table as prior_from_table
    from polyseme.verbs.report import report as report
    from polyseme.verbs.risk import risk as risk
    from polyseme.verbs.save import save as save
    from polyseme.verbs.verify import verify as verify

_NAMES = {
    "inference.sets.estimate": "Estimate",
    "kernel.errors": "CampaignError Cancelled ImpossibleError InvalidInput PluginError PolicyError PolicyWarning "
    "PolysemeError PolysemeWarning PrivacyWarning QuestionError ReleaseError RiskError TableError",
    "kernel.work": "Cancellation Progress working",
    "policy": "Policy",
    "policy.drafting": "Draft",
    "policy.edit": "edit",
    "release": "Release",
    "results.attackers": "Finding Findings",
    "results.ledger": "Exposure Exposures Ledger",
    "results.plan": "Plan",
    "results.prior": "Prior",
    "results.risk": "Risk",
    "results.verification": "Evaluation Verification",
    "verbs.adopt": "adopt",
    "verbs.anonymize": "anonymize",
    "verbs.attack": "attack",
    "verbs.estimate": "estimate",
    "verbs.evaluate": "evaluate",
    "verbs.init": "init",
    "verbs.ledger": "exposures record",
    "verbs.plan": "Planner plan",
    "verbs.prior": "prior_from_release prior_from_table",
    "verbs.report": "report",
    "verbs.risk": "risk",
    "verbs.save": "save",
    "verbs.verify": "verify",
}
"""The public names, by the module they live in."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)

# The log is silent until the caller adds a handler.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"polyseme.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'polyseme' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
