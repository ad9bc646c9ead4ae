"""(l, e)-diversity: every class is l-diverse, and no two of its values are similar.

    at least l values in E,   sim(u, v) > e for any two different values u, v of E

where
    E    an equivalence class
    sim  ((h_u - h_c) + (h_v - h_c)) / 2 on the tree of values: h is the level of a node, c the closest common
         ancestor; small numbers mean similar values. Any other distance can stand for it.
    e    similarity that two values of a class must exceed

`represented="frequency"` reads "l values" as frequency l-diversity (no value has more than 1/l of the class) instead of
l different values. The worst value is the smallest similarity number within a class, unless only the number of values
fails: then it is that number, against l.

Wang, Han, Wang and Wang (2013), Definitions 2 and 3; their Equation 7 has its signs reversed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from polyseme.models.base import Score, Verdict, judge
from polyseme.models.diversity import largest_count
from polyseme.models.far_apart import closest_pairs
from polyseme.semantics.distances.base import Distance
from polyseme.tables.equivalence_classes import Counts

__all__ = ["Represented", "check", "score"]

Represented: TypeAlias = Literal["distinct", "frequency"]


def score(counts: Counts, distance: Distance, l: int, e: float, represented: Represented = "distinct") -> Score:
    """The smallest similarity number in each class; its number of values where only that fails."""
    apart = closest_pairs(counts, distance)
    enough = counts.distinct >= l if represented == "distinct" else largest_count(counts) * l <= counts.sizes
    similar, few = int((apart <= e).sum()), int((~enough).sum())
    fine = (apart > e) & enough
    if few and not similar:
        worst = counts.distinct if represented == "distinct" else counts.sizes / largest_count(counts)
        return Score(worst, fine, l, at_least=True, note=f"{few:,} classes have too few values")
    note = f"{few:,} classes have too few values" if few else ""
    return Score(apart, fine, e, at_least=True, note=note, strict=True)


def check(counts: Counts, distance: Distance, l: int, e: float, represented: Represented = "distinct") -> Verdict:
    """Has every class l values, no two of them e-similar?"""
    parameters = {"l": l, "e": e, "represented": represented}
    return judge(
        "le-diversity",
        counts.attribute,
        parameters,
        counts,
        counts.sizes,
        lambda: score(counts, distance, l, e, represented),
    )
