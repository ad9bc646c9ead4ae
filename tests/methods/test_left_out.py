"""Records that are left out do not give themselves away: what is suppressed, what that says, and that it is said."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme
from draws import Generator, generators, replications
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import ImpossibleError, PolicyError, PrivacyWarning
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.bucketization import bucketize, compose, distinct, left_by_kind, planned
from polyseme.methods.bucketization.compositions import compatible_pairs
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters, Graph

# -- enumerations of the tests' own ------------------------------------------------------------------------------------


def groups_exist(kept: Sequence[int], l: int) -> bool:
    """Whether records of these different values can be put into groups of at least l different ones (Hall)."""
    return sum(kept) >= l * max(kept) > 0


def mixed(left: Sequence[int], l: int, share: float) -> bool:
    return sum(count > 0 for count in left) >= l and max(left) <= share * sum(left) + 1e-9


def most_placed(counts: Sequence[int], l: int, share: float) -> int | None:
    """The most records that any choice places, if those that are left out are none or mixed."""
    best = None
    for kept in itertools.product(*(range(count + 1) for count in counts)):
        left = [count - here for count, here in zip(counts, kept)]
        if groups_exist(kept, l) and (not any(left) or mixed(left, l, share)):
            best = max(best or 0, sum(kept))
    return best


def random_counts(random: Generator, values: int, most: int) -> np.ndarray:
    return np.asarray(random.integers(0, most, values))


# -- what is suppressed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [1.0, 0.9, 0.75, 0.6])
def test_no_grouping_that_leaves_out_mixed_values_suppresses_fewer_records(share: float) -> None:
    seen = {"mixed": 0, "impossible": 0}

    @settings(max_examples=120)
    @given(generators())
    def check(random: Generator) -> None:
        values, l = random.integers(2, 5), random.integers(2, 4)
        counts = random_counts(random, values, 14 if values < 4 else 8)
        assume(np.count_nonzero(counts) >= l)
        best = most_placed(counts.tolist(), l, share)
        try:
            places = planned(counts, distinct(values), l, left_out=share)
        except ImpossibleError:
            assert best is None
            assert share < 1.0
            seen["impossible"] += 1
            return
        left = left_by_kind(places, counts)
        assert groups_exist(places.taken.tolist(), l)
        assert places.sizes.min() >= l
        if best is None:
            assert places.suppressed == compose(counts, distinct(values), l).suppressed
            return
        assert places.total == best
        assert places.extra == compose(counts, distinct(values), l).total - best
        if left.any():
            assert mixed(left.tolist(), l, share)
            seen["mixed"] += 1

    check()
    assert seen["mixed"] > 20
    assert seen["impossible"] > 5 or share == 1.0


def test_what_must_be_left_out_can_never_be_as_mixed_as_a_group() -> None:
    """No value with more than 1/l of what is left out: then these records would form groups themselves."""

    @settings(max_examples=80)
    @given(st.lists(st.integers(0, 10), min_size=3, max_size=3), st.integers(2, 3))
    def check(counts: list[int], l: int) -> None:
        assume(sum(counts) and not groups_exist(counts, l))
        assert most_placed(counts, l, 1.0 / l) is None

    check()


@pytest.mark.parametrize("kind", ["line", "graph"])
def test_values_that_are_left_out_are_far_apart_too(kind: str) -> None:
    found = 0

    @settings(max_examples=80)
    @given(generators())
    def check(random: Generator) -> None:
        nonlocal found
        values, l = random.integers(4, 8), random.integers(2, 4)
        counts = random.integers(1, 30, values)
        counts[random.integers(values)] += 80
        if kind == "line":
            structure: Any = LineDistance(np.sort(random.choice(20, values, replace=False)).astype(float)).structure(3)
        else:
            edges = np.triu(random.random((values, values)) < 0.7, 1)
            structure = Graph(edges | edges.T)
        try:
            least = planned(counts, structure, l)
        except ImpossibleError:
            return
        if not least.suppressed:
            return
        codes = np.random.default_rng(0).permutation(np.repeat(np.arange(values), counts))
        made = bucketize(codes, structure, l, SystemStream.seeded(1), left_out=1.0)
        pairs = compatible_pairs(structure, np.arange(values))
        for group in range(made.count):
            members = codes[made.groups == group]
            assert len(members) >= l
            assert all(pairs[u, v] for u, v in itertools.combinations(members, 2))
        left = np.unique(codes[made.suppressed])
        diverse = any(
            all(pairs[u, v] for u, v in itertools.combinations(some, 2)) for some in itertools.combinations(left, l)
        )
        assert diverse or made.suppressed.sum() == least.suppressed
        assert made.suppressed.sum() <= least.suppressed + 4 * l
        found += diverse

    check()
    assert found > 20


def test_records_of_a_cluster_are_one_kind() -> None:
    """Values that mean the same do not count as different: two lung diseases tell of the lung."""
    counts = np.array([60, 40, 20, 20])
    places = planned(counts, Clusters(np.array([0, 0, 1, 2])), 2, left_out=1.0)
    assert np.count_nonzero(left_by_kind(places, counts)) >= 2


# -- what that says ----------------------------------------------------------------------------------------------------


def policy(l: int, values: Sequence[str], **parameters: Any) -> ps.Policy:
    document = {
        "attributes": {
            "age": {"role": "quasi-identifier"},
            "ill": {"role": "sensitive", "domain": list(values)},
        },
        "method": {"anatomy": {"l": l, **parameters}},
    }
    return ps.Policy.loads(json.dumps(document))


def table(counts: Sequence[int]) -> pl.DataFrame:
    values = [letter for letter, count in zip("abcdefgh", counts) for _ in range(count)]
    return pl.DataFrame({"age": [20 + place % 50 for place in range(len(values))], "ill": values})


def left_out_of(release: ps.Release, original: pl.DataFrame) -> dict[str, int]:
    """The values of people who are in the table and not in the release, counted from both."""
    shown = release.to_polars().unique("group").explode("ill")["ill"].value_counts()
    kept = dict(shown.iter_rows())
    return {
        value: count - kept.get(value, 0)
        for value, count in original["ill"].value_counts().iter_rows()
        if count > kept.get(value, 0)
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")
def test_no_person_left_out_of_anatomy_is_certain_and_the_attack_gives_the_posterior() -> None:
    suppressing = certain = 0

    @settings(max_examples=60)
    @given(generators())
    def check(random: Generator) -> None:
        nonlocal suppressing, certain
        l, values = random.integers(2, 5), random.integers(4, 8)
        counts = random.integers(5, 60, values)
        counts[random.integers(values)] += random.integers(0, 250)
        people, names = table(counts.tolist()), "abcdefgh"[:values]
        release = ps.anonymize(people, policy(l, names), seed=1)
        found = [one for one in ps.attack(release, original=people, seed=1) if one.attack == "left-out"]
        left = left_out_of(release, people)
        if not left:
            assert not found
            return
        suppressing += 1
        certain += len(left) == 1
        assert len(left) >= l
        (one,) = found
        total = sum(left.values())
        assert one.success == pytest.approx(max(left.values()) / total)
        assert one.bound == 1 / l
        assert one.baseline == pytest.approx(counts.max() / counts.sum())
        assert one.exceeded == (one.success > 1 / l)
        assert one.detail["left_out"] == total
        (alone,) = (one for one in ps.attack(release) if one.attack == "left-out")
        assert alone.detail["worst"] == 1.0
        shown = [people["ill"].value_counts().filter(ill=value)["count"].item() - left.get(value, 0) for value in names]
        if shown.count(max(shown)) == 1:
            # The release alone tells what the original confirms.
            assert alone.success == pytest.approx(one.success, abs=1e-9)
        (planned_,) = ps.plan(policy(l, names), data=people).grouping.left_out
        assert (planned_.records, planned_.values) == (total, len(left))
        assert planned_.success == pytest.approx(one.success)

    check()
    assert suppressing > 15
    assert certain == 0


BRANCHES = {"one": "ab", "two": "cd", "three": "ef", "four": "gh"}
BUCKETS = {
    # Values of a branch mean the same, or values next to each other do.
    "tree": ({"tree": {"all": {name: list(some) for name, some in BRANCHES.items()}}}, {"e": 1}),
    "line": ({"line": "rank"}, {"d": 2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUCKETS)
@pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")
def test_being_left_out_of_buckets_says_no_more_than_the_plan(kind: str) -> None:
    """Who is missing is counted from the table and the release; an attacker names the value that most of them have."""
    random, (distance, apart) = np.random.default_rng(11), BUCKETS[kind]
    near = {value: some for some in BRANCHES.values() for value in some}
    right, promised, wrong = 0, 0.0, 0.0
    for seed in replications(120):
        counts = random.integers(5, 40, 8)
        counts[random.integers(8)] += int(random.integers(60, 250))
        people = table(counts.tolist())
        ill = {"role": "sensitive", "domain": list("abcdefgh"), "distance": distance}
        settings = {
            "attributes": {"age": {"role": "quasi-identifier"}, "ill": ill},
            "method": {"buckets": {"l": 2, **apart}},
        }
        rules = ps.Policy.loads(json.dumps(settings))
        left = left_out_of(ps.anonymize(people, rules, seed=seed), people)
        said = ps.plan(rules, data=people).grouping.left_out
        if not left:
            assert not said
            continue
        total = sum(left.values())
        assert said[0].records == total
        guess = max(left, key=lambda value: left[value])
        right += left[guess]
        promised += said[0].success * total
        wrong += counts.max() / counts.sum() * total
        if kind == "tree":
            # An attacker who names the branch is right as often as the plan says.
            alike = [sum(left.get(value, 0) for value in some) for some in set(near.values())]
            assert said[0].success == pytest.approx(max(alike) / total)
        assert left[guess] / total <= said[0].success + 1e-9
    # It is no bound for its own sake: what is promised is near what is reached, and far from what is known without.
    assert right <= promised + 1e-6 < right * 1.25
    assert wrong < 0.8 * promised


def test_a_release_that_suppressed_as_few_as_possible_gives_everybody_away() -> None:
    """As made before values were mixed, when the manifest has no such parameter."""
    people = table([700, 300])
    codes = (people["ill"] == "b").to_numpy().astype(int)
    made = bucketize(codes, distinct(2), 2, SystemStream.seeded(1))
    assert set(codes[made.suppressed]) == {0}
    with pytest.warns(PrivacyWarning, match="left out"):
        release = ps.anonymize(people, policy(2, "ab"), seed=1)
    manifest = release.manifest
    assert manifest.applied is not None
    older = replace(manifest, applied=replace(manifest.applied, parameters={"l": 2, "attribute": None}))
    # Both values are in every group, so that a reader cannot tell which one was left out.
    (one,) = (one for one in ps.attack(replace(release, manifest=older)) if one.attack == "left-out")
    assert one.success == 0.5
    assert one.detail["worst"] == 1.0


def test_a_smaller_share_is_kept_and_what_it_costs_is_said() -> None:
    people = table([700, 100, 100, 100])
    with pytest.warns(PrivacyWarning, match="left-out"):
        release = ps.anonymize(people, policy(2, "abcd", **{"left-out": 0.8}), seed=1)
    left = left_out_of(release, people)
    assert left["a"] / sum(left.values()) <= 0.8
    (said,) = ps.plan(policy(2, "abcd", **{"left-out": 0.8}), data=people).grouping.left_out
    assert said.success == pytest.approx(left["a"] / sum(left.values()))
    assert said.extra == sum(left.values()) - 400
    # K <= (0.8 * 1000 - 700) / (0.8 - 1 / 2), in whole records
    assert 1000 - sum(left.values()) in (330, 331, 332, 333)


def test_a_share_that_cannot_be_reached_is_refused_with_the_reason() -> None:
    with pytest.raises(ImpossibleError, match=r"one value has 70\.0% of all records"):
        ps.anonymize(table([700, 100, 100, 100]), policy(2, "abcd", **{"left-out": 0.7}), seed=1)
    with pytest.raises(PolicyError, match="left-out"):
        policy(2, "ab", **{"left-out": 0})


def test_plan_says_what_being_left_out_says(tmp_path: Any) -> None:
    table([700, 300]).write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.yaml").write_text(
        "attributes: {age: {role: quasi-identifier}, ill: {role: sensitive, domain: [a, b]}}\n"
        "method: {anatomy: {l: 2}}\n"
    )
    said = polyseme("plan", str(tmp_path / "policy.yaml"), "--data", str(tmp_path / "people.csv"))
    words = " ".join(said.stdout.split())
    assert "402 records are left out, with 2 values of ill" in words
    assert "guesses ill right for 99.8% of these people (70.0% without the release)" in words
    reported = json.loads(
        polyseme("plan", str(tmp_path / "policy.yaml"), "--data", str(tmp_path / "people.csv"), "--json").stdout
    )
    assert reported["method"]["left_out"][0]["success"] == pytest.approx(401 / 402)
    assert reported["method"]["left_out"][0]["extra"] == 2


# -- classes -----------------------------------------------------------------------------------------------------------


def test_being_left_out_of_classes_is_measured_too() -> None:
    random = np.random.default_rng(2)
    people = pl.DataFrame(
        {
            "zip": random.choice(["10", "11", "20", "21"], 400, p=[0.48, 0.48, 0.02, 0.02]),
            "ill": random.choice(["a", "b", "c"], 400),
        }
    ).with_columns(ill=pl.when(pl.col("zip").is_in(["20", "21"])).then(pl.lit("c")).otherwise("ill"))
    rules = ps.Policy.loads("""
