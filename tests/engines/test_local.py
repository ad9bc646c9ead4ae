from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import polyseme as ps
from polyseme.engines import local
from polyseme.engines.run import Run
from polyseme.kernel.errors import TableError
from polyseme.kernel.randomness import new_key
from polyseme.publishing.publication import Drawing, prepare
from polyseme.tables.io import source as sources
from polyseme.tables.io.columnar import FrameSource

POLICY = """
attributes:
  name: {role: quasi-identifier}
  grade: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 3}}}
  level: {role: sensitive, domain: [1, 2, 3], missing: drop, protect: {diversity: {l: 2}}}
"""


def test_the_long_form_is_expanded_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Monitored(local.Shuffler):
        def add(self, batch: pa.RecordBatch) -> None:
            sizes.append(batch.num_rows)
            super().add(batch)

    monkeypatch.setattr(local, "Shuffler", Monitored)
    monkeypatch.setattr(local, "PIECE", 16)
    people = pl.DataFrame({"name": range(10), "grade": list("abcdabcdab"), "level": [1, 2, 3, None, 1, 2, 3, 1, 2, 3]})
    release = ps.anonymize(people, ps.Policy.loads(POLICY), form="long")
    assert sizes == [16, 16, 16, 6]
    assert (release.manifest.records, release.manifest.rows, release.manifest.dropped) == (9, 54, 1)
    rows = pl.DataFrame(pl.from_arrow(release.table)).cast({"grade": pl.String})
    shown = rows.group_by("name").agg(pl.struct("grade", "level").n_unique(), grades=pl.col("grade").n_unique())
    assert shown["grade"].to_list() == [6] * 9
    assert shown["grades"].to_list() == [3] * 9
    assert rows.join(people, on=["name", "grade", "level"]).height == 9, "the truth is one of the combinations"


STICKY = """
attributes:
  id: {role: identifier}
  place: {role: insensitive}
  grade: {role: sensitive, domain: [a, b, c, d, e, f, g, h], protect: {diversity: {l: 3}}}
record-key: id
"""


def sticky(ids: pl.Series, folder: Path) -> list[set[str]]:
    if not (folder / "key").exists():
        new_key(folder / "key")
    people = pl.DataFrame({"id": ids, "place": range(len(ids)), "grade": ["a"] * len(ids)})
    release = ps.anonymize(people, ps.Policy.loads(STICKY), key_file=folder / "key")
    return [set(row) for row in pl.DataFrame(pl.from_arrow(release.table)).sort("place")["grade"].to_list()]


