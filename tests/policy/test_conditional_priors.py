from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from draws import replications
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import polyseme as ps
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ImpossibleError, PolicyError, ReleaseError
from polyseme.kernel.randomness import StickyStream, new_key
from polyseme.release import Manifest, Sets
from polyseme.release.data import checksum
from polyseme.reports.assembly import promise_line
from polyseme.schema import OTHERWISE, Condition, Constraint, Distributions
from polyseme.semantics.distances import LineDistance
from polyseme.strata import STRATA_LIMIT, Placing, Strata, Stratum
from polyseme.strata.coupling import Coupled, parents

VALUES = ["a", "b", "c", "d", "e", "f"]
PRIORS = {("f", "1"): [6, 5, 4, 3, 3, 3], ("f", "2"): [3, 4, 4, 4, 4, 5], ("m", "1"): [2, 3, 4, 4, 3, 2]}
POLICY = """
attributes:
  id: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  age: {role: quasi-identifier}
  income:
    role: sensitive
    domain: [a, b, c, d, e, f]
    distance: {line: rank}
    prior: {by: [sex, age], file: prior.csv}
    protect: {semantic-diversity: {l: 2, d: 2}}
record-key: id
"""
EXCLUSION = "impossible: [{when: {age: [2, 9]}, attribute: income, values: [a]}]\n"


def prior_file(folder: Path, priors: dict[tuple[str, str], list[float]] | None = None, header: str = "") -> None:
    rows = [
        f"{sex},{age},{value},{number}"
        for (sex, age), numbers in (PRIORS if priors is None else priors).items()
        for value, number in zip(VALUES, numbers)
    ]
    (folder / "prior.csv").write_text("\n".join([*([header] if header else []), *rows]) + "\n")


def policy(folder: Path, text: str = POLICY) -> ps.Policy:
    if not (folder / "prior.csv").exists():
        prior_file(folder)
    return ps.Policy.loads(text, folder)


def people(rows: int = 3_000, seed: int = 1, possible: bool = False) -> pl.DataFrame:
    """Who have values as their priors say; of (m, 2), which no file lists, uniformly."""
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["f", "m"], rows), rng.integers(1, 3, rows)
    weights = np.array([PRIORS.get((s, str(a)), [1] * 6) for s, a in zip(sex, age)], dtype=float)
    if possible:
        weights[age == 2, 0] = 0.0
    steps = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    codes = (steps[:, :-1] < rng.random((rows, 1))).sum(axis=1)
    ids = [f"p{number}" for number in range(rows)]
    return pl.DataFrame({"id": ids, "sex": sex, "age": age, "income": np.array(VALUES)[codes]})


def data(release: ps.Release) -> pl.DataFrame:
    return pl.concat([pl.from_arrow(batch) for batch in release.batches(release.manifest.names)])


def sets_of(release: ps.Release) -> Sets:
    column = release.manifest["income"]
    assert isinstance(column, Sets)
    return column


def shares(numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers) / np.sum(numbers)


# -- the nouns ---------------------------------------------------------------------------------------------------

TEXTS = ("a", "b", "c")
grids = st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(TEXTS)), unique=True, max_size=7)
rules = st.lists(
    st.builds(
        Constraint,
        st.dictionaries(
            st.sampled_from(["x", "y", "z"]),
            st.lists(st.sampled_from(TEXTS), min_size=1, unique=True).map(tuple),
            min_size=1,
        ).map(Condition),
        st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(lambda codes: tuple(sorted(codes))),
    ),
    max_size=4,
)


