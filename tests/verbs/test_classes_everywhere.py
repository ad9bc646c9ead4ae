"""One definition of an equivalence class, and one answer: what `plan` says is what `anonymize` does."""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import polyseme
from draws import seeds
from hypothesis import given, settings

import polyseme as ps
from polyseme.kernel.errors import InvalidInput, RiskError
from polyseme.reports.assembly import treatment_of

HIERARCHIES = {"age": "hierarchy: {intervals: [5, 10, 20]}", "sex": "hierarchy: suppress", "job": "hierarchy: suppress"}
VALUES = (
    "{distinct-diversity: {l: 2, attribute: ill}}",
    "{frequency-diversity: {l: 2, attribute: ill}}",
    "{closeness: {t: 0.4, attribute: ill}}",
    "{beta-likeness: {beta: 2, attribute: ill}}",
    "{diversity: {l: 2, attribute: ill}}",
    "{diversity: {l: 3, attribute: ill}}",
)
METHODS = (
    "full-domain: {suppression: 0.0}",
    "full-domain: {suppression: 0.2}",
    "full-domain: {suppression: 0.1, local-recoding: true}",
    "mondrian: {}",
    "mondrian: {mode: relaxed}",
)


def table(rng: np.random.Generator) -> pl.DataFrame:
    """Some people with up to three rows each, which mostly agree."""
    people, rows = int(rng.integers(20, 100)), int(rng.integers(1, 4))
    pid = np.repeat(np.arange(people), rows)

    def own(values: np.ndarray) -> np.ndarray:
        return np.where(rng.random(len(pid)) < 0.1, values[rng.integers(0, people, len(pid))], values[pid])

    return pl.DataFrame(
        {
            "pid": pid,
            "age": own(rng.integers(20, 60, people)),
            "sex": own(rng.choice(["f", "m"], people)),
            "job": own(rng.choice(["u", "v", "w"], people)),
            "ill": own(rng.choice(["a", "b", "c", "d"], people)),
            "weight": own(np.round(np.exp(rng.normal(0, 0.4, people)) * 100, 2)),
        }
    )


def policy(rng: np.random.Generator) -> str:
    """With or without a method, a weight that is rounded or trimmed or not, models, and a record key."""
    grouped = rng.random() < 0.75
    drawn = not grouped or rng.random() < 0.5
    coarser = rng.choice(["", ", round: 50", ", round: 1000", ", round: 100, trim: 100", ", round: 200, trim: 400"])
    weight = "identifier" if rng.random() < 0.4 else f"weight{coarser}"
    job = rng.choice(["insensitive", "quasi-identifier", "identifier"])
    lines = ["attributes:", "  pid: {role: identifier}"]
    for name, role in (("age", "quasi-identifier"), ("sex", "quasi-identifier"), ("job", job)):
        more = f", {HIERARCHIES[name]}" if grouped and role == "quasi-identifier" else ""
        lines.append(f"  {name}: {{role: {role}{more}}}")
    protect = ", protect: {diversity: {l: 2}}" if drawn else ""
    lines += [f"  ill: {{role: sensitive, domain: [a, b, c, d]{protect}}}", f"  weight: {{role: {weight}}}"]
    models = [f"{{k-anonymity: {{k: {rng.integers(1, 6)}}}}}"] if rng.random() < 0.9 else []
    models += [str(rng.choice(VALUES))] if not drawn or rng.random() < 0.3 else []
    lines.append(f"models: [{', '.join(models)}]" if models else "")
    if grouped:
        lines.append(f"method: {{{rng.choice((*METHODS, *(() if drawn else ('anatomy: {l: 2, attribute: ill}',))))}}}")
    return "\n".join([*lines, *(["record-key: pid"] if rng.random() < 0.6 else [])]) + "\n"