def test_the_decoys_of_a_person_do_not_depend_on_how_the_key_is_stored(tmp_path: Path) -> None:
    whole = pl.Series(range(50))
    texts = whole.cast(pl.String)
    decoys = sticky(whole, tmp_path)
    assert len(set(map(frozenset, decoys))) > 5
    decimals = whole.cast(pl.Decimal(10, 2))
    for ids in (whole.cast(pl.Float64), whole.cast(pl.UInt8), decimals, texts, texts + " ", texts + ".0", "00" + texts):
        assert sticky(ids, tmp_path) == decoys
    names = "n" + texts
    assert sticky(names, tmp_path) == sticky((names + "  ").cast(pl.Categorical), tmp_path) != decoys


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        ([1.0, 2.5, 2.0**60, float("inf")], "3 record keys are not whole numbers"),
        ([1.0, None, float("nan")], "2 records have no record key"),
        (["a", " ", None], "2 records have no record key"),
        ([[1], [2]], "a column of type list"),
    ],
)
def test_record_keys_that_distinguish_no_people_are_refused(tmp_path: Path, ids: list, what: str) -> None:
    with pytest.raises(TableError, match=what) as caught:
        sticky(pl.Series(ids), tmp_path)
    assert "2.5" not in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "repeated"),
    [([1, 2, 3, 4], 0), ([1, 2, 1, 1], 2), (["1", "1.0", None, None], 1), ([None, None, 0.5, 0.5], 0)],
)
def test_records_of_one_person_are_counted_among_the_published(tmp_path: Path, ids: list, repeated: int) -> None:
    people = pl.DataFrame({"id": ids * 2, "place": [0] * 8, "grade": [*"abcd", *[None] * 4]}).to_arrow()
    policy = ps.Policy.loads(STICKY.replace("protect:", "missing: drop, protect:"))
    source = FrameSource(people)
    job = prepare(policy, source).job
    run = Run(job, source)
    list(local.published_tables(run, tmp_path))
    assert (run.outcome.records, run.outcome.repeated) == (4, repeated)


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "parquet"])
def test_categories_of_records_left_out_are_nowhere_in_the_file(tmp_path: Path, stored: bool) -> None:
    rows = 3000
    sizes = ["LEFTOUT", *["large", "small", "small"] * rows]
    texts = ["LEFTOUT", *["x", "y", "x"] * rows]
    columns = {
        "size": pl.Series(sizes, dtype=pl.Enum(["tiny", "small", "LEFTOUT", "large"])),
        "list": pl.Series([[text] for text in texts], dtype=pl.List(pl.Categorical)),
        "struct": pl.Series([{"text": text} for text in texts], dtype=pl.Struct({"text": pl.Categorical})),
        "grade": [None, *["a", "b", "c"] * rows],
    }
    people = pl.DataFrame(columns).to_arrow()
    if stored:
        pa.parquet.write_table(people, tmp_path / "t.parquet", row_group_size=1000)
    policy = "attributes:\n" + "".join(f"  {name}: {{role: insensitive}}\n" for name in columns if name != "grade")
    policy += "  grade: {role: sensitive, domain: [a, b, c], missing: drop, protect: {diversity: {l: 2}}}"
    ps.anonymize(tmp_path / "t.parquet" if stored else people, ps.Policy.loads(policy), tmp_path / "out")
    assert b"LEFTOUT" not in (tmp_path / "out" / "data.parquet").read_bytes()
    table = pa.parquet.read_table(tmp_path / "out" / "data.parquet")
    size = table["size"].unify_dictionaries().chunk(0)
    assert (size.type.ordered, size.dictionary.to_pylist()) == (True, ["small", "large"])
    published = pl.DataFrame(pl.from_arrow(table.cast(pa.schema([("size", pa.string()), *list(table.schema)[1:]]))))
    shown = published.select("size", pl.col("list").list.first(), pl.col("struct").struct.field("text"))
    assert sorted(shown.rows()) == sorted(zip(sizes[1:], texts[1:], texts[1:]))


def published(people: pa.Table, folder: Path, memory: int) -> list[tuple]:
    """What the engine publishes of a table, in any order."""
    source = FrameSource(people)
    job = prepare(ps.Policy.loads(POLICY), source, Drawing(seed=7)).job
    tables = list(local.published_tables(Run(job, source), folder, memory))
    rows = pa.concat_tables(tables).to_pylist()
    assert list(folder.iterdir()) == []
    return sorted((row["name"], tuple(row["grade"]), tuple(row["level"])) for row in rows)


def test_a_seed_publishes_the_same_rows_whatever_batches_memory_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 3_000
    grades, levels = (
        ["abcd"[row % 4] for row in range(rows)],
        [None if row % 7 == 0 else row % 3 + 1 for row in range(rows)],
    )
    people = pl.DataFrame({"name": range(rows), "grade": grades, "level": levels}).to_arrow()
    whole = published(people, tmp_path, 1 << 26)
    assert len(whole) == sum(level is not None for level in levels)
    for batch, memory, threads in ((1 << 16, 4_000, 2), (7, 1 << 26, 3), (100, 1_000, 1), (64, 20_000, 4)):
        monkeypatch.setattr(sources, "BATCH_ROWS", batch)
        monkeypatch.setattr("polyseme.tables.io.shuffle._cores", lambda threads=threads: threads)
        assert published(people, tmp_path, memory) == whole


def test_problems_are_found_to_the_end_of_the_table_in_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 10)
    grades = ["z" if row in (15, 499) else "a" for row in range(500)]
    levels = [9 if row == 250 else 1 for row in range(500)]
    people = pl.DataFrame({"name": range(500), "grade": grades, "level": levels}).to_arrow()
    for threads in (1, 4):
        monkeypatch.setattr("polyseme.tables.io.shuffle._cores", lambda threads=threads: threads)
        with pytest.raises(TableError) as caught:
            published(people, tmp_path, 1)
        assert "rows 16 and 500" in str(caught.value)
        assert "row 251" in str(caught.value)
        assert list(tmp_path.iterdir()) == []


ILL = """
attributes:
  id: {role: identifier}
  sex: {role: quasi-identifier}
  age: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 3}}}
  job: {role: sensitive-qid, domain: [x, y, z, u], protect: {diversity: {l: 2}}}
record-key: id
impossible:
  - {when: {age: child}, attribute: ill, values: [e, f], may-be-empty: true}
"""


