"""Tables of several files: which files they are, in which order, and what they must have in common."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from polyseme.kernel.errors import TableError
from polyseme.kernel.work import Cancellation
from polyseme.schema import Attribute, Domain, Member, Role
from polyseme.tables.derived import NumberedSource, Recoded, RecodedSource, with_joined
from polyseme.tables.io.dialects import Dialect, Respelled
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Monitored, Part, Source


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def sent(thing: Any) -> Any:
    """What another process gets."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


def parquet(path: Path, group: int | None = None, **columns) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path, row_group_size=group)
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def years(tmp_path: Path) -> Path:
    """A folder as Spark writes one, with its notes."""
    folder = tmp_path / "data"
    parquet(folder / "year=2023" / "part-1.parquet", n=[3, 4], sex=["f", "m"])
    parquet(folder / "year=2023" / "part-0.parquet", n=[1, 2], sex=["m", "m"])
    parquet(folder / "year=2024" / "part-0.parquet", n=[5], sex=["f"])
    text(folder / "_SUCCESS", "")
    text(folder / "year=2024" / ".part-0.parquet.crc", "x")
    parquet(folder / "_temporary" / "part-9.parquet", n=[99], sex=["f"])
    return folder


def test_a_folder_is_one_table_in_the_order_of_paths(years: Path) -> None:
    source = open_table(years)
    assert source.name == "data"
    assert source.schema.names == ["n", "sex", "year"]
    assert source.schema.field("year").type == pa.int64()
    assert [(row["n"], row["year"]) for row in rows(source)] == [(1, 2023), (2, 2023), (3, 2023), (4, 2023), (5, 2024)]
    assert source.rows == source.count() == source.about() == 5


@pytest.mark.parametrize(
    ("pattern", "found", "columns"),
    [
        ("*/*.parquet", [1, 2, 3, 4, 5], ["n", "sex", "year"]),
        ("**/*.parquet", [1, 2, 3, 4, 5], ["n", "sex", "year"]),
        ("**", [1, 2, 3, 4, 5], ["n", "sex", "year"]),
        ("*", [1, 2, 3, 4, 5], ["n", "sex", "year"]),
        ("year=*/**/*.parquet", [1, 2, 3, 4, 5], ["n", "sex", "year"]),
        ("year=202[3]/part-?.parquet", [1, 2, 3, 4], ["n", "sex", "year"]),
        ("year=*/part-0*", [1, 2, 5], ["n", "sex", "year"]),
        ("year=2023/*.parquet", [1, 2, 3, 4], ["n", "sex"]),
    ],
)
def test_patterns(years: Path, pattern: str, found: list[int], columns: list[str]) -> None:
    source = open_table(str(years / pattern))
    assert [row["n"] for row in rows(source)] == found
    assert source.schema.names == columns


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a[1].parquet", n=[7])
    assert rows(open_table(path)) == [{"n": 7}]


def test_nothing_there(tmp_path: Path) -> None:
    text(tmp_path / "empty" / "_SUCCESS", "")
    with pytest.raises(TableError, match=r"empty: no files in this folder(.|\n)*begin with _"):
        open_table(tmp_path / "empty")
    with pytest.raises(TableError, match="no file matches this pattern"):
        open_table(tmp_path / "empty" / "*.parquet")
    with pytest.raises(TableError, match="there is no folder"):
        open_table(tmp_path / "none" / "*.parquet")


def test_partitions_are_texts_unless_all_are_whole_numbers(tmp_path: Path) -> None:
    for ward, month in (("a%2Fb", "01"), ("__HIVE_DEFAULT_PARTITION__", "12")):
        parquet(tmp_path / f"ward={ward}" / f"month={month}" / "x.parquet", n=[1])
    assert [(row["ward"], row["month"]) for row in rows(open_table(tmp_path))] == [(None, 12), ("a/b", 1)]
    parquet(tmp_path / "ward=c" / "month=1" / "x.parquet", n=[1])
    assert {row["month"] for row in rows(open_table(tmp_path))} == {"01", "12", "1"}, "01 and 1 would become one"


def test_partitions_of_texts_are_texts_and_files_go_before_folders(tmp_path: Path) -> None:
    text(tmp_path / "zip=007" / "a.csv", "n,m\n1,2\n")
    assert rows(open_table(tmp_path)) == [{"n": "1", "m": "2", "zip": "007"}]
    (batch,) = open_table(tmp_path).batches(["zip"])
    assert batch.to_pylist() == [{"zip": "007"}]
    text(tmp_path / "zip=007" / "a.csv", "n,zip\n1,8\n")
    assert rows(open_table(tmp_path)) == [{"n": "1", "zip": "8"}]


def test_partitions_must_be_alike(tmp_path: Path) -> None:
    for name in ("year=1/a.parquet", "year=2/month=1/a.parquet", "b.parquet"):
        parquet(tmp_path / name, n=[1])
    with pytest.raises(TableError, match=r"year=1/a.parquet is not partitioned like b.parquet \(2 files\)"):
        open_table(tmp_path)


