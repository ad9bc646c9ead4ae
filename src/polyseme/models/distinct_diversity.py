"""Distinct l-diversity: every class has at least l different sensitive values.

|{s : n(E, s) > 0}| >= l   for every class E
"""

from __future__ import annotations

from polyseme.models.base import Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check"]


def check(counts: Counts, l: int) -> Verdict:
    """Does every class have at least l different values?"""
    return judge(
        "distinct-diversity",
        counts.attribute,
        {"l": l},
        counts,
        counts.sizes,
        lambda: Score(counts.distinct, counts.distinct >= l, l, at_least=True),
    )
