"""Tables that are more than files: Delta and Iceberg, by path and by name, as Sail reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme import spark as on_spark

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")
POLICY = """
attributes:
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""
PEOPLE = pl.DataFrame({"sex": ["f", "m"] * 60, "ill": ["a", "b", "c", "d"] * 30})


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_is_published_by_path(sail: Any, tmp_path: Path, kind: str) -> None:
    place = (tmp_path / "visits").as_uri()
    sail.createDataFrame(PEOPLE.to_arrow()).write.format(kind).save(place)
    release = on_spark.anonymize(sail.read.format(kind).load(place), POLICY, tmp_path / "release", spark=sail)
    assert release.manifest.records == PEOPLE.height
    assert ps.verify(tmp_path / "release").holds


def test_a_delta_table_is_published_by_name_and_read_from_one(sail: Any, tmp_path: Path) -> None:
    place = (tmp_path / "visits").as_uri()
    sail.createDataFrame(PEOPLE.to_arrow()).write.format("delta").save(place)
    sail.sql(f"CREATE TABLE lake_visits USING delta LOCATION '{place}'").collect()
    on_spark.anonymize("lake_visits", POLICY, tmp_path / "release", spark=sail)
    released = sail.read.parquet((tmp_path / "release" / "data").as_uri())
    released.write.format("delta").save((tmp_path / "copy").as_uri())
    sail.sql(f"CREATE TABLE lake_released USING delta LOCATION '{(tmp_path / 'copy').as_uri()}'").collect()
    copied = on_spark.open_release(tmp_path / "release", spark=sail, data="lake_released")
    here, there = (ps.estimate(one, of=["ill"], by=["sex"]).to_polars() for one in (tmp_path / "release", copied))
    assert here.equals(there)
