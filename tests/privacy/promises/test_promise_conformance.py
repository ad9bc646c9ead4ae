"""Every promise, held to the same: read, written, calibrated, checked, bounded, said. A new promise adds its row.

What a promise means is written here once more, from its definition, for a channel that is listed set by set.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from enumeration import largest_ratio, moved

import polyseme as ps
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.parameters import Parameter
from polyseme.privacy.promises import (
    PROMISES,
    Bounds,
    Channel,
    Closeness,
    Ldp,
    Promise,
    Promises,
    Reached,
    read_promises,
)
from polyseme.privacy.promises.ldp import SIZE, TruthPromise
from polyseme.release import Manifest, Sets
from polyseme.reports.assembly import promise_line

VALUES = list("abcdefgh")
UNEVEN = np.array([9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 3.0, 3.0]) / 40.0
ROUNDING = 1e-9


@dataclass(frozen=True)
class Row:
    """What the suite must know of one promise.

    given     every parameter, as a policy writes it
    weaker    the same promise with a number that allows more: releases made with it break the promise above
    bad       a value for each parameter that cannot be meant
    said      what its line in a report must contain
    kept      the definition: sets and channel that keep the promise
    tight     whether a truth probability 2% larger would break it
    """

    given: Mapping[str, Any]
    weaker: Mapping[str, Any]
    bad: Mapping[str, Any]
    said: tuple[str, ...]
    kept: Callable[[Mechanism], bool]
    attribute: Mapping[str, Any] = field(default_factory=dict)
    tight: bool = False


def drawn(mechanism: Mechanism) -> tuple[list[list[int]], np.ndarray]:
    """The sets that can be drawn, and `P(R | v)` of each."""
    sets, channel = mechanism.channel()
    possible = channel.max(axis=0) > 0.0
    return sets[possible].tolist(), channel[:, possible]


def surest(mechanism: Mechanism, pi: np.ndarray) -> float:
    """The largest posterior of any value after any set."""
    _, channel = drawn(mechanism)
    joint = channel * pi[:, None]
    return float((joint / joint.sum(axis=0)).max())


def any_mover(mechanism: Mechanism) -> float:
    """How far some set moves some prior, all moves counted alike."""
    return math.tanh(largest_ratio(drawn(mechanism)[1]) / 4.0)


EVEN = np.full(8, 1 / 8)


def diverse(l: float) -> Callable[[Mechanism], bool]:
    def kept(mechanism: Mechanism) -> bool:
        sets, _ = drawn(mechanism)
        return min(len(set(chosen)) for chosen in sets) >= l and surest(mechanism, EVEN) <= 1.0 / l + ROUNDING

    return kept


def entropic(l: float) -> Callable[[Mechanism], bool]:
    """The expansion of a record shows each of its candidates once."""
    return lambda mechanism: min(math.log(len(set(chosen))) for chosen in drawn(mechanism)[0]) >= math.log(l)


def apart(l: int, d: float) -> Callable[[Mechanism], bool]:
    def kept(mechanism: Mechanism) -> bool:
        sets, _ = drawn(mechanism)
        close = [abs(one - other) < d for chosen in sets for one, other in combinations(chosen, 2)]
        return diverse(l)(mechanism) and not any(close)

    return kept


def close(t: float, ground: str) -> Callable[[Mechanism], bool]:
    return lambda mechanism: moved(drawn(mechanism)[1], UNEVEN, ground) <= t + ROUNDING


def private(epsilon: float) -> Callable[[Mechanism], bool]:
    return lambda mechanism: largest_ratio(drawn(mechanism)[1]) <= epsilon + ROUNDING


def unlearned(success: float) -> Callable[[Mechanism], bool]:
    """An attacker who knows the distribution names the likeliest value."""

    def kept(mechanism: Mechanism) -> bool:
        _, channel = drawn(mechanism)
        return float((channel * UNEVEN[:, None]).max(axis=0).sum()) <= success + ROUNDING

    return kept


ROWS: dict[str, Row] = {
    "diversity": Row(
        {"l": 4, "adapt": False}, {"l": 3}, {"l": 2.5, "adapt": 1}, ("4 candidates", "at most 0.25"), diverse(4)
    ),
    "entropy-diversity": Row(
        {"l": 3.5, "adapt": True},
        {"l": 2.5},
        {"l": 0.5, "adapt": "yes"},
        ("4 candidates", "at most 0.25"),
        entropic(3.5),
    ),
    "semantic-diversity": Row(
        {"l": 2, "d": 3, "mechanism": "balanced", "check": "exact"},
        {"l": 2, "d": 2},
        {"l": 0, "d": -1, "mechanism": "balance", "check": "print"},
        ("2 candidates", "at least 3 apart", "at most 0.5"),
        apart(2, 3),
        {"distance": {"line": "rank"}},
    ),
    "closeness": Row(
        {"t": 0.2, "ground": "ordered", "size": 2},
        {"t": 0.3, "ground": "ordered", "size": 2},
        {"t": 1.5, "ground": "orderd", "size": 0},
        ("by at most 0.2", "along their order", "2 candidates"),
        close(0.2, "ordered"),
        {"reference": UNEVEN.tolist()},
        tight=True,
    ),
    "ldp": Row(
        {"epsilon": 1.5, "size": 2},
        {"epsilon": 1.6, "size": 2},
        {"epsilon": -1, "size": 1.5},
        ("more than 4.48 times", "2 candidates"),
        private(1.5),
        tight=True,
    ),
    "learner": Row(
        {"success": 0.4, "truthful": False, "tolerance": 0.1, "size": 2},
        {"success": 0.45, "truthful": False, "tolerance": 0.1, "size": 2},
        {"success": 0, "truthful": 1, "tolerance": -0.1, "size": 0},
        ("at most 0.4 on average", "a factor of up to 1.11", "2 candidates"),
        unlearned(0.4 * math.exp(-0.1)),
        {"prior": UNEVEN.tolist()},
        tight=True,
    ),
}


def policy(name: str, parameters: Mapping[str, Any]) -> ps.Policy:
    attribute = {"role": "sensitive", "domain": VALUES, **ROWS[name].attribute, "protect": {name: dict(parameters)}}
    return ps.Policy.from_dict({"attributes": {"sex": {"role": "quasi-identifier"}, "x": attribute}})


def table(records: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    return pl.DataFrame({"sex": rng.choice(["f", "m"], records), "x": rng.choice(VALUES, records, p=UNEVEN)})


def published(name: str, parameters: Mapping[str, Any]) -> ps.Release:
    return ps.anonymize(table(), policy(name, parameters), warn=lambda _: None)


def column(release: ps.Release) -> Sets:
    (only,) = release.manifest.sets
    return only


def claiming(release: ps.Release, promises: Promises) -> ps.Release:
    """The same release, said to keep other promises."""
    was = column(release)
    changed = replace(was, attribute=replace(was.attribute, promises=promises))
    columns = tuple(changed if item is was else item for item in release.manifest.columns)
    return replace(release, manifest=replace(release.manifest, columns=columns))


def planned(name: str) -> Mechanism:
    mechanism = ps.plan(policy(name, ROWS[name].given))["x"].mechanism
    assert mechanism is not None
    return mechanism


every = pytest.mark.parametrize("name", PROMISES)


def test_every_promise_has_its_row() -> None:
    assert set(ROWS) == set(PROMISES)


@every
def test_one_name_everywhere(name: str) -> None:
    """File, class, key of the policy and section of the documentation."""
    promise = PROMISES[name]
    assert promise.name == name
    assert promise.__module__ == f"polyseme.privacy.promises.{name.replace('-', '_')}"
    assert promise.__name__ == "".join(word.capitalize() for word in name.split("-"))
    docs = Path(__file__).parents[3] / "docs"
    assert f"\n## {name}\n" in (docs / "promises.md").read_text()
    assert f"promises.md#{name}" in (docs / "policy.md").read_text()


@every
def test_the_row_has_every_parameter(name: str) -> None:
    declared = {parameter.name for parameter in PROMISES[name].parameters}
    assert set(ROWS[name].given) == set(ROWS[name].bad) == declared


@every
def test_parameters_go_to_the_manifest_and_back(name: str) -> None:
    needed = {parameter.name for parameter in PROMISES[name].parameters if parameter.required}
    for given in (ROWS[name].given, {key: value for key, value in ROWS[name].given.items() if key in needed}):
        text = published(name, given).manifest.to_json()
        (entry,) = [item for item in json.loads(text)["attributes"] if item["name"] == "x"]
        assert entry["promises"] == {name: given}
        (back,) = Manifest.from_dict(json.loads(text)).sets
        assert back.attribute.promises == read_promises({name: given})
        assert back.attribute.promises.given() == {name: given}
        assert isinstance(next(iter(back.attribute.promises)), PROMISES[name])


@every
def test_bad_parameters_are_all_reported_at_their_places(name: str) -> None:
    with pytest.raises(ps.PolicyError) as caught:
        policy(name, {**ROWS[name].bad, "unheard-of": 1})
    places = {problem.where: problem for problem in caught.value.problems}
    assert set(places) == {f"$.attributes.x.protect.{name}.{key}" for key in (*ROWS[name].bad, "unheard-of")}
    assert all(problem.what and problem.hint for problem in places.values())


@every
@pytest.mark.parametrize("value", [None, "many", True, math.nan, math.inf, [1], 10**400], ids=repr)
def test_no_number_is_taken_for_one(name: str, value: object) -> None:
    numbers = [parameter for parameter in PROMISES[name].parameters if parameter.kind in ("whole", "number")]
    for parameter in numbers:
        with pytest.raises(ps.PolicyError) as caught:
            read_promises({name: {**ROWS[name].given, parameter.name: value}})
        assert [problem.where for problem in caught.value.problems] == [f"{name}.{parameter.name}"]


@every
def test_missing_parameters_are_named_with_an_example(name: str) -> None:
    needed = [parameter for parameter in PROMISES[name].parameters if parameter.required]
    with pytest.raises(ps.PolicyError) as caught:
        read_promises({name: {}})
    hints = {problem.where: problem.hint for problem in caught.value.problems}
    assert hints == {f"{name}.{item.name}": f"write {item.name}: {item.example}" for item in needed}


@every
def test_the_sentence_has_its_numbers(name: str) -> None:
    line = promise_line(column(published(name, ROWS[name].given)))
    for said in ROWS[name].said:
        assert said in line.text
    assert line.models[0].startswith(f"{name} (")
    weaker = promise_line(column(published(name, ROWS[name].weaker)))
    assert weaker.text != line.text


@every
def test_the_planned_mechanism_keeps_the_promise(name: str) -> None:
    row, mechanism = ROWS[name], planned(name)
    assert row.kept(mechanism)
    if row.tight:
        assert not row.kept(Mechanism(mechanism.design, 1.02 * mechanism.p))


@every
def test_a_weaker_mechanism_does_not(name: str) -> None:
    """The definition above can tell them apart."""
    assert not ROWS[name].kept(column(published(name, ROWS[name].weaker)).mechanism)


@every
@pytest.mark.parametrize("form", ["set", "long"])
def test_a_release_made_with_it_is_found_to_keep_it(name: str, form: str) -> None:
    release = ps.anonymize(table(), policy(name, ROWS[name].given), form=form, warn=lambda _: None)
    (verdict,) = [verdict for verdict in ps.verify(release).verdicts if verdict.model == name]
    assert verdict.holds
    assert verdict.parameters == ROWS[name].given


@every
def test_a_release_with_a_looser_mechanism_is_found_to_break_it(name: str) -> None:
    release = claiming(published(name, ROWS[name].weaker), read_promises({name: ROWS[name].given}))
    assert [verdict.model for verdict in ps.verify(release).verdicts if not verdict.holds] == [name]


@every
def test_adversaries_stay_within_its_bounds(name: str) -> None:
    item = column(published(name, ROWS[name].given))
    channel = item.channels[0]
    bounds = item.attribute.promises.bounds(channel)
    known = (bounds.guess, bounds.moved, bounds.any_prior, bounds.learner)
    assert any(bound is not None for bound in known)
    if bounds.guess is not None:
        assert surest(channel.mechanism, EVEN) <= bounds.guess + ROUNDING
    if bounds.moved is not None:
        assert moved(drawn(channel.mechanism)[1], UNEVEN, bounds.ground) <= bounds.moved + ROUNDING
    if bounds.any_prior is not None:
        assert any_mover(channel.mechanism) <= bounds.any_prior + ROUNDING
    if bounds.learner is not None:
        assert unlearned(bounds.learner)(channel.mechanism)


@every
def test_adversaries_against_a_looser_mechanism_do_not(name: str) -> None:
    release = claiming(published(name, ROWS[name].weaker), read_promises({name: ROWS[name].given}))
    assert any(finding.exceeded for finding in ps.attack(release))


@every
def test_what_the_domain_cannot_have_is_said_with_its_place(name: str) -> None:
    """Parameters that are fine by themselves, for a domain of two values."""
    sizes = {"l": 3, "size": 3}
    promises = read_promises({name: {**ROWS[name].given, **{key: 3 for key in sizes if key in ROWS[name].given}}})
    promises = Promises(tuple(replace(item, adapt=None) if hasattr(item, "adapt") else item for item in promises))
    with pytest.raises(ps.PolicyError) as caught:
        promises.for_domain(2, has_distance=True)
    assert {problem.where for problem in caught.value.problems} <= {f"{name}.l", f"{name}.size"}


# Closeness for everybody: without a reference distribution.


def test_closeness_without_a_reference_bounds_every_prior() -> None:
    rules = {"role": "sensitive", "domain": VALUES, "protect": {"closeness": {"t": 0.25}}}
    item = column(ps.anonymize(table().drop("sex"), ps.Policy.from_dict({"attributes": {"x": rules}})))
    bounds = item.attribute.promises.bounds(item.channels[0])
    assert bounds.any_prior == 0.25
    assert any_mover(item.mechanism) == pytest.approx(0.25, abs=1e-9)


# A sixth promise: what it takes.


@dataclass(frozen=True)
class Ceiling(TruthPromise):
    """No set is drawn around the true value with a probability above `p`."""

    name: ClassVar[str] = "ceiling"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("p", low=0, high=1, example=0.5), SIZE)

    p: float

    def odds(self, etas: Any, drawing: Any, known: Any) -> np.ndarray:
        return np.full(len(etas), self.p / (1.0 - self.p))

    @property
    def limit(self) -> float:
        return self.p

    def reached(self, channel: Channel) -> Reached:
        return Reached(channel.mechanism.p)

    def bounds(self, channel: Channel) -> Bounds:
        return Bounds()

    def sentence(self, attribute: str, channels: Any, quantity: Callable[[float], str]) -> str:
        return f"A set is drawn around the true {attribute} with probability at most {quantity(self.p)}."


@pytest.fixture
def ceiling(monkeypatch: pytest.MonkeyPatch) -> type[Promise]:
    monkeypatch.setitem(PROMISES, "ceiling", Ceiling)  # type: ignore[arg-type]
    return Ceiling


def test_a_sixth_promise_is_one_class_and_its_line_in_the_registry(ceiling: type[Promise]) -> None:
    attribute = {"role": "sensitive", "domain": VALUES, "protect": {"ceiling": {"p": 0.5}, "diversity": {"l": 2}}}
    rules = ps.Policy.from_dict({"attributes": {"sex": {"role": "quasi-identifier"}, "x": attribute}})
    choice = ps.plan(rules)["x"].choice
    assert (choice.binding, choice.p) == ("ceiling", 0.5)
    release = ps.anonymize(table(), rules)
    verification = ps.verify(release)
    assert verification.holds
    assert "ceiling" in [verdict.model for verdict in verification.verdicts]
    assert "with probability at most 0.5" in promise_line(column(release)).text
    assert not any(finding.exceeded for finding in ps.attack(release))
    strict = claiming(release, read_promises({"ceiling": {"p": 0.4}}))
    assert [verdict.model for verdict in ps.verify(strict).verdicts if not verdict.holds] == ["ceiling"]


def test_a_promise_of_a_program_that_knows_more_does_not_hold(ceiling: type[Promise]) -> None:
    """A reader of a manifest with an unknown promise gets a message about it, and nothing else is lost."""
    release = published("ldp", ROWS["ldp"].given)
    promised = Promises.of(*column(release).attribute.promises, Ceiling(0.5))
    document = json.loads(claiming(release, promised).manifest.to_json())
    del PROMISES["ceiling"]  # type: ignore[attr-defined]
    (back,) = Manifest.from_dict(document).sets
    assert back.attribute.promises.given() == {"ldp": ROWS["ldp"].given, "ceiling": {"p": 0.5}}
    found = ps.verify(claiming(release, back.attribute.promises))
    (verdict,) = [verdict for verdict in found.verdicts if not verdict.holds]
    assert (verdict.model, verdict.note) == ("ceiling", "the verifier does not know this promise")


def test_limits_on_truth_are_kept_together() -> None:
    promises = Promises.of(Ldp(1.0), Closeness(0.1))
    assert [promise.name for promise in promises.limiting] == ["closeness", "ldp"]
