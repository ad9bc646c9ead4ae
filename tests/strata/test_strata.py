from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from draws import replications
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import polyseme as ps
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import EstimateOptions, Reports
from polyseme.inference.counts import Part
from polyseme.inference.sets.estimate import estimate_parts, estimate_table
from polyseme.inference.sets.registry import estimator_named
from polyseme.inference.sets.stratified import fit_parts
from polyseme.kernel.errors import ImpossibleError, InternalError, PolicyError, ReleaseError, TableError
from polyseme.kernel.randomness import SystemStream, new_key
from polyseme.release import Manifest
from polyseme.release.data import checksum
from polyseme.schema import Condition, Constraint
from polyseme.semantics.distances import LineDistance
from polyseme.strata import STRATA_LIMIT, Placing, Strata, Stratum

CODES = ["A1", "A2", "B1", "B2", "C1", "C2", "D1", "D2", "O80", "O81"]
POLICY = """
attributes:
  id: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  age: {role: quasi-identifier}
  disease:
    role: sensitive
    domain: [A1, A2, B1, B2, C1, C2, D1, D2, O80, O81]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
record-key: id
impossible:
  - {when: {sex: male}, attribute: disease, values: ["O8*"]}
  - {when: {sex: [female, unknown], age: [1, 2]}, attribute: disease, values: [O81, D1]}
"""


def excluded(sex: str, age: int) -> set[str]:
    if sex == "male":
        return {"O80", "O81"}
    return {"O81", "D1"} if age <= 2 else set()


def people(rows: int = 3_000, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["male", "female", "unknown"], rows, p=[0.5, 0.4, 0.1]), rng.integers(1, 6, rows)
    weights = np.linspace(1, 3, len(CODES)) * np.array(
        [[code not in excluded(s, a) for code in CODES] for s, a in zip(sex, age)]
    )
    steps = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    codes = (steps[:, :-1] < rng.random((rows, 1))).sum(axis=1)
    ids = [f"p{number}" for number in range(rows)]
    return pl.DataFrame({"id": ids, "sex": sex, "age": age, "disease": np.array(CODES)[codes]})


def policy(text: str = POLICY) -> ps.Policy:
    return ps.Policy.loads(text)


def data(release: ps.Release) -> pl.DataFrame:
    return pl.concat([pl.from_arrow(batch) for batch in release.batches(release.manifest.names)])


# -- which strata there are, and who belongs to them -------------------------------------------------------------

TEXTS = ("a", "b", "c")
conditions = st.dictionaries(
    st.sampled_from(["x", "y"]), st.lists(st.sampled_from(TEXTS), min_size=1, unique=True).map(tuple), min_size=1
)
rules = st.lists(
    st.builds(
        Constraint,
        conditions.map(Condition),
        st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(lambda codes: tuple(sorted(codes))),
    ),
    max_size=5,
)


def union(constraints: list[Constraint], record: dict[str, Any]) -> tuple[int, ...]:
    matching = [
        rule for rule in constraints if all(str(record[name]) in texts for name, texts in rule.condition.when.items())
    ]
    return tuple(sorted({code for rule in matching for code in rule.excluded}))


@given(rules)
def test_strata_are_exactly_those_that_can_occur_and_every_record_finds_its_own(constraints: list[Constraint]) -> None:
    records = [dict(zip("xy", pair)) for pair in itertools.product([*TEXTS, "other", None], repeat=2)]
    unions = [key.excluded for key in Placing.of(constraints).keys]
    assert unions[0] == ()
    assert set(unions) == {union(constraints, record) for record in records}
    free = Mechanism(make_design("balanced", LineDistance.ranks(5).structure(1), 2))
    strata = Strata(tuple(constraints), tuple(Stratum(codes, 6, free) for codes in unions))
    frame = pl.DataFrame(records, schema={"x": pl.String, "y": pl.String})
    places = strata.places(frame.to_dict(), frame.height)
    assert [unions[place] for place in places] == [union(constraints, record) for record in records]


