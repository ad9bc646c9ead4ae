"""The full-domain search against brute force over all nodes, judged by the verifier on generalized tables."""

from __future__ import annotations

import itertools
from functools import partial

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from draws import seeds
from hypothesis import given, settings
from small_tables import VALUES, frame_at, frame_of, random_data, random_ladder, shown

import polyseme.models.base
import polyseme.models.semantic_rules
from polyseme.kernel.errors import Cancelled, ImpossibleError, PolicyError
from polyseme.kernel.work import Cancellation
from polyseme.methods.full_domain import full_domain, least_suppression, optimum
from polyseme.methods.full_domain.nodes import Checker, Lattice, counts_above, counts_below
from polyseme.methods.goal import Goal
from polyseme.methods.losses import LOSSES, Loss
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.models import Background, check_models
from polyseme.scrutiny.metrics.risk import average_class_size, discernibility, entropy_loss, precision
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance

PATHS = [(v, w, "*") for v, w in zip(VALUES, "xxyyz")]
K = {"k-anonymity": {"k": 3}}
GOALS = {
    "k": [K],
    "k-map": [{"k-map": {"k": 6}}],
    "alpha-k": [{"alpha-k-anonymity": {"alpha": 0.6, "k": 2}}],
    "distinct": [{"distinct-diversity": {"l": 3}}],
    "frequency": [{"frequency-diversity": {"l": 1.8}}],
    "entropy": [{"entropy-diversity": {"l": 2.2}}],
    "recursive": [{"recursive-diversity": {"c": 2, "l": 2}}],
    "t-equal": [{"closeness": {"t": 0.35}}],
    "t-equal, k": [{"closeness": {"t": 0.3}}, K],
    "t-ordered": [{"closeness": {"t": 0.2, "ground": "ordered"}}, {"k-anonymity": {"k": 2}}],
    "t-hierarchical": [{"closeness": {"t": 0.3, "ground": "hierarchical"}}],
    "beta": [{"beta-likeness": {"beta": 1}}],
    "beta-enhanced": [{"beta-likeness": {"beta": 1.5, "enhanced": True}}],
    "delta": [{"delta-disclosure": {"delta": 1.5}}],
    "delta-ignored": [{"delta-disclosure": {"delta": 1.0, "absent": "ignored"}}, K],
    "le": [{"le-diversity": {"l": 2, "e": 0.5}}],
    "le-frequency": [{"le-diversity": {"l": 2, "e": 0.5, "represented": "frequency"}}],
    "strict": [{"semantic-diversity": {"l": 2, "d": 2}}],
    "exists": [{"semantic-diversity": {"l": 2, "d": 2, "reading": "exists"}}],
    "ld-frequency": [{"semantic-diversity": {"l": 2, "d": 2, "reading": "frequency"}}],
    "rules": [{"semantic-rules": {"rules": [{"never-all": {"s": ["a", "b"]}}, {"never-all": {"s": "c"}}]}}],
    "silent rules": [{"semantic-rules": {"rules": [{"never-all": {"s": ["a", "b"]}}]}}, {"k-anonymity": {"k": 2}}],
    "several": [{"distinct-diversity": {"l": 2}}, K, {"frequency-diversity": {"l": 1.3}}],
}
EXAMPLES = 4
SUPPRESSION = (0.0, 0.1, 0.3, 0.8)


@pytest.fixture(autouse=True)
def _all_places(monkeypatch):
    """Verdicts name every violating class, so that brute force can suppress them."""
    monkeypatch.setattr(polyseme.models.base, "SHOWN", 10**6)
    monkeypatch.setattr(polyseme.models.semantic_rules, "SHOWN", 10**6)


def background_of(name, data, declared):
    """What is known beside the table, with or without a declared domain."""
    labels = data.sensitive["s"].labels
    distance = TreeDistance.from_paths(PATHS) if name.startswith("le") else LineDistance.ranks(len(VALUES))
    needs = name.startswith(("le", "strict", "exists", "ld"))
    return Background(
        domains={"s": VALUES} if declared or needs else {},
        distances={"s": distance} if needs else {},
        hierarchies={"s": PATHS} if "hierarchical" in name else {},
    ), (VALUES if declared or needs else labels)


def declared_as(data, labels):
    """The same records with codes of another domain."""
    secret = data.sensitive["s"]
    codes = np.array([labels.index(secret.labels[code]) for code in secret.codes], dtype=np.int64)
    return Microdata(data.ladders, data.codes, {"s": Sensitive("s", codes, labels)}, data.population)


