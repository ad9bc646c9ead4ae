"""Pages and distributions for the tests of reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyseme.models.base import Verdict
from polyseme.reports.contents import AttributeLine, Distribution, FactLine, FindingLine, Page, PromiseLine


def distribution(size: int = 6, original: bool = True, label: str = "value {}", **changes: Any) -> Distribution:
    truth = np.arange(size, 0, -1.0) * 10
    parts: dict[str, Any] = {
        "attribute": "income",
        "labels": [label.format(index) for index in range(size)],
        "published": np.full(size, truth.mean()),
        "estimate": truth + 1.0,
        "low": truth - 5.0,
        "high": truth + 7.0,
        "original": truth if original else None,
        "ordered": True,
    }
    return Distribution(**(parts | changes))


def verdict(holds: bool = True, **changes: Any) -> Verdict:
    parts: dict[str, Any] = {
        "model": "semantic-diversity",
        "attribute": "income",
        "parameters": {"l": 3, "d": 4.0},
        "holds": holds,
        "worst": 4.0 if holds else 1.0,
        "bound": 4.0,
        "margin": 0.0 if holds else -3.0,
        "checked": 364,
        "violations": 0 if holds else 12,
    }
    return Verdict(**(parts | changes))


def fact(**changes: Any) -> FactLine:
    parts: dict[str, Any] = {
        "attribute": "income",
        "design": "balanced",
        "size": 14,
        "l": 3,
        "d": 4.0,
        "p": 1.0,
        "promised": 1 / 3,
        "worst_posterior": 1 / 3,
        "epsilon": math.inf,
        "identifiable": True,
        "expected_mse": 4e-6,
    }
    return FactLine(**(parts | changes))


def page(**changes: Any) -> Page:
    parts: dict[str, Any] = {
        "title": "Income",
        "records": 12_345,
        "promises": (PromiseLine("income", "Each record shows 3 candidates for income.", ("diversity (l=3)",)),),
        "attributes": (
            AttributeLine("age", "quasi-identifier", "as it is"),
            AttributeLine("income", "sensitive", "sets of 3, at least 4 apart", protected=True),
        ),
        "checks": (verdict(),),
        "facts": (fact(),),
        "distributions": (distribution(),),
        "metrics": {"income": {"mse": 3.1e-6}},
        "findings": (FindingLine("bayes", "income", 0.33, 1 / 3, False, 0.2, "the public distribution"),),
        "notes": ("few records",),
    }
    return Page(**(parts | changes))