@pytest.mark.parametrize(
    "column",
    [pa.array([30.0, 1.5, None]), pa.array([30, 2, None]), pa.array(["30", "1.5", None]), pa.array(["30.0", "x", ""])],
)
def test_conditions_do_not_depend_on_how_a_number_is_stored(column: pa.Array) -> None:
    free = Mechanism(make_design("balanced", LineDistance.ranks(3).structure(1), 2))
    strata = Strata((Constraint(Condition({"age": ("30",)}), (0,)),), (Stratum((), 4, free), Stratum((0,), 4, free)))
    assert strata.places({"age": column}, 3).tolist() == [1, 0, 0]


def test_too_many_strata_are_refused() -> None:
    constraints = [Constraint(Condition({f"x{index}": ("a",)}), (index,)) for index in range(40)]
    with pytest.raises(ImpossibleError, match=f"more than {STRATA_LIMIT:,}"):
        Placing.of(constraints)
    assert len(Placing.of(constraints[:10]).keys) == STRATA_LIMIT


def test_a_mechanism_never_sees_an_impossible_value() -> None:
    free = Mechanism(make_design("balanced", LineDistance.ranks(3).structure(1), 2))
    with pytest.raises(InternalError):
        Stratum((1,), 4, free).narrow(np.array([0, 1]))


# -- releases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("form", ["set", "long"])
def test_no_decoy_is_impossible_and_the_manifest_comes_back(tmp_path: Path, form: str, file_format: str) -> None:
    table = people()
    release = ps.anonymize(table, policy(), tmp_path / "r", form=form, file_format=file_format)
    opened = ps.Release.open(tmp_path / "r")
    assert opened.manifest.to_dict() == release.manifest.to_dict()
    assert Manifest.from_dict(opened.manifest.to_dict()).to_json() == opened.manifest.to_json()
    item = opened.manifest["disease"]
    assert [len(member.allowed) for member in item.strata.members] == [10, 8, 8]
    frame = data(opened)
    shown = frame.explode("disease") if form == "set" else frame
    groups = shown.group_by("sex", pl.col("age").cast(pl.Int64)).agg(pl.col("disease").unique())
    for sex, age, values in groups.rows():
        assert set(values) == set(CODES) - excluded(sex, age)
    verification = ps.verify(opened)
    assert verification.holds
    assert [verdict.checked for verdict in verification.verdicts if verdict.model == "believable"] == [frame.height]
    found = ps.estimate(opened, of=["disease"], by=["sex"], estimator="inverse")
    assert np.isclose(found.values.sum(), 3_000)


def test_sets_follow_the_mechanism_of_their_stratum() -> None:
    table = people(40_000).filter(pl.col("sex") == "male")
    release = ps.anonymize(table, policy(POLICY.replace("[O81, D1]", "[O81, D1], may-be-empty: true")), seed=4)
    stratum = next(item for item in release.manifest["disease"].strata.members if item.excluded == (8, 9))
    sets, channel = stratum.mechanism.channel()
    true = np.bincount(stratum.narrow(np.array([CODES.index(label) for label in table["disease"]])), minlength=8)
    seen = [tuple(CODES.index(label) for label in row) for row in data(release)["disease"].to_list()]
    keys = [tuple(row) for row in stratum.widen(sets).tolist()]
    counts = np.array([seen.count(key) for key in keys])
    assert counts.sum() == table.height
    assert stats.chisquare(counts, true @ channel).pvalue > 1e-3


def test_the_reference_prior_is_taken_given_the_stratum() -> None:
    text = POLICY.replace("    protect: {semantic", "    prior: [1, 1, 1, 1, 1, 1, 1, 1, 2, 2]\n    protect: {semantic")
    planned = ps.plan(policy(text))["disease"]
    for stratum in planned.strata:
        assert stratum.mechanism is not None
        prior = np.array([1.0] * 8 + [2, 2])[np.delete(np.arange(10), stratum.key.excluded)]
        assert np.allclose(stratum.mechanism.design.blind_inclusion(), 2 * prior / prior.sum())
        assert stratum.facts is not None
        assert stratum.facts.worst_posterior == pytest.approx(0.5)


