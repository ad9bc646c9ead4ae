"""Semantic rules as a method: the paper's table, matchings against enumeration, what cannot be done."""

from __future__ import annotations

import json
from itertools import chain, combinations

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.cli import cli
from polyseme.kernel.documents import parse
from polyseme.kernel.errors import ImpossibleError, InvalidInput, PolicyError
from polyseme.methods.microdata import BLANK, Ladder, Microdata, Recoding, Sensitive
from polyseme.methods.rules.actions import blanked, fewest_values
from polyseme.methods.rules.pairs import Options, exact, greedy, match
from polyseme.methods.rules.state import State
from polyseme.models import check_models
from polyseme.models.semantic_rules import read_rules
from polyseme.results.explanation import Explanation

CHEST = ["bronchitis", "lung cancer", "cough", "flu"]
HEART, VIRAL = "Heart disease", "viral infection"
FIRST = [("cancer", 30), (HEART, 33), ("cancer", 35), (HEART, 35), ("cancer", 40), (VIRAL, 38)]
SECOND = [("gastric ulcer", 8), ("gastritis", 11), ("stomach cancer", 6), ("stomach cancer", 13)]
THIRD = [(HEART, 10), (VIRAL, 9), ("cancer", 15), (VIRAL, 7), (HEART, 11)]
FOURTH = [("bronchitis", 15), ("lung cancer", 12), ("lung cancer", 14), ("cough", 18), ("flu", 17), ("bronchitis", 9)]
CLASSES = [("148**", "[22-30[", FIRST), ("476**", "[22-30[", SECOND), ("130**", "[30-40[", THIRD)]
CLASSES += [("476**", "[30-40[", FOURTH)]
LOW = {"never-all": {"salary": {"from": 0, "below": 20}}, "name": "low salary"}
RULES = [LOW, {"never-all": {"disease": CHEST}, "name": "chest"}]


def table(classes=CLASSES) -> pl.DataFrame:
    rows = [(code, age, "*", *person) for code, age, people in classes for person in people]
    return pl.DataFrame(rows, schema=["zip", "age", "nationality", "disease", "salary"], orient="row")


def policy(method: dict, rules=RULES, models=()) -> ps.Policy:
    tree = {"tree": {"[20-40[": ["[22-30[", "[30-40["]}}
    return ps.Policy.from_dict(
        {
            "attributes": {
                "zip": {"role": "quasi-identifier", "hierarchy": {"prefix": 5}},
                "age": {"role": "quasi-identifier", "hierarchy": tree},
                "nationality": {"role": "quasi-identifier"},
                "disease": {"role": "sensitive"},
                "salary": {"role": "sensitive"},
            },
            "models": [{"semantic-rules": {"rules": rules}}, *models],
            "method": {"rules": method},
        }
    )


def published(frame: pl.DataFrame, rules: ps.Policy) -> tuple[ps.Release, Explanation]:
    explanations: list[Explanation] = []
    release = ps.anonymize(frame, rules, warn=lambda _: None, explain=explanations.append, seed=1)
    assert ps.verify(release).holds
    return release, explanations[0]


def rows(release: ps.Release) -> list[tuple]:
    return sorted(map(tuple, pl.DataFrame(pl.from_arrow(release.table)).rows()), key=repr)


# -- the paper's table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "actions", [["merge"], ["suppress-values"], ["suppress-records"], ["merge", "suppress-records"]]
)
def test_no_rule_is_effective_on_the_papers_table_afterwards(actions):
    release, explanation = published(table(), policy({"actions": actions}))
    assert set(release.manifest.applied.actions) <= set(actions)
    effective = {(row.cells, row.rule) for row in explanation.rows}
    assert {(cells[:2], rule) for cells, rule in effective} == {
        (("476**", "[22-30["), "low salary"),
        (("130**", "[30-40["), "low salary"),
        (("476**", "[30-40["), "low salary"),
        (("476**", "[30-40["), "chest"),
    }
    for cells, rule in effective:
        assert sum(row.applied for row in explanation.rows if (row.cells, row.rule) == (cells, rule)) == 1


def raised(people):
    """The paper's action on the salary."""
    return [(disease, salary + 10) for disease, salary in people]