@given(rules, grids)
def test_every_record_finds_the_stratum_of_its_condition_and_its_impossible_values(
    constraints: list[Constraint], grid: list[tuple[str, str]]
) -> None:
    conditions = [Condition({"x": (one,), "y": (two,)}) for one, two in grid]
    records = [dict(zip("xyz", triple)) for triple in itertools.product([*TEXTS, "other", None], repeat=3)]

    def key(record: dict[str, Any]) -> tuple[Condition, tuple[int, ...]]:
        excluded = {
            code
            for rule in constraints
            if all(record[name] in texts for name, texts in rule.condition.when.items())
            for code in rule.excluded
        }
        own = [c for c in conditions if all(record[name] in texts for name, texts in c.when.items())]
        return own[0] if own else OTHERWISE, tuple(sorted(excluded))

    placing = Placing.of(constraints, conditions)
    assert {(found.condition, found.excluded) for found in placing.keys} == {key(record) for record in records}
    assert len(set(placing.keys)) == len(placing.keys)
    free = Mechanism(make_design("balanced", LineDistance.ranks(5).structure(1), 2))
    strata = Strata(tuple(constraints), tuple(Stratum(k.excluded, 6, free, k.condition) for k in placing.keys))
    frame = pl.DataFrame(records, schema=dict.fromkeys("xyz", pl.String))
    places = strata.places(frame.to_dict(), frame.height)
    assert [(strata.members[p].condition, strata.members[p].excluded) for p in places] == [key(r) for r in records]
    # Many rows of few texts are read another way.
    often = strata.places(pl.concat([frame] * 9).to_dict(), 9 * frame.height)
    assert np.array_equal(often, np.tile(places, 9))


@pytest.mark.parametrize("kind", [pl.String, pl.Int64, pl.Float64, pl.Boolean, pl.Null, pl.Categorical, pl.Date])
@pytest.mark.parametrize("rows", [0, 1, 3, 100])
def test_columns_of_any_kind_and_length_are_placed(kind: Any, rows: int) -> None:
    placing = Placing.of([], [Condition({"x": ("1",)})])
    assert placing.of_records({"x": pl.Series([None] * rows, dtype=kind)}, rows).tolist() == [0] * rows
    if kind == pl.Float64:
        numbers = pl.Series([1.0, float("nan"), float("inf"), None, -0.0] * rows, dtype=kind)
        assert placing.of_records({"x": numbers}, 5 * rows).tolist() == [1, 0, 0, 0, 0] * rows


def test_conditions_that_one_record_can_fulfil_are_refused() -> None:
    with pytest.raises(ImpossibleError, match="two of the conditions"):
        Placing.of([], [Condition({"x": ("a",)}), Condition({"y": ("a",)})])
    with pytest.raises(ImpossibleError, match="two of the conditions"):
        Placing.of([], [Condition({"x": ("a", "b")}), Condition({"x": ("b", "c")})])


def test_hundreds_of_conditions_are_placed_and_too_many_refused() -> None:
    grid = [Condition({"x": (str(i),), "y": (str(j),)}) for i in range(31) for j in range(33)]
    placing = Placing.of([], grid)
    assert len(placing.keys) == STRATA_LIMIT == len(grid) + 1
    x, y = np.random.default_rng(0).integers(0, 35, (2, 1_000))
    found = placing.of_records({"x": pl.Series(x), "y": pl.Series(y)}, 1_000)
    assert np.array_equal(found, np.where((x < 31) & (y < 33), 1 + 33 * x + y, 0))
    with pytest.raises(ImpossibleError, match="more than 1,024"):
        Placing.of([], [*grid, Condition({"x": ("31",), "y": ("0",)})])


def test_distributions_are_those_given_the_values_that_are_left() -> None:
    known = Distributions(np.array([1.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.5]))
    left = known.among(np.array([0, 2]))
    assert left.prior is not None
    assert left.prior.tolist() == pytest.approx([1 / 3, 2 / 3])
    assert left.reference is not None
    assert left.reference.tolist() == [0.0, 1.0]
    assert known.among(np.array([0])).reference is None


# -- releases ----------------------------------------------------------------------------------------------------


