from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import polyseme as ps
from polyseme.cli import main
from polyseme.kernel.errors import InvalidInput, PolicyError, TableError
from polyseme.publishing.inputs import compared_with
from polyseme.tables.io.dialects import Dialect, Respelled
from polyseme.tables.io.readers import open_written
from polyseme.tables.io.source import Source

COMMA = Dialect("comma")


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def write(tmp_path: Path, text: str, name: str = "t.csv", encoding: str = "utf-8") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("1,5", "1.5"),
        (" -0,25 ", " -0.25 "),
        ("3", "3"),
        ("1,5e3", "1.5e3"),
        (",5", ".5"),
        ("n.a.", "n.a."),
        (".", "."),
    ],
)
def test_numbers_with_a_comma(written: str, plain: str) -> None:
    assert COMMA.plain_numbers(pl.Series([written, None])).to_list() == [plain, None]


@pytest.mark.parametrize("written", ["1.5", "1.234,5", "1.234", "1,2,3"])
def test_what_is_no_number_of_the_dialect_does_not_become_one(written: str) -> None:
    plain = COMMA.plain_numbers(pl.Series([written]))
    assert plain.cast(pl.Float64, strict=False).to_list() == [None]
    assert not COMMA.are_numbers(pl.Series([written]))


def test_words_for_missing_stay_as_the_policy_has_them() -> None:
    assert COMMA.plain_numbers(pl.Series(["99,9", "1,5"]), ["99,9"]).to_list() == ["99,9", "1.5"]
    german = Dialect(dates="dd.mm.yyyy")
    assert german.plain_dates(pl.Series(["01.01.1900", "02.01.1900"]), ["01.01.1900"]).to_list() == [
        "01.01.1900",
        "1900-01-02",
    ]


@pytest.mark.parametrize(
    ("form", "written", "plain"),
    [
        ("dd.mm.yyyy", "31.01.2024", "2024-01-31"),
        ("dd.mm.yyyy", "1.2.2024", "2024-02-01"),
        ("mm/dd/yyyy", "01/02/2024", "2024-01-02"),
        ("dd/mm/yyyy", "01/02/2024", "2024-02-01"),
        ("yyyy/mm/dd", "2024/02/01", "2024-02-01"),
        ("dd-mm-yyyy", "31-01-2024 12:30", "2024-01-31 12:30"),
        ("dd.mm.yyyy", "31.02.2024", "31.02.2024"),
        ("dd.mm.yyyy", "31.01.24", "31.01.24"),
        ("dd.mm.yyyy", "31/01/2024", "31/01/2024"),
        ("mm/dd/yyyy", "31/01/2024", "31/01/2024"),
        ("dd.mm.yyyy", "2024-01-31", "2024-01-31"),
    ],
)
def test_dates(form: str, written: str, plain: str) -> None:
    assert Dialect(dates=form).plain_dates(pl.Series([written, None])).to_list() == [plain, None]


@pytest.mark.parametrize("form", ["", "dd.mm.yy", "d.m.yyyy", "dd.mm", "dd.dd.yyyy", "ddmmyyyy", "%d.%m.%Y", "german"])
def test_forms_that_say_nothing(form: str) -> None:
    with pytest.raises(TableError, match="does not say how dates are written"):
        Dialect(dates=form)


def test_a_table_of_which_nothing_is_known(tmp_path: Path) -> None:
    """Only columns in which every value is a number, or a date, are read as such."""
    text = "bmi;day;codes;text\n21,5;31.01.2024;1,2;1,5\nNA;;1,2,3;and 2,5\n22;01.02.2024;;\n"
    source = open_written(write(tmp_path, text), decimal="comma", dates="dd.mm.yyyy")
    assert isinstance(source, Respelled)
    assert rows(source) == [
        {"bmi": "21.5", "day": "2024-01-31", "codes": "1,2", "text": "1,5"},
        {"bmi": "NA", "day": None, "codes": "1,2,3", "text": "and 2,5"},
        {"bmi": "22", "day": "2024-02-01", "codes": None, "text": None},
    ]
    assert [row["bmi"] for row in rows(open_written(tmp_path / "t.csv"))] == ["21,5", "NA", "22"]