def case_of(seed: int) -> tuple[ps.Policy, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    frame = table(rng)
    while True:
        try:
            return ps.Policy.loads(policy(rng)), frame
        except InvalidInput:
            continue


def published(frame: pl.DataFrame, rules: ps.Policy, **options: object) -> ps.Release | None:
    """A release; None where it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ps.anonymize(frame, rules, seed=1, **options)  # type: ignore[arg-type]
        except InvalidInput:
            return None


def planned(frame: pl.DataFrame, rules: ps.Policy) -> ps.Plan | None:
    """A plan; None where it says no."""
    try:
        made = ps.plan(rules, data=frame)
    except InvalidInput:
        return None
    return made if made.usable and not made.refusals else None


@pytest.mark.parametrize("examples", [20, pytest.param(150, marks=pytest.mark.slow)], ids=["some", "many"])
def test_what_a_plan_allows_is_published_with_the_same_numbers(examples: int) -> None:
    """Weights that split classes were not looked at, so that `plan` said yes where `anonymize` said no."""
    answers = Counter()

    @settings(max_examples=examples)
    @given(seeds)
    def check(seed: int) -> None:
        rules, frame = case_of(seed)
        plan, release = planned(frame, rules), published(frame, rules)
        assert (plan is None) == (release is None)
        answers[plan is not None] += 1
        if plan is None or release is None:
            return
        with_people = rules.record_key is not None and bool(rules.models)
        assert (release.manifest.people is not None) == with_people or not rules.models
        if plan.grouping is not None and release.manifest.applied is not None and plan.grouping.applied is not None:
            one, two = plan.grouping.applied.to_dict(), release.manifest.applied.to_dict()
            if rules.grouping.parameters.get("mode") != "relaxed":
                assert {**one, "loss": None} == {**two, "loss": None}
                assert one["loss"] == pytest.approx(two["loss"])

    check()
    assert min(answers[True], answers[False]) > examples / 6


def classes_of(rows: pl.DataFrame, links: tuple[str, ...]) -> dict[tuple, int]:
    """A plain count: rows that agree in all columns by which people may be found."""
    return Counter(tuple(row[name] for name in links) for row in rows.iter_rows(named=True))


def test_everybody_who_speaks_of_classes_means_the_same(tmp_path: Path) -> None:
    """A report said 5 to 28 records in a class above a k-anonymity of 1: it left the weights out, `verify` did not."""
    seen = Counter()

    @settings(max_examples=20)
    @given(seeds)
    def check(seed: int) -> None:
        rules, frame = case_of(seed)
        release = published(frame, rules, accept_risk=True)
        if release is None or release.manifest.grouped or not len(release.manifest.links):
            return
        links, manifest = release.manifest.links, release.manifest
        rows = release.to_polars()
        sizes = classes_of(rows, links)
        nothing = tuple("*" for _ in links)
        shown = {key: size for key, size in sizes.items() if key != nothing} or sizes
        smallest, number = min(shown.values()), len(shown)
        k = [verdict for verdict in ps.verify(release).verdicts if verdict.model == "k-anonymity"]
        assert all(verdict.worst == smallest and verdict.checked == number for verdict in k)
        risk = ps.risk(rows.select(links), qi=list(links))
        assert (risk.k, risk.classes) == (smallest, number)
        linked = next(found for found in ps.attack(release) if found.attack == "linkage-prosecutor")
        claimed = smallest if manifest.people is None else manifest.people.smallest_class
        suppressed = sizes.get(nothing, smallest) if manifest.applied is not None else smallest
        # An insensitive column may single out records, too; the promise is judged by the classes alone.
        success = linked.detail.get("success_by_promise", linked.success)
        assert success == pytest.approx(1 / min(smallest, claimed, suppressed))
        assert linked.success >= success
        if manifest.applied is not None:
            facts = dict(treatment_of(release).facts)  # type: ignore[union-attr]
            assert facts["Classes"] == f"{number:,}"
            assert int(re.match(r"[\d,]+", facts["Records in a class"])[0].replace(",", "")) == smallest  # type: ignore[index]
            assert manifest.applied.classes == number or manifest.weight is None
            if manifest.weight is not None and not seen[True, True]:
                assert facts["Records in a class"] in ps.report(release)
        seen[manifest.weight is not None, manifest.applied is not None] += 1

    check()
    assert all(seen[weighted, grouped] for weighted in (True, False) for grouped in (True, False))


def test_people_that_a_release_claims_are_those_of_its_original() -> None:
    """Against a plain count of different people by class, found by the rows of the release itself."""
    compared = 0

    @settings(max_examples=60)
    @given(seeds)
    def check(seed: int) -> None:
        nonlocal compared
        rules, frame = case_of(seed)
        if rules.record_key is None or not rules.models or "relaxed" in str(rules.grouping):
            return
        release = published(frame, rules)
        if release is None or release.manifest.people is None:
            return
        plain = rules.grouping is None
        if plain:
            links = [name for name in release.manifest.links if name != "weight"]
            people: dict[tuple, set] = defaultdict(set)
            if "weight" not in release.manifest.links:
                for row in frame.iter_rows(named=True):
                    people[tuple(row[name] for name in links)].add(row["pid"])
                assert release.manifest.people.smallest_class == min(map(len, people.values()))
                assert release.manifest.people.total == frame["pid"].n_unique()
        found = ps.verify(release, original=frame, person="pid")
        assert found.holds, (seed, [verdict for verdict in found.verdicts if not verdict.holds])
        assert "pid" not in release.manifest.to_json()
        compared += 1

    check()
    assert compared > 4


def test_a_claim_that_is_not_true_is_found_by_the_original(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"pid": np.repeat(np.arange(100), 2), "sex": np.repeat(rng.choice(["f", "m"], 100), 2)})
    frame = frame.with_columns(ill=pl.Series(rng.choice(["a", "b"], 200)))
    frame.write_csv(tmp_path / "visits.csv")
    text = """
attributes:
  pid: {role: identifier}
  sex: {role: quasi-identifier, hierarchy: suppress}
  ill: {role: sensitive, domain: [a, b]}
record-key: pid
models: [{k-anonymity: {k: 20}}, {distinct-diversity: {l: 2}}]
method: {full-domain: {}}
"""
    (tmp_path / "policy.yaml").write_text(text)
    assert (
        polyseme(
            "anonymize", tmp_path / "policy.yaml", tmp_path / "visits.csv", "--out", tmp_path / "release"
        ).returncode
        == 0
    )
    alone = polyseme("verify", tmp_path / "release")
    assert alone.returncode == 0
    assert "claimed by the publisher" in re.sub(r"\s+", " ", alone.stdout)
    assert polyseme("verify", tmp_path / "release", "--original", tmp_path / "visits.csv").returncode == 0
    # The same rows of other people: twice as many claimed as there are.
    doubled = frame.with_columns(pid=pl.col("pid") // 2)
    doubled.write_csv(tmp_path / "fewer.csv")
    fewer = polyseme("verify", tmp_path / "release", "--original", tmp_path / "fewer.csv", "--person", "pid", "--json")
    assert fewer.returncode == 1
    assert "in the original: 50 people" in fewer.stdout


def test_weights_that_split_classes_are_refused_by_the_plan_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"age": rng.integers(20, 60, 300), "weight": np.round(rng.lognormal(4, 0.5, 300), 2)})
    frame = frame.with_columns(ill=pl.Series(rng.choice(["a", "b"], 300)))
    frame.write_csv(tmp_path / "people.csv")
    text = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}
  ill: {role: sensitive, domain: [a, b]}
  weight: {role: weight%s}
models: [{k-anonymity: {k: 5}}, {distinct-diversity: {l: 2}}]
method: {full-domain: {}}
"""
    for coarser, allowed in (("", False), (", round: 1000", True)):
        (tmp_path / "policy.yaml").write_text(text % coarser)
        plan = polyseme("plan", tmp_path / "policy.yaml", "--data", tmp_path / "people.csv")
        made = polyseme("anonymize", tmp_path / "policy.yaml", tmp_path / "people.csv", "--out", tmp_path / "release")
        assert (plan.returncode == 0, made.returncode == 0) == (allowed, allowed)
        assert ("anonymize will refuse that" in re.sub(r"\s+", " ", plan.stdout)) is not allowed


def test_a_plan_finds_what_is_refused_in_any_column() -> None:
    """Values of no declared type stood in a column that no model is about; rows were left out under conditions."""
    frame = pl.DataFrame(
        {
            "pid": [1, 2, 3, 4] * 3,
            "sex": ["f", "m"] * 6,
            "pay": ["1", "2", "3", "x"] * 3,
            "ill": [*"abcabcabcab", None],
        }
    )
    text = """
attributes:
  pid: {role: identifier}
  sex: {role: quasi-identifier}
  pay: {role: insensitive%s}
  ill: {role: sensitive, domain: [a, b, c, d], missing: drop, protect: {diversity: {l: 2}}}
impossible: [{when: {sex: m}, attribute: ill, values: [d]}]
record-key: pid
models: [{k-anonymity: {k: 2}}]
"""
    for kind, allowed in (("", True), (", type: number", False)):
        rules = ps.Policy.loads(text % kind)
        assert (planned(frame, rules) is not None, published(frame, rules) is not None) == (allowed, allowed)
    release = published(frame, ps.Policy.loads(text % ""))
    assert release is not None
    assert release.manifest.people is not None
    assert (release.manifest.records, release.manifest.people.total) == (11, 4)


def test_a_policy_without_a_method_is_checked_by_people_before_anything_is_written(tmp_path: Path) -> None:
    frame = pl.DataFrame({"pid": [1, 1, 2, 2, 3, 3], "sex": ["f"] * 4 + ["m"] * 2, "ill": list("abcabc")})
    text = """
attributes:
  pid: {role: identifier}
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}
models: [{k-anonymity: {k: 2}}]
"""
    assert published(frame, ps.Policy.loads(text)) is not None
    people = ps.Policy.loads(text + "record-key: pid\n")
    with pytest.raises(RiskError, match="counted by people"):
        ps.anonymize(frame, people, tmp_path / "release", warn=lambda text: None)
    assert not (tmp_path / "release").exists()