def test_changing_values_and_merging_make_the_papers_table_5_without_its_erratum():
    """Table 5 leaves its last two rows without the +10 of its own Table 4; here they have it."""
    change = {"attribute": "salary", "by": 10}
    release, explanation = published(table(), policy({"actions": ["merge"], "change-values": change}))
    merged = [("148**", "[22-30[", FIRST), ("130**", "[30-40[", raised(THIRD))]
    corrected = table([*merged, ("476**", "[20-40[", raised(SECOND + FOURTH))])
    printed = table([*merged, ("476**", "[20-40[", raised(SECOND + FOURTH[:4]) + FOURTH[4:])])
    assert rows(release) == sorted(corrected.rows(), key=repr)
    assert rows(release) != sorted(printed.rows(), key=repr)
    applied = release.manifest.applied
    assert applied.actions == {"change-values": 3, "merge": 1}
    assert applied.parameters["change-values"] == change
    assert explanation.applied == {("low salary", "change-values"): 3, ("chest", "merge"): 1}
    assert "change-values" in str(explanation)
    assert Explanation.from_dict(explanation.to_dict()) == explanation
    assert "False values" in ps.report(release)


def test_the_explanation_shows_itself_in_a_notebook_too():
    _, explanation = published(table(), policy({"actions": ["merge"]}))
    assert "chest" in explanation._repr_html_()
    assert repr(explanation) == "<Explanation: 4 rows, 4 of them applied>"
    assert explanation.to_polars()["rule"].to_list().count("low salary") == 3


def test_generalizing_is_taken_where_it_is_the_only_action_or_the_cheapest():
    release, explanation = published(table(), policy({"actions": ["generalize"]}))
    assert release.manifest.applied.actions == {"generalize": 3}
    assert release.manifest.applied.levels == {"zip": 5, "age": 1, "nationality": 0}
    assert {row.action for row in explanation.rows} == {"generalize"}
    both, explanation = published(table(), policy({"actions": ["merge", "generalize"]}))
    assert both.manifest.applied.loss <= release.manifest.applied.loss
    assert {row.action for row in explanation.rows} == {"merge", "generalize"}


def test_a_start_reaches_the_other_models_first():
    models = [{"k-anonymity": {"k": 5}}, {"distinct-diversity": {"l": 3, "attribute": "disease"}}]
    with pytest.raises(ImpossibleError, match="do not reach k-anonymity"):
        published(table(), policy({}, models=models))
    release, _ = published(table(), policy({"start": {"full-domain": {}}}, models=models))
    assert release.manifest.records == 21
    assert [next(iter(model)) for model in release.manifest.models][1:] == ["k-anonymity", "distinct-diversity"]


def test_mondrian_can_be_the_start():
    frame = pl.DataFrame(
        {"age": [20, 21, 22, 23, 40, 41, 42, 43], "ill": ["flu", "cough", "HIV", "AIDS", "flu", "HIV", "acne", "cough"]}
    )
    wanted = ps.Policy.loads(
        """
        attributes: {age: {role: quasi-identifier}, ill: {role: sensitive}}
        models:
          - {k-anonymity: {k: 2}}
          - {semantic-rules: {rules: [{never-all: {ill: [HIV, AIDS]}, name: HIV}]}}
        method: {rules: {start: {mondrian: {}}, actions: [merge]}}
        """
    )
    release, explanation = published(frame, wanted)
    assert explanation.applied == {("HIV", "merge"): 1}
    assert release.manifest.records == 8


def test_the_command_writes_the_explanation_for_the_owner(tmp_path):
    table().write_parquet(tmp_path / "table.parquet")
    (tmp_path / "policy.yaml").write_text(
        """
        attributes:
          zip: {role: quasi-identifier}
          age: {role: quasi-identifier}
          nationality: {role: quasi-identifier}
          disease: {role: sensitive}
          salary: {role: sensitive}
        models: [{semantic-rules: {rules: rules.yaml}}]
        method: {rules: {actions: [merge]}}
        """
    )
    (tmp_path / "rules.yaml").write_text(json.dumps(RULES))
    command = [
        "anonymize",
        str(tmp_path / "policy.yaml"),
        str(tmp_path / "table.parquet"),
        "--out",
        str(tmp_path / "out"),
    ]
    shown = CliRunner().invoke(cli, [*command, "--explain", str(tmp_path / "why.csv")])
    assert shown.exit_code == 0, shown.output
    assert "by what was done about them: merge 3" in shown.output
    explanation = pl.read_csv(tmp_path / "why.csv")
    assert explanation.columns == ["zip", "age", "nationality", "records", "rule", "action", "applied", "cost"]
    assert explanation.filter(pl.col("applied") == "yes")["action"].unique().to_list() == ["merge"]
    # What the owner is told is nowhere in the release.
    assert "[22-30[" not in (tmp_path / "out" / "manifest.json").read_text()
    again = CliRunner().invoke(cli, [*command, "--force", "--explain", "-"])
    assert again.exit_code == 0
    assert "for the owner, not for publication" in again.output
    refused = CliRunner().invoke(cli, [*command[:-1], str(tmp_path / "new"), "--explain", str(tmp_path / "why.csv")])
    assert isinstance(refused.exception, InvalidInput)
    assert not (tmp_path / "new").exists()