def test_sticky_sets_are_the_same_in_any_order_and_company(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    table = people(800)

    def keyed(part: pl.DataFrame) -> pl.DataFrame:
        return data(ps.anonymize(part, policy(), key_file=tmp_path / "key")).sort("id")

    whole = keyed(table)
    assert whole.equals(keyed(table.reverse()))
    assert whole.equals(pl.concat([keyed(table[:123]), keyed(table[123:])]).sort("id"))
    assert not whole.equals(data(ps.anonymize(table, policy())).sort("id"))


@pytest.mark.parametrize("reference", ["", "    reference: [20, 1, 1, 1, 1, 1, 1, 1, 4, 4]\n"])
@pytest.mark.parametrize("promise", ["ldp: {epsilon: 1.0}", "closeness: {t: 0.2}"])
def test_promises_about_odds_hold_in_every_stratum(promise: str, reference: str) -> None:
    text = POLICY.replace("semantic-diversity: {l: 2, d: 2}", promise).replace(
        "    protect:", reference + "    protect:"
    )
    release = ps.anonymize(people(500), policy(text))
    members = release.manifest["disease"].strata.members
    assert len({member.mechanism.l for member in members}) == 1
    assert all(0 < member.mechanism.p < 1 for member in members)
    verification = ps.verify(release)
    assert verification.holds
    (verdict,) = (item for item in verification.verdicts if item.model in promise)
    assert verdict.worst == pytest.approx(verdict.bound)


# -- what is refused ---------------------------------------------------------------------------------------------


def test_a_true_value_that_is_impossible_is_counted_and_not_published(tmp_path: Path) -> None:
    table = people(300)
    mended = pl.when(pl.int_range(pl.len()) < 7).then(pl.lit("O80")).otherwise(pl.col("disease"))
    table = table.with_columns(sex=pl.lit("male")).with_columns(disease=pl.lit("A1")).with_columns(disease=mended)
    with pytest.raises(TableError, match="7 values are declared impossible in the policy") as caught:
        ps.anonymize(table, policy(), tmp_path / "r")
    assert "O80" not in str(caught.value)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("O81, D1", "O99", r"\$\.impossible\[1\]\.values\[0\]: 'O99' is not in the domain"),
        ("O81, D1", "O8l", "did you mean 'O8"),
        ('"O8*"', '"X*"', r"\$\.impossible\[0\]\.values\[0\]"),
        ('"O8*"', '"*"', "every value of the domain is impossible"),
        ("{sex: male}", "{sx: male}", "did you mean 'sex'"),
        ("{sex: male}", "{disease: A1}", "'disease' is published as sets"),
        ("{sex: male}", "{sex: []}", "no values"),
        ("{sex: male}", "{sex: }", "expected a value, found nothing"),
        ("{sex: male}", "{}", "no condition"),
    ],
)
def test_problems_of_the_policy(old: str, new: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        ps.plan(policy(POLICY.replace(old, new)))


def test_conditions_are_about_published_columns() -> None:
    text = POLICY.replace("id: {role: quasi-identifier}", "id: {role: identifier}").replace("{sex: male}", "{id: p1}")
    with pytest.raises(PolicyError, match=r"\$\.impossible\[0\]\.when\.id: 'id' is not published"):
        ps.plan(policy(text))


def test_an_attribute_that_is_published_as_it_is_has_no_decoys() -> None:
    with pytest.raises(PolicyError, match=r"\$\.impossible\[0\]\.attribute: published as it is"):
        ps.plan(policy(POLICY.replace('attribute: disease, values: ["O8*"]', "attribute: age, values: [1]")))


def test_values_that_do_not_occur_need_no_exclusion() -> None:
    text = POLICY.replace("    domain: [A1, A2, B1, B2, C1, C2, D1, D2, O80, O81]\n", "")
    text = text.replace("O81, D1", "O81, D1, Z9")
    heard: list[str] = []
    release = ps.anonymize(people(), policy(text), warn=heard.append)
    assert len(release.manifest["disease"].strata.members) == 3
    assert ps.verify(release).holds
    assert any("'Z9' does not occur in the table" in warning for warning in heard)


UNMET = r"\$\.impossible\[0\]\.when\.sex: no record meets this condition on column 'sex'\n  hint: .*may-be-empty: true"


@pytest.mark.parametrize("form", ["set", "long"])
def test_a_condition_that_no_record_fulfils_is_refused(form: str, tmp_path: Path) -> None:
    rules = policy(POLICY.replace("when: {sex: male}", "when: {sex: Male}"))
    with pytest.raises(PolicyError, match=UNMET):
        ps.anonymize(people(), rules, tmp_path / "out", form=form)
    assert not list(tmp_path.iterdir()), "nothing is left behind"
    with pytest.raises(PolicyError, match=UNMET):
        ps.anonymize(people(), rules)
    (remark,) = ps.plan(rules, data=people()).remarks
    assert "$.impossible[0].when.sex: no record meets" in remark
    assert not ps.plan(rules).remarks, "not known without the table"


def test_all_conditions_that_no_record_fulfils_are_named_at_once() -> None:
    table = people().filter((pl.col("sex") == "male") | (pl.col("age") > 2))
    text = POLICY + "  - {when: {age: 17}, attribute: disease, values: [A1]}\n"
    with pytest.raises(PolicyError) as caught:
        ps.anonymize(table, policy(text))
    assert [problem.where for problem in caught.value.problems] == ["$.impossible[1].when", "$.impossible[2].when.age"]
    assert "'sex', 'age' together" in caught.value.problems[0].what


def test_a_condition_counts_by_itself_although_another_excludes_the_same() -> None:
    text = POLICY + '  - {when: {age: 17}, attribute: disease, values: ["O8*"]}\n'
    with pytest.raises(PolicyError, match=r"^\$\.impossible\[2\]\.when\.age"):
        ps.anonymize(people(), policy(text))


def test_a_condition_may_be_empty_when_the_policy_says_so() -> None:
    text = POLICY.replace("when: {sex: male}", "may-be-empty: true, when: {sex: [Male, MALE]}")
    heard: list[str] = []
    release = ps.anonymize(people(), policy(text), warn=heard.append)
    assert ps.verify(release).holds
    assert not [said for said in heard if "impossible[" in said]
    assert not ps.plan(policy(text), data=people()).remarks
    with pytest.raises(PolicyError, match=r"\$\.impossible\[0\]\.may-be-empty: expected true or false"):
        policy(text.replace("may-be-empty: true", "may-be-empty: perhaps"))


def test_values_of_a_condition_that_do_not_occur_are_pointed_out() -> None:
    rules = policy(POLICY.replace("when: {sex: male}", "when: {sex: [male, Male, M]}"))
    heard: list[str] = []
    ps.anonymize(people(), rules, warn=heard.append)
    said = (
        "$.impossible[0].when.sex: 2 of the 3 values do not occur in any record; "
        "check how they are spelled in the table"
    )
    assert said in heard
    assert ps.plan(rules, data=people()).remarks == (said,)


def test_records_that_are_dropped_fulfil_no_condition() -> None:
    text = POLICY.replace("role: sensitive\n", "role: sensitive\n    missing: drop\n")
    table = people().with_columns(disease=pl.when(pl.col("sex") != "male").then("disease"))
    with pytest.raises(PolicyError, match=UNMET):
        ps.anonymize(table, policy(text))
    assert any("$.impossible[0].when.sex" in remark for remark in ps.plan(policy(text), data=table).remarks)


def test_an_empty_table_is_said_to_be_empty() -> None:
    with pytest.raises(TableError, match="no records to publish"):
        ps.anonymize(people().clear(), policy())


def test_a_stratum_without_decoys_is_named_in_plan_and_error() -> None:
    text = POLICY.replace('"O8*"', '"A*", "B*", C1, C2, D1')
    made = ps.plan(policy(text))
    assert not made.usable
    assert not made["disease"].feasible
    assert "$.impossible[0]" in made["disease"].obstacle
    assert [entry["feasible"] for entry in made.to_dict()["attributes"]["disease"]["strata"]] == [True, False]
    with pytest.raises(ImpossibleError, match=r"\$\.impossible\[0\]: no believable decoys .* \(3 of 10\)"):
        ps.anonymize(people().with_columns(sex=pl.lit("unknown"), age=5), policy(text))


def test_a_plan_names_a_stratum_that_cannot_be_estimated() -> None:
    text = POLICY.replace('"O8*"', '"A*", "B*", C1, C2')
    made = ps.plan(policy(text))["disease"]
    assert made.feasible
    assert not made.identifiable
    assert made.confounded


# -- estimation --------------------------------------------------------------------------------------------------


def truth(table: pl.DataFrame, by: dict[str, tuple[Any, ...]]) -> np.ndarray[Any, Any]:
    cells = list(zip(*by.values())) if by else [()]
    out = np.zeros((len(cells), len(CODES)))
    for row in table.select(*by, "disease").rows():
        out[cells.index(row[:-1]), CODES.index(row[-1])] += 1
    return out


@pytest.fixture(scope="module")
def releases_of_a_table() -> tuple[pl.DataFrame, list[ps.Release]]:
    """60 of the same people."""
    table, rules = people(3_000), policy()
    return table, [ps.anonymize(table, rules, seed=seed) for seed in replications(60)]


@pytest.fixture(scope="module")
def releases_of_tables() -> list[ps.Release]:
    """80 of other people each time."""
    rules = policy()
    return [ps.anonymize(people(1_000, seed=seed), rules, seed=seed) for seed in replications(80)]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["inverse", "ml"])
