"""Tables and releases of several files, through every verb and command that takes one."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.engines.local import shuffling_memory
from polyseme.kernel.errors import InternalError, QuestionError, ReleaseError, TableError
from polyseme.release import Manifest, file_digest
from polyseme.release.data import checksum, data_entry, data_files
from polyseme.release.writer import ReleaseWriter

POLICY = """
models: [{k-anonymity: {k: 2}}]
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""
pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")
ROWS = 900


def people(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": [20 + number % 5 for number in range(rows)],
            "level": ["abcdefgh"[(number * number) % 8] for number in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table as one file, as a folder of Parquet files and as a folder of texts; a policy."""
    folder = tmp_path_factory.mktemp("work")
    table = people()
    table.write_parquet(folder / "people.parquet")
    table.write_csv(folder / "people.csv")
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir()
        (folder / kind / "_SUCCESS").touch()
        for number, rows in enumerate(table.iter_slices(250)):
            getattr(rows, f"write_{kind}")(folder / kind / f"part-{number}.{kind}")
    (folder / "policy.yaml").write_text(POLICY)
    return folder


def published(release: ps.Release) -> list[tuple]:
    return sorted((row["age"], *row["level"]) for row in release.to_polars().to_dicts())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_seed_draws_the_same_sets_however_the_table_is_cut(work: Path, kind: str) -> None:
    whole = ps.anonymize(work / f"people.{kind}", work / "policy.yaml", seed=4)
    for table in (work / kind, work / kind / f"*.{kind}"):
        parts = ps.anonymize(table, work / "policy.yaml", seed=4)
        assert published(parts) == published(whole)


@pytest.mark.parametrize("table", ["parquet", "csv", "parquet/*.parquet", "csv/part-[0-9].csv"])
def test_every_command_takes_several_files(work: Path, table: str, tmp_path: Path) -> None:
    made = polyseme("init", table, "--out", tmp_path / "drafted.yaml", cwd=work)
    assert made.returncode == 0, made.stderr
    assert "900 rows" in (tmp_path / "drafted.yaml").read_text()
    release = tmp_path / "release"
    for arguments in (
        ("plan", "policy.yaml", "--data", table),
        ("risk", table, "--qi", "age", "--sensitive", "level"),
        ("verify", table, "--policy", work / "policy.yaml"),
        ("anonymize", "policy.yaml", table, "--out", release),
        ("evaluate", release, "--original", table, "--by", "age", "--of", "level"),
        ("attack", release, "--original", table),
        ("report", release, "--original", table, "--out", tmp_path / "report.html"),
        ("prior", "from-table", table, "--of", "level", "--publish-exact"),
    ):
        done = polyseme(*arguments, cwd=work)
        assert done.returncode == 0, (arguments, done.stderr)
    assert ps.Release.open(release).manifest.records == ROWS


def test_a_table_without_a_policy_is_called_what_it_is(work: Path) -> None:
    done = polyseme("verify", "parquet/*.parquet", cwd=work)
    assert done.returncode == 2
    assert "a table needs a policy" in done.stderr


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_problems_name_the_file_and_the_row(tmp_path: Path, kind: str) -> None:
    for number, rows in enumerate(people(20).iter_slices(10)):
        wrong = rows.with_columns(level=pl.when(pl.int_range(10) == 3).then(pl.lit("SECRET")).otherwise("level"))
        getattr(wrong if number else rows, f"write_{kind}")(tmp_path / f"part-{number}.{kind}")
    with pytest.raises(TableError) as caught:
        ps.anonymize(tmp_path, POLICY)
    place = "row 4" if kind == "parquet" else "line 5"
    assert f"{place} of part-1.{kind}" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_partition_is_a_column_like_any_other(tmp_path: Path) -> None:
    for age, rows in people().partition_by("age", as_dict=True, include_key=False).items():
        (tmp_path / "t" / f"age={age[0]}").mkdir(parents=True)
        rows.write_parquet(tmp_path / "t" / f"age={age[0]}" / "0.parquet")
    release = ps.anonymize(tmp_path / "t", POLICY, seed=1)
    assert release.to_polars()["age"].value_counts().sort("age").rows() == [(20 + age, 180) for age in range(5)]


@pytest.fixture(scope="module")
def release(work: Path) -> Path:
    """A release of several files."""
    folder = work / "several"
    done = polyseme("anonymize", "policy.yaml", "people.csv", "--out", folder, "--rows-per-file", 400, cwd=work)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def copied(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "copied"))


def test_the_manifest_lists_the_files(release: Path) -> None:
    manifest = json.loads((release / "manifest.json").read_text())
    names = [f"data/part-0000{number}.parquet" for number in range(3)]
    assert manifest["format"] == 3
    assert [(item["file"], item["rows"]) for item in manifest["data"]["files"]] == list(zip(names, [400, 400, 100]))
    assert [item["sha256"] for item in manifest["data"]["files"]] == [file_digest(release / name) for name in names]
    lines = "".join(f"{file_digest(release / name)}  {name}\n" for name in names)
    assert manifest["data"]["sha256"] == hashlib.sha256(lines.encode()).hexdigest(), "as sha256sum | sha256sum has it"
    assert pl.read_parquet(release / "data" / "*.parquet").height == ROWS, "other programs read the folder"
    opened = ps.Release.open(release)
    assert Manifest.from_dict(manifest).to_dict() == opened.manifest.to_dict() == manifest
    assert opened.source.rows == opened.source.count() == ROWS
    assert len(opened.source.parts()) == 3


def test_rows_are_shuffled_over_all_files(work: Path, tmp_path: Path) -> None:
    table = pl.DataFrame({"number": range(4_000), "level": ["a", "b", "c", "d"] * 1_000})
    policy = "attributes: {number: {role: quasi-identifier}, level: {role: sensitive, protect: {diversity: {l: 2}}}}"
    release = ps.anonymize(table, f"{policy}\n", tmp_path / "r", rows_per_file=1_000, seed=6)
    for part in release.manifest.data["files"]:
        numbers = pl.read_parquet(tmp_path / "r" / part["file"])["number"]
        # The mean of 1,000 of 4,000 has a standard error of 32.
        assert abs(numbers.mean() - 1999.5) < 5 * 32


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("form", ["set", "long"])
def test_a_seed_publishes_the_same_in_one_file_and_in_several(
    work: Path, tmp_path: Path, form: str, file_format: str
) -> None:
    options = {"form": form, "file_format": file_format, "seed": 8}
    one = ps.anonymize(work / "people.csv", work / "policy.yaml", tmp_path / "one", **options)
    several = ps.anonymize(work / "people.csv", work / "policy.yaml", tmp_path / "s", rows_per_file=250, **options)
    assert len(several.manifest.data["files"]) == (4 if form == "set" else 8)
    reread = ps.Release.open(tmp_path / "s")
    assert reread.to_polars().to_dicts() == several.to_polars().to_dicts() == one.to_polars().to_dicts()
    for verb in (ps.verify, lambda release: ps.estimate(release, "level", by="age"), ps.attack):
        if form == "set" or verb is not ps.attack:
            assert str(verb(reread)) == str(verb(one))


def test_every_command_takes_a_release_of_several_files(work: Path, release: Path, tmp_path: Path) -> None:
    for arguments in (
        ("verify", release),
        ("estimate", release, "--of", "level", "--by", "age"),
        ("attack", release, "--original", "people.csv"),
        ("evaluate", release, "--original", "people.csv", "--of", "level"),
        ("report", release, "--out", tmp_path / "report.html"),
        ("ledger", "add", tmp_path / "ledger.json", release, "--people", "all"),
        ("prior", "from-release", release, "--of", "level"),
    ):
        done = polyseme(*arguments, cwd=work)
        assert done.returncode == 0, (arguments, done.stderr)


def test_saved_in_several_files(work: Path, tmp_path: Path) -> None:
    made = ps.anonymize(work / "people.csv", POLICY, seed=3)
    saved = ps.save(made, tmp_path / "r", rows_per_file=300)
    assert [item["rows"] for item in saved.manifest.data["files"]] == [300, 300, 300]
    assert ps.Release.open(tmp_path / "r").to_polars().to_dicts() == made.to_polars().to_dicts()
    adopted = ps.adopt(saved.to_polars(), POLICY.replace("  name: {role: identifier}\n", ""))
    assert ps.verify(ps.save(adopted, tmp_path / "again", rows_per_file=1_000)).holds
    assert (tmp_path / "again" / "data" / "part-00000.parquet").is_file(), "one file, where several were asked for"


def deleted(data: Path) -> str:
    (data / "part-00001.parquet").unlink()
    return "one of 3 data files, 'data/part-00001.parquet', is missing"


def renamed(data: Path) -> str:
    (data / "part-00001.parquet").rename(data / "part-00007.parquet")
    return "part-00001.parquet', is missing\n(.|\n)*part-00007.parquet: not in the manifest"


def swapped(data: Path) -> str:
    (data / "part-00000.parquet").rename(data / "x")
    (data / "part-00001.parquet").rename(data / "part-00000.parquet")
    (data / "x").rename(data / "part-00001.parquet")
    return r"part-00000.parquet: the content does not match(.|\n)*has the content of data/part-00001.parquet"


def truncated(data: Path) -> str:
    path = data / "part-00002.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    return "part-00002.parquet: the content does not match the manifest"


def emptied(data: Path) -> str:
    (data / "part-00002.parquet").write_bytes(b"")
    return "part-00002.parquet: the content does not match the manifest"


def doubled(data: Path) -> str:
    shutil.copy(data / "part-00002.parquet", data / "part-00003.parquet")
    return "part-00003.parquet: not in the manifest"


def added_below(data: Path) -> str:
    (data / "more").mkdir()
    shutil.copy(data / "part-00002.parquet", data / "more" / "part-00000.parquet")
    return "more/part-00000.parquet: not in the manifest"


def linked(data: Path) -> str:
    (data / "part-00003.parquet").symlink_to("part-00002.parquet")
    return "part-00003.parquet: not in the manifest"


def dangling(data: Path) -> str:
    (data / "part-00001.parquet").unlink()
    (data / "part-00001.parquet").symlink_to("nothing")
    return "'data/part-00001.parquet', is missing"


def a_folder(data: Path) -> str:
    (data / "part-00001.parquet").unlink()
    (data / "part-00001.parquet").mkdir()
    return "'data/part-00001.parquet', is missing"


DAMAGES = [deleted, renamed, swapped, truncated, emptied, doubled, added_below, linked, dangling, a_folder]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed_and_named(copied: Path, damage: Callable[[Path], str]) -> None:
    message = damage(copied / "data")
    with pytest.raises(ReleaseError, match=message):
        ps.Release.open(copied)


def test_all_damage_is_told_at_once(copied: Path) -> None:
    for damage in (deleted, truncated, linked):
        damage(copied / "data")
    with pytest.raises(ReleaseError) as caught:
        ps.Release.open(copied)
    assert len(caught.value.problems) == 3


def test_notes_of_other_programs_do_not_matter(copied: Path) -> None:
    for name in (".DS_Store", "_SUCCESS", ".part-00000.parquet.crc"):
        (copied / "data" / name).write_text("x")
    assert ps.Release.open(copied).manifest.records == ROWS


def test_a_part_may_be_kept_elsewhere_under_its_name(copied: Path, tmp_path: Path) -> None:
    (copied / "data" / "part-00001.parquet").rename(tmp_path / "kept")
    (copied / "data" / "part-00001.parquet").symlink_to(tmp_path / "kept")
    assert ps.verify(copied).holds


def forged(folder: Path, change: Callable[[dict], None]) -> None:
    """The manifest with other contents under a correct checksum."""
    document = json.loads((folder / "manifest.json").read_text())
    del document["checksum"]
    change(document)
    (folder / "manifest.json").write_text(json.dumps({**document, "checksum": checksum(document)}))


def names(file: str) -> Callable[[dict], None]:
    return lambda document: document["data"]["files"][0].update(file=file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (names("../people.csv"), r"data.files\[0\].file"),
        (names("data/../../people.csv"), r"data.files\[0\].file"),
        (names("/etc/passwd"), r"data.files\[0\].file"),
        (names("data/.hidden"), r"data.files\[0\].file"),
        (names("data\\part"), r"data.files\[0\].file"),
        (names("data/part-00001.parquet"), "a file is listed more than once"),
        (lambda document: document["data"]["files"][0].update(rows=399), "not as many rows as the release has"),
        (lambda document: document["data"]["files"][0].update(rows=-1), "rows"),
        (lambda document: document["data"]["files"].reverse(), "not the digest of the files"),
        (lambda document: document["data"].update(sha256="0" * 64), "not the digest of the files"),
        (lambda document: document["data"].update(files=[]), r"\$.data.files"),
        (lambda document: document["data"].update(file="data.parquet"), r"\$.data"),
        (lambda document: document.update(format=2), "format 2 has no such columns or files"),
    ],
)
def test_forged_lists_of_files(copied: Path, change: Callable[[dict], None], message: str) -> None:
    forged(copied, change)
    with pytest.raises(ReleaseError, match=message):
        ps.Release.open(copied)


def test_a_part_with_other_columns(copied: Path) -> None:
    path = copied / "data" / "part-00001.parquet"
    pl.read_parquet(path).drop("age").write_parquet(path)

    def digested(document: dict) -> None:
        data = document["data"]
        data["files"][1]["sha256"] = file_digest(path)
        data.update(data_entry(data_files(data), "parquet"))

    forged(copied, digested)
    with pytest.raises(ReleaseError, match=r"data/part-00001.parquet: its columns differ .*: no column 'age'"):
        ps.Release.open(copied).source  # noqa: B018


def test_a_thousand_files(tmp_path: Path) -> None:
    made = ps.anonymize(people(1_000), POLICY, seed=2)
    saved = ps.save(made, tmp_path / "r", rows_per_file=1)
    opened = ps.Release.open(tmp_path / "r")
    assert len(opened.manifest.data["files"]) == 1_000
    assert opened.manifest.to_dict() == saved.manifest.to_dict()
    assert str(ps.estimate(opened, "level")) == str(ps.estimate(made, "level"))
    for path in sorted((tmp_path / "r" / "data").iterdir())[100:150]:
        path.unlink()
    with pytest.raises(ReleaseError, match="38 more files are missing, changed or not in the manifest"):
        ps.Release.open(tmp_path / "r")


def test_files_that_another_program_wrote(work: Path, tmp_path: Path) -> None:
    made = ps.anonymize(work / "people.csv", POLICY, seed=3)
    with ReleaseWriter.open(tmp_path / "r", "parquet") as writer:
        (writer.folder / "data").mkdir()
        names = ["part-b.zstd.parquet", "part-a.zstd.parquet", "part-c.zstd.parquet"]
        paths = [writer.folder / "data" / name for name in names]
        for path, start, rows in zip(paths, [0, 500, 900], [500, 400, 0]):
            made.to_polars().slice(start, rows).write_parquet(path)
        writer.adopt_files(paths)
        assert writer.written(made.manifest).source.rows == ROWS
        writer.finish(made.manifest)
    opened = ps.Release.open(tmp_path / "r")
    assert [item["file"] for item in opened.manifest.data["files"]] == [f"data/{name}" for name in names]
    assert [item["rows"] for item in opened.manifest.data["files"]] == [500, 400, 0], "one may be empty"
    assert published(opened) == published(made)


def test_files_that_are_left_over_are_no_release(work: Path, tmp_path: Path) -> None:
    made = ps.anonymize(work / "people.csv", POLICY, seed=3)

    def left_over(writer: ReleaseWriter) -> None:
        (writer.folder / "data").mkdir()
        for name in ("a.parquet", "_SUCCESS"):
            made.to_polars().write_parquet(writer.folder / "data" / name)
        writer.adopt_files([writer.folder / "data" / "a.parquet"])
        writer.finish(made.manifest)

    with pytest.raises(InternalError, match="other files"), ReleaseWriter.open(tmp_path / "r", "parquet") as writer:
        left_over(writer)
    with pytest.raises(InternalError, match="taken over"), ReleaseWriter.open(tmp_path / "r", "parquet") as writer:
        writer.adopt_files([tmp_path / "elsewhere.parquet"])
    assert not list(tmp_path.iterdir())


def test_a_release_of_several_files_is_replaced_but_nothing_else(work: Path, copied: Path) -> None:
    arguments = ("anonymize", work / "policy.yaml", work / "people.csv", "--out", copied, "--force")
    (copied / "data" / "thesis.txt").write_text("mine")
    refused = polyseme(*arguments)
    assert refused.returncode == 2
    assert "holds other files too, so it is not replaced: data/thesis.txt" in refused.stderr
    (copied / "data" / "thesis.txt").unlink()
    assert polyseme(*arguments, "--rows-per-file", 500).returncode == 0
    assert len(list((copied / "data").iterdir())) == 2
    assert polyseme(*arguments).returncode == 0
    assert sorted(path.name for path in copied.iterdir()) == ["data.parquet", "manifest.json"]


def test_a_release_is_no_table(release: Path) -> None:
    with pytest.raises(TableError, match="a release, not a table"):
        ps.risk(release)


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "10"])
def test_rows_per_file_must_be_a_number_of_rows(work: Path, tmp_path: Path, rows: object) -> None:
    with pytest.raises(QuestionError, match="rows_per_file: expected a whole number"):
        ps.anonymize(work / "people.csv", POLICY, tmp_path / "r", rows_per_file=rows)


def test_options_that_go_nowhere(work: Path) -> None:
    with pytest.raises(QuestionError, match="a release in memory has no files"):
        ps.anonymize(work / "people.csv", POLICY, rows_per_file=10)


@pytest.mark.parametrize("memory", ["512MB", "2GB", "1.5 GiB", "0.6gb", 600_000_000])
def test_memory(work: Path, tmp_path: Path, memory: str | int) -> None:
    whole = ps.anonymize(work / "people.csv", POLICY, seed=4)
    assert published(ps.anonymize(work / "people.csv", POLICY, seed=4, memory=memory)) == published(whole)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("100MB", "--memory 504MB"),
        (0, "--memory 504MB"),
        ("much", "such as 2GB"),
        ("2", "such as 2GB"),
        (True, "such as"),
    ],
)
def test_memory_that_cannot_be_kept_to(work: Path, memory: str | int, message: str) -> None:
    with pytest.raises(QuestionError, match=f"memory: (.|\n)*{message}"):
        ps.anonymize(work / "people.csv", POLICY, memory=memory)


def test_the_smallest_memory_that_is_named_is_taken() -> None:
    assert shuffling_memory("504MB") >= 16 << 20
    assert shuffling_memory("2GB") == (2 * 10**9 - (448 << 20)) // 2