def test_built_in_rules_are_listed():
    listed = CliRunner().invoke(cli, ["rules", "list"])
    assert listed.exit_code == 0
    assert "icd10" in listed.output
    printed = CliRunner().invoke(cli, ["rules", "show", "age", "--attribute", "years"]).output
    assert [rule["never-all"] for rule in parse(printed)] == [{"years": {"below": 18}}, {"years": {"from": 65}}]


def test_values_that_another_model_counts_are_not_taken_away():
    rules = policy({"actions": ["suppress-values", "suppress-records"]}, models=[{"distinct-diversity": {"l": 3}}])
    release, _ = published(table(), rules)
    assert release.manifest.applied.actions == {"suppress-records": 3}
    free, _ = published(table(), policy({"actions": ["suppress-values", "suppress-records"]}))
    assert free.manifest.applied.actions == {"suppress-values": 3}
    shown = pl.DataFrame(pl.from_arrow(free.table))
    assert shown["salary"].null_count() == 15
    assert shown["disease"].null_count() == 6
    assert free.manifest.records == 21


# -- what cannot be done -------------------------------------------------------------------------------------------


def test_a_rule_that_every_record_meets_is_refused_with_its_name_and_the_size_of_the_class(tmp_path):
    everyone = [{"never-all": {"salary": {"below": 1000}}, "name": "paid"}, RULES[1]]
    for actions in (["merge"], ["merge", "generalize", "suppress-records"]):
        with pytest.raises(ImpossibleError, match=r"rule 'paid': effective on a class of \d records") as caught:
            ps.anonymize(table(), policy({"actions": actions}, everyone), tmp_path / "out", warn=lambda _: None)
        assert "no published record says otherwise" in str(caught.value)
        assert not (tmp_path / "out").exists()


def test_an_action_that_is_not_allowed_is_named():
    one = table(CLASSES[1:2])
    with pytest.raises(ImpossibleError, match=r"low salary.*class of 4 records"):
        published(one, policy({"actions": ["merge"]}))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"actions": ["merg"]}, r"\$\.method\.rules\.actions\[0\]: unknown action\n  hint: did you mean 'merge'"),
        ({"actions": ["change-values"]}, r"actions\[0\]: it needs an attribute and a number"),
        ({"start": {"anatomy": {"l": 2}}}, r"\$\.method\.rules\.start: expected one of full-domain, mondrian"),
        ({"start": {"full-domain": {"los": 3}}}, r"\$\.method\.rules\.start\.full-domain\.los: unknown parameter"),
        ({"change-values": {"attribute": "salary", "by": 0}}, r"change-values: expected an attribute and a number"),
        ({"change-values": {"attribute": "wage", "by": 1}}, r"change-values\.attribute: not a sensitive attribute"),
        ({"change-values": {"attribute": "disease", "by": 1}}, r"not all values of 'disease' are numbers"),
    ],
)
def test_what_is_no_parameter_is_refused(method, message):
    with pytest.raises(PolicyError, match=message):
        published(table(), policy(method))


def test_rules_are_needed():
    wanted = policy({}).__class__.loads(
        """
        attributes: {zip: {role: quasi-identifier}, salary: {role: sensitive}}
        models: [{distinct-diversity: {l: 1}}]
        method: {rules: {}}
        """
    )
    with pytest.raises(PolicyError, match="needs semantic rules, and there are none"):
        ps.anonymize(table().select("zip", "salary"), wanted, warn=lambda _: None)


# -- matchings -----------------------------------------------------------------------------------------------------


def enumerated(options: Options) -> float:
    """The least cost over all sets of pairs that share no class."""
    best = np.inf
    for size in range(len(options.vulnerable) + 1):
        for chosen in combinations(range(len(options.pairs)), size):
            used = list(chain.from_iterable(options.pairs[list(chosen)].tolist()))
            if len(set(used)) == len(used):
                alone = ~np.isin(options.vulnerable, used)
                best = min(best, options.costs[list(chosen)].sum() + options.fallback[alone].sum())
    return float(best)


@st.composite
def cases(draw) -> Options:
    vulnerable = draw(st.integers(1, 3))
    others = draw(st.integers(0, 3))
    pairs = [(v, u) for v in range(vulnerable) for u in range(v + 1, vulnerable + others)]
    pairs = [pair for pair in pairs if draw(st.booleans())]
    cost = st.floats(0.0, 10.0).map(lambda number: round(number, 2))
    costs = [draw(cost) for _ in pairs]
    otherwise = [draw(st.one_of(cost, st.just(np.inf))) for _ in range(vulnerable)]
    return Options(
        np.arange(vulnerable), np.array(pairs).reshape(-1, 2).astype(np.int64), np.array(costs), np.array(otherwise)
    )


