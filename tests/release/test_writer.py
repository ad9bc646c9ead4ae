"""All code that makes a release writes it through `ReleaseWriter`."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import polyseme as ps
from polyseme import release as releases
from polyseme.kernel.errors import InternalError, ReleaseError
from polyseme.release import MANIFEST, Manifest, Release, file_digest
from polyseme.release import writer as writers
from polyseme.release.writer import ReleaseWriter

POLICY = """
attributes:
  place: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""


@pytest.fixture
def made() -> Release:
    rows = 3_000
    people = pl.DataFrame({"place": [f"place {row}" for row in range(rows)], "ill": ["a", "b", "c"] * (rows // 3)})
    return ps.anonymize(people, ps.Policy.loads(POLICY))


def write(made: Release, out: Path, file_format: str = "parquet", pieces: int = 1_000) -> Release:
    with ReleaseWriter.open(out, file_format) as writer:
        for start in range(0, made.table.num_rows, pieces):
            writer.write(made.table.slice(start, pieces))
        writer.finish(made.manifest)
    return writer.release


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_the_digest_is_that_of_the_file(tmp_path: Path, made: Release, file_format: str) -> None:
    written = write(made, tmp_path / "r", file_format)
    data = tmp_path / "r" / f"data.{file_format}"
    assert written.manifest.data["sha256"] == file_digest(data)
    assert {path.name for path in (tmp_path / "r").iterdir()} == {data.name, MANIFEST}
    opened = Release.open(tmp_path / "r")
    assert opened.manifest.to_dict() == written.manifest.to_dict()
    assert opened.folder == written.folder
    assert pa.Table.from_batches(opened.batches(["place", "ill"])).to_pylist() == made.table.to_pylist()


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_what_was_just_written_is_not_read_again(
    tmp_path: Path, made: Release, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_again(path: Path) -> str:
        raise AssertionError("the data was read again")

    monkeypatch.setattr(releases, "file_digest", read_again)
    people = pl.DataFrame({"place": ["x", "y"], "ill": ["a", "b"]})
    ps.anonymize(people, ps.Policy.loads(POLICY), tmp_path / "published", file_format=file_format)
    ps.save(made, tmp_path / "saved", file_format)
    ps.save(ps.adopt(made.table, ps.Policy.loads(POLICY)), tmp_path / "adopted", file_format)
    monkeypatch.undo()
    for name in ("published", "saved", "adopted"):
        Release.open(tmp_path / name)


def test_the_manifest_is_written_last(tmp_path: Path, made: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    events, seen = Manifest.to_json, []

    def watched(manifest: Manifest) -> str:
        (folder,) = tmp_path.iterdir()
        assert [path.name for path in folder.iterdir()] == ["data.parquet"]
        seen.append(file_digest(folder / "data.parquet") == manifest.data["sha256"])
        return events(manifest)

    monkeypatch.setattr(Manifest, "to_json", watched)
    write(made, tmp_path / "r")
    assert seen == [True], "and the data was complete by then"


def test_an_unreadable_manifest_is_not_published(
    tmp_path: Path, made: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Manifest, "to_json", lambda manifest: '{"format": 1}\n')
    with pytest.raises(ReleaseError):
        ps.save(made, tmp_path / "r")
    assert not list(tmp_path.iterdir())


def unfinished(writer: ReleaseWriter, made: Release) -> None:
    writer.write(made.table)


def without_data(writer: ReleaseWriter, made: Release) -> None:
    writer.finish(made.manifest)


def with_another_file(writer: ReleaseWriter, made: Release) -> None:
    writer.write(made.table)
    (writer.folder / "order").touch()
    writer.finish(made.manifest)


def interrupted(writer: ReleaseWriter, made: Release) -> None:
    writer.write(made.table)
    raise KeyboardInterrupt("asked to stop")


@pytest.mark.parametrize(
    ("fill", "error", "what"),
    [
        (unfinished, InternalError, "without its manifest"),
        (without_data, ReleaseError, "without data"),
        (with_another_file, InternalError, "other files"),
        (interrupted, KeyboardInterrupt, "asked to stop"),
    ],
)
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_half_a_release_is_never_seen(
    tmp_path: Path,
    made: Release,
    fill: Callable[[ReleaseWriter, Release], None],
    error: type[BaseException],
    what: str,
    file_format: str,
) -> None:
    with pytest.raises(error, match=what), ReleaseWriter.open(tmp_path / "r", file_format) as writer:
        fill(writer, made)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, made: Release, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(writers._DigestedFile):
        def write(self, data: object) -> int:
            if self.tell() > 4_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(writers, "_DigestedFile", Full)
    with pytest.raises(OSError, match="No space left") as caught:
        write(made, tmp_path / "r", file_format)
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())
