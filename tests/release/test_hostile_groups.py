"""Releases of classes and groups with hostile manifests or rows: a result or a clear refusal, and nothing else."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from draws import seeds
from hostile_manifests import mutate, write_manifest
from hypothesis import given, settings
from test_hostile_manifests import bounded

import polyseme as ps
from polyseme.kernel.errors import InvalidInput, ReleaseError

MUTATIONS = 240
TREE = {"all": {"lung": ["flu", "cold"], "skin": ["rash", "burn"], "heart": ["attack", "failure"]}}
KEYS = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
    "town": {"role": "quasi-identifier", "hierarchy": {"tree": {"all": {"north": ["a", "b"], "south": ["c", "d"]}}}},
}
PLAIN = {"role": "sensitive", "distance": {"tree": TREE}}
DRAWN = {**PLAIN, "protect": {"semantic-diversity": {"l": 2, "d": 2}}}
CLASSES = [{"k-anonymity": {"k": 3}}, {"distinct-diversity": {"l": 2, "attribute": "ill"}}]
KINDS: dict[str, tuple[dict[str, Any], Any, list[Any]]] = {
    "anatomy": (PLAIN, {"anatomy": {"l": 2}}, []),
    "buckets": (PLAIN, {"buckets": {"l": 2, "e": 1}}, []),
    "full-domain": (PLAIN, {"full-domain": {"suppression": 0.2}}, CLASSES),
    "mondrian": (PLAIN, {"mondrian": {"mode": "relaxed"}}, CLASSES),
    "both": (DRAWN, {"decoys": {}, "full-domain": {"suppression": 0.2}}, CLASSES[:1]),
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[str, Any]]:
    root, rng = tmp_path_factory.mktemp("groups"), np.random.default_rng(3)
    ill = rng.choice([name for part in TREE["all"].values() for name in part], 90)
    table = pl.DataFrame({"age": rng.integers(20, 40, 90), "town": rng.choice(list("abcd"), 90), "ill": ill})
    found = {}
    for number, (name, (entry, method, models)) in enumerate(KINDS.items()):
        made = ps.Policy.from_dict({"attributes": {**KEYS, "ill": entry}, "method": method, "models": models})
        ps.anonymize(table, made, root / name, file_format=("parquet", "csv")[number % 2], warn=lambda _: None)
        found[root / name] = json.loads((root / name / "manifest.json").read_text())
    return found


def _estimate(release: ps.Release) -> None:
    assert np.isfinite(ps.estimate(release, of=["ill"]).values).all()
    assert np.isfinite(ps.estimate(release, of=["ill"], by=["town"]).values).all()


def _attack(release: ps.Release) -> None:
    assert all(np.isfinite(finding.success) for finding in ps.attack(release))


CALLS: dict[str, Callable[[ps.Release], object]] = {
    "verify": lambda release: json.dumps(ps.verify(release).to_dict(), allow_nan=False),
    "estimate": _estimate,
    "attack": _attack,
    "report": ps.report,
}


def tried(release: ps.Release) -> None:
    for call in CALLS.values():
        with bounded(), contextlib.suppress(InvalidInput):
            call(release)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_manifests_are_answered(releases: dict[Path, dict[str, Any]], kind: str) -> None:
    opened, folder = 0, next(folder for folder in releases if folder.name == kind)

    @settings(max_examples=MUTATIONS // len(KINDS))
    @given(seeds.map(random.Random))
    def check(rng: random.Random) -> None:
        nonlocal opened
        write_manifest(folder, mutate(releases[folder], rng))
        with contextlib.suppress(ReleaseError):
            tried(ps.Release.open(folder))
            opened += 1

    check()
    assert opened > 3, "changes that are all refused at once test nothing else"


def _rows(release: ps.Release) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(pl.from_arrow(batch)) for batch in release.batches(release.manifest.names)])


FORGED: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "no rows": lambda rows: rows.head(0),
    "nothing in a column": lambda rows: rows.with_columns(ill=pl.lit(None).cast(rows.schema["ill"])),
    "a value that no record has": lambda rows: rows.with_columns(
        ill=pl.lit(["plague"]) if rows.schema["ill"] == pl.List(pl.String) else pl.lit("plague")
    ),
    "texts for lists": lambda rows: rows.with_columns(ill=pl.lit("flu")),
    "lists of nothing": lambda rows: rows.with_columns(ill=pl.lit([], dtype=pl.List(pl.String))),
    "one class": lambda rows: rows.with_columns(age=pl.lit("*"), town=pl.lit("*")),
    "a missing label": lambda rows: rows.with_columns(age=pl.lit(None).cast(pl.String)),
    "a group for each": lambda rows: rows.with_columns(
        pl.int_range(pl.len()).alias("group") if "group" in rows else []
    ),
    "groups of text": lambda rows: rows.with_columns(pl.lit("x").alias("group") if "group" in rows else []),
    "no groups": lambda rows: rows.with_columns(pl.lit(None).alias("group") if "group" in rows else []),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("forgery", FORGED)
def test_hostile_rows_are_answered(releases: dict[Path, dict[str, Any]], kind: str, forgery: str) -> None:
    folder = next(folder for folder in releases if folder.name == kind)
    write_manifest(folder, releases[folder])
    honest = ps.Release.open(folder)
    rows = FORGED[forgery](_rows(honest))
    data = {**honest.manifest.data, "format": "parquet"}
    manifest = replace(honest.manifest, records=rows.height, rows=rows.height, data=data)
    tried(ps.Release(manifest, None, rows.to_arrow()))
