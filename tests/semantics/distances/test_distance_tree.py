from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from polyseme.kernel.delimited import read_rows
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.semantics.distances import LatticeDistance, TreeDistance, distance_from
from polyseme.semantics.distances.base import Clusters, Graph
from polyseme.semantics.taxonomies import cut_paths, nested_places, row_places, split_paths, value_paths

DISEASES = {
    "respiratory": {"respiratory infection": ["flu", "pneumonia", "bronchitis"]},
    "tumours": {"tumour": ["cancer", "carcinoid"]},
    "digestive": {"stomach": ["gastric ulcer", "dyspepsia", "gastritis"]},
}
"""The (l, e) paper's tree, as far as its text tells it."""


def between(distance: TreeDistance | LatticeDistance, left: int, right: int) -> float:
    return float(distance.between(np.array([left]), np.array([right]))[0])


@pytest.mark.parametrize("measure", ["ancestor", "path"])
def test_flu_is_1_similar_to_pneumonia_and_3_similar_to_gastritis(measure: str) -> None:
    paths = value_paths(nested_places(DISEASES), ["flu", "pneumonia", "gastritis"])
    distance = TreeDistance.from_paths(paths, measure)  # type: ignore[arg-type]
    assert between(distance, 0, 1) == 1
    assert between(distance, 0, 2) == 3


def test_unequal_depths_by_hand() -> None:
    #       *
    #    p     e        p: a, b and q: c, d
    paths = [("a", "p", "*"), ("b", "p", "*"), ("c", "q", "p", "*"), ("d", "q", "p", "*"), ("e", "*")]
    ancestor, path = TreeDistance.from_paths(paths), TreeDistance.from_paths(paths, "path")
    assert ancestor.matrix()[0].tolist() == [0, 2, 2, 2, 3]
    assert path.matrix()[0].tolist() == [0, 1, 1.5, 1.5, 1.5]
    assert ancestor.height == 3
    assert isinstance(path.structure(2), Graph)
    assert isinstance(path.structure(1.25), Clusters)


def test_inner_node_as_a_value_is_a_leaf_just_below_itself() -> None:
    distance = TreeDistance.from_paths([("9th", "secondary", "*"), ("secondary", "*"), ("masters", "university", "*")])
    assert between(distance, 0, 1) == 1
    assert between(distance, 1, 2) == 2
    root_too = TreeDistance.from_paths([("a", "g", "*"), ("*",)])
    assert between(root_too, 0, 1) == 2


def test_paths_without_a_common_root_get_one() -> None:
    distance = TreeDistance.from_paths([("a", "x"), ("b", "x"), ("c", "y")])
    assert distance.matrix()[0].tolist() == [0, 1, 2]
    flat = TreeDistance.from_paths([("a",), ("b",), ("c",)])
    assert flat.matrix()[0].tolist() == [0, 1, 1]


def test_same_label_at_several_levels_or_under_several_parents() -> None:
    repeated = TreeDistance.from_paths([("a", "a", "a", "*"), ("b", "g", "h", "*"), ("c", "g", "h", "*")])
    assert repeated.matrix()[0].tolist() == [0, 3, 3]
    other = TreeDistance.from_paths([("a", "other", "x", "*"), ("b", "other", "y", "*")])
    assert between(other, 0, 1) == 3


def test_csv_as_arx_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "tree.csv"
    file.write_text("\ufeffflu;lung;*\nulcer;stomach;*\n\nasthma;lung;*\n", encoding="utf-8")
    paths = value_paths(row_places(cells for _, cells in read_rows(file)), ["ulcer", "flu", "asthma"])
    assert paths == [("ulcer", "stomach", "*"), ("flu", "lung", "*"), ("asthma", "lung", "*")]
    file.write_text('"flu, severe",lung,*\nulcer,,*\n', encoding="utf-8")
    assert row_places(cells for _, cells in read_rows(file)) == {
        "flu, severe": [("flu, severe", "lung", "*")],
        "ulcer": [("ulcer", "*")],
    }


def test_every_missing_and_repeated_value_is_named_with_its_count() -> None:
    places = row_places([["flu", "lung", "*"], ["flu", "virus", "*"], ["ulcer", "stomach", "*"]])
    with pytest.raises(PolicyError) as caught:
        value_paths(places, ["flu", "ulcr", "gout", "ulcer"])
    missing, repeated = caught.value.problems
    assert missing.what == "2 of 4 values are not in the tree: ulcr, gout"
    assert missing.hint == "for 'ulcr': did you mean 'ulcer'?"
    assert "flu (2 times)" in repeated.what
    with pytest.raises(PolicyError, match=r"20 of 20 values .* and 8 more"):
        value_paths(places, [f"x{i}" for i in range(20)])


