"""One release, whichever kind of Spark made it: classic, Spark Connect, and Sail without Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme import spark as on_spark

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.errors.PrivacyWarning")

POLICY = ps.Policy.from_dict(
    {
        "attributes": {
            "ward": {"role": "quasi-identifier"},
            "level": {
                "role": "sensitive",
                "domain": list("abcdefgh"),
                "distance": {"line": "rank"},
                "protect": {"semantic-diversity": {"l": 2, "d": 2}},
            },
        }
    }
)


def test_every_session_publishes_what_the_local_engine_publishes(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "people").mkdir()
    for part in range(3):
        rows = {"ward": [part] * 200, "level": ["abcdefgh"[number * number % 8] for number in range(200)]}
        pl.DataFrame(rows).write_parquet(tmp_path / "people" / f"part-{part}.parquet")
    local = ps.anonymize(tmp_path / "people", POLICY, tmp_path / "local", seed=7)
    on_spark.anonymize(tmp_path / "people", POLICY, tmp_path / "release", spark=spark, files=2, seed=7)
    release = ps.Release.open(tmp_path / "release")
    assert len(release.manifest.data["files"]) == 2
    assert _rows(release) == _rows(local)


def _rows(release: ps.Release) -> list[tuple[Any, ...]]:
    return sorted((row["ward"], *row["level"]) for row in release.to_polars().to_dicts())
