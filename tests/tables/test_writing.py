from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from polyseme.kernel.errors import InvalidInput, TableError
from polyseme.kernel.files import whole_file, whole_folder
from polyseme.tables.io.output import TableWriter

MANIFEST = json.dumps({"format": 1, "data": {"file": "data.csv"}, "checksum": "0" * 64})


def written(table: pa.Table, path: Path) -> str:
    writer = TableWriter(path, table.schema, "csv")
    writer.write(table)
    writer.close()
    return path.read_text()


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_lists_in_a_text_table_are_json(tmp_path: Path, kind) -> None:
    lists = pa.array([["a", 'b"'], [], None, [None, "c"]], kind(pa.string()))
    text = written(pa.table({"v": lists}), tmp_path / "t.csv")
    assert pl.read_csv(text.encode())["v"].to_list() == ['["a", "b\\""]', "[]", None, '[null, "c"]']


def test_lists_of_any_single_values(tmp_path: Path) -> None:
    table = pa.table({"day": [[date(2024, 2, 29)]], "none": [[None]], "yes": [[True]], "much": [[0.5]]})
    text = written(table, tmp_path / "t.csv")
    assert pl.read_csv(text.encode()).row(0) == ('["2024-02-29"]', "[null]", "[true]", "[0.5]")


@pytest.mark.parametrize("value", [[["a"]], {"a": 1}, [{"a": 1}]])
def test_what_a_text_table_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, value) -> None:
    with pytest.raises(TableError, match="column 'deep': a text table cannot hold nested values"):
        written(pa.table({"deep": [value]}), tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())


def test_values_that_hardly_repeat_have_no_dictionary_and_no_column_is_lost(tmp_path: Path) -> None:
    rows = 5_000
    sets = pa.array([["a", "b"]] * rows, pa.list_(pa.string()))
    columns = {
        "id": np.arange(rows),
        "a.b": np.arange(rows) % 7,
        "sets": sets,
        "nested": [{"deep": n} for n in range(rows)],
    }
    table = pa.table(columns)
    writer = TableWriter(tmp_path / "t.parquet", table.schema, "parquet")
    writer.write(table)
    writer.write(table.slice(0, 10))
    writer.close()
    file = pa.parquet.ParquetFile(tmp_path / "t.parquet")
    assert file.read().equals(pa.concat_tables([table, table.slice(0, 10)]))
    group = file.metadata.row_group(0)
    chunks = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    assert {path for path, chunk in chunks.items() if not chunk.has_dictionary_page} == {"id"}
    assert {path for path, chunk in chunks.items() if chunk.is_stats_set} == {"id", "a.b"}


def test_a_file_without_rows_has_its_columns(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("sets", pa.list_(pa.string()))])
    TableWriter(tmp_path / "t.parquet", schema, "parquet").close()
    assert pa.parquet.read_table(tmp_path / "t.parquet").schema == schema


def test_what_goes_wrong_in_the_thread_that_writes_is_raised() -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    table = pa.table({"n": np.arange(1_000)})
    writer = TableWriter(Full(), table.schema, "parquet")
    writer.write(table)
    with pytest.raises(OSError, match="No space left"):
        writer.write(table)
    with contextlib.suppress(OSError):
        writer.close()


def filled(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "years of work"},
        {"manifest.json": "{}"},
        {"manifest.json": '{"name": "a web page", "icons": []}'},
        {"manifest.json": "not JSON"},
        {"manifest.json": MANIFEST, "data.csv": "", "thesis.txt": "years of work"},
        {"manifest.json": MANIFEST, "data.csv/thesis.txt": "years of work"},
    ],
    ids=["no manifest", "empty", "of a web page", "unreadable", "more than a release", "a folder in it"],
)
def test_force_replaces_nothing_but_releases(tmp_path: Path, files: Mapping[str, str]) -> None:
    home = filled(tmp_path / "home", files)
    with pytest.raises(InvalidInput, match="not replaced"), whole_folder(home, overwrite=True):
        pass
    assert contents(home) == files


