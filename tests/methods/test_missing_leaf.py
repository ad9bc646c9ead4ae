"""The loss of Iyengar counts the values that a column has: a leaf for missing values only where some are missing.

The reference works on the table and the trees alone, from the published definition: all nodes, all classes.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from draws import Generator, generators
from hypothesis import given, settings

import polyseme as ps

K = 3
WAYS: dict[str, list[dict[str, str]]] = {
    "q0": [{"a": "x", "b": "x", "c": "y", "d": "y"}],
    "q1": [{"a": "x", "b": "x", "c": "x", "d": "y"}, {"a": "p", "b": "p", "c": "p", "d": "p"}],
    "q2": [],
}
POLICY = """
attributes:
  q0: {role: quasi-identifier, hierarchy: {tree: {x: [a, b], y: [c, d]}}}
  q1: {role: quasi-identifier, hierarchy: {tree: {p: {x: [a, b, c], y: [d]}}}}
  q2: {role: quasi-identifier}
  s: {role: insensitive}
models: [{k-anonymity: {k: 3}}]
method: {full-domain: {loss: loss, suppression: 0.1}}
"""


def random_table(random: Generator) -> pl.DataFrame:
    """Four values a column; in one table of three some are missing."""
    rows = random.integers(12, 40)
    values = np.array(["a", "b", "c", "d", None], dtype=object)
    shares = [random.dirichlet(np.ones(4)) for _ in WAYS]
    share = random.choice([0.0, 0.0, 0.1])
    columns = [random.choice(5, rows, p=[*((1 - share) * row), share]) for row in shares]
    return pl.DataFrame(
        {f"q{place}": pl.Series(values[codes].tolist(), dtype=pl.String) for place, codes in enumerate(columns)}
    ).with_columns(s=pl.int_range(rows))


def shown(name: str, value: str | None, level: int) -> str:
    """A value at a level: itself, what the tree says, or nothing; a missing one meets the others at the top only."""
    ways = WAYS[name]
    if level > len(ways):
        return "*"
    if value is None:
        return "(missing)"
    return value if level == 0 else ways[level - 1][value]


def leaves_of(name: str, column: list[str | None]) -> list[str | None]:
    """Those that a tree lists, or that the column has; a missing value where one is missing."""
    known = sorted({value for value in column if value is not None}) if not WAYS[name] else list("abcd")
    return [*known, None] if None in column else [*known]


def reference(table: pl.DataFrame) -> tuple[float, int, tuple[int, ...]] | None:
    """Loss, suppressed records and levels of the best node of all."""
    columns = {name: table[name].to_list() for name in WAYS}
    best = None
    for levels in itertools.product(*(range(len(ways) + 2) for ways in WAYS.values())):
        rows = list(zip(*([shown(n, v, at) for v in columns[n]] for n, at in zip(WAYS, levels, strict=True))))
        sizes = {row: rows.count(row) for row in set(rows)}
        gone = sum(size for size in sizes.values() if size < K)
        if gone > int(0.1 * len(rows) + 1e-9) or gone == len(rows):
            continue
        total = 0.0
        for name, level in zip(WAYS, levels, strict=True):
            leaves = leaves_of(name, columns[name])
            for value in columns[name]:
                like = sum(shown(name, leaf, level) == shown(name, value, level) for leaf in leaves)
                total += (like - 1) / max(len(leaves) - 1, 1)
        found = (round(total / (len(rows) * len(WAYS)), 12), gone, levels)
        best = found if best is None else min(best, found)
    return best


def test_the_loss_counts_the_values_that_there_are() -> None:
    """Levels and loss of the optimum, over random tables."""
    compared = 0

    @settings(max_examples=60)
    @given(generators().map(random_table))
    def check(table: pl.DataFrame) -> None:
        nonlocal compared
        expected = reference(table)
        if expected is None:
            return
        compared += 1
        applied = ps.anonymize(table, ps.Policy.loads(POLICY)).manifest.applied
        assert tuple(applied.levels.values()) == expected[2]
        assert applied.loss == pytest.approx(expected[0], abs=1e-9)

    check()
    assert compared >= 20


def test_a_third_of_a_column_is_a_third() -> None:
    """Two of four values in a group: 1 of 3 others, not 1 of 4; and half of that with a second column at its leaves."""
    table = pl.DataFrame({"q0": list("abcd") * 3, "s": range(12)})
    policy = POLICY.replace("  q1: {role: quasi-identifier, hierarchy: {tree: {p: {x: [a, b, c], y: [d]}}}}\n", "")
    policy = policy.replace("  q2: {role: quasi-identifier}\n", "").replace("k: 3", "k: 5")
    applied = ps.anonymize(table, ps.Policy.loads(policy)).manifest.applied
    assert (dict(applied.levels), applied.loss) == ({"q0": 1}, pytest.approx(1 / 3))
