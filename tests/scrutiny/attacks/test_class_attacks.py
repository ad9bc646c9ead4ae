"""Adversaries on values that are published with their class or group: exact numbers, and bounds that are theorems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import ReleaseError
from polyseme.models import MODELS, Background, read_spec
from polyseme.release import Applied, AsIs, Column, Generalized, Grouped, Manifest, Release
from polyseme.release.writer import in_memory
from polyseme.results.attackers import Finding
from polyseme.schema import Attribute, Domain, Role
from polyseme.scrutiny.attacks import class_limits as limits
from polyseme.scrutiny.attacks import definetti_in_groups as definetti
from polyseme.scrutiny.attacks.registry import IN_CLASSES, attack
from polyseme.scrutiny.attacks.scene import Absent, Promised, Scene, Within
from polyseme.semantics.distances import LineDistance, TreeDistance
from polyseme.semantics.distances.ground import Ordered
from polyseme.tables.equivalence_classes import Counts

TREE = TreeDistance.from_paths(
    [("flu", "lung", "*"), ("asthma", "lung", "*"), ("ulcer", "stomach", "*"), ("gastritis", "stomach", "*")]
)


def counts_of(*classes: str, size: int = 4) -> Counts:
    """Classes written as words: "aab" has two records with value a and one with b."""
    owner = [number for number, word in enumerate(classes) for _ in word]
    codes = ["abcdefgh".index(letter) for word in classes for letter in word]
    return Counts.from_codes(np.array(owner), np.array(codes), size, "ill")


def scene(*classes: str, promised: Promised | None = None, **changes: Any) -> Scene:
    return Scene(within=Within(counts_of(*classes)), promised=promised or Promised(), **changes)


def only(name: str, one: Scene) -> Finding:
    (found,) = IN_CLASSES[name].attack(one)
    return found


# -- exact numbers -----------------------------------------------------------------------------------------------------


def test_a_homogeneous_class_gives_everybody_in_it_away() -> None:
    found = only("homogeneity", scene("aa", "ab", "abcd"))
    assert found.success == 1.0
    assert found.detail == {"hit_rate": 4 / 8, "records_certain": 2 / 8}
    assert found.baseline == 4 / 8
    assert found.bound is None
    assert not found.exceeded


def test_the_class_worst_off_counts_and_a_bound_is_exceeded_by_it_alone() -> None:
    one = scene("abc", "aabc", promised=Promised(guess=1 / 3))
    assert only("homogeneity", one).success == 1 / 2
    assert only("homogeneity", one).exceeded
    assert not only("homogeneity", scene("abc", "bcd", promised=Promised(guess=1 / 3))).exceeded


def test_different_values_in_one_branch_are_alike() -> None:
    diverse = Scene(within=Within(counts_of("ab", "acd"), distance=TREE))
    found = only("similarity", diverse)
    assert found.success == 1.0
    assert found.detail == {"hit_rate": 4 / 5, "d": 2.0}
    assert found.baseline == 3 / 5
    apart = only("similarity", replace(diverse, promised=Promised(apart=1.0, alike=1 / 2)))
    assert apart.success == 1 / 2
    assert not apart.exceeded


def test_a_range_of_numbers_is_a_guess_too() -> None:
    ranks = Scene(within=Within(counts_of("abd", "acd"), distance=LineDistance.ranks(4)))
    assert IN_CLASSES["similarity"].lacks(ranks) == "a promise that says which values are alike"
    found = only("similarity", replace(ranks, promised=Promised(apart=2.0, alike=1 / 2)))
    assert found.success == 2 / 3
    assert found.exceeded


def test_skewness_is_the_distance_from_the_whole_table() -> None:
    one = scene("aabb", "aaab", "aaaa")
    assert only("skewness", one).success == pytest.approx(3 / 4 - 1 / 2)
    ordered = replace(one, promised=Promised(moved=0.05, ground=Ordered()))
    found = only("skewness", ordered)
    assert found.success == pytest.approx((3 / 4 - 1 / 2) / 3)
    assert found.exceeded
    assert found.bound == 0.05


@pytest.mark.parametrize(("struck", "worth"), [(0, 3 / 6), (1, 3 / 4), (2, 1.0), (5, 1.0)])
def test_striking_out_leaves_less(struck: int, worth: float) -> None:
    assert only("background-knowledge", scene("aaabbc", struck=struck)).success == pytest.approx(worth)


@pytest.mark.parametrize(
    ("promised", "struck", "bound"),
    [
        (Promised(guess=1 / 3), 1, 1 / 2),
        (Promised(guess=1 / 3), 2, 1.0),
        (Promised(struck=(2.0, 3)), 1, 2 / 3),
        (Promised(struck=(2.0, 3)), 2, None),
        (Promised(guess=1 / 4, struck=(0.3, 3)), 1, 0.3 / 1.3),
    ],
)
def test_the_bound_after_striking(promised: Promised, struck: int, bound: float | None) -> None:
    found = only("background-knowledge", scene("abcd", promised=promised, struck=struck))
    assert found.bound == (None if bound is None else pytest.approx(bound))


def test_who_lacks_something_finds_nothing() -> None:
    assert attack(Scene()) == ()
    assert {name: one.lacks(Scene()) for name, one in IN_CLASSES.items()} == {
        "homogeneity": "values in classes",
        "similarity": "values in classes",
        "skewness": "values in classes",
        "background-knowledge": "values in classes",
        "definetti": "values in groups",
        "left-out": "people who are left out",
    }
    assert [one.attack for one in attack(scene("ab", "cd"))] == ["homogeneity", "skewness", "background-knowledge"]


@pytest.mark.parametrize("name", IN_CLASSES)
def test_a_finding_is_complete(name: str) -> None:
    people = grouped_people(0.3, groups=100, values=4)
    assert people.within is not None
    quarter = np.full(4, 1 / 4)
    one = replace(
        people,
        within=replace(people.within, distance=TREE),
        absent=Absent("ill", 8, quarter, quarter, by_method=True),
        promised=Promised(guess=1 / 3, moved=0.9),
    )
    assert IN_CLASSES[name].lacks(one) == ""
    found = only(name, one)
    assert found.attack == name
    assert found.attribute == "ill"
    assert not found.exceeded
    assert 0.0 <= found.success <= 1.0
    assert 0.0 <= found.baseline <= 1.0
    assert all((found.knows, found.gains, found.helps))
    assert all(map(np.isfinite, found.detail.values()))


# -- bounds are theorems -----------------------------------------------------------------------------------------------

FEW = st.floats(1.0, 4.0)
SPECS = st.one_of(
    st.builds(lambda l: {"frequency-diversity": {"l": l}}, FEW),
    st.builds(lambda l: {"entropy-diversity": {"l": l}}, FEW),
    st.builds(lambda l: {"distinct-diversity": {"l": l}}, st.integers(1, 4)),
    st.builds(lambda c, l: {"recursive-diversity": {"c": c, "l": l}}, st.floats(0.3, 5.0), st.integers(1, 4)),
    st.builds(lambda a: {"alpha-k-anonymity": {"alpha": a, "k": 1}}, st.floats(0.1, 1.0)),
    st.builds(lambda t: {"closeness": {"t": t}}, st.floats(0.0, 0.8)),
    st.builds(lambda t: {"closeness": {"t": t, "ground": "hierarchical"}}, st.floats(0.0, 0.8)),
    st.builds(lambda b, e: {"beta-likeness": {"beta": b, "enhanced": e}}, st.floats(0.1, 3.0), st.booleans()),
    st.builds(lambda d: {"delta-disclosure": {"delta": d, "absent": "ignored"}}, st.floats(0.1, 3.0)),
    st.builds(
        lambda l, e, r: {"le-diversity": {"l": l, "e": e, "represented": r}},
        st.integers(1, 4),
        st.sampled_from([0, 1, 2]),
        st.sampled_from(["distinct", "frequency"]),
    ),
    st.builds(
        lambda l, d, r: {"semantic-diversity": {"l": l, "d": d, "reading": r}},
        st.integers(1, 4),
        st.sampled_from([0, 1, 2]),
        st.sampled_from(["strict", "exists", "frequency"]),
    ),
)
BACKGROUND = Background(domains={"ill": ["flu", "asthma", "ulcer", "gastritis"]}, distances={"ill": TREE})
TABLES = st.lists(st.text("abcd", min_size=1, max_size=9), min_size=1, max_size=4)


def holds(spec: Mapping[str, Mapping[str, Any]], counts: Counts) -> bool:
    read = read_spec(spec)
    check = MODELS[read.model.name].check
    assert check is not None
    return check(counts, BACKGROUND, read.parameters).holds


@settings(max_examples=600, deadline=None)
@given(TABLES, st.lists(SPECS, min_size=1, max_size=2), st.integers(0, 3))
def test_a_table_that_keeps_its_promises_keeps_the_bounds(
    classes: list[str], specs: list[dict[str, dict[str, Any]]], struck: int
) -> None:
    counts = counts_of(*classes)
    assume(all(holds(spec, counts) for spec in specs))
    promised = limits.promised_in_classes(specs, counts, BACKGROUND)
    one = Scene(within=Within(counts, distance=TREE), promised=promised, struck=struck)
    for found in attack(one):
        assert not found.exceeded, (found.attack, found.success, found.bound)
        assert found.bound is None or found.success <= found.bound + 1e-9


def guess_limit(spec: dict[str, dict[str, Any]], counts: Counts) -> float | None:
    return limits.promised_in_classes([spec], counts, BACKGROUND).guess


def test_the_bound_of_entropy_is_reached() -> None:
    """One frequent value and equally many records with each of the others."""
    counts = counts_of("a" * 14 + "b" * 2 + "c" * 2 + "d" * 2)
    share = np.array([0.7, 0.1, 0.1, 0.1])
    l = math.exp(-(share * np.log(share)).sum())
    assert guess_limit({"entropy-diversity": {"l": l}}, counts) == pytest.approx(0.7, abs=1e-9)


def test_the_bound_of_recursion_is_approached() -> None:
    """(c, 3): r_2 = r_3 = r_4 and r_1 just below c (r_3 + r_4)."""
    counts = counts_of("a" * 39 + "b" * 10 + "c" * 10 + "d" * 10)
    assert holds({"recursive-diversity": {"c": 2, "l": 3}}, counts)
    limit = guess_limit({"recursive-diversity": {"c": 2, "l": 3}}, counts)
    assert limit == pytest.approx(40 / 70)
    assert 39 / 69 < 40 / 70 < 0.572


def test_what_promises_nothing_has_no_bound() -> None:
    counts = counts_of("aaaab", "aaaac")
    assert guess_limit({"distinct-diversity": {"l": 2}}, counts) is None
    assert guess_limit({"closeness": {"t": 0.2, "ground": "ordered"}}, counts) is None
    assert guess_limit({"semantic-diversity": {"l": 2, "d": 0, "reading": "frequency"}}, counts) is None
    assert guess_limit({"closeness": {"t": 0.1}}, counts) == pytest.approx(0.9)


# -- telling the members of a group apart ------------------------------------------------------------------------------


def test_shares_of_permutations_are_exact() -> None:
    weight = np.random.default_rng(3).random((2, 5, 5))
    expected = np.zeros_like(weight)
    for order in itertools.permutations(range(5)):
        product = np.prod([weight[:, member, order[member]] for member in range(5)], axis=0)
        for member, value in enumerate(order):
            expected[:, member, value] += product
    expected /= expected.sum(axis=2, keepdims=True)
    assert definetti._exact(weight) == pytest.approx(expected, abs=1e-12)
    scaled = definetti._scaled(weight)
    assert scaled.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
    assert scaled.sum(axis=2) == pytest.approx(1.0, abs=1e-6)


def grouped_people(strength: float, groups: int = 1_000, values: int = 6, size: int = 3, seed: int = 5) -> Scene:
    """Groups of different values, and three columns that tell the value with some probability each."""
    random = np.random.default_rng(seed)
    truth = np.concatenate([random.choice(values, size, replace=False) for _ in range(groups)])
    features = [
        np.where(random.random(len(truth)) < strength, truth, random.integers(0, values, len(truth))) for _ in range(3)
    ]
    members = np.repeat(np.arange(groups), size)
    within = Within(Counts.from_codes(members, truth, values, "ill"), "group", members=members)
    return Scene(within=within, features=np.column_stack(features), truth=truth)


@pytest.mark.parametrize(("strength", "low", "high"), [(0.0, 0.30, 0.37), (0.5, 0.90, 0.95), (1.0, 0.999, 1.0)])
def test_columns_tell_the_members_apart(strength: float, low: float, high: float) -> None:
    people = grouped_people(strength)
    seen = only("definetti", people)
    assert low <= seen.success <= high
    assert seen.detail["blind"] == pytest.approx(1 / 3)
    assert seen.bound is None
    alone = only("definetti", replace(people, truth=None))
    assert alone.success == seen.detail["confidence"]
    assert alone.success == pytest.approx(seen.success, abs=0.03)


def test_what_is_learned_is_nearly_as_good_as_knowing_it() -> None:
    """An attacker who knows how the columns were made, and enumerates all permutations."""
    people = grouped_people(0.3)
    assert people.features is not None
    assert people.truth is not None
    truth, features = people.truth.reshape(-1, 3), people.features.reshape(-1, 3, 3)
    weight = np.where(features[:, :, None, :] == truth[:, None, :, None], 0.3 + 0.7 / 6, 0.7 / 6).prod(axis=3)
    best = definetti._exact(weight).argmax(axis=2) == np.arange(3)
    assert only("definetti", people).success == pytest.approx(best.mean(), abs=0.025)
    assert only("definetti", people).success < best.mean() + 0.01


def test_only_the_recognized_are_counted() -> None:
    people = grouped_people(1.0, groups=200)
    assert people.truth is not None
    strangers = np.where(np.arange(len(people.truth)) % 2 == 0, people.truth, -1)
    assert only("definetti", replace(people, truth=strangers)).success == pytest.approx(1.0, abs=0.02)
    unrecognized = only("definetti", replace(people, truth=np.full(len(strangers), -1)))
    assert unrecognized.success == unrecognized.detail["confidence"]


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_hardly_any_groups(groups: int) -> None:
    found = only("definetti", grouped_people(0.5, groups=groups))
    assert 0.0 <= found.success <= 1.0


def test_the_order_of_rows_does_not_matter() -> None:
    people = grouped_people(0.4, groups=300)
    assert people.within is not None
    assert people.within.members is not None
    assert people.features is not None
    assert people.truth is not None
    order = np.random.default_rng(8).permutation(len(people.truth))
    within = replace(people.within, members=people.within.members[order])
    again = replace(people, within=within, features=people.features[order], truth=people.truth[order])
    assert only("definetti", again).success == pytest.approx(only("definetti", people).success, abs=1e-9)


# -- releases ----------------------------------------------------------------------------------------------------------

ILL = Attribute("ill", Role.SENSITIVE, Domain(("flu", "asthma", "ulcer", "gastritis")), TREE)
ZIP = Generalized(Attribute("zip", Role.QUASI_IDENTIFIER), 1)


def made(table: Mapping[str, Any], columns: tuple[Column, ...], *models: Any, **applied: Any) -> Release:
    """A release by hand."""
    arrow = pa.table(dict(table))
    done = Applied("full-domain", **applied)
    manifest = Manifest(columns, arrow.num_rows, arrow.num_rows, models=models, applied=done, method="full-domain")
    return in_memory(manifest, arrow)


def generalized(zips: list[str], ill: list[str], *models: Any, **applied: Any) -> Release:
    return made({"zip": zips, "ill": ill}, (ZIP, AsIs(ILL)), *models, **applied)


def found_in(release: Release, original: Any = None) -> dict[str, Finding]:
    return {finding.attack: finding for finding in ps.attack(release, original)}


def test_the_classic_homogeneous_class() -> None:
    """2-anonymous, and everybody in 130** has the flu."""
    release = generalized(
        ["130**", "130**", "148**", "148**"],
        ["flu", "flu", "ulcer", "asthma"],
        {"k-anonymity": {"k": 2}},
        {"distinct-diversity": {"l": 1, "attribute": "ill"}},
    )
    found = found_in(release)
    assert found["linkage-prosecutor"].success == 0.5
    assert not found["linkage-prosecutor"].exceeded
    assert found["homogeneity"].success == 1.0
    assert found["homogeneity"].bound is None
    assert found["homogeneity"].detail["records_certain"] == 0.5
    assert found["similarity"].success == 1.0
    assert found["skewness"].success == 0.5
    assert found["background-knowledge"].success == 1.0
    assert "class of the person" in found["homogeneity"].knows
    assert all(found[name].helps and found[name].gains for name in found)


def test_a_forged_release_exceeds_its_bounds() -> None:
    promised = [
        {"frequency-diversity": {"l": 2, "attribute": "ill"}},
        {"closeness": {"t": 0.2, "attribute": "ill"}},
        {"semantic-diversity": {"l": 2, "d": 2, "reading": "frequency", "attribute": "ill"}},
    ]
    honest = found_in(generalized(["a", "a", "b", "b"], ["flu", "ulcer", "ulcer", "flu"], *promised))
    assert not any(finding.exceeded for finding in honest.values())
    forged = found_in(generalized(["a", "a", "b", "b"], ["flu", "flu", "ulcer", "ulcer"], *promised))
    assert {name for name, finding in forged.items() if finding.exceeded} == {"homogeneity", "similarity", "skewness"}


def test_suppressed_records_are_a_class_of_their_own() -> None:
    zips, ill = ["a", "a", "*"], ["flu", "ulcer", "asthma"]
    found = found_in(generalized(zips, ill, {"k-anonymity": {"k": 2}}, {"frequency-diversity": {"l": 2}}, suppressed=1))
    assert found["linkage-prosecutor"].success == 1.0
    assert found["linkage-prosecutor"].exceeded
    assert found["homogeneity"].success == 1.0
    assert found["homogeneity"].exceeded
    zips, ill = ["a", "a", "*", "*"], ["flu", "ulcer", "asthma", "flu"]
    found = found_in(generalized(zips, ill, {"k-anonymity": {"k": 2}}, {"frequency-diversity": {"l": 2}}, suppressed=2))
    assert not any(finding.exceeded for finding in found.values())


def test_values_outside_the_domain_are_refused() -> None:
    with pytest.raises(ReleaseError, match="not every cell has values of its domain"):
        ps.attack(generalized(["a", "a"], ["flu", "measles"], {"frequency-diversity": {"l": 2, "attribute": "ill"}}))


def test_the_original_is_not_needed_where_values_are_in_classes() -> None:
    release = generalized(["a", "a"], ["flu", "ulcer"], {"frequency-diversity": {"l": 2, "attribute": "ill"}})
    original = pl.DataFrame({"zip": ["13053", "13068"], "ill": ["flu", "ulcer"]})
    assert found_in(release, original) == found_in(release)


POLICY = """
attributes:
  sex: {role: quasi-identifier}
  job: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d, e, f]}