@pytest.mark.parametrize("files", [{}, {"manifest.json": MANIFEST}, {"manifest.json": MANIFEST, "data.csv": ""}])
def test_force_replaces_releases_and_empty_folders(tmp_path: Path, files: Mapping[str, str]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    filled(home, files)
    with whole_folder(home, overwrite=True) as folder:
        (folder / "new").write_text("")
    assert contents(tmp_path) == {"home/new": ""}


def test_other_work_of_ours_is_replaced_when_it_is_whole_and_alone(tmp_path: Path) -> None:
    whole = {"report.html": "", "release/manifest.json": MANIFEST, "release/data.csv": ""}
    names = ("report.html", "release")
    for number, extra in enumerate(("thesis.txt", "release/thesis.txt")):
        home = filled(tmp_path / str(number), {**whole, extra: "years of work"})
        with pytest.raises(InvalidInput, match=r"not replaced: thesis.txt"), whole_folder(home, True, names):
            pass
        (home / extra).unlink()
        with whole_folder(home, True, names):
            pass
        assert not contents(home)


def test_the_old_folder_stays_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = filled(tmp_path / "home", {"manifest.json": MANIFEST, "data.csv": "old"})
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.suffix == ".partial":
            raise PermissionError
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(PermissionError), whole_folder(home, overwrite=True) as folder:
        (folder / "new").write_text("")
    assert contents(tmp_path) == {"home/manifest.json": MANIFEST, "home/data.csv": "old"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_came_in_the_meantime_stays(tmp_path: Path, overwrite: bool) -> None:
    home = tmp_path / "home"
    with pytest.raises(InvalidInput, match=r"exists already|not replaced"), whole_folder(home, overwrite):
        filled(home, {"thesis.txt": "years of work"})
    assert contents(tmp_path) == {"home/thesis.txt": "years of work"}


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_a_file_that_came_in_the_meantime_stays(tmp_path: Path, whole) -> None:
    target = tmp_path / "home"
    with pytest.raises(InvalidInput, match="exists already"), whole(target):
        target.write_text("years of work")
    assert contents(tmp_path) == {"home": "years of work"}
    if whole is whole_file:
        with whole(target, overwrite=True) as partial:
            partial.write_text("new")
        assert contents(tmp_path) == {"home": "new"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_comes_at_the_very_last_moment_stays_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    home = filled(tmp_path / "home", {"manifest.json": MANIFEST}) if overwrite else tmp_path / "home"
    rename = Path.rename

    def late(path: Path, target: Path) -> Path:
        if path == home or (target == home and path.suffix == ".partial" and not overwrite):
            filled(home, {"thesis.txt": "years of work"})
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(InvalidInput), whole_folder(home, overwrite) as folder:
        (folder / "new").write_text("")
    assert contents(tmp_path).get("home/thesis.txt") == "years of work"
    assert not list(tmp_path.glob(".*.partial"))


def test_files_where_there_are_no_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: Path, file: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", missing)
    with whole_file(tmp_path / "new") as partial:
        partial.write_text("new")
    assert contents(tmp_path) == {"new": "new"}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("whole", [whole_file, whole_folder])
@pytest.mark.parametrize("inner", ["", "below"])
def test_a_link_that_leads_to_nothing_is_not_followed(tmp_path: Path, whole, overwrite: bool, inner: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "out").symlink_to(elsewhere)
    with (
        pytest.raises(InvalidInput, match="out: a dangling symbolic link"),
        whole(tmp_path / "out" / inner, overwrite) as partial,
    ):
        pytest.fail(f"{partial} was made")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").is_symlink()


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_a_link_that_comes_in_the_meantime_is_not_followed(tmp_path: Path, whole) -> None:
    with pytest.raises(InvalidInput, match="dangling symbolic link"), whole(tmp_path / "out"):
        (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(os.name != "posix", reason="permissions")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_permissions_follow_the_mask_which_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole, mask: int
) -> None:
    """The mask belongs to the process: while one thread changes it, files of other threads are open to everybody."""
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", lambda mask: pytest.fail("the mask was changed"))
            with whole(tmp_path / "out") as partial:
                assert partial.stat().st_mode & 0o077 == 0
    finally:
        os.umask(before)
    full = 0o666 if whole is whole_file else 0o777
    assert (tmp_path / "out").stat().st_mode & 0o777 == full & ~mask
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]
