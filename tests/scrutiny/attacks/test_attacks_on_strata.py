"""Adversaries who learn from a release guess at all records, in every stratum."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.release import Sets

VALUES = [f"v{code:02d}" for code in range(12)]
STRATA = 11


def policy() -> ps.Policy:
    """In the stratum s the value s is impossible."""
    impossible = "".join(
        f"  - {{when: {{s: s{number}}}, attribute: x, values: [{VALUES[number]}]}}\n" for number in range(STRATA)
    )
    return ps.Policy.loads(
        "attributes:\n  s: {role: quasi-identifier}\n  g: {role: quasi-identifier}\n"
        f"  x: {{role: sensitive, domain: {VALUES}, protect: {{diversity: {{l: 3}}}}}}\nimpossible:\n{impossible}"
    )


def people(rows: int = 6_000, seed: int = 3) -> tuple[pl.DataFrame, np.ndarray]:
    """Column g tells x, but not in the largest stratum; and the law of x by s and g."""
    rng = np.random.default_rng(seed)
    law = np.zeros((STRATA, 4, 12))
    for s in range(STRATA):
        for g in range(4):
            law[s, g] = 1.0 if s == 0 else 0.02
            law[s, g, (3 * g + np.arange(3)) % 12] += 0.0 if s == 0 else (0.7, 0.2, 0.1)
            law[s, g, s] = 0.0
    law /= law.sum(axis=2, keepdims=True)
    s = rng.choice(STRATA, rows, p=[0.14, *[0.086] * (STRATA - 1)])
    g = rng.integers(0, 4, rows)
    x = (law[s, g].cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    table = {"s": [f"s{code}" for code in s], "g": [f"g{code}" for code in g], "x": [VALUES[code] for code in x]}
    return pl.DataFrame(table), law


def expected(release: ps.Release, table: pl.DataFrame, law: np.ndarray) -> float:
    """How often an attacker is right who knows the law: by going through all sets of all strata."""
    column = release.manifest["x"]
    assert isinstance(column, Sets)
    total = 0.0
    for s, g, count in table.group_by("s", "g").len().rows():
        (member,) = [one for one in column.strata.members if VALUES.index(f"v{int(s[1:]):02d}") in one.excluded]
        _, channel = member.mechanism.channel()
        total += count * (law[int(s[1:]), int(g[1:])][member.allowed, None] * channel).max(axis=0).sum()
    return float(total / table.height)


@pytest.mark.parametrize("original", [True, False])
def test_who_learns_from_a_release_guesses_at_all_records(original: bool) -> None:
    table, law = people()
    release = ps.anonymize(table, policy(), seed=1, warn=lambda text: None)
    best = expected(release, table, law)
    largest = table.filter(pl.col("s") == "s0").height
    found = {one.attack: one for one in ps.attack(release, table if original else None)}
    for name in ("definetti", "published-estimate"):
        # In the largest stratum nothing is to be learned: its 1/l would hide that others are right far more often.
        assert 0.7 < best < found[name].success + 0.05
        assert found[name].success < best + 0.03
        assert "stratum" not in found[name].knows
        assert found[name].detail.get("fresh_sets", table.height) == table.height
    assert found["bayes"].detail["stratum_records"] == largest