def case(name, seed, declared, ladders=None):
    values = ("a", "b", "c", None, "*") if name == "silent rules" else VALUES
    data = random_data(seed, ladders=ladders, values=values, people=40 if name == "k-map" else 0)
    background, labels = background_of(name, data, declared)
    return (data if name == "silent rules" else declared_as(data, tuple(labels))), background


def violating(frame, keys, specs, background):
    """Rows in classes that violate, as the verifier finds them; None when it could not check."""
    bad = set()
    for verdict in check_models(frame, keys, specs, sensitive=["s"], background=background):
        if not verdict.holds and not verdict.worst_classes:
            return None
        if not verdict.holds:
            bad |= {frame.select(keys).row(place.row) for place in verdict.worst_classes}
    rows = frame.select(keys).rows()
    return np.array([row in bad for row in rows], dtype=bool)


def suppressed_at(data, levels, specs, background):
    """How many records the verifier makes us suppress at a node."""
    keys = list(data.names)
    frame = frame_at(data, levels)
    if data.population is not None:
        reference = shown(data.ladders, data.population, levels)
        background = Background(background.domains, background.distances, background.hierarchies, reference)
    gone = np.zeros(data.records, dtype=bool)
    while True:
        bad = violating(frame, keys, specs, background)
        if bad is None:
            return data.records
        fresh = bad & ~gone
        if not fresh.any():
            return int(gone.sum())
        gone |= fresh
        if gone.all():
            return data.records
        frame = frame.with_columns(pl.when(pl.Series(gone)).then(pl.lit("*")).otherwise(key).alias(key) for key in keys)


def loss_at(name, data, levels):
    """From the published definitions."""
    frame, bottom = frame_at(data, levels).drop("s"), frame_at(data, [0] * len(levels)).drop("s")
    sizes = frame.group_by(frame.columns).len()["len"].to_numpy()
    if name == "entropy":
        return entropy_loss(bottom, frame)
    if name == "discernibility":
        return discernibility(sizes)
    if name == "average-class-size":
        return average_class_size(sizes)
    if name == "precision":
        return 1.0 - precision(levels, [ladder.height for ladder in data.ladders])
    shares = [
        np.mean([(np.sum(groups == groups[leaf]) - 1) / max(len(groups) - 1, 1) for leaf in column])
        for groups, column in zip((q.groups[at] for q, at in zip(data.ladders, levels)), data.codes.T)
    ]
    return float(np.mean(shares))


def brute_force(data, specs, loss, limit, background):
    """(loss, suppressed, levels) of the best admissible node; None without any. Also the least suppression."""
    best, least = None, data.records
    for levels in itertools.product(*(range(ladder.height + 1) for ladder in data.ladders)):
        gone = suppressed_at(data, levels, specs, background)
        least = min(least, gone)
        if gone > limit or gone == data.records:
            continue
        value = loss_at(loss, data, levels)
        same = best is not None and value == pytest.approx(best[0], rel=1e-11, abs=1e-12)
        if best is None or (not same and value < best[0]) or (same and (gone, levels) < best[1:]):
            best = (value, gone, levels)
    return best, least


@pytest.mark.parametrize("name", GOALS)
@settings(max_examples=EXAMPLES)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.sampled_from(SUPPRESSION), st.booleans())
def test_equals_brute_force(name, seed, loss, share, declared):
    random = np.random.default_rng(seed)
    ladders = tuple(random_ladder(random, f"q{number}") for number in range(2 + seed % 2))
    require_the_best_node(name, *case(name, seed, declared, ladders), loss, share)


@pytest.mark.slow
@pytest.mark.parametrize("name", GOALS)
@settings(max_examples=2 * EXAMPLES)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.sampled_from(SUPPRESSION), st.booleans())
def test_equals_brute_force_with_up_to_four_quasi_identifiers(name, seed, loss, share, declared):
    require_the_best_node(name, *case(name, seed, declared), loss, share)


def require_the_best_node(name, data, background, loss, share):
    specs = GOALS[name]
    limit = int(share * data.records + 1e-9)
    expected, least = brute_force(data, specs, loss, limit, background)
    goal = Goal.of(specs, data, background)
    if expected is None:
        with pytest.raises(ImpossibleError):
            full_domain(data, goal, loss=Loss(loss), suppression=share)
        checker = Checker(data, goal, Loss(loss), limit)
        found = least_suppression(checker, Lattice.of(data.ladders, 10**6))
        assert found == (None if least == data.records else least, True)
        return
    made = full_domain(data, goal, loss=Loss(loss), suppression=share)
    assert (made.levels, int(made.suppressed.sum())) == (expected[2], expected[1])
    assert made.loss == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
    assert made.gap == 0.0
    assert_published(data, made, specs, background)
    local = full_domain(data, goal, loss=Loss(loss), suppression=share, local_recoding=True)
    assert np.all(made.suppressed | ~local.suppressed)
    if name != "k-map":  # its reference would have to be recoded in the same way
        assert_published(data, local, specs, background)