def test_intervals_cover_the_truth_in_cells_of_one_stratum_and_of_several(
    releases_of_a_table: tuple[pl.DataFrame, list[ps.Release]], estimator: str
) -> None:
    table, releases = releases_of_a_table
    covered, errors = {"": [], "sex": []}, []
    widths, values = {"": [], "sex": []}, {"": [], "sex": []}
    for release in releases:
        for by, hits in covered.items():
            found = ps.estimate(release, of=["disease"], by=[by] if by else [], estimator=estimator)
            real = truth(table, dict(found.by))
            inside = (found.low - 1e-6 <= real) & (real <= found.high + 1e-6)
            # What is impossible for the whole group is covered for certain and proves nothing.
            assert inside[found.high == 0].all()
            hits.append(inside[found.high > 0].mean())
            widths[by].append(found.high - found.low)
            values[by].append(found.values)
            if not by:
                errors.append((found.values - real) / found.stderr)
    for by, hits in covered.items():
        share = np.mean(hits)
        assert 0.925 < share < 0.99, (by, share)
        # Beside the normal interval of an analyst who knows how much the estimates vary from release to release.
        assert np.mean(widths[by]) <= 1.3 * np.mean(2 * 1.96 * np.std(values[by], axis=0))
    if estimator == "inverse":
        # Unbiased, and its standard errors are right: 60 standardized errors of each value.
        standardized = np.array(errors)[:, 0]
        assert np.abs(standardized.mean(axis=0)).max() < 4 / np.sqrt(60)
        assert 0.8 < standardized.std() < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["inverse", "ml"])
