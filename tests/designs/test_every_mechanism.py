"""A release of every mechanism, distance and promise goes the whole way: it verifies, and its estimate adds up."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import polyseme as ps

LABELS = [f"v{code:02d}" for code in range(12)]
NESTED = {
    f"branch {branch}": {f"twig {branch}{twig}": LABELS[4 * branch + 2 * twig :][:2] for twig in range(2)}
    for branch in range(3)
}
PARENTS = {label: [f"group {code // 3}", f"other {(code + 1) % 12 // 3}"] for code, label in enumerate(LABELS)}
MATRIX = [[abs(row - column) ** 0.5 for column in range(12)] for row in range(12)]

CASES = {
    "line balanced": ({"line": "rank"}, {"semantic-diversity": {"l": 3, "d": 3}}),
    "line sharp": ({"line": "rank"}, {"semantic-diversity": {"l": 3, "d": 3, "mechanism": "sharp"}}),
    "matrix sharp": ({"matrix": MATRIX}, {"semantic-diversity": {"l": 3, "d": 1.5, "mechanism": "sharp"}}),
    "line simple": ({"line": "rank"}, {"semantic-diversity": {"l": 3, "d": 3, "mechanism": "simple"}}),
    "line duplicate": ({"line": "rank"}, {"semantic-diversity": {"l": 3, "d": 2, "mechanism": "duplicate"}}),
    "line printed": (
        {"line": "rank"},
        {"semantic-diversity": {"l": 3, "d": 2, "mechanism": "simple", "check": "printed"}},
    ),
    "uneven line least-risk": (
        {"line": [1, 2, 3, 4, 5, 6, 7, 8, 15, 20, 25, 30]},
        {"semantic-diversity": {"l": 3, "d": 6, "mechanism": "least-risk"}},
    ),
    "circle balanced": ({"circle": "rank"}, {"semantic-diversity": {"l": 3, "d": 3}}),
    "circle simple": ({"circle": "rank"}, {"semantic-diversity": {"l": 2, "d": 4, "mechanism": "simple"}}),
    "tree balanced": ({"tree": NESTED}, {"semantic-diversity": {"l": 3, "d": 2}}),
    "tree simple": ({"tree": NESTED}, {"semantic-diversity": {"l": 3, "d": 2, "mechanism": "simple"}}),
    "lattice balanced": ({"lattice": PARENTS}, {"semantic-diversity": {"l": 2, "d": 2}}),
    "matrix balanced": ({"matrix": MATRIX}, {"semantic-diversity": {"l": 3, "d": 1.5}}),
    "diversity": (None, {"diversity": {"l": 4}}),
    "entropy": (None, {"entropy-diversity": {"l": 3}}),
    "closeness": (None, {"closeness": {"t": 0.25}}),
    "ordered closeness": ({"line": "rank"}, {"closeness": {"t": 0.2, "ground": "ordered"}}),
    "hierarchical closeness": ({"tree": NESTED}, {"closeness": {"t": 0.2, "ground": "hierarchical"}}),
    "ldp": (None, {"ldp": {"epsilon": 1.5}}),
    "all together": (
        {"line": "rank"},
        {
            "semantic-diversity": {"l": 3, "d": 2},
            "closeness": {"t": 0.3},
            "ldp": {"epsilon": 2.0},
            "diversity": {"l": 2},
        },
    ),
}


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize("case", CASES)
def test_the_whole_way(case: str, form: str) -> None:
    distance, protect = CASES[case]
    attribute = {"role": "sensitive", "domain": LABELS, "protect": protect}
    if distance is not None:
        attribute["distance"] = distance
    policy = ps.Policy.from_dict({"attributes": {"sex": {"role": "quasi-identifier"}, "x": attribute}})
    rng = np.random.default_rng(3)
    people = pl.DataFrame({"sex": rng.choice(["f", "m"], 4_000), "x": rng.choice(LABELS, 4_000)})
    release = ps.anonymize(people, policy, form=form)
    verified = ps.verify(release)
    assert verified.holds, verified.to_dict()
    table = ps.estimate(release, of=["x"], by=["sex"])
    assert np.isclose(table.values.sum(), 4_000)
    assert ps.evaluate(release, people, of=["x"]).to_dict()["mse"] < 0.01
