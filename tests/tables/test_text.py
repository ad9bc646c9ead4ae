from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from polyseme.kernel.errors import TableError
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Source
from polyseme.tables.io.text import CsvSource


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def write(tmp_path: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_stays_exactly_as_it_is_written(tmp_path: Path, separator: str) -> None:
    text = f'zip{separator}note\n007{separator}"x{separator}""y"""\n{separator}""\n'
    assert rows(open_table(write(tmp_path, text))) == [
        {"zip": "007", "note": f'x{separator}"y"'},
        {"zip": None, "note": ""},
    ]


def test_csv_with_line_breaks_byte_order_mark_and_windows_ends(tmp_path: Path) -> None:
    text = '\ufeffa,b\r\n1,"two\r\nlines"\r\n'
    assert rows(open_table(write(tmp_path, text))) == [{"a": "1", "b": "two\r\nlines"}]


def test_other_encodings(tmp_path: Path) -> None:
    path = write(tmp_path, "név,x\nÁrvíztűrő,1\n".encode("cp1250"))
    assert rows(open_table(path, encoding="cp1250")) == [{"név": "Árvíztűrő", "x": "1"}]
    with pytest.raises(TableError, match="not valid utf-8") as caught:
        open_table(path)
    assert "--encoding" in str(caught.value)


def test_bad_bytes_deep_in_the_file_are_explained(tmp_path: Path) -> None:
    path = write(tmp_path, b"a,b\n" + b"1,2\n" * 200_000 + b"\xff\xfe,3\n")
    with pytest.raises(TableError, match="not valid utf-8"):
        rows(open_table(path))


def test_a_line_with_too_many_fields_is_named_by_number_only(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1,2\nSECRET,4,5\n")
    with pytest.raises(TableError) as caught:
        rows(open_table(path))
    assert "line 3" in str(caught.value)
    assert "expected 2 fields, found 3" in str(caught.value)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('Ann,flu,fine\nBob,cold,"tall\nCarol,SECRET,ok\nDave,flu,ok\n', 3, "never closed"),
        ('Ann,flu,fine\nBob,cold,"SECRET', 3, "never closed"),
        ('Ann,flu,fine\nBob,cold,"tall\nCarol,SECRET,6"\nDave,flu,ok\n', 3, "seems to contain other records"),
        ('Ann,flu,fine\nBob,cold,"tall, very\rCarol,SECRET,"ok"\r', 3, "seems to contain other records"),
        ('Ann,flu,fine\nBob,"cold,tall\nCarol,SECRET",6\n', 3, "seems to contain other records"),
        ('Ann,flu,fine\n"Bob,cold,tall\nCarol",SECRET,6\n', 3, "seems to contain other records"),
        ('Ann,flu,"fine\nBob,"",SECRET\nCarol"\n', 2, "seems to contain other records"),
        ('Ann,flu,"fine\nBob,cold,"SECRET, tall"\n', 2, "seems to contain other records"),
    ],
)
def test_a_stray_quote_is_refused_by_its_line_only(tmp_path: Path, text: str, line: int, what: str) -> None:
    for start, encoding in (("", "utf-8"), ("\ufeff", "utf-8"), ("", "utf-16"), ("", "cp1250")):
        path = write(tmp_path, f"{start}name,disease,note\n{text}".encode(encoding))
        with pytest.raises(TableError, match=rf"t.csv, line {line}: .*{what}") as caught:
            rows(open_table(path, encoding=encoding))
        assert "SECRET" not in str(caught.value)


def test_a_stray_quote_far_from_the_end(tmp_path: Path) -> None:
    for count in (100_000, 400_000):
        path = write(tmp_path, "a,b,c\n" + "1,2,3\n" * 150 + '1,2,"3\n' + "1,SECRET,3\n" * count)
        with pytest.raises(TableError, match="line 152: a quotation mark is never closed"):
            rows(open_table(path))
        with pytest.raises(TableError, match="line 152"):
            open_table(path).count()


def test_a_stray_quote_among_the_column_names(tmp_path: Path) -> None:
    for text in ('a,"b\n1,SECRET\n2,3\n', 'a,"b\n1,SECRET\n2,3"\n'):
        with pytest.raises(TableError, match="line 1: ") as caught:
            open_table(write(tmp_path, text))
        assert "SECRET" not in str(caught.value)


def test_real_text_of_several_lines_is_read(tmp_path: Path) -> None:
    notes = ["12 Main St, Apt 4\nBudapest, Hungary", "Dear Sir,\n\na, b and c.\n", 'he said "so, it is"\r\nand left\n']
    table = pl.DataFrame({"name": list("abc"), "note": notes, "day": ["1"] * 3, "last": notes})
    path = tmp_path / "t.csv"
    for text in (table.write_csv(), table.write_csv().rstrip("\n"), table.write_csv(line_terminator="\r\n")):
        assert rows(open_table(write(tmp_path, text))) == table.to_dicts()
    with pytest.raises(TableError, match="contain other records"):
        rows(open_table(write(tmp_path, 'a,b\n1,"one\ntwo, three"\n')))
    assert rows(CsvSource(path, well_formed=True)) == [{"a": "1", "b": "one\ntwo, three"}]


def test_header_only_is_a_table_without_rows(tmp_path: Path) -> None:
    assert rows(open_table(write(tmp_path, "a,b\n"))) == []