def test_nested_trees_in_all_their_forms() -> None:
    places = nested_places([{"lung": ["flu", {"chronic": ["asthma"]}]}, "gout", {"other": None, "none": []}, 7])
    assert places["flu"] == [("flu", "lung", "*")]
    assert places["asthma"] == [("asthma", "chronic", "lung", "*")]
    assert places["gout"] == [("gout", "*")]
    assert places["other"] == [("other", "*")]
    assert places["none"] == [("none", "*")]
    assert places["7"] == [("7", "*")]
    assert places["lung"] == [("lung", "*")]
    assert nested_places({"flu": ["flu", "cold"]})["flu"] == [("flu", "flu", "*")]


def test_codes_by_their_structure() -> None:
    prefixes = TreeDistance.from_paths(cut_paths(["J45.0", "J45.1", "J44", "K02", "J"], [3, 1]))
    assert prefixes.matrix()[0].tolist() == [0, 1, 2, 3, 2]
    parts = TreeDistance.from_paths(split_paths(["a.b.c", "a.b.d", "a.b", "b"], "."))
    assert parts.matrix()[0].tolist() == [0, 1, 1, 3]


def test_damaged_trees_are_refused() -> None:
    for parents, values in [([], [0]), ([0], [0]), ([-1, 1], [0]), ([-1, 2, 0], [0]), ([-1, -1], [0]), ([-1], [1])]:
        with pytest.raises(PolicyError):
            TreeDistance(parents, values)
    with pytest.raises(PolicyError, match="names"):
        TreeDistance([-1], [0], ["a", "b"])
    with pytest.raises(PolicyError, match="did you mean 'ancestor'"):
        TreeDistance([-1], [0], None, "ancestors")  # type: ignore[arg-type]


def test_seventy_thousand_leaves_in_a_blink() -> None:
    paths = [(f"{i}", f"{i // 10}", f"{i // 300}", f"{i // 3500}", "*") for i in range(70_000)]
    began = time.perf_counter()
    distance = TreeDistance.from_paths(paths)
    structure = distance.structure(2)
    again = distance_from(json.loads(json.dumps(distance.parameters())), 70_000)
    assert time.perf_counter() - began < 3
    assert isinstance(structure, Clusters)
    assert structure.count == 7_000
    codes = np.random.default_rng(1).integers(0, 70_000, (2, 1000))
    np.testing.assert_array_equal(again.between(*codes), distance.between(*codes))
    np.testing.assert_array_equal(
        structure.labels[codes[0]] == structure.labels[codes[1]], distance.between(*codes) < 2
    )


def test_large_unequal_paths_need_no_matrix_when_they_are_clusters_and_are_refused_when_not() -> None:
    shallow = [(f"s{i}", "*") for i in range(10)]
    deep = [(f"d{i}", f"k{i % 200}", f"deep{i % 2}", "*") for i in range(12_000)]
    distance = TreeDistance.from_paths(shallow + deep, "path")
    structure = distance.structure(1.5)
    assert isinstance(structure, Clusters)
    assert structure.count == 1 + 200
    with pytest.raises(ImpossibleError, match="ancestor"):
        distance.structure(2.5)


def test_lattice_of_overlapping_ranges() -> None:
    """A number belongs to two ranges that overlap, so neighbors are always siblings, as a tree cannot have it."""
    parents = {str(i): [f"{i}-{i + 1}", f"{i - 1}-{i}"] for i in range(1, 6)}
    parents |= {f"{i}-{i + 1}": [f"{i - 1}-{i + 1}", f"{i}-{i + 2}"] for i in range(6)}
    parents |= {f"{i}-{i + 2}": ["all"] for i in range(-1, 6)}
    distance = LatticeDistance.from_parents(parents, [str(i) for i in range(1, 6)])
    assert distance.matrix()[0].tolist() == [0, 1, 2, 3, 3]
    assert isinstance(distance.structure(2), Graph)


def test_lattice_without_common_ancestor_gets_a_root() -> None:
    distance = LatticeDistance.from_parents({"a": "x", "b": "x", "c": None}, ["a", "b", "c"])
    assert distance.matrix()[0].tolist() == [0, 1, 2]


def test_lattice_with_values_above_values() -> None:
    parents = {"a": "g", "b": "g", "g": "top", "h": "top", "unused": "h"}
    distance = LatticeDistance.from_parents(parents, ["a", "g", "h"])
    assert distance.matrix().tolist() == [[0, 1, 2], [1, 0, 2], [2, 2, 0]]


def test_lattice_problems() -> None:
    with pytest.raises(PolicyError, match="1 of 2 values are not in the lattice: d"):
        LatticeDistance.from_parents({"a": ["x"]}, ["a", "d"])
    with pytest.raises(PolicyError, match="own ancestor"):
        LatticeDistance.from_parents({"a": ["x"], "x": ["y"], "y": ["x"]}, ["a"])
    with pytest.raises(PolicyError, match="same node"):
        LatticeDistance.from_parents({"a": ["x"]}, ["a", "a"])
    with pytest.raises(PolicyError, match="not among"):
        LatticeDistance([[3]], [0])
    with pytest.raises(ImpossibleError, match="limit"):
        LatticeDistance([[]] * 5_001, range(5_001))
