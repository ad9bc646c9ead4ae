"""What a collected release says of the way its reports took: in the manifest, on the page, and checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import crowd
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.collection.campaigns import manifest_of
from polyseme.collection.operations import open_document
from polyseme.collection.releases import release_campaign
from polyseme.collection.store import State, open_store
from polyseme.collection.survey import Survey
from polyseme.device.campaign import Campaign
from polyseme.device.protected import REPORTED
from polyseme.release import Manifest
from polyseme.release.data import checksum
from polyseme.reports.assembly import release_page
from polyseme.reports.page import render_page

DATES = {"opens": "2026-11-01T08:00:00+01:00", "closes": "2026-12-01T20:00:00+00:00"}
RELAYED = {"relay": "https://relay.example.org/", "gateway": "AAAA"}
SIGNED = {"tokens": "blind-rsa", "size": 2_048, "issuer": {"address": "https://issuer.example.org/", "key": "AAAA"}}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ps.Release]:
    """200 people have answered; none is left out, as each shares their open values with four others."""
    folder = tmp_path_factory.mktemp("collected")
    store = open_store(f"sqlite:///{folder}/reports.db")
    document = crowd.document(minimum=150, tokens="none", **DATES)
    survey = Survey.read(document)
    open_document(store, document)
    store.append([survey.entry(crowd.padded(report)) for report in crowd.reports(survey, crowd.people(200))])
    store.move(survey.id, State.CLOSED)
    yield release_campaign(store, survey.id, folder / "release", k=5)
    store.close()


def page_of(manifest: Manifest) -> str:
    return " ".join(render_page(release_page(manifest)).split())


def manifest_with(**collection: Any) -> Manifest:
    data = {"file": "data.parquet", "format": "parquet", "sha256": "0" * 64}
    return manifest_of(Campaign.read(crowd.document(**collection)), 500, data, date="2026-12-02")


def test_the_manifest_states_the_settings_and_nothing_of_a_sender(release: ps.Release) -> None:
    document = json.loads((release.folder / "manifest.json").read_text(encoding="utf-8"))
    assert document["collected"] == {
        "campaign": Campaign.read(crowd.document(minimum=150, tokens="none", **DATES)).id,
        "wave": 1,
        "channel": "direct",
        "one_per_person": "none",
        "minimum": 150,
        "contact": "nobody",
        **DATES,
        "k": 5,
    }
    assert document["format"] == 2
    assert document["about"]["title"] == "A test"
    assert ps.Release.open(release.folder).manifest.to_dict() == document
    assert "collected from devices" in repr(release)
    assert "collected from devices" in release._repr_html_()


def test_a_release_in_memory_keeps_it_when_saved(release: ps.Release, tmp_path: Path) -> None:
    loaded = ps.Release(replace(release.manifest, data={}), table=release.to_polars().to_arrow())
    saved = ps.save(loaded, tmp_path / "saved", file_format="csv")
    assert saved.manifest.collected == ps.Release.open(tmp_path / "saved").manifest.collected
    assert saved.manifest.collected == release.manifest.collected


def test_verify_looks_at_what_it_can_check(release: ps.Release) -> None:
    found = {verdict.model: verdict for verdict in ps.verify(release).verdicts}
    assert (found["minimum"].worst, found["minimum"].bound, found["minimum"].holds) == (200.0, 150.0, True)
    assert (found["k-anonymity"].bound, found["k-anonymity"].holds) == (5.0, True)
    for changed, model in (({"minimum": 201}, "minimum"), ({"k": 100}, "k-anonymity")):
        collected = replace(release.manifest.collected, **changed)
        claimed = ps.Release(replace(release.manifest, collected=collected), release.folder)
        verification = ps.verify(claimed)
        assert [verdict.model for verdict in verification.verdicts if not verdict.holds] == [model]


def test_the_command_says_what_was_checked(release: ps.Release) -> None:
    done = polyseme("verify", str(release.folder), "--explain")
    assert done.returncode == 0, done.stderr
    assert "minimum: reports in the release" in " ".join(done.stdout.replace("│", " ").split())


@pytest.mark.parametrize(
    ("settings", "channel", "tokens"),
    [
        ({}, "direct", "none"),
        ({"tokens": "invitation"}, "direct", "invitation"),
        (RELAYED | SIGNED, "relay", "blind-rsa"),
    ],
)
def test_the_report_says_how_it_was_collected(settings: dict[str, Any], channel: str, tokens: str) -> None:
    manifest = manifest_with(**settings)
    assert (manifest.collected.channel, manifest.collected.one_per_person) == (channel, tokens)
    text = page_of(manifest)
    for setting, sentence in REPORTED.items():
        assert (sentence in text) == (setting in (channel, tokens))
    assert "<h1>A test</h1>" in text
    assert "<dt>Contact</dt><dd>nobody</dd>" in text
    assert "2 December 2026" in text
    assert "no dates were announced" in text
    assert "not stated" not in text
    assert manifest.collected.campaign in text


def test_the_report_says_when_people_could_answer_and_who_was_left_out(release: ps.Release) -> None:
    text = page_of(replace(release.manifest, dropped=3))
    assert "from 1 November 2026, 08:00 UTC+01:00 until 1 December 2026, 20:00 UTC" in text
    assert "3 left out because too few share their open values" in text
    assert "A device draws a new set every time" in text
    assert "A device sends the same set for the same answer" in page_of(replace(release.manifest, sticky=True))


def test_a_release_of_a_table_says_nothing_of_a_collection(release: ps.Release) -> None:
    ordinary = replace(release.manifest, collected=None)
    assert "collected" not in ordinary.to_dict()
    assert "How it was collected" not in page_of(ordinary)


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"channel": "pigeon"}, "$.collected.channel"),
        ({"one_per_person": "cookie"}, "$.collected.one_per_person"),
        ({"minimum": 0}, "$.collected.minimum"),
        ({"k": 1}, "$.collected.k"),
        ({"campaign": "x"}, "$.collected.campaign"),
        ({"sender": "203.0.113.7"}, "$.collected"),
        ({"contact": "a\nb"}, "$.collected.contact"),
        ({"opens": "yesterday"}, "$.collected.opens"),
        ({"closes": "2026-12-01T20:00:00"}, "$.collected.closes"),
        ({"closes": DATES["opens"]}, "$.collected.closes"),
    ],
)
def test_what_is_no_such_statement_is_refused_with_its_place(
    release: ps.Release, changed: dict[str, Any], place: str
) -> None:
    document = json.loads((release.folder / "manifest.json").read_text(encoding="utf-8"))
    del document["checksum"]
    document["collected"] |= changed
    with pytest.raises(ps.ReleaseError) as caught:
        Manifest.from_dict({**document, "checksum": checksum(document)})
    assert place in str(caught.value)
    assert "203.0.113.7" not in str(caught.value)


def test_long_texts_of_a_campaign_fit_a_manifest() -> None:
    document = json.loads(crowd.document())
    document["title"] = {"de": "Sehr\nlang " * 100, "en-GB": "Long\nand wide " * 100}
    document["languages"] = ["de", "en-GB"]
    document["collection"]["purpose"] = {"de": "x", "en-GB": "x"}
    for question in document["questions"].values():
        question["text"] = {"de": "x", "en-GB": "x"}
    document["collection"]["contact"] = "a\tb\x07" * 250
    manifest = manifest_of(Campaign.read(json.dumps(document).encode()), 500)
    assert manifest.about.title.startswith("Long and wide Long")
    assert (len(manifest.about.title), manifest.about.title[-1]) == (200, "…")
    assert manifest.collected.contact.startswith("a b a b")
    assert Manifest.from_dict(
        manifest_of(Campaign.read(json.dumps(document).encode()), 500, manifest_with().data).to_dict()
    )
