"""Laws every model obeys: invariance, monotonicity, failing closed, validation. One suite over the registry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.models import MODELS, Background, check_models, diversity, read_spec
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.testing import check_model
from polyseme.testing import models as laws
from polyseme.testing.models import background, judged
from polyseme.testing.models import random_table as table

LADDERS = {
    "k-anonymity": [{"k": k} for k in (1, 3, 8, 20, 60)],
    "k-map": [{"k": k} for k in (1, 20, 60, 200)],
    "alpha-k-anonymity": [{"alpha": a, "k": 2} for a in (1.0, 0.6, 0.4, 0.2, 0.1)],
    "distinct-diversity": [{"l": l} for l in (1, 2, 4, 6, 7)],
    "frequency-diversity": [{"l": l} for l in (1, 1.5, 2, 3, 7)],
    "entropy-diversity": [{"l": l} for l in (1, 2, 3, 4.5, 7)],
    "recursive-diversity": [{"c": c, "l": 3} for c in (50, 5, 2, 1, 0.1)],
    "diversity": [{"l": l} for l in (1, 2, 3, 7)],
    "closeness": [{"t": t, "ground": "ordered"} for t in (1, 0.5, 0.2, 0.05, 0)],
    "beta-likeness": [{"beta": b, "enhanced": True} for b in (20, 2, 1, 0.2)],
    "delta-disclosure": [{"delta": d, "absent": "ignored"} for d in (9, 2, 1, 0.2)],
    "le-diversity": [{"l": 2, "e": e} for e in (0, 0.5, 1, 3)],
    "semantic-diversity": [{"l": 2, "d": d, "reading": "exists"} for d in (0.5, 1, 2, 4, 6)],
    "semantic-rules": [{"rules": [{"never-all": {"s": {"pattern": f".*[0-{n}]"}}}]} for n in (0, 2, 4, 5)],
}


BACKGROUND = background()


def run(frame, name, parameters, keys=("q", "r"), background=BACKGROUND):
    return judged(MODELS[name], parameters, frame, keys, background)


def test_every_model_has_a_ladder():
    assert set(LADDERS) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_independent_of_row_and_column_order(name):
    laws.ignores_order(MODELS[name], LADDERS[name])


@pytest.mark.parametrize("name", MODELS)
def test_independent_of_names_of_values(name):
    laws.ignores_names_of_values(MODELS[name], LADDERS[name])


@pytest.mark.parametrize("name", MODELS)
def test_monotone_in_the_parameter(name):
    # le-diversity: no class of the random table is free of neighbors
    laws.is_monotone(MODELS[name], LADDERS[name], lenient=name != "le-diversity")


@pytest.mark.parametrize("name", MODELS)
def test_margin_has_the_sign_of_the_answer(name):
    laws.margin_has_the_sign_of_the_answer(MODELS[name], LADDERS[name])


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.about])
def test_fails_closed(name):
    laws.fails_closed(MODELS[name], LADDERS[name])


@pytest.mark.parametrize("name", [name for name in MODELS if name != "le-diversity"])
def test_the_whole_suite_holds(name):
    check_model(MODELS[name], LADDERS[name])


def trusting(counts, background, parameters):
    """Forgives whatever cannot be checked."""
    verdict = diversity.check_distinct(counts, parameters["l"])
    return replace(verdict, holds=verdict.holds or bool(verdict.note))


def reversed_ladder(counts, background, parameters):
    """Asks for less the larger l is."""
    return diversity.check_distinct(counts, 8 - parameters["l"])


@pytest.mark.parametrize(("check", "law"), [(trusting, "cannot be checked"), (reversed_ladder, "less is asked for")])
def test_a_model_that_breaks_a_law_is_told_which(check, law):
    model = replace(MODELS["distinct-diversity"], name="broken", check=check)
    with pytest.raises(AssertionError, match=law):
        check_model(model, LADDERS["distinct-diversity"])


def test_missing_values_can_be_declared():
    frame = table().with_columns(pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise(pl.col("s")).alias("s"))
    (verdict,) = check_models(
        frame, ["q"], [{"distinct-diversity": {"l": 7}}], sensitive=["s"], background=Background(missing="category")
    )
    assert verdict.holds


def test_a_model_that_needs_more_than_the_table_does_not_hold_without_it():
    specs = [
        {"semantic-diversity": {"l": 1, "d": 1}},
        {"le-diversity": {"l": 1, "e": 0}},
        {"k-map": {"k": 1}},
        {"closeness": {"t": 1, "ground": "hierarchical"}},
    ]
    for verdict in check_models(table(), ["q"], specs, sensitive=["s"]):
        assert not verdict.holds
        assert verdict.note


def test_impossible_bounds_fail():
    frame = table()
    for name, parameters in [
        ("k-anonymity", {"k": 241}),
        ("distinct-diversity", {"l": 7}),
        ("entropy-diversity", {"l": 6.001}),
        ("recursive-diversity", {"c": 1e9, "l": 7}),
        ("frequency-diversity", {"l": 7}),
        ("semantic-diversity", {"l": 7, "d": 1, "reading": "exists"}),
        ("semantic-diversity", {"l": 2, "d": 6, "reading": "exists"}),
    ]:
        assert not run(frame, name, parameters).holds


def test_all_wrong_requests_are_reported_at_once():
    specs = [
        {"k-anonymity": {"k": 0}},
        {"k-anonimity": {"k": 2}},
        {"closeness": {"t": 1.5, "grounds": "equal"}},
        {"semantic-diversity": {"l": 2.5, "reading": "strictly"}},
    ]
    with pytest.raises(PolicyError) as error:
        check_models(table(), ["q"], specs, sensitive=["s"])
    places = [problem.where for problem in error.value.problems]
    assert places == [
        "models[0].k-anonymity.k",
        "models[1].k-anonimity",
        "models[2].closeness.grounds",
        "models[2].closeness.t",
        "models[3].semantic-diversity.l",
        "models[3].semantic-diversity.d",
        "models[3].semantic-diversity.reading",
    ]
    assert all(problem.hint for problem in error.value.problems)


def test_attribute_is_for_models_about_one():
    with pytest.raises(PolicyError):
        read_spec({"k-anonymity": {"k": 2, "attribute": "s"}})
    assert read_spec({"diversity": {"l": 2.0, "attribute": "s"}}).parameters == {"l": 2}


def test_several_sensitive_attributes_each_get_a_verdict():
    frame = table().with_columns(pl.col("q").alias("u"))
    verdicts = check_models(frame, ["r"], [{"distinct-diversity": {"l": 2}}], sensitive=["s", "u"])
    assert [v.attribute for v in verdicts] == ["s", "u"]


def test_a_distance_that_gives_up_is_a_verdict_not_an_error():
    class Refusing(LineDistance):
        def structure(self, threshold):
            raise ImpossibleError("too many values")

    background = Background(domains=BACKGROUND.domains, distances={"s": Refusing(range(6))})
    verdict = run(table(), "semantic-diversity", {"l": 2, "d": 1, "reading": "exists"}, background=background)
    assert not verdict.holds
    assert "too many values" in verdict.note


def test_large_domains():
    """70,000 values under a tree: everything in seconds, without a matrix."""
    size, rows = 70_000, 100_000
    rng = np.random.default_rng(1)
    codes = rng.integers(0, size, rows)
    tree = TreeDistance(np.array([-1, *[0] * 300]), 1 + np.arange(size) % 300)
    frame = pl.DataFrame({"q": rng.integers(0, 1_000, rows), "s": codes})
    specs = [
        {"closeness": {"t": 0.9, "ground": "equal"}},
        {"closeness": {"t": 0.9, "ground": "ordered"}},
        {"closeness": {"t": 0.9, "ground": "hierarchical"}},
        {"semantic-diversity": {"l": 5, "d": 2, "reading": "exists"}},
        {"semantic-diversity": {"l": 5, "d": 2, "reading": "frequency"}},
    ]
    background = Background(domains={"s": range(size)}, distances={"s": tree})
    verdicts = check_models(frame, ["q"], specs, sensitive=["s"], background=background)
    assert [v.holds for v in verdicts] == [False, True, True, True, True]


def test_sets_and_references_that_do_not_fit():
    frame = pl.DataFrame({"q": [["a"], ["a", "b"]], "s": ["0", "1"]})
    background = Background(reference=pl.DataFrame({"other": [1]}))
    specs = [{"k-anonymity": {"k": 1}}, {"distinct-diversity": {"l": 1}}]
    for verdict in check_models(frame, ["q"], specs, sensitive=["s"]):
        assert not verdict.holds
        assert "published sets" in verdict.note
    (verdict,) = check_models(frame, ["s"], [{"k-map": {"k": 1}}], background=background)
    assert not verdict.holds
    assert "reference" in verdict.note
    (verdict,) = check_models(frame, [], [{"entropy-diversity": {"l": 1, "attribute": "q"}}])
    assert "published sets" in verdict.note
    assert not verdict.holds
