"""Every worked example and small table that the papers print, recomputed.

Those of the journal paper's Examples 1 to 3 are here: incomes in a tree (Figure 2), on a line, and in a semilattice
(Figure 3).

The text at hand has the figures' words and not their drawings. Example 1 names all nodes of depth 1 and of depth 3, and
Example 3 says which of these are siblings, so that the tree is settled but for the names of its nodes of depth 2.
Distances of Example 3 are steps up to the first common node: a parent 1, a grandparent 2, and so on.

Four, not three, between "$30K-$40K" and "$70K-$80K": Example 1 has "$30K-$50K" at depth 3, so that "$30K-$40K" is at
depth 4, and parts incomes at depth 1 by $70K, so that the first node above both is the root. Three steps lead to the
root from "$70K-$80K", which is at depth 3 itself, four from the other; a distance is the same from both ends, and the
larger number is the height of the common node, which is what Example 3 counts in its two other distances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations

import numpy as np

from polyseme.papers import le_diversity, rule_paper
from polyseme.papers.journal import worked_example as journal
from polyseme.papers.printed_example import Example
from polyseme.papers.sensitive_qids import census as sensitive_qids
from polyseme.papers.study import Exhibit, Finding, Point, Results, Row, Sources, Study, Verdict
from polyseme.semantics.distances import LatticeDistance, LineDistance, TreeDistance
from polyseme.semantics.distances.base import Distance

__all__ = ["EXAMPLES", "STUDY"]

_TREE: Mapping[str, tuple[str, ...]] = {
    "below 20K": ("below 30K", "below 70K"),
    "20K-30K": ("below 30K", "below 70K"),
    "30K-40K": ("30K-50K", "30K-70K", "below 70K"),
    "40K-50K": ("30K-50K", "30K-70K", "below 70K"),
    "50K-60K": ("50K-70K", "30K-70K", "below 70K"),
    "60K-70K": ("50K-70K", "30K-70K", "below 70K"),
    "70K-80K": ("70K-90K", "above 70K"),
    "80K-90K": ("70K-90K", "above 70K"),
    "90K-100K": ("above 90K", "above 70K"),
    "above 100K": ("above 90K", "above 70K"),
}
"""Figure 2: each value and what is above it, without the root. Names at depth 2 are ours."""
_VALUES = tuple(_TREE)
_ROOT = "any income"


def _category(value: str, depth: int) -> str:
    """The node of a depth that holds a value; the value itself where it is not so deep."""
    down = (*reversed(_TREE[value]), value)
    return down[min(depth, len(down)) - 1]


def _alike(one: str, other: str, depth: int) -> float:
    return float(_category(one, depth) == _category(other, depth))


def _example_1(_: Sources) -> Mapping[str, float]:
    return {
        "categories at e = 3": len({_category(value, 3) for value in _VALUES}),
        "categories at e = 1": len({_category(value, 1) for value in _VALUES}),
        "20K and 25K alike at e = 3": _alike("20K-30K", "20K-30K", 3),
        "20K and 40K alike at e = 3": _alike("20K-30K", "40K-50K", 3),
        "20K and 40K alike at e = 1": _alike("20K-30K", "40K-50K", 1),
        "60K-70K and 70K-80K alike at e = 1": _alike("60K-70K", "70K-80K", 1),
        "30K-40K is a category at e = 3": float("30K-40K" in {_category(value, 3) for value in _VALUES}),
    }


def _pairs(distance: Distance) -> list[tuple[int, int, float]]:
    pairs = list(combinations(range(distance.size), 2))
    apart = distance.between(np.array([one for one, _ in pairs]), np.array([other for _, other in pairs]))
    return [(one, other, float(far)) for (one, other), far in zip(pairs, apart, strict=True)]


def _by_place(distance: Distance, unit: float = 1.0) -> int:
    """Pairs whose distance is that of their places."""
    return sum(far == unit * (other - one) for one, other, far in _pairs(distance))


def _example_2(_: Sources) -> Mapping[str, float]:
    thousands = LineDistance(np.arange(10.0, 101.0, 10.0))
    tens = LineDistance(np.arange(1.0, 11.0))
    return {
        "neighbors, in K": min(far for _, _, far in _pairs(thousands)),
        "pairs where |vi - vj| is |i - j| x 10K": _by_place(thousands, 10.0),
        "pairs where |vi - vj| / 10K is |i - j|": _by_place(tens),
    }


def _windows(size: int) -> LatticeDistance:
    """Figure 3: above every two neighbors of a level stands a node that holds both."""
    values = [f"0:{place}" for place in range(size)]
    above = {
        f"{level}:{place}": [f"{level + 1}:{parent}" for parent in (place - 1, place) if 0 <= parent < size - level - 1]
        for level in range(size - 1)
        for place in range(size - level)
    }
    return LatticeDistance.from_parents(above, values)


def _no_tree(apart: Sequence[tuple[int, int, float]]) -> int:
    """Triples of distances that no tree with leaves of one depth has.

    In such a tree the two largest of three distances are equal.
    """
    far = {(one, other): length for one, other, length in apart}
    far |= {(other, one): length for one, other, length in apart}
    places = {place for pair in far for place in pair}
    return sum(far[a, c] > max(far[a, b], far[b, c]) for a, b, c in permutations(sorted(places), 3))


def _figure_3(_: Sources) -> Mapping[str, float]:
    apart = _pairs(_windows(len(_VALUES)))
    return {
        "pairs at distance |i - j| in the semilattice": sum(far == other - one for one, other, far in apart),
        "a tree can have these distances": float(_no_tree(apart) == 0),
    }


def _example_3(_: Sources) -> Mapping[str, float]:
    tree = TreeDistance.from_paths([(value, *above, _ROOT) for value, above in _TREE.items()])
    others = ("40K-50K", "50K-60K", "70K-80K")
    start = np.full(len(others), _VALUES.index("30K-40K"))
    apart = tree.between(start, np.array([_VALUES.index(other) for other in others]))
    return {f"30K-40K and {other}": float(far) for other, far in zip(others, apart, strict=True)}


_AT_1 = ((0, 70), (70, 999))
_AT_3 = ((0, 20), (20, 30), (30, 50), (50, 70), (70, 80), (80, 90), (90, 100), (100, 999))
"""Example 1's own lists of categories, in thousands."""