def test_intervals_about_the_population_cover_its_numbers(releases_of_tables: list[ps.Release], estimator: str) -> None:
    expected = np.zeros(len(CODES))
    for (sex, share), age in itertools.product({"male": 0.5, "female": 0.4, "unknown": 0.1}.items(), range(1, 6)):
        weights = np.linspace(1, 3, len(CODES)) * [code not in excluded(sex, age) for code in CODES]
        expected += 1_000 * share / 5 * weights / weights.sum()
    hits, widths, values = [], [], []
    for release in releases_of_tables:
        found = ps.estimate(release, of=["disease"], estimator=estimator, population="super")
        hits.append((found.low[0] <= expected) & (expected <= found.high[0]))
        widths.append(found.high[0] - found.low[0])
        values.append(found.values[0])
    assert 0.93 < np.mean(hits) < 0.985
    # Beside the normal interval of an analyst who knows how much the estimates vary from table to table.
    assert np.mean(widths) <= 1.3 * np.mean(2 * 1.96 * np.std(values, axis=0))


@pytest.mark.parametrize("estimator", [None, "ml", "inverse", "simple"])
def test_impossible_values_are_zero_for_certain(estimator: str | None) -> None:
    release = ps.anonymize(people(), policy(), seed=1)
    found = ps.estimate(release, of=["disease"], by=["sex"], estimator=estimator)
    male = list(found.by["sex"]).index("male")
    for column in (found.values, found.stderr, found.low, found.high):
        assert np.all(column[male, 8:] == 0)
    assert np.all(found.high[:male, 8] > 0)