def test_strata_with_equal_exclusions_have_priors_of_their_own(tmp_path: Path) -> None:
    members = sets_of(ps.anonymize(people(), policy(tmp_path))).strata.members
    assert len({member.excluded for member in members}) == 1
    assert [member.condition.when for member in members] == [
        {},
        *({"sex": (sex,), "age": (age,)} for sex, age in sorted(PRIORS)),
    ]
    wanted = [np.sum(list(PRIORS.values()), axis=0), *(PRIORS[key] for key in sorted(PRIORS))]
    for member, numbers in zip(members, wanted):
        assert member.prior == pytest.approx(shares(numbers))
        assert member.mechanism.design.blind_inclusion() == pytest.approx(2 * shares(numbers))
        assert member.mechanism.worst_posterior(member.prior) == pytest.approx(0.5)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("text", [POLICY, POLICY + EXCLUSION])
def test_the_manifest_comes_back_and_everything_holds(tmp_path: Path, text: str, file_format: str) -> None:
    table = people(possible=True)
    release = ps.anonymize(table, policy(tmp_path, text), tmp_path / "r", file_format=file_format)
    opened = ps.Release.open(tmp_path / "r")
    assert json.loads(opened.manifest.to_json())["format"] == 2
    assert opened.manifest.to_json() == release.manifest.to_json()
    for one, two in zip(sets_of(release).strata.members, sets_of(opened).strata.members, strict=True):
        assert one.key == two.key
        assert one.prior is not None
        assert one.prior.tolist() == two.prior.tolist()
    verification = ps.verify(opened)
    assert verification.holds, verification
    assert ps.estimate(opened, of=["income"]).values.sum() == pytest.approx(table.height)
    # Terms of the glossary are links: the sentence is looked for without markup.
    assert "The prior was declared by sex and age." in re.sub(r"<[^>]+>", "", ps.report(opened))


def test_without_conditions_the_manifest_is_of_format_1(tmp_path: Path) -> None:
    text = POLICY.replace("{by: [sex, age], file: prior.csv}", "[6, 5, 4, 3, 3, 3]") + EXCLUSION
    assert ps.anonymize(people(possible=True), policy(tmp_path, text)).manifest.format == 1


@pytest.mark.parametrize("text", [POLICY, POLICY + EXCLUSION])
def test_sets_follow_the_mechanism_of_their_stratum(tmp_path: Path, text: str) -> None:
    table = people(40_000, possible=True)
    release = ps.anonymize(table, policy(tmp_path, text))
    frame = data(release)
    strata = sets_of(release).strata
    where = [strata.places(one.select("sex", "age").to_dict(), one.height) for one in (frame, table)]
    for number, stratum in enumerate(strata.members):
        here, true = frame.filter(pl.Series(where[0] == number)), table.filter(pl.Series(where[1] == number))
        assert here.height == true.height
        if not true.height:
            continue
        sets, channel = stratum.mechanism.channel()
        codes = np.array([VALUES.index(value) for value in true["income"]])
        truth = np.bincount(stratum.narrow(codes), minlength=len(stratum.allowed))
        seen = here["income"].cast(pl.List(pl.String)).list.join("").value_counts()
        count = dict(zip(seen["income"], seen["count"]))
        names = ["".join(VALUES[code] for code in row) for row in stratum.widen(sets)]
        counts, expected = np.array([count.get(name, 0) for name in names]), truth @ channel
        assert counts.sum() == true.height
        assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["inverse", "ml"])
def test_estimates_put_strata_together(tmp_path: Path, estimator: str) -> None:
    table, rules = people(3_000), policy(tmp_path)
    truth = np.array([table.filter(income=value).height for value in VALUES])
    inside, errors = [], []
    for seed in replications(60):
        release = ps.anonymize(table, rules, seed=seed, warn=lambda _: None)
        found = ps.estimate(release, of=["income"], estimator=estimator)
        inside.append(((found.low <= truth) & (truth <= found.high)).mean())
        errors.append(((found.values - truth) / found.stderr)[0])
    assert 0.91 < np.mean(inside) < 0.99
    assert np.abs(np.mean(errors, axis=0)).max() < 4 / np.sqrt(60)
    assert 0.8 < np.std(errors) < 1.2