def _example_1_again(_: Sources) -> Mapping[str, float]:
    def alike(one: int, other: int, listed: Sequence[tuple[int, int]]) -> float:
        return float(any(low <= one < high and low <= other < high for low, high in listed))

    return {
        "categories at e = 3": len(_AT_3),
        "categories at e = 1": len(_AT_1),
        "20K and 25K alike at e = 3": alike(20, 25, _AT_3),
        "20K and 40K alike at e = 3": alike(20, 40, _AT_3),
        "20K and 40K alike at e = 1": alike(20, 40, _AT_1),
        "60K-70K and 70K-80K alike at e = 1": alike(60, 70, _AT_1),
        "30K-40K is a category at e = 3": float((30, 40) in _AT_3),
    }


def _example_3_again(_: Sources) -> Mapping[str, float]:
    """On the drawing: the way up from 30K-40K, until the other value is below as well."""
    up = _TREE["30K-40K"]
    others = ("40K-50K", "50K-60K", "70K-80K")
    return {
        f"30K-40K and {other}": next((s for s, node in enumerate(up, 1) if node in _TREE[other]), len(up) + 1)
        for other in others
    }


_PAIRS = 45

_INCOMES = (
    Example(
        "journal, Example 1 and Fig. 2",
        "By (l, e), 20K and 40K are different at e = 3 and alike at e = 1, where 60K-70K and 70K-80K are different",
        {
            "categories at e = 3": 8,
            "categories at e = 1": 2,
            "20K and 25K alike at e = 3": 1,
            "20K and 40K alike at e = 3": 0,
            "20K and 40K alike at e = 1": 1,
            "60K-70K and 70K-80K alike at e = 1": 0,
            "30K-40K is a category at e = 3": 1,
        },
        _example_1,
        again=_example_1_again,
        how="from the categories that the example lists",
        claimed=True,
        why="The category of 40K at depth 3 is 30K-50K in the example's own list, and 30K-40K two lines later.",
    ),
    Example(
        "journal, Example 2",
        "Representative values 10K to 100K are as far apart as their places, times 10K",
        {
            "neighbors, in K": 10,
            "pairs where |vi - vj| is |i - j| x 10K": _PAIRS,
            "pairs where |vi - vj| / 10K is |i - j|": _PAIRS,
        },
        _example_2,
    ),
    Example(
        "journal, Example 2 and Fig. 3",
        "A tree cannot express these distances, a semilattice can",
        {"pairs at distance |i - j| in the semilattice": _PAIRS, "a tree can have these distances": 0},
        _figure_3,
        why="In a semilattice each node stands above two neighbors of the level below.",
    ),
    Example(
        "journal, Example 3 and Fig. 2",
        "30K-40K is at distance one, two and three from 40K-50K, 50K-60K and 70K-80K",
        {"30K-40K and 40K-50K": 1, "30K-40K and 50K-60K": 2, "30K-40K and 70K-80K": 3},
        _example_3,
        again=_example_3_again,
        how="steps up to the first node that is above both, counted on Figure 2",
        why="By Example 1, 30K-50K is at depth 3 and incomes part at 70K at depth 1: the first node above both is the "
        "root, four steps from 30K-40K. Three steps lead there from 70K-80K, which is less deep.",
    ),
)

EXAMPLES = (
    *journal.EXAMPLES,
    *_INCOMES,
    *sensitive_qids.EXAMPLES,
    *le_diversity.EXAMPLES,
    *rule_paper.EXAMPLES,
)


def grid(_: bool, sources: Sources) -> list[Point]:
    return [Point.of(tables="the papers", data="Adult" if sources.adult else "none", seconds=0.5)]


def measure(_: Point, __: int, sources: Sources) -> list[Row]:
    return [row for example in EXAMPLES for row in example.rows(sources)]


def judge(results: Results) -> list[Finding]:
    return [example.judge(results) for example in EXAMPLES]


def exhibits(results: Results) -> list[Exhibit]:
    tally = Counter(finding.verdict for finding in judge(results))
    words = ", ".join(f"{tally[verdict]} {verdict.value}" for verdict in Verdict if tally[verdict])
    return [
        Exhibit(
            "Numbers that need no chart",
            "Small tables explain what each model asks for, and equations are tried on them.",
            f"Each is counted again, see the claims above: {words}.",
            (),
        )
    ]


STUDY = Study(
    name="printed-examples",
    title="The examples and small tables that the papers print",
    source="All papers but the conference's: their small tables and examples",
    did=("The papers explain their models with tables of a few people, and try their equations on them.",),
    ran=("The tables are counted again and the equations evaluated on them. All numbers are exact.",),
    grid=grid,
    measure=measure,
    claims=tuple(example.claim for example in EXAMPLES),
    judge=judge,
    exhibits=exhibits,
    edition=2,
    adult="some",
)