def test_two_attributes_with_strata_of_their_own() -> None:
    text = POLICY.replace(
        "record-key",
        "  job: {role: sensitive-qid, domain: [a, b, c, d, e], protect: {diversity: {l: 2}}}\nrecord-key",
    )
    text += "  - {when: {age: 1}, attribute: job, values: [e]}\n"
    rng = np.random.default_rng(2)
    table = people(20_000).with_columns(job=pl.Series(rng.choice(list("abcde"), 20_000)))
    table = table.with_columns(job=pl.when(pl.col("age") == 1).then(pl.lit("a")).otherwise("job"))
    release = ps.anonymize(table, policy(text), seed=5)
    found = ps.estimate(release, of=["disease", "job"], by=["age"], estimator="inverse")
    assert found.values.shape == (5, 10, 5)
    assert np.all(found.values[0, :, 4] == 0)
    margin = found.margin(of=["job"])
    real = np.array([[table.filter(age=a, job=job).height for job in "abcde"] for a in found.by["age"]])
    assert np.mean(np.abs(margin.values - real)[margin.stderr > 0] < 3 * margin.stderr[margin.stderr > 0]) > 0.95
    assert np.all(np.abs(margin.values - real) <= 4.5 * margin.stderr + 1e-6)
    assert np.all(margin.low <= np.maximum(margin.values, 0) + 1e-9)


def mechanism_and_reports() -> tuple[Mechanism, Reports, np.ndarray[Any, Any]]:
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(6).structure(2), 2))
    rng = np.random.default_rng(3)
    codes = rng.choice(6, 2_000, p=[0.3, 0.1, 0.1, 0.2, 0.2, 0.1])
    sets = mechanism.sample(codes, SystemStream.seeded(1))
    return mechanism, Reports((sets,), np.zeros(2_000, np.int64), np.ones(2_000, np.int64), 1), rng.random(2_000) < 0.3


@pytest.mark.parametrize("population", ["finite", "super"])
def test_pooling_parts_of_one_mechanism_changes_nothing_linear(population: Any) -> None:
    mechanism, reports, chosen = mechanism_and_reports()
    parts = [
        Part(
            Reports((reports.sets[0][rows],), reports.cell[rows], reports.counts[rows], 1),
            (mechanism,),
            np.array([0]),
            (np.arange(6),),
        )
        for rows in (np.flatnonzero(chosen), np.flatnonzero(~chosen))
    ]
    whole = estimate_table(reports, [mechanism], ["x"], [range(6)], estimator="inverse", population=population)
    pooled = estimate_parts(parts, 1, ["x"], [range(6)], options=EstimateOptions("inverse", population=population))
    assert pooled.estimator == "inverse"
    for name in ("values", "stderr", "low", "high"):
        assert np.allclose(getattr(pooled, name), getattr(whole, name)), name
    contrasts = np.random.default_rng(1).normal(size=(4, 1, 6))
    for left, right in zip(pooled.sums(contrasts), whole.sums(contrasts)):
        assert np.allclose(left, right)