def test_with_one_mechanism_for_all_the_estimate_would_be_wrong(tmp_path: Path) -> None:
    """The test above has power: the strata's designs are so different that mixing them up is noticed."""
    members = sets_of(ps.anonymize(people(), policy(tmp_path))).strata.members
    channels = [member.mechanism.channel()[1] for member in members]
    assert np.abs(channels[1] - channels[2]).max() > 0.1


def test_verify_looks_at_each_stratum(tmp_path: Path) -> None:
    release = ps.anonymize(people(20_000), policy(tmp_path), seed=1)
    document = json.loads(release.manifest.to_json())
    entry = next(item for item in document["attributes"] if item["name"] == "income")
    strata = entry["strata"]
    strata[0]["mechanism"], strata[1]["mechanism"] = strata[1]["mechanism"], strata[0]["mechanism"]
    verification = ps.verify(replace(release, manifest=_sealed(document)))
    verdicts = {item.model: item for item in verification.verdicts}
    assert not verdicts["mechanism"].holds
    assert not verdicts["posterior"].holds
    # Of {a, f}: P(v | R) goes with pi_v / rho_v, and the designs of the two strata were swapped.
    ratio = np.array(PRIORS["f", "1"]) / np.array(PRIORS["f", "2"])
    assert verdicts["posterior"].worst == pytest.approx(ratio[0] / (ratio[0] + ratio[5]))


def test_attacks_use_the_prior_of_the_stratum(tmp_path: Path) -> None:
    table = people(6_000).filter(~((pl.col("sex") == "m") & (pl.col("age") == 2)))
    release = ps.anonymize(table, policy(tmp_path), seed=1)
    findings = {finding.attack: finding for finding in ps.attack(release, table)}
    assert findings["bayes"].success == pytest.approx(0.5)
    assert findings["bayes"].detail["hit_rate"] == pytest.approx(0.5, abs=0.05)
    assert not findings["bayes"].exceeded


# -- sticky decoys -----------------------------------------------------------------------------------------------


def test_strata_under_conditions_come_from_those_under_none() -> None:
    free = Mechanism(make_design("balanced", LineDistance.ranks(5).structure(1), 2))
    one, two = Condition({"x": ("a",)}), Condition({"x": ("b",)})
    kinds = [((), OTHERWISE), ((1,), OTHERWISE), ((), one), ((1,), one), ((1, 2), two)]
    assert parents([Stratum(codes, 6, free, condition) for codes, condition in kinds]) == [0, 0, 0, 1, 1]


def test_sticky_sets_have_the_law_of_their_stratum_and_change_little(tmp_path: Path) -> None:
    strata = sets_of(ps.anonymize(people(), policy(tmp_path))).strata
    coupled, rows = Coupled(strata), 40_000
    codes = np.full(rows, 2)
    drawn = []
    for number, stratum in enumerate(strata.members):
        stream = StickyStream(bytes(32), "income", [b"%d" % row for row in range(rows)], codes)
        sets = coupled.sample(np.full(rows, number), codes, stream)
        listed, channel = stratum.mechanism.channel()
        names = {tuple(row): place for place, row in enumerate(listed.tolist())}
        counts = np.bincount([names[tuple(row)] for row in sets.tolist()], minlength=len(listed))
        possible = channel[2] > 0
        assert counts[~possible].sum() == 0
        assert stats.chisquare(counts[possible], rows * channel[2][possible]).pvalue > 1e-3
        drawn.append((sets, channel[2]))
    for sets, law in drawn[1:]:
        overlap = np.minimum(law, drawn[0][1]).sum()
        assert (sets == drawn[0][0]).all(axis=1).mean() == pytest.approx(overlap, abs=0.02)