POLICY = """
attributes:
  bmi: {role: quasi-identifier, type: number}
  day: {role: quasi-identifier, type: date}
  note: {role: insensitive}
  pay: {role: sensitive, bins: [0, 1.5, 2.5, 9], protect: {diversity: {l: 2}}}
  seen: {role: sensitive, periods: {every: month, from: 2024-01, to: 2024-03}, protect: {diversity: {l: 2}}}
table: {decimal: comma, dates: dd.mm.yyyy, missing-values: ['', '-']}
"""
PLAIN = POLICY.replace("decimal: comma, dates: dd.mm.yyyy, ", "")


def people(tmp_path: Path) -> tuple[Path, Path]:
    """The same table in a dialect and plain; the note is text whatever it looks like."""
    german, plain = ["bmi;day;note;pay;seen"], ["bmi;day;note;pay;seen"]
    for n in range(300):
        bmi, pay, month = f"{20 + n % 7}.5", f"{1 + n % 3}.25", 1 + n % 3
        german.append(
            f"{bmi.replace('.', ',')};0{1 + n % 9}.02.1990;{n % 5},5;{pay.replace('.', ',')};11.0{month}.2024"
        )
        plain.append(f"{bmi};1990-02-0{1 + n % 9};{n % 5},5;{pay};2024-0{month}-11")
    return write(tmp_path, "\n".join(german), "german.csv"), write(tmp_path, "\n".join(plain), "plain.csv")


def released(path: Path, policy: str, out: Path, file_format: str = "parquet") -> ps.Release:
    with pytest.warns(ps.PolysemeWarning):
        return ps.anonymize(path, ps.Policy.loads(policy), out, seed=7, file_format=file_format)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_dialect_changes_how_a_table_is_written_and_nothing_else(tmp_path: Path, file_format: str) -> None:
    german, plain = people(tmp_path)
    mine = released(german, POLICY, tmp_path / "a", file_format)
    theirs = released(plain, PLAIN, tmp_path / "b", file_format)
    assert rows(mine.source) == rows(theirs.source)
    assert rows(mine.source)[0]["note"].endswith(",5")
    options = {"decimal": "comma", "dates": "dd.mm.yyyy"}
    # Other columns than the note, which is text in both releases, are read as they were for the release.
    assert rows(compared_with(german, mine, **options)) == rows(compared_with(plain, theirs))
    assert len(ps.attack(mine, german, **options)) == len(ps.attack(theirs, plain))
    assert ps.evaluate(mine, german, "pay", "note", **options).to_dict() == (
        ps.evaluate(theirs, plain, "pay", "note").to_dict()
    )


def test_drafts_and_risks_are_those_of_the_plain_table(tmp_path: Path) -> None:
    german, plain = people(tmp_path)
    options = {"decimal": "comma", "dates": "dd.mm.yyyy"}
    draft = ps.Policy.loads(ps.init(german, **options))
    assert draft.table.dialect == Dialect("comma", "dd.mm.yyyy")
    assert draft.attributes[:2] == ps.Policy.loads(ps.init(plain)).attributes[:2]
    assert ps.risk(german, ["bmi", "day"], **options) == ps.risk(plain, ["bmi", "day"])


HIERARCHIES = """
attributes:
  bmi: {role: quasi-identifier, hierarchy: {intervals: [5, 10]}}
  day: {role: quasi-identifier, hierarchy: {dates: [month, year]}}
  note: {role: insensitive}
  pay: {role: insensitive}
  seen: {role: insensitive}
method: {full-domain: {}}
models:
- k-anonymity: {k: 5}
"""


def test_hierarchies_of_numbers_and_dates(tmp_path: Path) -> None:
    german, plain = people(tmp_path)
    mine = released(german, HIERARCHIES + "table: {decimal: comma, dates: dd.mm.yyyy}\n", tmp_path / "a")
    theirs = released(plain, HIERARCHIES, tmp_path / "b")
    assert [(row["bmi"], row["day"]) for row in rows(mine.source)] == [
        (row["bmi"], row["day"]) for row in rows(theirs.source)
    ]
    with pytest.raises(InvalidInput, match=r"table: \{decimal: comma\} in the policy") as caught:
        ps.anonymize(german, ps.Policy.loads(HIERARCHIES), tmp_path / "c")
    assert r"table: {dates: dd.mm.yyyy} in the policy" in str(caught.value)
    assert "20,5" not in str(caught.value)