@pytest.mark.parametrize("population", ["finite", "super"])
def test_a_single_part_keeps_its_own_limits(population: Any) -> None:
    mechanism, reports, _ = mechanism_and_reports()
    fit = estimator_named("ml").fit(reports, [mechanism])
    part = Part(reports, (mechanism,), np.array([1]), (np.array([0, 2, 3, 4, 6, 7]),))
    _, pooled = fit_parts([part], (3, 9), "ml")
    assert fit.limits is not None
    assert pooled.limits is not None
    for left, right in zip(pooled.limits.cells(0.9, population), fit.limits.cells(0.9, population)):
        assert np.allclose(left[1][[0, 2, 3, 4, 6, 7]], right[0])
        assert np.all(left[[0, 2]] == 0)
        assert np.all(left[1][[1, 5, 8]] == 0)
    contrasts = np.random.default_rng(1).normal(size=(4, 3, 9))
    inner = contrasts[:, 1:2][:, :, [0, 2, 3, 4, 6, 7]]
    for left, right in zip(pooled.limits(contrasts, 0.9, population), fit.limits(inner, 0.9, population)):
        assert np.allclose(left, right)


@pytest.mark.parametrize("population", ["finite", "super"])
def test_a_mixed_cell_is_about_as_good_as_one_without_strata(population: Any) -> None:
    """The same reports cut into two parts say the same, though they are put together in another way."""
    mechanism, reports, chosen = mechanism_and_reports()
    rows = [np.flatnonzero(chosen), np.flatnonzero(~chosen)]
    parts = [
        Part(
            Reports((reports.sets[0][row],), reports.cell[row], reports.counts[row], 1),
            (mechanism,),
            np.array([0]),
            (np.arange(6),),
        )
        for row in rows
    ]
    whole = estimate_table(reports, [mechanism], ["x"], [range(6)], estimator="ml", population=population)
    pooled = estimate_parts(parts, 1, ["x"], [range(6)], options=EstimateOptions("ml", population=population))
    assert pooled.values.sum() == pytest.approx(whole.values.sum())
    assert np.all(np.abs(pooled.values - whole.values) < 0.5 * whole.stderr + 5)
    assert np.all((pooled.high - pooled.low) < 1.2 * (whole.high - whole.low))
    assert np.all((pooled.high - pooled.low) > 0.8 * (whole.high - whole.low))


def test_a_mixed_cell_does_not_depend_on_the_order_of_rows() -> None:
    release = ps.anonymize(people(400), policy(), seed=1)
    turned = replace(release, table=data(release).reverse().to_arrow())
    tables = [ps.estimate(item, of=["disease"], estimator="ml") for item in (release, turned)]
    for number in ("values", "stderr", "low", "high"):
        np.testing.assert_allclose(*(getattr(table, number) for table in tables), rtol=1e-6, atol=1e-6)