def assert_published(data, made, specs, background):
    """What is published passes the verifier, and each cell holds the leaf of its record."""
    if data.population is not None:
        reference = shown(data.ladders, data.population, made.levels)
        background = Background(background.domains, background.distances, background.hierarchies, reference)
    verdicts = check_models(frame_of(data, made), data.names, specs, sensitive=["s"], background=background)
    assert all(verdict.holds for verdict in verdicts)
    for place, cells in enumerate(made.cells):
        for record in np.flatnonzero(~made.suppressed):
            assert data.codes[record, place] in cells.leaves[made.shown[made.classes[record], place]]


def test_reads_weights():
    groups = (np.arange(8), np.arange(8) // 2, np.arange(8) // 4, np.zeros(8, dtype=np.int64))
    ladders = tuple(
        Ladder(name, groups, tuple(tuple("abcdefgh"[: g.max() + 1]) for g in groups)) for name in ("q0", "q1")
    )
    data = Microdata(ladders, np.random.default_rng(3).integers(0, 8, (120, 2)))
    goal = Goal.of([{"k-anonymity": {"k": 8}}], data)
    dear = full_domain(data, goal, loss=Loss("precision", {"q0": 50.0}))
    cheap = full_domain(data, goal, loss=Loss("precision", {"q0": 0.001}))
    assert dear.levels[0] < cheap.levels[0]
    with pytest.raises(PolicyError, match="no such quasi-identifier"):
        full_domain(data, goal, loss=Loss("entropy", {"other": 2.0}))
    with pytest.raises(PolicyError, match="has no weights"):
        Loss("discernibility", {"q0": 2.0})


@pytest.mark.parametrize("loss", LOSSES)
def test_few_rows(loss):
    ladders = random_data(3).ladders
    for rows in (0, 1):
        data = random_data(3, rows=rows, ladders=ladders)
        made = full_domain(data, Goal.of([{"k-anonymity": {"k": 1}}], data), loss=Loss(loss))
        assert made.levels == (0,) * len(ladders)
        assert len(made.sizes) == rows
    with pytest.raises(ImpossibleError, match="k-anonymity is 1 and must be at least 2"):
        full_domain(data, Goal.of([{"k-anonymity": {"k": 2}}], data), loss=Loss(loss), suppression=1.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_rows_are_the_same(loss):
    ladders = random_data(3).ladders
    data = Microdata(ladders, np.zeros((9, len(ladders)), dtype=np.int64))
    made = full_domain(data, Goal.of([{"k-anonymity": {"k": 9}}], data), loss=Loss(loss))
    assert made.levels == (0,) * len(ladders)
    assert made.sizes.tolist() == [9]
    with pytest.raises(ImpossibleError, match="no suppression would help"):
        full_domain(data, Goal.of([{"k-anonymity": {"k": 10}}], data), loss=Loss(loss))


@pytest.mark.parametrize("loss", LOSSES)
def test_as_many_values_as_rows(loss):
    random = np.random.default_rng(1)
    ladders = (random_ladder(random, "id", leaves=500, height=1), random_ladder(random, "q", leaves=4, height=2))
    codes = np.column_stack([np.arange(500), random.integers(0, 4, 500)])
    data = Microdata(ladders, codes)
    made = full_domain(data, Goal.of([{"k-anonymity": {"k": 5}}], data), loss=Loss(loss))
    assert made.levels == (1, 0)


def test_no_quasi_identifier():
    data = Microdata((), np.zeros((4, 0), dtype=np.int64))
    assert full_domain(data, Goal.of([{"k-anonymity": {"k": 4}}], data)).sizes.tolist() == [4]
    with pytest.raises(ImpossibleError):
        full_domain(data, Goal.of([{"k-anonymity": {"k": 5}}], data))


def test_more_combinations_than_integers():
    """Twelve quasi-identifiers of 300 values: 300^12 is far beyond 64 bits, and so is the way to three classes."""
    random = np.random.default_rng(2)
    ladders = tuple(random_ladder(random, f"q{i}", leaves=300, height=1) for i in range(12))
    kind = random.integers(0, 3, 200)
    codes = np.repeat(kind[:, None] * 100, 12, axis=1)
    data = Microdata(ladders, codes, {"s": Sensitive("s", random.integers(0, 4, 200), tuple("abcd"))})
    made = full_domain(data, Goal.of([{"k-anonymity": {"k": 5}}, {"distinct-diversity": {"l": 3}}], data))
    assert made.levels == (0,) * 12
    assert sorted(made.sizes) == sorted(np.bincount(kind))


def test_the_error_says_what_would_do():
    data = Microdata(
        (random_ladder(np.random.default_rng(0), "q", leaves=2, height=1),),
        np.repeat([[0], [1]], [6, 4], axis=0),
        {"s": Sensitive("s", np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 0]), ("secret", "other"))},
    )
    goal = Goal.of([{"frequency-diversity": {"l": 2}}], data)
    with pytest.raises(ImpossibleError) as error:
        full_domain(data, goal)
    (problem,) = error.value.problems
    assert "at most 0 of 10 records suppressed" in problem.what
    assert "frequency-diversity of s is 1.42857 and must be at least 2" in problem.what
    assert "suppression: 0.4" in problem.hint
    assert "secret" not in str(error.value)
    assert full_domain(data, goal, suppression=0.4).levels == (0,)