def test_differences_that_do_not_matter(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", sex=pa.array(["f"]), n=pa.array([1], pa.int32()), note=pa.nulls(1))
    parquet(tmp_path / "b.parquet", n=[2], note=["x"], sex=pa.array(["m"], pa.large_string()))
    parquet(tmp_path / "c.parquet", n=[3], note=["y"], sex=pa.array(["f"]).dictionary_encode())
    source = open_table(tmp_path)
    assert source.schema == pa.schema([("sex", pa.large_string()), ("n", pa.int64()), ("note", pa.string())])
    assert [batch.schema for batch in source.batches()] == [source.schema] * 3
    assert [tuple(row.values()) for row in rows(source)] == [("f", 1, None), ("m", 2, "x"), ("f", 3, "y")]


def test_categories_of_several_files_stay_categories(tmp_path: Path) -> None:
    for name, value in (("a", "f"), ("b", "m")):
        parquet(tmp_path / f"{name}.parquet", sex=pa.array([value]).dictionary_encode())
    source = open_table(tmp_path)
    assert pa.types.is_dictionary(source.schema.field("sex").type)
    assert [row["sex"] for row in rows(source)] == ["f", "m"]


def test_all_differences_are_told_at_once(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", n=[1], sex=["f"])
    parquet(tmp_path / "b.parquet", n=["SECRET"], sex=["f"])
    parquet(tmp_path / "c.parquet", n=[1], sox=["f"])
    with pytest.raises(TableError) as caught:
        open_table(tmp_path)
    problems = [str(problem) for problem in caught.value.problems]
    assert problems[0] == "b.parquet: its columns differ from those of a.parquet: column 'n' is string, not int64"
    assert problems[1].startswith(
        "c.parquet: its columns differ from those of a.parquet: no column 'sex'; an extra column 'sox'\n  hint:"
    )
    for number in range(30):
        parquet(tmp_path / f"d{number}.parquet", n=[1])
    with pytest.raises(TableError, match="32 files in all"):
        open_table(tmp_path)


def test_headers_of_texts_are_not_quoted(tmp_path: Path) -> None:
    text(tmp_path / "a.csv", "name,disease\nann,flu\n")
    text(tmp_path / "b.csv", "bob,cold\ncarl,flu\n")
    text(tmp_path / "c.csv", "name\nann\n")
    with pytest.raises(TableError) as caught:
        open_table(tmp_path)
    assert "b.csv: its columns differ from those of a.csv: a different name for columns 1 and 2" in str(caught.value)
    assert "c.csv: its columns differ from those of a.csv: 1 column, not 2" in str(caught.value)
    assert "bob" not in str(caught.value)


def test_columns_of_texts_may_be_in_another_order(tmp_path: Path) -> None:
    text(tmp_path / "a.csv", "x;y\n1;2\n")
    text(tmp_path / "b.csv", "y;x\n4;3\n")
    assert rows(open_table(tmp_path)) == [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]


def test_kinds_must_be_alike(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", n=[1])
    text(tmp_path / "README.md", "what it is\n")
    with pytest.raises(TableError, match=r"1 file of kind text \(README.md\), 1 file of kind Parquet \(a.parquet\)"):
        open_table(tmp_path)
    assert rows(open_table(tmp_path / "*.parquet")) == [{"n": 1}]
    text(tmp_path / "b.parquet", "")
    with pytest.raises(TableError, match=r"b.parquet: the file is empty"):
        open_table(tmp_path / "*.parquet")


def test_links(tmp_path: Path) -> None:
    parquet(tmp_path / "elsewhere" / "a.parquet", n=[1])
    parquet(tmp_path / "data" / "b.parquet", n=[2])
    (tmp_path / "data" / "c").symlink_to(tmp_path / "elsewhere")
    assert [row["n"] for row in rows(open_table(tmp_path / "data"))] == [2, 1]
    (tmp_path / "data" / "again.parquet").symlink_to("b.parquet")
    with pytest.raises(TableError, match=r"leads to the same file as again.parquet"):
        open_table(tmp_path / "data")
    (tmp_path / "data" / "again.parquet").unlink()
    (tmp_path / "data" / "gone.parquet").symlink_to("nothing")
    with pytest.raises(TableError, match="a symbolic link that leads nowhere"):
        open_table(tmp_path / "data")
    (tmp_path / "data" / "gone.parquet").unlink()
    (tmp_path / "elsewhere" / "up").symlink_to(tmp_path / "data")
    with pytest.raises(TableError, match="leads back into a folder above it"):
        open_table(tmp_path / "data")


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    for name in "ab":
        parquet(tmp_path / f"{name}.parquet", n=[1])
    source = open_table(tmp_path)
    parquet(tmp_path / "b.parquet", n=[1, 2])
    with pytest.raises(TableError, match=r"b.parquet: the file was changed"):
        rows(source)


def test_rows_are_named_with_their_file(tmp_path: Path) -> None:
    text(tmp_path / "a.csv", 'n\n1\n"2\n3"\n\n4\n')
    text(tmp_path / "b.csv", "n\n5\n6\n")
    unit, numbers = open_table(tmp_path).row_numbers([0, 2, 4])
    assert (unit, [str(number) for number in numbers]) == ("line", ["2 of a.csv", "6 of a.csv", "3 of b.csv"])
    assert list(map(str, sent(numbers))) == list(map(str, numbers))


def test_parts_of_every_kind(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", group=2, n=range(5))
    assert open_table(path).parts() == [Part(str(path), (i, i + 1), n) for i, n in enumerate([2, 2, 1])]
    empty = parquet(tmp_path / "b" / "none.parquet", n=pa.array([], pa.int64()))
    assert sum(part.rows for part in open_table(empty).parts()) == 0
    pa.feather.write_feather(pa.table({"n": [1]}), tmp_path / "a.arrow")
    text(tmp_path / "a.csv", "n\n1\n")
    for name in ("a.arrow", "a.csv"):
        (part,) = open_table(tmp_path / name).parts()
        assert part == Part(str(tmp_path / name))
        assert sum(batch.num_rows for batch in open_table(tmp_path / name).read_part(part)) == 1
    assert open_table(pa.table({"n": [1, 2]})).parts() == [Part("table", None, 2)]
    (merged,) = (open_table(path).read_part(Part(str(path), (1, 3)), ["n"]),)
    assert [row["n"] for batch in merged for row in batch.to_pylist()] == [2, 3, 4]


def test_a_thousand_files(tmp_path: Path) -> None:
    for number in range(1000):
        parquet(tmp_path / f"part-{number:05}.parquet", n=[number])
    source = open_table(tmp_path)
    assert source.rows == 1000
    assert len(source.parts()) == 1000
    assert [row["n"] for row in rows(source)] == list(range(1000))
    assert len(pickle.dumps(source)) < 250_000


def wrapped(years: Path) -> dict[str, Source]:
    """The same table behind everything that stands between a file and an engine."""
    table = open_table(years)
    both = Domain(("f", "m")), Domain((2023, 2024))
    names = ("f 2023", "f 2024", "m 2023", "m 2024")
    members = (Member("sex", both[0], (0, 0, 1, 1)), Member("year", both[1], (0, 1, 0, 1)))
    joint = Attribute("both", Role.SENSITIVE, Domain(names), members=members)
    kept = np.array([True, False, True, True, False])
    shown = {
        "sex": Recoded(np.array([0, 1, 1]), pa.array(["x", "y"])),
        "new": Recoded(np.arange(3), pa.array([7, 8, 9])),
    }
    return {
        "plain": table,
        "watched": Monitored(table, Cancellation()),
        "respelled": Respelled(table, Dialect("comma", None), ["sex"], [], ()),
        "joined": with_joined(table, [joint], ("",)),
        "recoded": RecodedSource(table, shown, kept),
        "all": with_joined(
            Monitored(Respelled(table, Dialect("comma", None), ["sex"], [], ()), Cancellation()), [joint], ()
        ),
        "numbered": NumberedSource(table),
    }


def of_parts(source: Source) -> list[list[dict]]:
    return [[row for batch in source.read_part(part) for row in batch.to_pylist()] for part in source.parts()]


@pytest.mark.parametrize("name", ["plain", "watched", "respelled", "joined", "recoded", "all", "numbered"])
def test_parts_are_what_the_whole_is(years: Path, name: str) -> None:
    source = wrapped(years)[name]
    found = of_parts(source)
    assert len(found) == (1 if name == "numbered" else 3)
    assert [row for part in found for row in part] == rows(source)
    known = [part.rows for part in source.parts()]
    assert known == [len(part) for part in found]
    again = sent((source, source.parts()))
    assert [[row for batch in again[0].read_part(part) for row in batch.to_pylist()] for part in again[1]] == found


def test_records_are_recoded_in_one_part_where_it_is_unknown_where_parts_begin(tmp_path: Path) -> None:
    text(tmp_path / "a.csv", "n\n1\n2\n")
    text(tmp_path / "b.csv", "n\n3\n")
    column = Recoded(np.array([0, 1]), pa.array(["x", "y"]))
    source = RecodedSource(open_table(tmp_path), {"new": column}, np.array([True, False, True]))
    assert of_parts(source) == [[{"n": "1", "new": "x"}, {"n": "3", "new": "y"}]]
    alone = RecodedSource(open_table(tmp_path / "a.csv"), {"new": column}, np.array([True, True]))
    assert of_parts(alone) == [[{"n": "1", "new": "x"}, {"n": "2", "new": "y"}]]


def test_another_process_reads_a_part(years: Path) -> None:
    source = wrapped(years)["all"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(of_parts, (source,)) == of_parts(source)