def test_the_estimate_of_strata_is_that_of_the_estimator_asked_for() -> None:
    mechanism, reports, chosen = mechanism_and_reports()
    parts = [
        Part(
            Reports((reports.sets[0][rows],), reports.cell[rows], reports.counts[rows], 1),
            (mechanism,),
            np.array([0]),
            (np.arange(6),),
        )
        for rows in (np.flatnonzero(chosen), np.flatnonzero(~chosen))
    ]
    name, fit = fit_parts(parts, (1, 6), "bayes")
    alone = [estimator_named("bayes").fit(part.reports, part.mechanisms).values for part in parts]
    assert name == "bayes"
    np.testing.assert_allclose(fit.values, sum(alone), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_strata_of_large_domains_have_limits_too() -> None:
    labels = [f"v{code}" for code in range(1_500)]
    text = (
        "attributes:\n  sex: {role: quasi-identifier}\n"
        f"  code: {{role: sensitive, domain: [{', '.join(labels)}], protect: {{diversity: {{l: 3}}}}}}\n"
        "impossible:\n  - {when: {sex: m}, attribute: code, values: [v0, v1]}\n"
    )
    codes = np.minimum(np.random.default_rng(0).geometric(0.02, 1_000) + 1, 1_499)
    table = pl.DataFrame({"sex": ["f", "m"] * 500, "code": [f"v{code}" for code in codes]})
    release = ps.anonymize(table, ps.Policy.loads(text), seed=1)
    found = ps.estimate(release, of=["code"], estimator="ml")
    truth = np.bincount(codes, minlength=1_500)
    assert found.values.sum() == pytest.approx(1_000)
    assert np.isfinite(found.stderr).all()
    assert np.mean((found.low[0] <= truth) & (truth <= found.high[0])) > 0.95
    honest = ps.estimate(release, of=["code"], estimator="inverse")
    assert np.mean(found.high - found.low) <= 1.3 * np.mean(honest.high - honest.low)


# -- checking and attacking --------------------------------------------------------------------------------------


def test_a_tampered_release_is_not_believable() -> None:
    release = ps.anonymize(people(500), policy(), seed=1)
    frame = data(release)
    rows = frame.with_row_index().filter(pl.col("sex") == "male")["index"].to_list()[:3]
    sets = frame["disease"].to_list()
    for row in rows:
        sets[row] = ["A1", "O80"]
    changed = replace(release, table=frame.with_columns(disease=pl.Series(sets)).to_arrow())
    verification = ps.verify(changed)
    assert not verification.holds
    verdicts = {verdict.model: verdict for verdict in verification.verdicts}
    assert verdicts["semantic-diversity"].holds
    assert verdicts["believable"].violations == 3
    assert [place.row for place in verdicts["believable"].worst_classes] == rows
    with pytest.raises(ReleaseError, match="impossible for their record"):
        ps.estimate(changed, of=["disease"])
    with pytest.raises(ReleaseError, match="impossible"):
        ps.attack(changed)


def test_strata_that_do_not_fit_are_noticed() -> None:
    document = json.loads(ps.anonymize(people(100), policy()).manifest.to_json())
    entry = next(entry for entry in document["attributes"] if entry["name"] == "disease")
    del entry["strata"][0]
    document["checksum"] = checksum({key: value for key, value in document.items() if key != "checksum"})
    with pytest.raises(ReleaseError, match="do not fit its conditions"):
        Manifest.from_dict(document)


@pytest.mark.parametrize("matchable", [True, False])
def test_attack_and_report_use_the_mechanism_of_the_stratum(matchable: bool) -> None:
    table = people(4_000) if matchable else people(4_000).with_columns(id=pl.lit("same"))
    release = ps.anonymize(table, policy(), seed=1)
    findings = {finding.attack: finding for finding in ps.attack(release, table)}
    males = table.filter(sex="male").height
    assert findings["bayes"].success == pytest.approx(0.5)
    assert findings["bayes"].detail["hit_rate"] == pytest.approx(0.5, abs=0.05)
    assert findings["bayes"].detail["stratum_records"] == males
    assert findings["bayes"].detail["matched_records" if matchable else "fresh_sets"] == males
    assert "largest stratum" in findings["bayes"].knows
    assert not any(finding.exceeded for finding in findings.values())
    page = ps.report(release, table, by="sex")
    assert "2 combinations are declared impossible" in page
    assert ps.evaluate(release, table).to_dict()["mse"] < 0.01