attributes: {zip: {role: quasi-identifier, hierarchy: suppress}, ill: {role: sensitive, domain: [a, b, c]}}
models: [{distinct-diversity: {l: 2}}]
method: {full-domain: {suppression: 0.2}}
""")
    release = ps.anonymize(people, rules)
    rare = people.filter(pl.col("zip").is_in(["20", "21"]))
    assert release.manifest.applied is not None
    assert release.manifest.applied.withheld
    (one,) = (one for one in ps.attack(release, original=people) if one.attack == "left-out")
    assert one.detail["left_out"] == rare.height
    assert one.success == 1.0
    (alone,) = (one for one in ps.attack(release) if one.attack == "left-out")
    assert alone.detail["candidates"] == 3
    assert alone.detail["worst"] == 1.0
    (said,) = ps.plan(rules, data=people).grouping.left_out
    assert (said.records, said.values, said.success) == (rare.height, 1, 1.0)


def test_a_rule_tells_everybody_whom_it_suppresses() -> None:
    """Where only a rule can have been the reason, being left out says that it holds for the person."""
    people = pl.DataFrame(
        {
            "zip": ["1"] * 6 + ["2"] * 6 + ["3"] * 4,
            "ill": ["flu", "hiv", "cold", "flu", "cold", "flu"] * 2 + ["hiv", "aids", "hiv", "aids"],
        }
    )
    wanted = ps.Policy.loads("""
attributes: {zip: {role: quasi-identifier, hierarchy: suppress}, ill: {role: sensitive, domain: [flu, cold, hiv, aids]}}
models: [{semantic-rules: {rules: [{never-all: {ill: [hiv, aids]}}]}}]
method: {rules: {actions: [suppress-records]}}
""")
    release = ps.anonymize(people, wanted)
    found = [one for one in ps.attack(release) if one.attack == "left-out"]
    assert [one.detail["candidates"] for one in found] == [2.0]