def test_time_is_up():
    """The bound that is left when time is up is never above the true optimum."""
    data = random_data(5, rows=60)
    goal = Goal.of([K], data)
    for loss in LOSSES:
        exact = optimum(data, goal, loss=Loss(loss), suppression=0.1)
        hasty = optimum(data, goal, loss=Loss(loss), suppression=0.1, time_limit=0.0)
        assert hasty.checks < exact.checks
        assert hasty.loss - hasty.gap <= exact.loss <= hasty.loss


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=8)
@given(seeds)
def test_a_lattice_that_is_too_large_has_a_true_gap(loss, seed):
    random = np.random.default_rng(seed)
    ladders = tuple(random_ladder(random, f"q{i}", leaves=9, height=6) for i in range(3))
    data = random_data(seed, rows=60, ladders=ladders)
    for specs in (GOALS["k"], GOALS["frequency"]):
        goal = Goal.of(specs, data)
        exact = optimum(data, goal, loss=Loss(loss), suppression=0.1)
        thinned = optimum(data, goal, loss=Loss(loss), suppression=0.1, most_nodes=60)
        assert thinned.loss - thinned.gap <= exact.loss * (1 + 1e-12)
        assert exact.loss <= thinned.loss * (1 + 1e-12)


def rows_at(data, levels):
    """The sizes of the classes at some levels, counted by hand."""
    shown = [ladder.groups[level][column] for ladder, level, column in zip(data.ladders, levels, data.codes.T)]
    return np.unique(np.column_stack(shown), axis=0, return_counts=True)[1]


def by_hand(data, loss, levels):
    if loss == "discernibility":
        return float((rows_at(data, levels) ** 2).sum())
    if loss == "average-class-size":
        return data.records / len(rows_at(data, levels))
    total = 0.0
    for ladder, level, column in zip(data.ladders, levels, data.codes.T):
        groups = ladder.groups[level]
        if loss == "entropy":
            total += float(np.log2(np.bincount(groups[column])[groups[column]] / np.bincount(column)[column]).sum())
        elif loss == "precision":
            total += level / ladder.height / len(levels)
        else:
            wide = (np.bincount(groups)[groups[column]] - 1) / max(len(groups) - 1, 1)
            total += float(wide.mean()) / len(levels)
    return total


def rows_too_few(data, levels, k):
    sizes = rows_at(data, levels)
    return sizes[sizes < k].sum()


def greedy(data, loss, k, limit):
    """From the top, one level down at a time: always the step that lowers the loss most, of equal ones the safest."""
    levels = [ladder.height for ladder in data.ladders]
    while True:
        below = [[*levels[:i], level - 1, *levels[i + 1 :]] for i, level in enumerate(levels) if level]
        fine = [step for step in below if rows_too_few(data, step, k) <= limit]
        if not fine:
            return by_hand(data, loss, levels)
        levels = min(fine, key=lambda step: (round(by_hand(data, loss, step), 6), rows_too_few(data, step, k), step))


@pytest.fixture(scope="module")
def hard():
    """Four quasi-identifiers of five levels that depend on nothing, and the records suppressed at each node."""
    random = np.random.default_rng(4)
    ladders = tuple(random_ladder(random, f"q{i}", leaves=8, height=4) for i in range(4))
    data = random_data(4, rows=400, ladders=ladders)
    nodes = itertools.product(*(range(ladder.height + 1) for ladder in ladders))
    return data, {levels: rows_too_few(data, levels, 3) for levels in nodes}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("most_nodes", [10_000, 200], ids=["whole", "thinned"])