def patients(people: int, visits: int, ages: tuple[str, ...] = ("adult",)) -> pl.DataFrame:
    rows = range(people * visits)
    return pl.DataFrame(
        {
            "id": [row // visits for row in rows],
            "sex": ["mf"[row // visits % 2] for row in rows],
            "age": [ages[row % len(ages)] for row in rows],
            "ill": ["abcd"[row // visits % 4] for row in rows],
            "job": ["xyzu"[row % 4] for row in rows],
        }
    )


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "key")
    return tmp_path / "key"


def keyed(table: pl.DataFrame, key: Path, policy: str = ILL, **options: object) -> ps.Release:
    return ps.anonymize(table, ps.Policy.loads(policy), key_file=key, warn=lambda text: None, **options)


@pytest.mark.parametrize("held", [1 << 26, 100])
def test_the_records_of_a_draw_are_counted(key: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(local, "HELD_BYTES", held)
    manifest = keyed(patients(100, 5), key).manifest
    # Five visits with one illness are one draw; of four jobs one comes twice: (4 + 1 + 1 + 1) / 5, rounded up.
    assert (manifest["ill"].repeats, manifest["job"].repeats) == (5.0, 1.4)
    assert keyed(patients(100, 1), key).manifest["ill"].repeats == 1.0
    uneven = pl.concat([patients(100, 1), patients(1, 37)])
    assert keyed(uneven, key).manifest["ill"].repeats == 12.0, "(38^2 + 99) / 137 = 11.3"
    fresh = ps.anonymize(patients(100, 5), ps.Policy.loads(ILL), warn=lambda text: None)
    assert fresh.manifest["ill"].repeats == 1.0


@pytest.mark.parametrize("column", ["sex", "age", "job"])
def test_a_record_key_that_names_groups_is_refused(key: Path, tmp_path: Path, column: str) -> None:
    with pytest.raises(TableError, match=r"1,000 records of only [124] people") as caught:
        keyed(patients(1_000, 1), key, ILL.replace("record-key: id", f"record-key: {column}"), out=tmp_path / "r")
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    assert not any(f"'{value}'" in str(caught.value) for value in ["m", "f", "adult", "x", "y"])
    assert "--records-per-person" in str(caught.value)


@pytest.mark.parametrize(("people", "visits"), [(1, 1), (1, 10), (10, 3), (2, 10), (50, 50), (120, 100)])
def test_honest_tables_are_not_refused(key: Path, people: int, visits: int) -> None:
    assert keyed(patients(people, visits), key).manifest.records == people * visits


@pytest.mark.parametrize(("people", "visits"), [(2, 11), (20, 21), (120, 101)])
def test_many_records_a_person_must_be_said(key: Path, people: int, visits: int) -> None:
    table = patients(people, visits)
    with pytest.raises(TableError, match=f"{people * visits:,} records of only {people} people"):
        keyed(table, key)
    with pytest.raises(TableError):
        keyed(table, key, records_per_person=visits - 1)
    assert keyed(table, key, records_per_person=visits).manifest["ill"].repeats >= visits
    ps.anonymize(table, ps.Policy.loads(ILL), warn=lambda text: None)


def test_sets_that_can_be_intersected_inside_a_release_are_refused(key: Path, tmp_path: Path) -> None:
    table = patients(300, 2, ("adult", "child"))
    with pytest.raises(TableError, match=r"column 'ill': \d+ sets can be intersected within this release") as caught:
        keyed(table, key, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    number = int(str(caught.value).split("'ill': ")[1].split()[0])
    heard: list[str] = []
    release = ps.anonymize(table, ps.Policy.loads(ILL), key_file=key, allow_changed_strata=True, warn=heard.append)
    assert any(text.startswith(f"ill: {number} sets can be intersected") for text in heard)
    assert release.manifest["ill"].repeats == 2.0, "sets of one person are made from each other: one draw"
    # 3 of 10 sets of an adult have no illness that children cannot have.
    assert number == pytest.approx(210, abs=4 * (300 * 0.3 * 0.7) ** 0.5)
    keyed(patients(300, 2, ("child",)), key)
    assert keyed(pl.concat([patients(300, 1), patients(300, 1)]), key).manifest["ill"].repeats == 2.0
