from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from polyseme.cli import main
from polyseme.kernel.errors import TableError
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Source
from polyseme.tables.io.text import CsvSource, compression_of, last_bytes


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


PACKED = {"gz": gzip.compress, "zst": zstd, "bz2": bz2.compress}
TEXT = '\ufeffzip,note\r\n007,"two\r\nlines"\r\n,""\r\n'
READ = [{"zip": "007", "note": "two\r\nlines"}, {"zip": None, "note": ""}]


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


@pytest.fixture(params=sorted(PACKED))
def pack(request):
    return PACKED[request.param]


def write(tmp_path: Path, data: bytes, name: str = "t.csv.gz") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv", "t.tsv.zst", "table"])
def test_content_and_not_the_name_says_that_a_text_is_compressed(tmp_path: Path, pack, name: str) -> None:
    path = write(tmp_path, pack(TEXT.encode()), name)
    assert rows(open_table(path)) == READ
    assert open_table(path).count() == 2
    assert rows(open_table(write(tmp_path, TEXT.encode(), name))) == READ


def test_separator_and_encoding_are_those_of_the_text(tmp_path: Path, pack) -> None:
    path = write(tmp_path, pack("név\tx\nÁrvíztűrő\t1\n".encode("cp1250")))
    source = open_table(path, encoding="cp1250")
    assert isinstance(source, CsvSource)
    assert source.separator == "\t"
    assert rows(source) == [{"név": "Árvíztűrő", "x": "1"}]
    with pytest.raises(TableError, match="not valid utf-8"):
        open_table(path)


def test_archives_of_several_parts_are_read_to_the_end(tmp_path: Path, pack) -> None:
    path = write(tmp_path, pack(b"a,b\n1,2\n") + pack(b"3,4\n"))
    assert rows(open_table(path)) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_more_rows_than_a_block_holds(tmp_path: Path, pack) -> None:
    lines = [f"{number},{number * 7919 % 100_003}\n" for number in range(600_000)]
    path = write(tmp_path, pack(("a,b\n" + "".join(lines)).encode()))
    assert sum(int(value) for batch in open_table(path).batches(["a"]) for value in batch["a"].to_pylist()) == sum(
        range(600_000)
    )


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.999])
def test_an_archive_that_ends_early_is_damaged(tmp_path: Path, pack, keep: float) -> None:
    text = "a,b\n" + "".join(f"{number * 7919 % 100_003},SECRET\n" for number in range(50_000))
    packed = pack(text.encode())
    path = write(tmp_path, packed[: int(len(packed) * keep)])
    with pytest.raises(TableError, match=r"t.csv.gz: the \w+ archive is damaged") as caught:
        rows(open_table(path))
    assert "SECRET" not in str(caught.value)


def test_an_archive_with_a_wrong_checksum_is_damaged(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 1000))
    packed[-6] ^= 1
    with pytest.raises(TableError, match="the gzip archive is damaged"):
        rows(open_table(write(tmp_path, bytes(packed))))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('Ann,flu,fine\nBob,cold,"tall\nCarol,SECRET,ok\n', "line 3: a quotation mark is never closed"),
        ('Ann,flu,fine\nBob,cold,"SECRET', "line 3: a quotation mark is never closed"),
        ("Ann,flu,fine\nBob,cold\n", "line 3: expected 3 fields, found 2"),
    ],
)
def test_mistakes_in_the_text_are_found_by_their_line(tmp_path: Path, pack, text: str, what: str) -> None:
    for start in ("", "\ufeff"):
        path = write(tmp_path, pack(f"{start}name,disease,note\n{text}".encode()))
        with pytest.raises(TableError, match=what) as caught:
            rows(open_table(path))
        assert "SECRET" not in str(caught.value)


def test_an_empty_text_in_an_archive(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="the file is empty"):
        open_table(write(tmp_path, gzip.compress(b"")))


def test_archives_of_files_are_not_text(tmp_path: Path) -> None:
    zipped, tarred = tmp_path / "t.csv.zip", tmp_path / "t.tar.gz"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("t.csv", "a,SECRET\n1,2\n")
    with tarfile.open(tarred, "w:gz") as archive:
        member = tarfile.TarInfo("t.csv")
        member.size = 8
        archive.addfile(member, io.BytesIO(b"a,b\n1,2\n"))
    with pytest.raises(TableError, match="a ZIP archive"):
        open_table(zipped)
    with pytest.raises(TableError, match="not a text table"):
        open_table(tarred)


def test_the_end_of_the_content(tmp_path: Path, pack) -> None:
    content = bytes(range(256)) * 10_000
    path = write(tmp_path, pack(content))
    for count in (1, 1000, 3_000_000):
        assert last_bytes(path, compression_of(path), count) == content[-count:]


def test_every_command_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{'fm'[n % 2]}\t{30 + n % 3}\t{['flu', 'cold', 'gout'][n % 3]}\n" for n in range(90)]
    path = write(tmp_path, zstd(("sex\tage\till\n" + "".join(lines)).encode()), "t.tsv.zst")
    policy, release = tmp_path / "policy.yaml", tmp_path / "release"
    policy.write_text(
        "attributes:\n  sex: {role: quasi-identifier}\n  age: {role: quasi-identifier}\n"
        "  ill: {role: sensitive, domain: [flu, cold, gout], protect: {diversity: {l: 2}}}\n"
        "models:\n- k-anonymity: {k: 5}\n"
    )
    for arguments in (
        ["init", path],
        ["risk", path, "--qi", "sex,age"],
        ["plan", policy, "--data", path],
        ["anonymize", policy, path, "--out", release, "--seed", "1"],
        ["attack", release, "--original", path],
        ["evaluate", release, "--original", path],
        ["report", release, "--original", path, "--out", tmp_path / "report.html"],
        ["verify", path, "--policy", policy],
        ["prior", "from-table", path, "--of", "ill", "--by", "sex", "--epsilon", "1"],
        ["hierarchy", "show", "intervals: [5]", "--values", path, "--column", "age"],
    ):
        with pytest.raises(SystemExit) as left:
            main(list(map(str, arguments)))
        assert not left.value.code, (arguments, capsys.readouterr().err)