@pytest.mark.parametrize("every", [60, pytest.param(10, marks=pytest.mark.slow)])
def test_a_search_that_is_stopped_anywhere_has_a_good_answer_and_a_true_gap(hard, loss, most_nodes, every):
    data, too_few = hard
    least = min(by_hand(data, loss, levels) for levels, number in too_few.items() if number <= 20)
    search = partial(optimum, data, Goal.of([{"k-anonymity": {"k": 3}}], data), loss=Loss(loss), suppression=0.05)
    exact = search()
    assert (exact.gap, exact.loss) == (0.0, pytest.approx(least, rel=1e-11))
    found = [search(checks=checks, most_nodes=most_nodes) for checks in range(1, exact.checks + every, every)]
    assert found[0].loss <= greedy(data, loss, 3, 20) * (1 + 1e-9)
    assert [one.loss for one in found] == sorted((one.loss for one in found), reverse=True)
    for one in found:
        assert too_few[one.levels] == one.suppressed <= 20
        assert one.loss == pytest.approx(by_hand(data, loss, one.levels))
        assert one.loss - one.gap <= least * (1 + 1e-11)
        assert least <= one.loss * (1 + 1e-11)
    assert most_nodes < 10_000 or found[-1].gap == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_first_answer_is_at_least_as_good_as_a_greedy_one(loss, seed):
    random = np.random.default_rng(seed)
    ladders = tuple(random_ladder(random, f"q{i}", leaves=6, height=3) for i in range(4))
    data = random_data(seed, rows=80, ladders=ladders)
    found = optimum(data, Goal.of([{"k-anonymity": {"k": 3}}], data), loss=Loss(loss), suppression=0.1, checks=1)
    assert found.loss <= greedy(data, loss, 3, 8) * (1 + 1e-9)


@pytest.mark.parametrize("after", [1, 12, 40])
def test_a_search_ends_with_its_best_when_that_is_enough(hard, after):
    data, too_few = hard
    token, told = Cancellation(), []
    assert not token.settle()

    def progress(state):
        told.append(state.loss)
        if len(told) == after:
            assert token.settle()
            assert not token.settle()

    goal = Goal.of([{"k-anonymity": {"k": 3}}], data)
    found = optimum(data, goal, suppression=0.05, progress=progress, cancellation=Cancellation(token))
    assert not token.settle()
    least = min(by_hand(data, "entropy", levels) for levels, number in too_few.items() if number <= 20)
    assert found.loss <= told[after - 1]
    assert found.checks < after + 10
    assert found.loss - found.gap <= least * (1 + 1e-11)


def test_progress_and_cancellation():
    data = random_data(5, rows=60)
    goal = Goal.of([K], data)
    reported = []
    found = optimum(data, goal, suppression=0.1, progress=reported.append)
    assert reported[-1].candidates == 0
    assert reported[-1].gap == 0.0
    assert [item.checks for item in reported] == list(range(1, found.checks + 1))
    gaps = [item.gap for item in reported if item.gap is not None]
    assert gaps == sorted(gaps, reverse=True)
    token = Cancellation()
    with pytest.raises(Cancelled, match="enough"):
        optimum(data, goal, suppression=0.1, cancellation=token, progress=lambda _: token.cancel("enough"))


def test_the_same_answer_every_time():
    data = random_data(8, rows=60)
    found = {optimum(data, Goal.of([K], data), loss=Loss("precision"), suppression=0.3) for _ in range(3)}
    assert len(found) == 1


@settings(max_examples=50)
@given(shape=st.lists(st.integers(1, 5), max_size=5), seed=st.integers(0, 99))
def test_counting_nodes(shape, seed):
    nodes = np.random.default_rng(seed).random(shape) < 0.4
    below, above = counts_below(nodes), counts_above(nodes)
    for node in itertools.product(*map(range, shape)):
        assert below[node] == nodes[tuple(slice(at + 1) for at in node)].sum()
        assert above[node] == nodes[tuple(slice(at, None) for at in node)].sum()


def test_what_cannot_be_a_goal():
    data = random_data(1)
    specs = [
        {"distinct-diversity": {"l": 2, "attribute": "x"}},
        {"k-map": {"k": 2}},
        {"semantic-diversity": {"l": 2, "d": 1}},
        {"closeness": {"t": 0.1, "ground": "hierarchical"}},
        {"semantic-rules": {"rules": [{"never": {"s": "a"}}, {"never-all": {"q0": "a"}}]}},
    ]
    with pytest.raises(PolicyError) as error:
        Goal.of(specs, data)
    assert len(error.value.problems) == 6
    with pytest.raises(PolicyError, match="from 0 to 1"):
        full_domain(data, Goal.of([K], data), suppression=1.5)
