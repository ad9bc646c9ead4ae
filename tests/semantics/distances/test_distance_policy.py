"""The words of a policy, and parameters read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyseme.kernel.errors import InvalidInput, PolicyError
from polyseme.semantics.distances import Distance, LineDistance, distance_from, distance_from_policy

DISEASES = ["flu", "asthma", "ulcer"]
TREE = [[0, 1, 2], [1, 0, 2], [2, 2, 0]]


def matrix(distance: Distance) -> Any:
    return distance.matrix().tolist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree.csv").write_text("ulcer;stomach;*\nflu;lung;*\nasthma;lung;*\nextra;lung;*\n")
    (tmp_path / "commas.csv").write_text("flu,lung,*\nasthma,lung,*\nulcer,stomach,*\n")
    (tmp_path / "tree.yaml").write_text("lung: [flu, asthma]\nstomach:\n  - ulcer\n")
    (tmp_path / "tree.json").write_text(json.dumps({"lung": ["flu", "asthma"], "stomach": {"ulcer": None}}))
    (tmp_path / "lattice.yaml").write_text("flu: lung\nasthma: [lung, allergy]\nulcer: [stomach]\n")
    (tmp_path / "matrix.csv").write_text(";ulcer;flu;asthma\nulcer;0;2;2\nflu;2;0;1\nasthma;2;1;0\n")
    (tmp_path / "shuffled.csv").write_text(";ulcer;flu;asthma\nasthma;2;1;0\nflu;2;0;1\nulcer;0;2;2\n")
    (tmp_path / "bare.csv").write_text("ulcer,flu,asthma\n0,2,2\n2,0,1\n2,1,0\n")
    (tmp_path / "broken.yaml").write_text("a: [b\n")
    (tmp_path / "words.csv").write_text("ulcer,flu,asthma\n0,2,x\n2,0,1\n2,1,0\n")
    return tmp_path


@pytest.mark.parametrize(
    "spec",
    [
        {"tree": "tree.csv"},
        {"tree": "commas.csv"},
        {"tree": "tree.yaml"},
        {"tree": "tree.json"},
        {"tree": {"file": "tree.csv"}},
        {"tree": {"file": "tree.csv", "measure": "path"}},
        {"tree": {"lung": ["flu", "asthma"], "stomach": ["ulcer"]}},
        {"tree": {"nested": {"lung": ["flu", "asthma"], "stomach": ["ulcer"]}, "measure": "path"}},
        {"tree": [{"lung": ["flu", "asthma"]}, {"stomach": ["ulcer"]}]},
        {"lattice": "lattice.yaml"},
        {"lattice": {"flu": ["lung"], "asthma": ["lung", "allergy"], "ulcer": ["stomach"]}},
        {"matrix": TREE},
        {"matrix": "matrix.csv"},
        {"matrix": "shuffled.csv"},
        {"matrix": "bare.csv"},
    ],
    ids=str,
)
def test_one_tree_in_many_words(spec: Any, folder: Path) -> None:
    distance = distance_from_policy(spec, DISEASES, folder)
    assert matrix(distance) == TREE
    again = distance_from(json.loads(json.dumps(distance.parameters())), 3)
    assert matrix(again) == TREE


@pytest.mark.parametrize(
    ("spec", "values", "expected"),
    [
        ({"line": "rank"}, ["a", "b", "c"], [0, 1, 2]),
        ({"line": [0.5, 1.5, 4]}, ["a", "b", "c"], [0, 1, 3.5]),
        ({"line": "value"}, [10, 20, 25], [0, 10, 15]),
        ({"circle": "rank"}, list("abcd"), [0, 1, 2, 1]),
        ({"circle": {"length": 24}}, list("abcd"), [0, 6, 12, 6]),
        ({"circle": {"length": 24}}, [0, 1, 23], [0, 1, 1]),
        ({"circle": {"length": 24, "positions": [0, 5, 20]}}, list("abc"), [0, 5, 4]),
        ({"tree": {"prefixes": [1, 3]}}, ["J45.0", "J45.1", "J44", "K02"], [0, 1, 2, 3]),
        ({"tree": {"separator": "/"}}, ["a/x", "a/y", "b/x"], [0, 1, 2]),
        ({"taxonomy": "icd10"}, ["J45.0", "J45.1", "K02"], [0, 1, 4]),
        ({"taxonomy": {"name": "countries", "measure": "path"}}, ["FR", "DE", "JP"], [0, 1, 3]),
        ({"tree": {"small": [1, 2], "large": [30]}}, [1, 2, 30], [0, 1, 2]),
    ],
    ids=str,
)
def test_other_words(spec: Any, values: list[Any], expected: list[float], tmp_path: Path) -> None:
    distance = distance_from_policy(spec, values, tmp_path)
    assert matrix(distance)[0] == expected


@pytest.mark.parametrize(
    ("spec", "where", "what"),
    [
        ("line", "", "one word"),
        ({}, "", "one word"),
        ({"line": "rank", "tree": {}}, "", "one word"),
        ({"lines": "rank"}, "", "did you mean 'line'"),
        ({"line": [1, 2]}, "line", "2 values, but the domain has 3"),
        ({"line": "ranks"}, "line", "a list of 3 numbers"),
        ({"line": "value"}, "line", "3 of 3 values of the domain are not numbers"),
        ({"line": [1, 1, 2]}, "line", "repeat"),
        ({"circle": {"lenght": 3}}, "circle.lenght", "did you mean 'length'"),
        ({"circle": {"positions": [1, 2, 3]}}, "circle.length", "length"),
        ({"circle": 24}, "circle", "a circle is"),
        ({"tree": "no.csv"}, "tree.file", "no file 'no.csv'"),
        ({"tree": {"file": "tree.csv", "measure": "pth"}}, "tree", "did you mean 'path'"),
        ({"tree": {"file": "tree.csv", "prefixes": [1]}}, "tree", "exactly one"),
        ({"tree": {"measure": "path"}}, "tree", "exactly one"),
        ({"tree": {"lung": ["flu"]}}, "tree", "2 of 3 values are not in the tree: asthma, ulcer"),
        ({"tree": {"nested": 3}}, "tree.nested", "a tree is"),
        ({"tree": 3}, "tree", "a tree is"),
        ({"tree": {"prefixes": [0]}}, "tree.prefixes", "positive"),
        ({"tree": {"prefixes": []}}, "tree.prefixes", "positive"),
        ({"tree": {"separator": ""}}, "tree.separator", "text"),
        ({"tree": "broken.yaml"}, "tree.file", "cannot be read as YAML"),
        ({"lattice": 3}, "lattice", "mapping"),
        ({"lattice": {"flu": ["lung"]}}, "lattice", "2 of 3 values"),
        ({"matrix": 3}, "matrix", "list of rows"),
        ({"matrix": [[0, 1], [1, 0]]}, "matrix", "2 values, but the domain has 3"),
        ({"matrix": "tree.csv"}, "matrix", "not in the header"),
        ({"matrix": "words.csv"}, "matrix", "one number for each pair"),
        ({"taxonomy": "icd11"}, "taxonomy", "did you mean 'icd10'"),
        ({"taxonomy": "icd10"}, "taxonomy", "3 of 3 values are not in the taxonomy icd10"),
        ({"taxonomy": {"nam": "icd10"}}, "taxonomy.nam", "did you mean 'name'"),
    ],
    ids=str,
)
def test_problems_say_where_and_what(spec: Any, where: str, what: str, folder: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        distance_from_policy(spec, DISEASES, folder)
    (problem,) = caught.value.problems
    assert problem.where == where
    assert what in str(problem)


def test_parameters_are_checked() -> None:
    with pytest.raises(PolicyError, match="did you mean 'circle'"):
        distance_from({"circl": "rank"}, 3)
    with pytest.raises(PolicyError, match="one kind"):
        distance_from({}, 3)
    with pytest.raises(PolicyError, match="over 2 values, but the domain has 3"):
        distance_from({"line": [1, 2]}, 3)
    with pytest.raises(PolicyError, match="damaged"):
        distance_from({"tree": {"nodes": 3}}, 3)
    with pytest.raises(PolicyError, match="damaged"):
        distance_from({"circle": 7}, 3)
    assert isinstance(distance_from({"line": "rank"}, 3), LineDistance)
    np.testing.assert_array_equal(distance_from({"circle": "rank"}, 4).matrix()[0], [0, 1, 2, 1])


def test_trees_and_lattices_without_end_are_refused() -> None:
    nodes = 30_000
    chain = {"parents": list(range(-1, nodes - 1)), "names": [""] * nodes, "values": [nodes - 1, 0, 1]}
    with pytest.raises(InvalidInput, match="too large"):
        distance_from({"tree": {**chain, "measure": "ancestor"}}, 3)
    values = 4_000
    above = [[node + 1] if node + 1 < 3 * values else [] for node in range(3 * values)]
    with pytest.raises(InvalidInput, match="too large"):
        distance_from(
            {"lattice": {"parents": above, "names": [""] * (3 * values), "values": list(range(values))}}, values
        )


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"line": ["1", "2", "3"]}, "line"),
        ({"line": [True, 2, 3]}, "line"),
        ({"line": [1e308, 0, 1]}, "line"),
        ({"circle": {"length": "4", "positions": [0, 1, 2]}}, "circle.length"),
        ({"tree": {"measure": "path", "parents": [-1.0], "names": ["*"], "values": [0, 0, 0]}}, "tree.parents"),
        ({"tree": {"measure": "path", "parents": [-1], "names": ["*"], "values": [0, 0, 10**30]}}, "tree.values"),
        ({"lattice": {"parents": [[], [0], [5]], "names": list("abc"), "values": [0, 1, 2]}}, "lattice.parents[2]"),
        ({"matrix": [[0, 1, 2], [1, 0, None], [2, 1, 0]]}, "matrix[1]"),
    ],
    ids=str,
)
def test_parameters_say_where_they_are_damaged(parameters: Any, where: str) -> None:
    with pytest.raises(PolicyError) as caught:
        distance_from(parameters, 3)
    assert [problem.where for problem in caught.value.problems] == [where]
