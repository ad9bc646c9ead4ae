"""Releases that promise 1/l and do not keep it, made by an attacker who repairs every checksum, fail `verify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.designs import design_from, make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.release import file_digest
from polyseme.release.data import checksum
from polyseme.results.verification import Verification
from polyseme.semantics.distances import LineDistance

LABELS = [f"v{code:02d}" for code in range(14)]
Edit = Callable[[dict[str, Any]], None]


def people(records: int = 4_000, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"sex": rng.choice(["f", "m"], records), "x": rng.choice(LABELS, records)})


def policy(protect: str = "semantic-diversity: {l: 2, d: 6}", distance: str = "{line: rank}", extra: str = "") -> Any:
    return ps.Policy.loads(
        "attributes:\n  sex: {role: quasi-identifier}\n  x:\n    role: sensitive\n"
        f"    domain: {json.dumps(LABELS)}\n    distance: {distance}\n    protect: {{{protect}}}\n{extra}"
    )


SIMPLE = "semantic-diversity: {l: 2, d: 6, mechanism: simple}"


def forged(folder: Path, protect: str, edit: Edit, sets: np.ndarray | None = None, form: str = "set") -> Verification:
    """The verdict on a release whose manifest was edited and whose sets were replaced."""
    ps.anonymize(people(), policy(protect), folder / "r", form=form)
    data, manifest = folder / "r" / "data.parquet", folder / "r" / "manifest.json"
    document = json.loads(manifest.read_text())
    if sets is not None:
        named = [[LABELS[code] for code in row] for row in sets]
        pl.read_parquet(data).with_columns(pl.Series("x", named)).write_parquet(data)
        document["data"]["sha256"] = file_digest(data)
    edit(document["attributes"][1])
    del document["checksum"]
    manifest.write_text(json.dumps({**document, "checksum": checksum(document)}))
    return ps.verify(folder / "r")


def broken(found: Verification) -> list[str]:
    return [verdict.model for verdict in found.verdicts if not verdict.holds]


def verdict(found: Verification, model: str) -> Any:
    return next(item for item in found.verdicts if item.model == model)


def drawn(mechanism: Mechanism, codes: np.ndarray | None = None) -> np.ndarray:
    codes = np.random.default_rng(2).integers(0, 14, 4_000) if codes is None else codes
    return mechanism.sample(codes, SystemStream.seeded("forged"))


def _claims_to_be_balanced(entry: dict[str, Any]) -> None:
    del entry["promises"]["semantic-diversity"]["mechanism"]


def _claims_one_half(entry: dict[str, Any]) -> None:
    entry["posterior"] = 0.5


def _says_nothing(entry: dict[str, Any]) -> None:
    _claims_to_be_balanced(entry)
    del entry["posterior"]


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize("edit", [_claims_to_be_balanced, _claims_one_half, _says_nothing])
def test_the_simple_algorithm_does_not_pass_for_balanced(tmp_path: Path, edit: Edit, form: str) -> None:
    found = forged(tmp_path, SIMPLE, edit, form=form)
    assert broken(found) == ["posterior"]
    checked = verdict(found, "posterior")
    assert checked.worst == pytest.approx(0.727, abs=5e-4)
    assert checked.bound == 0.5


def test_a_balanced_release_relabeled_as_simple_does_not_pass(tmp_path: Path) -> None:
    simple = Mechanism(make_design("simple", LineDistance.ranks(14).structure(6), 2))

    def relabel(entry: dict[str, Any]) -> None:
        entry["mechanism"] |= {"design": "simple", "parameters": {}}

    found = forged(tmp_path, "semantic-diversity: {l: 2, d: 6}", relabel, drawn(simple))
    assert broken(found) == ["posterior"]


@pytest.mark.parametrize("design", ["balanced", "least-risk"])
def test_weights_that_give_a_value_away_are_found(tmp_path: Path, design: str) -> None:
    weights = np.zeros(14)
    weights[0] = -40.0
    parameters = {"log_weights": weights.tolist(), "tight": []}
    bad = Mechanism(design_from(design, LineDistance.ranks(14).structure(6), 2, parameters))

    def reweigh(entry: dict[str, Any]) -> None:
        entry["mechanism"]["parameters"] = parameters
        if design == "least-risk":
            entry["posterior"] = 1.0

    protect = f"semantic-diversity: {{l: 2, d: 6, mechanism: {design}}}"
    found = forged(tmp_path, protect, reweigh, drawn(bad))
    assert broken(found) == ["posterior"]
    assert verdict(found, "posterior").worst == pytest.approx(1.0, abs=1e-9)


def test_probabilities_of_a_sharp_design_that_give_a_value_away_are_found(tmp_path: Path) -> None:
    structure = LineDistance.ranks(14).structure(6)
    probabilities = np.asarray(make_design("sharp", structure, 2).parameters()["probabilities"])
    probabilities[0] /= 1e6
    parameters = {"probabilities": (probabilities / probabilities.sum()).tolist()}
    bad = Mechanism(design_from("sharp", structure, 2, parameters))

    def reweigh(entry: dict[str, Any]) -> None:
        entry["mechanism"]["parameters"] = parameters

    found = forged(tmp_path, "semantic-diversity: {l: 2, d: 6, mechanism: sharp}", reweigh, drawn(bad))
    assert broken(found) == ["posterior"]


@pytest.mark.parametrize("form", ["set", "long"])
def test_sets_of_another_algorithm_are_found(tmp_path: Path, form: str) -> None:
    ps.anonymize(people(), policy(), tmp_path / "honest")
    honest = json.loads((tmp_path / "honest" / "manifest.json").read_text())["attributes"][1]
    found = forged(tmp_path, SIMPLE, lambda entry: entry.update(honest), form=form)
    assert broken(found) == ["mechanism"]
    checked = verdict(found, "mechanism")
    assert checked.worst < 1e-6 < checked.bound
    if form == "set":
        assert checked.parameters["degrees_of_freedom"] == 22
        assert checked.parameters["deviance"] > 500
    else:
        assert "only how often each value occurs" in checked.note
    table = ps.estimate(tmp_path / "r", of=["x"])
    assert "do not fit the mechanism" in table.notes[0]
    assert not any("do not fit" in note for note in ps.estimate(tmp_path / "honest", of=["x"], by=["sex"]).notes)
    evidence = verdict(ps.verify(tmp_path / "honest"), "mechanism")
    assert evidence.holds
    assert evidence.parameters["deviance"] < 60


def test_a_value_that_always_has_the_same_companion_is_found(tmp_path: Path) -> None:
    codes = np.random.default_rng(3).integers(0, 14, 4_000)
    sets = np.sort(np.stack([codes, (codes + 7) % 14], axis=1), axis=1)
    found = forged(tmp_path, "semantic-diversity: {l: 2, d: 6}", lambda entry: None, sets)
    assert broken(found) == ["mechanism"]
    checked = verdict(found, "mechanism").parameters
    assert checked["singles_p_value"] > 0.01 > 1e-20 > checked["pairs_p_value"]


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize(("design", "worst"), [("simple", 0.727), ("duplicate", None)])
@pytest.mark.parametrize("old", [False, True])
def test_what_is_not_promised_is_a_note(tmp_path: Path, design: str, worst: float | None, old: bool, form: str) -> None:
    def age(entry: dict[str, Any]) -> None:
        assert entry["posterior"] is None
        if old:
            del entry["posterior"]

    found = forged(tmp_path, f"semantic-diversity: {{l: 2, d: 6, mechanism: {design}}}", age, form=form)
    assert found.holds
    checked = verdict(found, "posterior")
    assert checked.worst == pytest.approx(worst, abs=5e-4) if worst else checked.worst is not None
    assert checked.bound is None
    assert f"1/l = 0.5 is not promised by the {design} design" in checked.note


def test_an_old_manifest_is_judged_by_its_design(tmp_path: Path) -> None:
    def age(entry: dict[str, Any]) -> None:
        assert entry.pop("posterior") == 0.5

    found = forged(tmp_path, "semantic-diversity: {l: 2, d: 6}", age)
    assert found.holds
    assert verdict(found, "posterior").bound == 0.5


def test_the_manifest_says_what_is_promised() -> None:
    wide = "{line: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30]}"
    least = "semantic-diversity: {l: 3, d: 6, mechanism: least-risk}"
    release = ps.anonymize(people(), policy(least, wide))
    checked = verdict(ps.verify(release), "posterior")
    assert checked.holds
    assert checked.worst == checked.bound == release.manifest["x"].posterior > 1 / 3
    blind = ps.anonymize(people(), policy("semantic-diversity: {l: 2, d: 3}, ldp: {epsilon: 1.0}"))
    assert blind.manifest["x"].posterior == 0.5
    assert verdict(ps.verify(blind), "posterior").worst < 0.5


def test_every_stratum_is_looked_at(tmp_path: Path) -> None:
    extra = "impossible:\n  - {when: {sex: m}, attribute: x, values: [v13]}\n"
    rules = policy("semantic-diversity: {l: 2, d: 4}", extra=extra)
    frame = people().filter(~((pl.col("sex") == "m") & (pl.col("x") == "v13")))
    ps.anonymize(frame, rules, tmp_path / "r")
    found = ps.verify(tmp_path / "r")
    assert found.holds
    assert verdict(found, "posterior").checked == 2
    assert verdict(found, "mechanism").checked == frame.height
    data, manifest = tmp_path / "r" / "data.parquet", tmp_path / "r" / "manifest.json"
    table = pl.read_parquet(data)
    # Men always have the same companion; women are left alone.
    sets = table["x"].to_list()
    men = [row for row, sex in enumerate(table["sex"]) if sex == "m"]
    for row in men:
        sets[row] = [LABELS[row % 6], LABELS[row % 6 + 6]]
    table.with_columns(pl.Series("x", sets)).write_parquet(data)
    document = json.loads(manifest.read_text())
    document["data"]["sha256"] = file_digest(data)
    del document["checksum"]
    manifest.write_text(json.dumps({**document, "checksum": checksum(document)}))
    assert broken(ps.verify(tmp_path / "r")) == ["mechanism"]
    assert "do not fit" in ps.estimate(tmp_path / "r", of=["x"]).notes[0]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize("records", [1, 10])
def test_tiny_honest_releases_hold(tmp_path: Path, records: int, file_format: str) -> None:
    ps.anonymize(people(records), policy(), tmp_path / "r", file_format=file_format)
    assert ps.verify(tmp_path / "r").holds


def test_sticky_decoys_of_people_with_many_records_hold(tmp_path: Path) -> None:
    from polyseme.kernel.randomness import new_key

    new_key(tmp_path / "key")
    frame = people(400).with_columns(pl.Series("person", np.arange(400).astype(str)))
    rules = ps.Policy.loads(
        "attributes:\n  person: {role: identifier}\n  sex: {role: quasi-identifier}\n"
        f"  x: {{role: sensitive, domain: {json.dumps(LABELS)}, distance: {{line: rank}},"
        " protect: {semantic-diversity: {l: 2, d: 6}}}\nrecord-key: person\n"
    )
    release = ps.anonymize(pl.concat([frame] * 15), rules, key_file=tmp_path / "key")
    assert ps.verify(release).holds
    assert not any("do not fit" in note for note in ps.estimate(release, of=["x"]).notes)