@pytest.mark.parametrize("bins", ["[0, 1.5, 2.5, 9]", "{count: 3, method: quantile}"])
def test_numbers_that_cannot_be_read_propose_the_decimal_comma(tmp_path: Path, bins: str) -> None:
    german, _ = people(tmp_path)
    policy = PLAIN.replace("[0, 1.5, 2.5, 9]", bins).replace("type: date", "type: text")
    with pytest.raises(InvalidInput) as caught:
        ps.anonymize(german, ps.Policy.loads(policy), tmp_path / "a")
    assert "table: {decimal: comma} in the policy" in str(caught.value)
    assert "--decimal" not in str(caught.value)
    assert ",5" not in str(caught.value)


def test_a_point_in_a_table_with_commas_is_refused(tmp_path: Path) -> None:
    german, _ = people(tmp_path)
    text = german.read_text().replace("20,5;", "1.234;").replace("21,5;", "1.234,5;")
    with (
        pytest.warns(ps.PrivacyWarning),
        pytest.raises(TableError, match="column 'bmi': 86 values cannot be read as number") as caught,
    ):
        ps.anonymize(write(tmp_path, text), ps.Policy.loads(POLICY), tmp_path / "a")
    assert "1.234" not in str(caught.value)
    assert "decimal" not in str(caught.value)


def test_every_problem_of_the_dialect_in_a_policy() -> None:
    with pytest.raises(PolicyError) as caught:
        ps.Policy.loads("attributes: {a: {role: insensitive}}\ntable: {decimal: ',', dates: german}\n")
    assert "$.table.decimal: unknown word ','" in str(caught.value)
    assert "$.table.dates: 'german' does not say how dates are written" in str(caught.value)


def leaves(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0), "".join(capsys.readouterr())


def test_hierarchy_check_proposes_its_own_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    german, _ = people(tmp_path)
    check = ["hierarchy", "check", "intervals: [5, 10]", german, "--column", "bmi"]
    code, text = leaves(capsys, *check)
    assert code == 1
    assert "--decimal comma" in text
    assert leaves(capsys, *check, "--decimal", "comma")[0] == 0


@pytest.mark.parametrize("name", ["init", "risk"])
def test_an_encoding_is_proposed_as_the_option_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = write(tmp_path, "név;x\nKöln;1\n", encoding="cp1252")
    code, text = leaves(capsys, name, path)
    assert code == 2
    assert "it may well be cp1252: --encoding cp1252" in text
    assert "policy" not in text
    assert "K\ufffdln" not in text
    assert leaves(capsys, name, path, "--encoding", "cp1252")[0] in (0, 2)


def test_an_encoding_is_proposed_as_what_a_policy_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "a;x\nKöln;1\n", encoding="cp1252")
    policy = write(tmp_path, "attributes: {a: {role: insensitive}, x: {role: insensitive}}\n", "policy.yaml")
    for arguments in (
        ("anonymize", policy, path, "--out", tmp_path / "release"),
        ("verify", path, "--policy", policy),
        ("plan", policy, "--data", path),
        ("prior", "from-table", path, "--of", "a", "--epsilon", "1"),
    ):
        code, text = leaves(capsys, *arguments)
        assert code == 2
        assert "it may well be cp1252: table: {encoding: cp1252} in the policy" in text, arguments
        assert "--encoding" not in text


def test_other_encodings_are_not_called_cp1252(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="name the encoding, as in --encoding"):
        open_written(write(tmp_path, "a;x\n\x81\x8d;1\n", encoding="latin-1"))
    with pytest.raises(TableError, match="it may well be utf-16: --encoding utf-16"):
        open_written(write(tmp_path, "a;x\nKöln;1\n", encoding="utf-16"))
