from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.errors import ImpossibleError, InvalidInput, PolicyError, ReleaseError, TableError
from polyseme.kernel.randomness import new_key
from polyseme.release import Manifest
from polyseme.release.data import checksum

POLICY = """
attributes:
  id: {role: identifier}
  zip: {role: quasi-identifier}
  weight: {role: insensitive}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""


def people(rows: int = 500, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"person-{number}" for number in range(rows)],
            "zip": [f"{number:05d}" for number in rng.integers(0, 1000, rows)],
            "weight": rng.normal(70, 10, rows).round(1),
            "level": rng.choice(list("abcdefg"), rows),
        }
    )


def policy(extra: str = "") -> ps.Policy:
    return ps.Policy.loads(POLICY + extra)


def data(release: ps.Release) -> pl.DataFrame:
    return pl.concat([pl.from_arrow(batch) for batch in release.batches(release.manifest.names)])


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("form", ["set", "long"])
def test_round_trip(tmp_path: Path, form: str, file_format: str) -> None:
    table = people()
    release = ps.anonymize(table, policy(), tmp_path / "r", form=form, file_format=file_format)
    opened = ps.Release.open(tmp_path / "r")
    assert opened.manifest.to_dict() == release.manifest.to_dict()
    frame = data(opened)
    assert frame.columns == ["zip", "weight", "level"]
    assert frame.height == (500 if form == "set" else 1000)
    assert ps.verify(opened).holds
    estimate = ps.estimate(opened, of=["level"])
    assert np.isclose(estimate.values.sum(), 500)


def test_untouched_columns_survive_exactly_and_rows_are_shuffled() -> None:
    table = people()
    frame = data(ps.anonymize(table, policy()))
    assert frame.schema["weight"] == pl.Float64
    assert frame["weight"].to_list() != table["weight"].to_list()
    left = table.select("zip", "weight").sort("weight", "zip")
    assert left.equals(frame.select("zip", "weight").sort("weight", "zip"))


def test_every_set_holds_the_truth_and_candidates_far_apart() -> None:
    table = people()
    frame = data(ps.anonymize(table, policy())).join(table, on=["zip", "weight"], suffix="_true")
    assert frame.height == 500
    assert frame.select(pl.col("level_true").is_in(pl.col("level")).all()).item()
    ranks = np.array([["abcdefg".index(label) for label in labels] for labels in frame["level"].to_list()])
    assert (np.diff(ranks, axis=1) >= 2).all(), "ascending, so that order says nothing, and at least 2 apart"


def test_two_runs_differ_and_seeded_ones_do_not() -> None:
    table = people()
    first, second = (data(ps.anonymize(table, policy())) for _ in range(2))
    assert not first.equals(second)
    one, two = (ps.anonymize(table, policy(), seed=5) for _ in range(2))
    assert data(one).equals(data(two))
    assert one.manifest.to_dict()["for_publication"] is False
    assert ps.anonymize(table, policy()).manifest.to_dict()["for_publication"] is True


def test_sticky_decoys_repeat_across_orders_and_batches(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    new_key(tmp_path / "other")
    table = people()
    rules = policy("record-key: id")
    keys = ["zip", "weight"]

    def published(frame: pl.DataFrame, key: str) -> pl.DataFrame:
        return data(ps.anonymize(frame, rules, key_file=tmp_path / key)).sort(keys)

    first = published(table, "key")
    assert first.equals(published(table.sample(fraction=1, shuffle=True, seed=3), "key"))
    assert not first.equals(published(table, "other"))
    half = published(table[:200], "key")
    assert half.join(first, on=[*keys, "level"]).height == 200


@pytest.mark.filterwarnings("ignore:with a seed")
def test_a_seeded_release_says_so_wherever_it_is_shown() -> None:
    for seed in (None, 5):
        release = ps.anonymize(people(), policy(), seed=seed)
        found = ps.verify(release)
        assert found.holds
        assert found.to_dict()["seeded"] is (seed is not None)
        shown = [repr(release), release._repr_html_(), repr(found), found._repr_html_()]
        shown += [verdict.note for verdict in found.verdicts if verdict.attribute is not None]
        assert [("not for publication" in text) for text in shown] == [seed is not None] * len(shown)
        assert ("seed" in [finding.attack for finding in ps.attack(release)]) is (seed is not None)


def test_it_is_unknown_how_an_adopted_table_was_drawn(tmp_path: Path) -> None:
    rules = ps.Policy.loads(POLICY.replace("  id: {role: identifier}\n", ""))
    saved = ps.save(ps.adopt(ps.anonymize(people(), policy()).table, rules), tmp_path / "r")
    assert saved.manifest.to_dict()["for_publication"] is None
    assert ps.verify(saved).holds


def test_names_are_not_read_as_html() -> None:
    name = "<img src=x onerror=alert(1)>"
    rules = ps.Policy.from_dict(
        {"attributes": {name: {"role": "sensitive", "domain": ["a", "b", "c"], "protect": {"diversity": {"l": 2}}}}}
    )
    html = ps.anonymize(pl.DataFrame({name: ["a", "b", "c"] * 9}), rules)._repr_html_()
    assert name not in html
    assert "&lt;img" in html


def test_keys_and_seeds_are_nowhere_in_the_release(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    secret = (tmp_path / "key").read_text().strip()
    ps.anonymize(people(), policy("record-key: id"), tmp_path / "r", key_file=tmp_path / "key")
    ps.anonymize(people(), policy(), tmp_path / "s", seed=987654321)
    for path in [*(tmp_path / "r").iterdir(), *(tmp_path / "s").iterdir()]:
        content = path.read_bytes()
        assert secret.encode() not in content
        assert bytes.fromhex(secret) not in content
        assert b"987654321" not in content
        assert b"person-" not in content


def test_a_key_needs_a_record_key(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    with pytest.raises(PolicyError, match="record key"):
        ps.anonymize(people(), policy(), key_file=tmp_path / "key")


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    ps.anonymize(people(), policy(), tmp_path / "r")
    before = (tmp_path / "r" / "manifest.json").read_text()
    with pytest.raises(InvalidInput, match="exists already"):
        ps.anonymize(people(), policy(), tmp_path / "r")
    assert (tmp_path / "r" / "manifest.json").read_text() == before
    ps.anonymize(people(), policy(), tmp_path / "r", overwrite=True)
    assert (tmp_path / "r" / "manifest.json").read_text() != before
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda table: table.with_columns(level=pl.lit("SECRET")), "500 values are not in the declared domain"),
        (lambda table: table.with_columns(level=pl.lit(None, dtype=pl.String)), "500 values are missing"),
        (lambda table: table.drop("zip"), "no such column"),
        (lambda table: table.with_columns(extra=pl.lit(1)), "does not mention this column"),
        (lambda table: table[:0], "no records"),
    ],
    ids=["unseen", "missing", "no-column", "extra-column", "no-rows"],
)
def test_bad_tables_leave_nothing_behind(tmp_path: Path, change, word: str) -> None:
    with pytest.raises(TableError, match=word) as caught:
        ps.anonymize(change(people()), policy(), tmp_path / "r")
    assert "SECRET" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_problems_of_all_columns_and_all_batches_are_counted_together() -> None:
    table = pl.concat([people(70_000), people(70_000)]).with_columns(
        level=pl.when(pl.int_range(pl.len()) % 70_000 == 5).then(pl.lit("zz")).otherwise("level")
    )
    with pytest.raises(TableError, match="2 values are not in the declared domain"):
        ps.anonymize(table, policy())


def test_missing_values_dropped_or_a_category() -> None:
    table = people().with_columns(level=pl.when(pl.int_range(pl.len()) < 20).then(None).otherwise("level"))
    drop = POLICY.replace("domain:", "missing: drop\n    domain:")
    release = ps.anonymize(table, ps.Policy.loads(drop))
    assert (release.manifest.records, release.manifest.dropped) == (480, 20)
    domain = "domain: [a, b, c, d, e, f, g], protect: {diversity: {l: 2}}"
    category = f"attributes: {{level: {{role: sensitive, missing: {{category: none}}, {domain}}}}}"
    kept = ps.anonymize(table.select("level"), ps.Policy.loads(category))
    assert kept.manifest.records == 500
    assert ps.estimate(kept, of=["level"]).to_polars().height == 8


def test_an_impossible_promise_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    impossible = policy().by_name["level"]
    text = POLICY.replace("{l: 2, d: 2}", "{l: 4, d: 3}")
    assert impossible is not None
    with pytest.raises(ImpossibleError):
        ps.anonymize(people(), ps.Policy.loads(text), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_one_row() -> None:
    release = ps.anonymize(people(1), policy())
    assert release.manifest.records == 1
    assert ps.verify(release).holds
    ps.estimate(release, of=["level"], by=["zip"])


def test_damage_is_noticed(tmp_path: Path) -> None:
    ps.anonymize(people(), policy(), tmp_path / "r")
    path = tmp_path / "r" / "data.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(ReleaseError, match="does not match the manifest"):
        ps.Release.open(tmp_path / "r")
    path.unlink()
    with pytest.raises(ReleaseError, match="is missing"):
        ps.Release.open(tmp_path / "r")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda document: {**document, "records": document["records"] + 1}, "checksum"),
        (lambda document: {**document, "format": 99}, "newer"),
        (lambda document: {**document, "secret": 1}, "schema"),
        (lambda document: {key: value for key, value in document.items() if key != "rows"}, "schema"),
        (lambda document: [], "not a manifest"),
    ],
)
def test_a_changed_manifest_is_noticed(tmp_path: Path, change, word: str) -> None:
    ps.anonymize(people(), policy(), tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ReleaseError, match=word):
        ps.Release.open(tmp_path / "r")


def test_no_release_there(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no release here"):
        ps.Release.open(tmp_path)


def test_manifests_round_trip_through_json() -> None:
    manifest = ps.anonymize(people(), policy()).manifest
    document = json.loads(manifest.to_json())
    again = Manifest.from_dict(document)
    assert again.to_dict() == document
    sets = again.sets[0].mechanism.design.sets()
    assert np.array_equal(again.sets[0].mechanism.weights(sets)[0], manifest.sets[0].mechanism.weights(sets)[0])


def test_reprs_hold_no_data() -> None:
    release = ps.anonymize(people(), policy())
    assert "person-" not in repr(release) + release._repr_html_()
    assert "500 records" in repr(release)


def test_what_cannot_be_estimated_afterwards_is_said_before() -> None:
    table = people().with_columns(level=pl.lit("a"))
    text = POLICY.replace("domain: [a, b, c, d, e, f, g]", "domain: [a, b, c, d, e, f]").replace("d: 2", "d: 3")
    heard: list[str] = []
    ps.anonymize(table, ps.Policy.loads(text), warn=heard.append)
    assert len(heard) == 3  # the others are about quasi-identifiers, and about weights that few people share
    assert "level: some of its values cannot be distinguished" in heard[0]
    assert "nearest settings" in heard[0]
    heard.clear()
    ps.anonymize(people(), policy(), warn=heard.append)
    assert all("value by value" in text or "unique value in it" in text for text in heard)


def test_releases_of_many_row_groups_are_read_by_everybody(tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow.parquet as pq

    rows = 300_000
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"sex": rng.choice(["f", "m"], rows), "level": rng.choice(list("abcdefg"), rows)})
    text = "attributes: {sex: {role: quasi-identifier}, level: {role: sensitive, domain: [a, b, c, d, e, f, g],"
    release = ps.anonymize(table, ps.Policy.loads(text + " protect: {diversity: {l: 3}}}}"), tmp_path / "r")
    path = tmp_path / "r" / "data.parquet"
    assert pq.ParquetFile(path).num_row_groups > 1
    assert ps.verify(release).holds
    assert np.isclose(ps.estimate(release, of=["level"], by=["sex"]).values.sum(), rows)
    assert pl.read_parquet(path).schema["level"] == pl.List(pl.String)
    assert pq.read_table(path).num_rows == len(pd.read_parquet(path)) == rows
    assert isinstance(pd.read_parquet(path)["level"][0][0], str)


def _level(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["attributes"][2].update(changes)


def _nested(depth: int) -> list[Any]:
    return functools.reduce(lambda inner, _: [inner], range(depth), [])


@pytest.mark.parametrize(
    "edit",
    [
        _level(promises={"diversity": {"l": math.nan}}),
        _level(promises={"diversity": {"l": math.inf}}),
        _level(promises={"diversity": {"l": 1e308}}),
        _level(promises={"diversity": {"l": 10**400}}),
        _level(promises={"closeness": {"t": 10**400}}),
        _level(promises={"closeness": {"t": 0.5, "ground": "higher"}}),
        _level(promises={"beauty": {"l": _nested(800)}}),
        lambda document: document["attributes"][2]["mechanism"].update(l=10**30),
        lambda document: document["attributes"][2]["mechanism"].update(l=8),
        lambda document: document["attributes"][2]["domain"].update(reference=[1.0]),
        lambda document: document["attributes"][2]["domain"].update(reference=[0.0] * 7),
        lambda document: document["attributes"][2]["domain"].update(prior=[1.0] * 8),
        lambda document: document["attributes"][2]["domain"].update(bins=[0, None, 7]),
        lambda document: document["attributes"].append(document["attributes"][2]),
        lambda document: document.update(records=10**400),
        lambda document: document.update(models=[{"k-anonymity": 5}]),
        lambda document: document.update(models=[{"k-anonymity": {"k": 0}}]),
        lambda document: document.update(models=[{"k-anonymity": {"k": 10**400}}]),
        lambda document: document.update(models=[{}]),
    ],
)
def test_manifests_that_no_program_writes_are_refused(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    ps.anonymize(people(), policy(), tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    document = json.loads(path.read_text())
    del document["checksum"]
    edit(document)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**document, "checksum": hashlib.sha256(text.encode()).hexdigest()}))
    with pytest.raises(ReleaseError, match="manifest"):
        ps.Release.open(tmp_path / "r")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1e999}', '{"format": -Infinity}', "\udcff"])
def test_texts_that_are_no_json_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ReleaseError, match="not readable as JSON"):
        ps.Release.open(tmp_path)


def edited(release: ps.Release, change: dict[str, Any], sticky: bool = True) -> dict[str, Any]:
    document = release.manifest.to_dict()
    document.pop("checksum")
    document["sticky"] = sticky
    for entry in document["attributes"]:
        if entry["published"] == "sets":
            entry.pop("repeats", None)
            entry.update(change)
    return {**document, "checksum": checksum(document)}


def test_the_records_to_a_draw_are_read_back_and_checked(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    release = ps.anonymize(people(), policy("record-key: id"), tmp_path / "r", key_file=tmp_path / "key")
    assert not release.manifest.uncounted
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["attributes"][-1]["repeats"] == 1.0
    back = Manifest.from_dict(edited(release, {"repeats": 3.5}))
    assert {item.repeats for item in back.sets} == {3.5}
    assert Manifest.from_dict(back.to_dict()).to_json() == back.to_json()
    assert Manifest.from_dict(edited(release, {"repeats": release.manifest.records})).sets
    for wrong in (0, 0.99, -1, release.manifest.records + 1, 1e300, "3", None, True, [2]):
        with pytest.raises(ReleaseError):
            Manifest.from_dict(edited(release, {"repeats": wrong}))
    with pytest.raises(ReleaseError, match="more records per draw"):
        Manifest.from_dict(edited(release, {"repeats": 2.0}, sticky=False))


def test_an_older_sticky_release_says_that_people_were_not_counted(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    release = ps.anonymize(people(), policy("record-key: id"), key_file=tmp_path / "key")
    old = Manifest.from_dict(edited(release, {}))
    assert old.uncounted
    assert {item.repeats for item in old.sets} == {1.0}
    assert old.to_dict() == edited(release, {}), "nothing is claimed that was not counted"
    fresh = ps.anonymize(people(), policy())
    assert not Manifest.from_dict(fresh.manifest.to_dict()).uncounted
    assert "repeats" not in fresh.manifest.to_json()
