"""Mondrian: every class passes the verifier, none could be cut further, and the order of the table says nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from draws import replications, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.errors import Cancelled, ImpossibleError, PolicyError
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.work import Cancellation
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Ladder, Microdata, Recoding, Sensitive
from polyseme.methods.mondrian import mondrian
from polyseme.models import Background, check_models
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.hierarchies import Hierarchy

VALUES = ("a", "b", "c", "d")


def numbers(size: int, name: str = "age", missing: str = "wildcard") -> Ladder:
    """Numbers 10, 11 .. with groups of five."""
    leaves = [str(10 + leaf) for leaf in range(size)]
    fives = [f"[{10 + leaf // 5 * 5}, {15 + leaf // 5 * 5})" for leaf in range(size)]
    return Ladder.of(name, Hierarchy.from_labels(leaves, [fives], missing))  # type: ignore[arg-type]


def places(name: str = "place") -> Ladder:
    """Nine towns in four regions of two countries; one town is called like its region."""
    towns = ["Ulm", "Bonn", "Jena", "Gera", "Nice", "Lyon", "Metz", "Caen", "south"]
    regions = ["south", "west", "east", "east", "south of F", "south of F", "north of F", "north of F", "south"]
    lands = ["D", "D", "D", "D", "F", "F", "F", "F", "D"]
    return Ladder.of(name, Hierarchy.from_labels(towns, [regions, lands], "leaf"))


def table(seed: int, records: int, ladders: list[Ladder], values: int = 4) -> Microdata:
    rng = np.random.default_rng(seed)
    columns = [np.minimum(rng.geometric(2.0 / ladder.leaves, records), ladder.leaves) - 1 for ladder in ladders]
    codes = np.column_stack(columns) if ladders else np.zeros((records, 0), dtype=np.int64)
    sensitive = Sensitive("ill", rng.integers(0, values, records), VALUES[:values])
    return Microdata(tuple(ladders), codes, {"ill": sensitive})


def made(data: Microdata, specs: list, mode: str = "strict", seed: int = 1, **more) -> Recoding:
    return mondrian(data, Goal.of(specs, data, BACKGROUND), SystemStream.seeded(seed), mode, **more)  # type: ignore[arg-type]


BACKGROUND = Background(domains={"ill": list(VALUES)})


def frame(data: Microdata, recoding: Recoding) -> pl.DataFrame:
    """The published table."""
    shown = recoding.shown[recoding.classes]
    columns = {
        ladder.name: pl.Series([cells.labels[cell] for cell in shown[:, place].tolist()], dtype=pl.String)
        for place, (ladder, cells) in enumerate(zip(data.ladders, recoding.cells))
    }
    ill = data.sensitive["ill"]
    return pl.DataFrame(columns).with_columns(ill=pl.Series([ill.labels[code] for code in ill.codes.tolist()]))


GOALS = [
    [{"k-anonymity": {"k": 5}}],
    [{"k-anonymity": {"k": 3}}, {"distinct-diversity": {"l": 3}}],
    [{"entropy-diversity": {"l": 2}}],
    [{"closeness": {"t": 0.3}}, {"k-anonymity": {"k": 2}}],
    [{"beta-likeness": {"beta": 1.5}}],
]


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
@pytest.mark.parametrize("specs", GOALS)
@settings(max_examples=3)
@given(seeds)
def test_every_class_passes_the_verifier(mode, specs, seed):
    data = table(seed, 400, [numbers(40), places(), numbers(23, "weight", "leaf")])
    recoding = made(data, specs, mode, seed)
    published = frame(data, recoding)
    verdicts = check_models(published, list(data.names), specs, sensitive=["ill"], background=BACKGROUND)
    assert all(verdict.holds for verdict in verdicts), [verdict.note for verdict in verdicts]
    assert len(recoding.sizes) > 3
    assert not recoding.suppressed.any()
    # What a reader takes for a class is one.
    assert published.select(data.names).n_unique() == len(recoding.sizes)
    for place, cells in enumerate(recoding.cells):
        for code, cell in zip(data.codes[:, place].tolist(), recoding.shown[recoding.classes, place].tolist()):
            assert code in cells.leaves[cell]


def test_strict_classes_are_boxes_that_do_not_overlap():
    data = table(4, 500, [numbers(40), places()])
    recoding = made(data, [{"k-anonymity": {"k": 6}}])
    classes = {}
    for row, number in zip(data.codes.tolist(), recoding.classes.tolist()):
        assert classes.setdefault(tuple(row), number) == number
    for one, other in itertools.combinations(recoding.shown, 2):
        apart = [
            not np.intersect1d(cells.leaves[one[place]], cells.leaves[other[place]]).size
            for place, cells in enumerate(recoding.cells)
        ]
        # A class with a missing value shows the last level, where it meets others by name only.
        assert any(apart) or any("*" in (c.labels[one[p]], c.labels[other[p]]) for p, c in enumerate(recoding.cells))


def literal(codes: np.ndarray, spans: list[int], k: int) -> list[list[int]]:
    """Strict Mondrian on ordered columns, one class at a time, straight from the definition."""

    def cut(rows: list[int]) -> list[list[int]]:
        widths = [
            (max(codes[r, j] for r in rows) - min(codes[r, j] for r in rows)) / spans[j] for j in range(len(spans))
        ]
        for j in sorted(range(len(spans)), key=lambda j: -widths[j]):
            values = sorted({codes[r, j] for r in rows})[1:]
            options = [([r for r in rows if codes[r, j] < v], [r for r in rows if codes[r, j] >= v]) for v in values]
            if options:
                left, right = min(options, key=lambda o: abs(len(o[0]) - len(o[1])))
                if min(len(left), len(right)) >= k:
                    return cut(left) + cut(right)
        return [rows]

    return cut(list(range(len(codes))))


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40),
    st.integers(1, 6),
)
@settings(max_examples=150)
def test_strict_is_the_definition(rows, k):
    codes = np.array(rows)
    ladders = [numbers(8, "a"), numbers(5, "b"), numbers(3, "c")]
    # A missing value that may be anything is a leaf of its own, so each ladder has one more.
    data = Microdata(tuple(ladders), codes, {})
    if len(rows) < k:
        with pytest.raises(ImpossibleError, match="does not meet k-anonymity"):
            made(data, [{"k-anonymity": {"k": k}}])
        return
    recoding = made(data, [{"k-anonymity": {"k": k}}])
    found = sorted(np.flatnonzero(recoding.classes == number).tolist() for number in range(len(recoding.shown)))
    assert found == sorted(sorted(rows) for rows in literal(codes, [8, 5, 3], k))


@pytest.mark.parametrize("k", [1, 2, 7, 10])
def test_relaxed_classes_have_k_to_twice_k_records(k):
    rng = np.random.default_rng(k)
    data = Microdata(
        (numbers(997), numbers(30, "b")), np.column_stack([rng.permutation(997), rng.integers(0, 30, 997)])
    )
    sizes = made(data, [{"k-anonymity": {"k": k}}], "relaxed").sizes
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


def test_relaxed_separates_ties_by_lot_and_not_by_order():
    """Of equal records in the middle, each lands on either side equally often, wherever it stands."""
    codes = np.array([0, 1, 1, 1, 1, 2])[:, None]
    data = Microdata((numbers(3),), codes)
    low = np.zeros(6)
    for seed in replications(600):
        recoding = made(data, [{"k-anonymity": {"k": 3}}], "relaxed", seed)
        assert sorted(recoding.sizes.tolist()) == [3, 3]
        low += recoding.classes == recoding.classes[0]
    assert low[[0, 5]].tolist() == [600, 0]
    assert np.abs(low[1:5] - 300).max() < 60  # 12 is one standard deviation
    one, other = (made(data, [{"k-anonymity": {"k": 3}}], "relaxed", 5).classes for _ in range(2))
    assert np.array_equal(one, other)


def test_strict_does_not_depend_on_the_order_of_records():
    data = table(6, 300, [numbers(40), places()])
    order = np.random.default_rng(1).permutation(300)
    ill = data.sensitive["ill"]
    moved = Microdata(data.ladders, data.codes[order], {"ill": Sensitive("ill", ill.codes[order], ill.labels)})
    specs = [{"k-anonymity": {"k": 4}}, {"distinct-diversity": {"l": 2}}]
    one, other = made(data, specs), made(moved, specs, seed=2)
    assert np.array_equal(one.classes[order], other.classes)
    assert np.array_equal(one.shown, other.shown)


def test_labels_say_what_a_class_may_be():
    codes = np.array([0, 0, 1, 4, 5, 9, 14, 14])
    recoding = made(Microdata((numbers(15),), codes[:, None]), [{"k-anonymity": {"k": 2}}])
    # 11 to 14 are no group of the ladder, 15 to 19 are one.
    assert recoding.cells[0].labels == ("10", "[11, 14]", "[15, 20)", "24")
    assert [leaves.tolist() for leaves in recoding.cells[0].leaves][1:3] == [[1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_missing_and_others_show_the_last_level():
    codes = np.array([0, 0, 5, 5, 14, 15])
    for missing in ("leaf", "wildcard"):
        recoding = made(Microdata((numbers(15, missing=missing),), codes[:, None]), [{"k-anonymity": {"k": 2}}])
        assert recoding.cells[0].labels == ("10", "*", "15")
        assert len(recoding.cells[0].leaves[1]) == 16


def test_a_label_that_comes_twice_is_told_apart():
    codes = np.repeat([0, 8, 1, 2, 3, 0], [1, 3, 3, 1, 1, 1])
    recoding = made(Microdata((places(),), codes[:, None]), [{"k-anonymity": {"k": 2}}])
    assert set(recoding.cells[0].labels) == {"Ulm", "south", "Bonn", "east"}
    codes = np.column_stack([np.repeat([0, 8, 8, 0], [1, 1, 2, 0]), [0, 0, 1, 1]])
    labels = made(Microdata((places(), numbers(2)), codes), [{"k-anonymity": {"k": 2}}]).cells[0].labels
    assert labels == ("south", "south (level 1)")


def width(data: Microdata, recoding) -> float:
    """The mean share of its leaves that a cell spans."""
    shares = [
        np.array([(len(leaves) - 1) / max(ladder.leaves - 1, 1) for leaves in cells.leaves])
        for ladder, cells in zip(data.ladders, recoding.cells)
    ]
    return float(np.mean([share[recoding.shown[recoding.classes, place]] for place, share in enumerate(shares)]))


@settings(max_examples=15)
@given(seeds)
def test_relaxed_refines_strict(seed):
    """Every relaxed class lies in a strict one, so that no cell is wider, on any table."""
    data = table(seed, 300, [numbers(9), places(), numbers(23, "weight", "leaf")])
    strict, relaxed = (made(data, [{"k-anonymity": {"k": 7}}], mode, seed) for mode in ("strict", "relaxed"))
    for place, (wide, narrow) in enumerate(zip(strict.cells, relaxed.cells)):
        for one, other in zip(strict.shown[strict.classes, place], relaxed.shown[relaxed.classes, place]):
            assert set(narrow.leaves[other].tolist()) <= set(wide.leaves[one].tolist())
    assert width(data, relaxed) <= width(data, strict)


def test_relaxed_separates_what_no_strict_cut_can():
    """Nearly all records have one value: no cut leaves 8 on both sides, but half of them can be drawn."""
    data = Microdata((numbers(3),), np.repeat([0, 1, 2], [1, 30, 1])[:, None])
    specs = [{"k-anonymity": {"k": 8}}]
    strict, relaxed = (made(data, specs, mode) for mode in ("strict", "relaxed"))
    assert len(strict.sizes) == 1
    assert width(data, relaxed) <= width(data, strict) / 2


def test_relaxed_keeps_rare_children_under_their_node():
    """One town of one record blocks the strict cut; relaxed leaves it, with the smallest other, under the country."""
    codes = np.repeat([0, 1, 2], [10, 20, 1])[:, None]
    data = Microdata((places(),), codes)
    specs = [{"k-anonymity": {"k": 5}}]
    assert made(data, specs).cells[0].labels == ("D",)
    relaxed = made(data, specs, "relaxed")
    shown = [relaxed.cells[0].labels[cell] for cell in relaxed.shown[relaxed.classes, 0]]
    assert shown == ["D"] * 10 + ["Bonn"] * 20 + ["D"]


def test_the_order_can_be_asked_for_or_refused():
    data = table(8, 60, [places(), numbers(20)])
    specs = [{"k-anonymity": {"k": 10}}]
    ranges = made(data, specs, ordered={"place": True}).cells[0].labels
    assert any(label.startswith("[Ulm, ") for label in ranges if label)
    nodes = made(data, specs, ordered={"age": False}).cells[1].labels
    assert set(nodes) <= {*numbers(20).labels[0], *numbers(20).labels[1], "*"}


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
def test_small_and_degenerate_tables(mode):
    k = [{"k-anonymity": {"k": 1}}]
    empty = made(Microdata((numbers(5),), np.zeros((0, 1), dtype=np.int64)), k, mode)
    assert (len(empty.classes), len(empty.shown)) == (0, 0)
    assert made(Microdata((numbers(5),), np.array([[3]])), k, mode).cells[0].labels == ("13",)
    same = made(Microdata((numbers(5),), np.full((9, 1), 3)), k, mode)
    assert same.sizes.tolist() == [9]
    assert made(table(1, 9, []), k, mode).sizes.tolist() == [9]
    each = made(Microdata((numbers(200),), np.arange(200)[:, None]), k, mode)
    assert each.sizes.tolist() == [1] * 200


def test_goals_that_cannot_be_met_are_refused_with_the_reason():
    data = table(1, 50, [numbers(20)])
    with pytest.raises(ImpossibleError, match="as one class, of 50 records, does not meet k-anonymity, distinct-div"):
        made(data, [{"k-anonymity": {"k": 51}}, {"distinct-diversity": {"l": 5}}])
    with pytest.raises(PolicyError, match="unknown mode 'strikt'"):
        made(data, [{"k-anonymity": {"k": 2}}], "strikt")
    apart = Background(domains={"ill": list(VALUES)}, distances={"ill": LineDistance.ranks(4)})
    strict = [{"semantic-diversity": {"l": 2, "d": 2, "reading": "strict"}}]
    goal = Goal.of(strict, data, apart)
    with pytest.raises(PolicyError, match="use mode: strict"):
        mondrian(data, goal, SystemStream.seeded(1), "relaxed")
    with pytest.raises(ImpossibleError, match="try method: buckets"):
        mondrian(data, goal, SystemStream.seeded(1))
    crowd = replace(data, population=data.codes)
    with pytest.raises(ImpossibleError, match="as one class, of 50 records, does not meet k-map"):
        made(crowd, [{"k-map": {"k": 51}}])
    with pytest.raises(PolicyError, match="not a quasi-identifier"):
        made(data, [{"k-anonymity": {"k": 2}}], ordered={"agee": True})


def test_it_can_be_stopped():
    token = Cancellation()
    token.cancel("enough")
    with pytest.raises(Cancelled):
        made(table(1, 50, [numbers(20)]), [{"k-anonymity": {"k": 2}}], cancellation=token)