method: {anatomy: {l: 3}}
"""


def patients(rows: int = 3_000, unique: bool = False) -> pl.DataFrame:
    """The job tells much about the illness, the sex nothing; with `unique` a third column tells everybody apart."""
    random = np.random.default_rng(4)
    ill = random.integers(0, 6, rows)
    job = np.where(random.random(rows) < 0.7, ill, random.integers(0, 6, rows))
    columns: dict[str, Any] = {
        "sex": random.choice(["f", "m"], rows),
        "job": [f"job {number}" for number in job],
        "ill": [chr(97 + number) for number in ill],
    }
    return pl.DataFrame({"ward": np.arange(rows), **columns} if unique else columns)


def test_anatomy_is_bounded_by_one_in_l_and_not_against_who_learns() -> None:
    table = patients()
    release = ps.anonymize(table, ps.Policy.loads(POLICY))
    found = found_in(release)
    assert found["homogeneity"].success == found["homogeneity"].bound == pytest.approx(1 / 3)
    assert found["background-knowledge"].success == pytest.approx(1 / 2)
    assert not any(finding.exceeded for finding in found.values())
    judged = found_in(release, table)["definetti"]
    assert judged.detail["fresh_groups"] == 1_000
    assert judged.success > 0.65
    assert found["definetti"].success == pytest.approx(judged.success, abs=0.05)


def test_members_are_recognized_by_what_is_untouched() -> None:
    table = patients(unique=True)
    policy = POLICY.replace("attributes:", "attributes:\n  ward: {role: quasi-identifier}")
    release = ps.anonymize(table, ps.Policy.loads(policy))
    found = found_in(release, table)["definetti"]
    assert found.detail["matched_records"] == 3_000
    assert found.success == pytest.approx(found_in(release)["definetti"].success, abs=0.05)


def test_groups_that_show_other_numbers_of_values_than_records_are_still_attacked() -> None:
    columns: tuple[Column, ...] = (
        AsIs(Attribute("zip", Role.QUASI_IDENTIFIER)),
        Grouped(ILL, "group"),
        AsIs(Attribute("group", Role.INSENSITIVE)),
    )
    table = {"zip": ["1", "2", "3"], "ill": [["flu"], ["flu"], ["flu", "ulcer"]], "group": [1, 1, 2]}
    found = found_in(made(table, columns, {"frequency-diversity": {"l": 2, "attribute": "ill"}}))
    assert found["homogeneity"].success == 1.0
    assert found["homogeneity"].exceeded
    assert "group of the person" in found["homogeneity"].knows
    assert "definetti" not in found


GENERALIZED_AND_DECOYS = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}
  job: {role: quasi-identifier, hierarchy: suppress}
  ill: {role: sensitive, domain: [a, b, c, d, e, f]}
  pay: {role: sensitive, domain: [low, mid, high, top], protect: {diversity: {l: 2}}}
models:
  - k-anonymity: {k: 5}
  - frequency-diversity: {l: 2, attribute: ill}
method: {full-domain: {suppression: 0.05}, decoys: {}}
"""


def test_generalized_columns_and_decoys_are_attacked_together() -> None:
    random = np.random.default_rng(6)
    table = (
        patients()
        .drop("sex")
        .with_columns(
            age=pl.Series(random.integers(20, 80, 3_000)),
            pay=pl.Series(random.choice(["low", "mid", "high", "top"], 3_000)),
        )
    )
    release = ps.anonymize(table, ps.Policy.loads(GENERALIZED_AND_DECOYS))
    for original in (None, table):
        found = ps.attack(release, original)
        assert {(one.attack, one.attribute) for one in found} >= {
            ("homogeneity", "ill"),
            ("homogeneity", "pay"),
            ("linkage-prosecutor", None),
            ("bayes", "pay"),
        }
        assert not any(one.exceeded for one in found)
        assert set(found.to_dict()["findings"][0]) >= {"attack", "attribute", "success", "bound", "exceeded"}