def test_sticky_releases_are_the_same_again(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    table, heard = people(600), list[str]()
    first = ps.anonymize(table, policy(tmp_path), key_file=tmp_path / "key", warn=heard.append)
    second = ps.anonymize(table.reverse(), policy(tmp_path), key_file=tmp_path / "key", warn=lambda _: None)
    assert data(first).sort("id").equals(data(second).sort("id"))
    assert any("priors were declared for groups" in warning for warning in heard)
    assert ps.verify(first).holds


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[sex, age]", "[sx, age]", r"\$\.attributes\.income\.prior\.by: no attribute 'sx'"),
        ("[sex, age]", "[income, age]", "'income' is not published as it is"),
        ("[sex, age]", "[sex, sex]", "each of them once"),
        ("[sex, age]", "[]", "the names of other attributes"),
        ("[sex, age]", "[sex]", "no priors in the file 'prior.csv', line 1"),
        (", file: prior.csv", "", "no file"),
        ("file: prior.csv", "file: absent.csv", r"\$\.attributes\.income\.prior\.file: .*absent.csv"),
        ("file: prior.csv", "file: prior.csv, smooth: 1", r"prior.*smooth"),
    ],
)
def test_problems_of_the_policy(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        ps.plan(policy(tmp_path, POLICY.replace(old, new)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f,1,z,3", "1 of the 19 lines are about values that are not in the domain"),
        ("f,1,a,3", "1 of the 19 lines repeat a combination"),
        ("f,1,a,-3", "line 19"),
        ("f,1,a", "line 19"),
    ],
)
def test_problems_of_the_file(tmp_path: Path, line: str, message: str) -> None:
    prior_file(tmp_path)
    with (tmp_path / "prior.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(PolicyError, match=message):
        ps.plan(policy(tmp_path))


def test_values_that_no_record_has_are_refused(tmp_path: Path) -> None:
    prior_file(tmp_path, {key: [*numbers[:5], 0] for key, numbers in PRIORS.items()})
    with pytest.raises(PolicyError, match="1 of the 6 values have no share in any combination"):
        ps.plan(policy(tmp_path))


def test_thin_combinations_are_filled_from_the_margin(tmp_path: Path) -> None:
    prior_file(
        tmp_path, {**PRIORS, ("m", "9"): [2, 0, 4, 0, 0, 0], ("m", "8"): [0] * 6}, header="# remarks are skipped"
    )
    members = sets_of(ps.anonymize(people(), policy(tmp_path), warn=lambda _: None)).strata.members
    by_condition = {tuple(texts for (texts,) in item.condition.when.values()): item for item in members}
    assert ("m", "8") not in by_condition
    margin = shares(np.sum([*PRIORS.values(), [2, 0, 4, 0, 0, 0]], axis=0))
    wanted = np.array([2, 0, 4, 0, 0, 0]) + 4 * 2 * margin
    assert by_condition["m", "9"].prior == pytest.approx(shares(wanted))


def test_a_header_and_other_spellings_of_numbers_are_read(tmp_path: Path) -> None:
    priors = {(sex, f"{age}.0"): numbers for (sex, age), numbers in PRIORS.items()}
    prior_file(tmp_path, priors, header="sex,age,income,people")
    members = sets_of(ps.anonymize(people(), policy(tmp_path))).strata.members
    assert [member.condition.when["age"] for member in members[1:]] == [("1",), ("2",), ("1",)]


CROWDED = {**PRIORS, ("m", "1"): [0.1, 0.1, 9, 0.1, 0.1, 0.1]}


def test_a_group_without_a_balanced_design_gets_the_one_of_least_risk(tmp_path: Path) -> None:
    prior_file(tmp_path, CROWDED)
    table = people()
    made = ps.plan(policy(tmp_path))["income"]
    assert [stratum["feasible"] for stratum in made.to_dict()["strata"]] == [True, True, True]
    assert [stratum.mechanism.design.name for stratum in made.strata] == ["balanced", "balanced", "least-risk"]
    worst = made.strata[2].facts.worst_posterior
    assert worst > 0.5
    (warning,) = [text for text in made.choice.warnings if "mutually too close" in text]
    assert "in 1 of 4 groups" in warning
    release = ps.anonymize(table, policy(tmp_path), warn=lambda _: None)
    assert sets_of(release).posterior == pytest.approx(worst)
    verification = ps.verify(release)
    assert verification.holds, verification
    (verdict,) = [item for item in verification.verdicts if item.model == "posterior"]
    assert verdict.worst == pytest.approx(worst)
    assert f"at most {worst:.3g}"[:12] in promise_line(sets_of(release)).text
    assert not any(finding.exceeded for finding in ps.attack(release))


def test_least_risk_is_no_excuse_where_a_balanced_design_exists(tmp_path: Path) -> None:
    """A manifest that has it for a group that is not crowded, or a balanced group that does not keep 1/l."""
    prior_file(tmp_path, CROWDED)
    document = json.loads(ps.anonymize(people(), policy(tmp_path), warn=lambda _: None).manifest.to_json())
    release = ps.anonymize(people(), policy(tmp_path), warn=lambda _: None)
    for change in ("named", "swapped"):
        altered = json.loads(json.dumps(document))
        entry = next(item for item in altered["attributes"] if item["name"] == "income")
        entry["posterior"] = 0.9
        if change == "named":
            entry["strata"][0]["mechanism"] = {**entry["strata"][1]["mechanism"], "design": "least-risk"}
        else:
            entry["strata"][0]["mechanism"] = entry["strata"][1]["mechanism"]
        verification = ps.verify(replace(release, manifest=_sealed(altered)))
        assert not next(item for item in verification.verdicts if item.model == "posterior").holds


def test_equal_priors_share_a_mechanism(tmp_path: Path) -> None:
    prior_file(tmp_path, {**PRIORS, ("m", "3"): PRIORS["f", "1"]})
    made = ps.plan(policy(tmp_path))["income"].strata
    by_condition = {tuple(texts for (texts,) in item.key.condition.when.values()): item for item in made}
    assert by_condition["m", "3"].mechanism is by_condition["f", "1"].mechanism
    assert by_condition["m", "1"].mechanism is not by_condition["f", "1"].mechanism


def _sealed(document: dict[str, Any]) -> Manifest:
    document["checksum"] = checksum({key: value for key, value in document.items() if key != "checksum"})
    return Manifest.from_dict(document)


def _hostile(entry: dict[str, Any], name: str) -> None:
    first, second = entry["conditional"][:2]
    match name:
        case "a condition that is missing":
            del entry["strata"][0]
        case "a stratum of no condition":
            entry["strata"][0]["when"] = {"sex": ["x"], "age": ["1"]}
        case "conditions that overlap":
            first["when"] = {"sex": ["f"]}
        case "equal conditions":
            first["when"] = second["when"]
        case "a prior that is too short":
            first["prior"] = first["prior"][1:]
        case "a prior with a zero":
            first["prior"][0] = 0.0
        case "a condition on a protected column":
            first["when"] = {"income": ["a"]}
        case "strata in another order":
            entry["strata"].reverse()
        case "a design for another prior":
            entry["strata"][0]["mechanism"]["parameters"] = {}
        case "conditions without strata":
            del entry["strata"]


@pytest.mark.parametrize(
    "name",
    [
        "a condition that is missing",
        "a stratum of no condition",
        "conditions that overlap",
        "equal conditions",
        "a prior that is too short",
        "a prior with a zero",
        "a condition on a protected column",
        "strata in another order",
        "a design for another prior",
        "conditions without strata",
    ],
)
def test_hostile_manifests_are_refused(tmp_path: Path, name: str) -> None:
    document = json.loads(ps.anonymize(people(100), policy(tmp_path)).manifest.to_json())
    _hostile(next(item for item in document["attributes"] if item["name"] == "income"), name)
    with pytest.raises(ReleaseError, match=r"manifest.json: \$\.attributes\[3\]"):
        _sealed(document)


def test_format_1_has_no_conditions(tmp_path: Path) -> None:
    document = json.loads(ps.anonymize(people(100), policy(tmp_path)).manifest.to_json())
    document["format"] = 1
    with pytest.raises(ReleaseError, match="format 1"):
        _sealed(document)