@given(cases())
@settings(max_examples=150)
def test_the_choice_costs_what_the_program_and_enumeration_say(options):
    least = enumerated(options)
    best = exact(options)
    assert best is not None
    assert best.cost == pytest.approx(least, abs=1e-6)
    assert match(options).cost == pytest.approx(least, abs=1e-6)
    assert greedy(options).cost >= least - 1e-6


def test_greedy_alone_is_not_exact():
    options = Options(
        np.array([0, 1]), np.array([[0, 2], [0, 3], [1, 2]]), np.array([1.0, 2.0, 1.5]), np.array([9.0, 9.0])
    )
    assert greedy(options).cost == 10.0
    assert match(options).cost == exact(options).cost == 3.5


# -- values that are taken away ------------------------------------------------------------------------------------


def class_state(records, rules) -> State:
    """One class of records with two attributes; None is a value that is missing already."""
    number = len(records)
    ladder = Ladder("q", (np.zeros(1, dtype=np.int64),), (("*",),))
    sensitive = {
        name: Sensitive(name, np.array([BLANK if pair[place] is None else pair[place] for pair in records]), (0, 1, 2))
        for place, name in enumerate("ab")
    }
    data = Microdata((ladder,), np.zeros((number, 1), dtype=np.int64), sensitive)
    recoding = Recoding.of_levels(data, [0], np.zeros(number, dtype=np.bool_), None, None)
    return State(data, read_rules(rules), recoding, sensitive)


TEST = st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=2, unique=True)
CONDITION = st.one_of(
    st.fixed_dictionaries({"a": TEST}),
    st.fixed_dictionaries({"b": TEST}),
    st.fixed_dictionaries({"a": TEST, "b": TEST}),
)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1, 2, None])), min_size=1, max_size=3),
    st.lists(CONDITION, min_size=1, max_size=3),
)
@settings(max_examples=200)
def test_no_fewer_values_will_do(records, conditions):
    state = class_state(records, [{"never-all": condition} for condition in conditions])
    if not len(state.vulnerable):
        return
    cells = [(row, place) for row, pair in enumerate(records) for place in (0, 1) if pair[place] is not None]
    least = next(
        size
        for size in range(len(cells) + 1)
        for lost in combinations(cells, size)
        if not len(
            class_state(
                [tuple(None if (row, p) in lost else pair[p] for p in (0, 1)) for row, pair in enumerate(records)],
                [{"never-all": condition} for condition in conditions],
            ).vulnerable
        )
    )
    blanks = fewest_values(state, 0, ("a", "b"))
    assert blanks is not None
    assert sum(int(lost.sum()) for lost in blanks.values()) == least
    assert not len(blanked(state, 0, blanks).vulnerable)


# -- random tables -------------------------------------------------------------------------------------------------

ACTIONS = ["merge", "generalize", "suppress-values", "suppress-records"]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 3), st.integers(0, 5), st.integers(0, 2)), min_size=4, max_size=40
    ),
    st.lists(CONDITION, min_size=1, max_size=3),
    st.lists(st.sampled_from(ACTIONS), min_size=1, unique=True),
    st.booleans(),
)
@settings(max_examples=60)
def test_every_outcome_passes_the_verifier_and_the_models_stay(records, conditions, actions, started):
    frame = pl.DataFrame(records, schema=["age", "zip", "a", "b"], orient="row")
    models = [{"k-anonymity": {"k": 2}}, {"distinct-diversity": {"l": 2, "attribute": "a"}}] if started else []
    document = {
        "attributes": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
            "zip": {"role": "quasi-identifier"},
            "a": {"role": "sensitive"},
            "b": {"role": "sensitive"},
        },
        "models": [
            {
                "semantic-rules": {
                    "rules": [{"never-all": condition} for condition in [*conditions, {"b": 7}, {"a": 7}]]
                }
            },
            *models,
        ],
        "method": {
            "rules": {"actions": actions, **({"start": {"full-domain": {"suppression": 0.3}}} if started else {})}
        },
    }
    try:
        release, explanation = published(frame, ps.Policy.from_dict(document))
    except ImpossibleError:
        assert set(actions) != set(ACTIONS) or models
        return
    shown = pl.DataFrame(pl.from_arrow(release.table))
    verdicts = check_models(shown, ["age", "zip"], document["models"], sensitive=["a"])
    assert all(verdict.holds for verdict in verdicts)
    by_class = {(row.cells, row.rule) for row in explanation.rows}
    assert by_class == {(row.cells, row.rule) for row in explanation.rows if row.applied}
