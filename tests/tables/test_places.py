"""Tables under an address: on this machine, and in a store (here a folder that Arrow reads as one)."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.fs
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.kernel.errors import TableError
from polyseme.tables.io import locations as places
from polyseme.tables.io import readers as opening
from polyseme.tables.io.locations import Address, is_address, place_of
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Source

POLICY = """
attributes:
  year: {role: quasi-identifier}
  n: {role: insensitive}
  level: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a blank in its name, as a bucket."""
    folder = tmp_path / "my bucket" / "visits"
    for year in (2023, 2024):
        part = folder / f"year={year}"
        part.mkdir(parents=True)
        table = pl.DataFrame({"n": [year, year + 1], "level": ["a", "b"]})
        table.write_parquet(part / "0.parquet")
        table.write_csv(part / "0.csv")
        (part / "0.csv.gz").write_bytes(gzip.compress((part / "0.csv").read_bytes()))
        pa.feather.write_feather(table.to_arrow(), part / "0.arrow")
    return folder


@pytest.fixture
def store(data: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the same in a store."""
    filesystem = pa.fs.SubTreeFileSystem(str(data.parents[1]), pa.fs.LocalFileSystem())

    def reached(address: str) -> Address:
        return Address("s3", address.removeprefix("s3://"), filesystem)

    monkeypatch.setattr(opening, "place_of", reached)
    return "s3://my bucket/visits"


FOUND = [2023, 2024, 2024, 2025]


@pytest.mark.parametrize(
    "pattern", ["*/*.parquet", "**/*.parquet", "year=*/0.arrow", "year=202[0-9]/0.csv", "**/*.csv.gz"]
)
def test_a_pattern_of_addresses(data: Path, store: str, pattern: str) -> None:
    local, far = open_table(data / pattern), open_table(f"{store}/{pattern}")
    assert [int(row["n"]) for row in rows(far)] == FOUND
    assert rows(far) == rows(local)
    assert far.schema == local.schema
    assert far.name == f"{store}/{pattern}"
    assert all(part.file.startswith(f"{store}/year=20") for part in far.parts())
    assert len(far.parts()) == 2
    again = pickle.loads(pickle.dumps(far))  # noqa: S301 - our own
    assert [row for part in again.parts() for batch in again.read_part(part) for row in batch.to_pylist()] == rows(far)


@pytest.mark.parametrize("name", ["0.parquet", "0.arrow", "0.csv", "0.csv.gz"])
def test_a_file_in_a_store(store: str, name: str) -> None:
    source = open_table(f"{store}/year=2023/{name}")
    assert source.name == name
    assert [int(row["n"]) for row in rows(source)] == [2023, 2024]


def test_what_is_not_in_a_store(store: str, data: Path) -> None:
    with pytest.raises(TableError, match=f"{store}/none.parquet: no such file"):
        open_table(f"{store}/none.parquet")
    with pytest.raises(TableError, match="there is no folder s3://my bucket/none"):
        open_table("s3://my bucket/none/*.parquet")
    with pytest.raises(TableError, match="no file matches this pattern"):
        open_table(f"{store}/*.pq")
    (data / "t.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(TableError, match="only Parquet, Arrow and text are read"):
        open_table(f"{store}/t.xlsx")
    (data / "t.parquet").write_bytes(b"")
    with pytest.raises(TableError, match="the file is empty"):
        open_table(f"{store}/t.parquet")
    (data / "t.parquet").write_bytes(b"no Parquet")
    with pytest.raises(TableError, match="not a readable Parquet file"):
        open_table(f"{store}/t.parquet")


def test_rows_of_texts_in_a_store_are_named_by_their_lines(store: str) -> None:
    unit, (number,) = open_table(f"{store}/*/0.csv").row_numbers([3])
    assert (unit, str(number)) == ("line", "3 of year=2024/0.csv")


@pytest.mark.parametrize("blank", [" ", "%20"])
def test_addresses_on_this_machine(data: Path, tmp_path: Path, blank: str) -> None:
    address = f"file://{str(data).replace(' ', blank)}"
    assert place_of(f"{address}/year=2023/0.parquet") == data / "year=2023" / "0.parquet"
    assert [row["n"] for row in rows(open_table(f"{address}/year=*/0.parquet"))] == FOUND
    assert [row["n"] for row in rows(open_table(f"{address}/year=202[34]/0.parquet"))] == FOUND
    (tmp_path / "policy.yaml").write_text(POLICY)
    table = f"{address}/*/0.parquet"
    done = polyseme("anonymize", tmp_path / "policy.yaml", table, "--out", tmp_path / "release")
    assert done.returncode == 0, done.stderr
    assert ps.Release.open(tmp_path / "release").manifest.records == 4
    assert "year:" in polyseme("init", table).stdout
    assert polyseme("risk", table, "--qi", "year").returncode == 0


def test_unknown_addresses() -> None:
    with pytest.raises(TableError, match=r"ftp://host/t.csv: no such kind of address"):
        open_table("ftp://host/t.csv")
    assert not any(map(is_address, ["C:/t.csv", "data/a://b", "people.csv"]))


def test_errors_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_KEY", "x")
    with pytest.raises(TableError, match=r"az://container/t.parquet: cannot be read\n.*: AZURE_STORAGE_ACCOUNT \("):
        open_table("az://container/t.parquet")


def test_keys_in_an_address_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(scheme: str, address: str) -> None:
        raise OSError("AWS Error ACCESS_DENIED during HeadObject operation: SECRET")

    monkeypatch.setattr(places, "_store", refused)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TableError) as caught:
        open_table("s3://key:SECRET@bucket/t.parquet?secret_key=SECRET")
    assert str(caught.value).startswith("s3://bucket/t.parquet: cannot be read (ACCESS_DENIED)\n")
    assert "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION" in str(caught.value)
    assert "SECRET" not in str(caught.value).replace("AWS_SECRET_ACCESS_KEY", "")
