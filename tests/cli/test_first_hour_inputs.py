"""What new users hand in by mistake, one thing after the other: each is named for what it is."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps

ROWS = 400
POLICY = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""


def people(rows: int = ROWS) -> pl.DataFrame:
    drawn = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "name": [f"QQMARKQQ{number}" for number in range(rows)],
            "age": drawn.permutation(rows) + 20,
            "level": drawn.choice(list("abcdefgh"), rows),
        }
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a policy and a release of it."""
    folder = tmp_path_factory.mktemp("work")
    people().write_csv(folder / "people.csv")
    (folder / "policy.yaml").write_text(POLICY)
    assert polyseme("anonymize", "policy.yaml", "people.csv", "--out", "release", cwd=folder).returncode == 0
    return folder


# -- attack ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["attack", "report", "evaluate"])
def test_an_original_with_fewer_rows_is_refused(work: Path, verb: str, tmp_path: Path) -> None:
    people().head(300).write_csv(tmp_path / "fewer.csv")
    out = ("--out", tmp_path / "page.html") if verb == "report" else ()
    result = polyseme(verb, work / "release", "--original", tmp_path / "fewer.csv", *out)
    assert result.returncode == 2
    assert "300 records fit the release, which has 400" in result.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("verb", ["attack", "report"])
def test_an_original_with_other_rows_is_refused(work: Path, verb: str, tmp_path: Path) -> None:
    others = people().with_columns(age=pl.when(pl.col("age") < 30).then(pl.col("age") + 1000).otherwise(pl.col("age")))
    others.write_csv(tmp_path / "others.csv")
    out = ("--out", tmp_path / "page.html") if verb == "report" else ()
    result = polyseme(verb, work / "release", "--original", tmp_path / "others.csv", *out)
    assert result.returncode == 2
    assert "10 of 400 records of the release are not in it, going by 'age'" in result.stderr


def test_the_other_release_is_another_one(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "release", tmp_path / "copy")
    for same in (work / "release", tmp_path / "copy"):
        result = polyseme("attack", work / "release", "--other", same)
        assert result.returncode == 2
        assert "other: this is the same release" in result.stderr
    release = ps.anonymize(people(), ps.Policy.loads(POLICY))
    with pytest.raises(ps.QuestionError, match="this is the same release"):
        ps.attack(release, other=release)
    again = ps.anonymize(people(), ps.Policy.loads(POLICY))
    assert any(found.attack == "repetition" for found in ps.attack(release, other=again))


# -- files that are in the way, and names that were not given ----------------------------------------------------------


def test_a_report_replaces_reports_only(work: Path, tmp_path: Path) -> None:
    for name, text in (("mine.html", "<!doctype html><p>mine"), ("policy.yaml", POLICY), ("data.bin", "\0")):
        (tmp_path / name).write_text(text)
        result = polyseme("report", work / "release", "--out", tmp_path / name, "--force")
        assert result.returncode == 2
        assert f"{name}: not made by this command" in result.stderr
        assert (tmp_path / name).read_text() == text
    page = tmp_path / "page.html"
    assert polyseme("report", work / "release", "--out", page).returncode == 0
    assert polyseme("report", work / "release", "--out", page).returncode == 2
    assert polyseme("report", work / "release", "--out", page, "--force").returncode == 0


def test_a_folder_is_no_place_for_a_file(work: Path, tmp_path: Path) -> None:
    for arguments in (
        ("report", work / "release", "--out"),
        ("init", work / "people.csv", "--out"),
        ("prior", "from-release", work / "release", "--of", "level", "--out"),
        ("hierarchy", "build", "intervals", "5", work / "people.csv", "--column", "age", "--out"),
    ):
        result = polyseme(*arguments, tmp_path, "--force")
        assert result.returncode == 2
        assert f"{tmp_path}: a folder, not a file" in result.stderr


@pytest.mark.parametrize("command", ["report", "estimate", "anonymize", "init", "ledger"])
def test_temporary_names_are_not_shown(
    work: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses to make anything under a temporary name."""

    def full(made: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(path: Any, *rest: Any, **options: Any) -> Any:
            if Path(path).name.startswith(".place"):
                raise OSError(28, "No space left on device", str(path))
            return made(path, *rest, **options)

        return refuse

    arguments = {
        "report": ("report", work / "release", "--out", tmp_path / "place.html"),
        "estimate": ("estimate", work / "release", "--of", "level", "--chart", tmp_path / "place.svg"),
        "anonymize": ("anonymize", work / "policy.yaml", work / "people.csv", "--out", tmp_path / "place"),
        "init": ("init", work / "people.csv", "--out", tmp_path / "place.yaml"),
        "ledger": ("ledger", "add", tmp_path / "place.json", work / "release", "--people", "us"),
    }[command]
    monkeypatch.setattr(Path, "touch", full(Path.touch))
    monkeypatch.setattr(Path, "mkdir", full(Path.mkdir))
    monkeypatch.setattr(os, "open", full(os.open))
    result = polyseme(*arguments)
    assert result.returncode == 2
    assert f"{tmp_path / 'place'}" in result.stderr
    assert "No space left on device" in result.stderr
    assert not [word for word in ("partial", ".mode", ".lock", ".old") if word in result.stderr]
    assert not list(tmp_path.iterdir())


def test_a_name_may_be_as_long_as_the_system_allows(work: Path, tmp_path: Path) -> None:
    out = tmp_path / ("n" * 250 + ".yaml")
    result = polyseme("init", work / "people.csv", "--out", out)
    assert result.returncode == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("command", ["estimate", "plan"])
def test_a_chart_is_drawn_or_refused_before_the_work(work: Path, tmp_path: Path, command: str) -> None:
    pytest.importorskip("altair")
    arguments = (
        ("estimate", work / "release", "--of", "level") if command == "estimate" else ("plan", work / "policy.yaml")
    )
    (tmp_path / "there.png").write_text("")
    (tmp_path / "folder.png").mkdir()
    for name, words in {
        "chart.doc": "saved as .png, .svg or .pdf, not as '.doc'",
        "chart": "not as a file without a suffix",
        "there.png": "exists already",
        "folder.png": "exists already",
    }.items():
        result = polyseme(*arguments, "--chart", tmp_path / name)
        assert result.returncode == 2
        assert name in result.stderr
        assert words in result.stderr
        assert not result.stdout, "it was refused after the work"
    assert polyseme(*arguments, "--chart", tmp_path / "chart.pdf").returncode == 0
    assert (tmp_path / "chart.pdf").read_bytes().startswith(b"%PDF")


# -- numbers and dates that are none -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "place", "words"),
    [
        ("protect: {ldp: {epsilon: .nan}}", "protect.ldp.epsilon", "found nan, which is not a number"),
        ("protect: {ldp: {epsilon: .inf}}", "protect.ldp.epsilon", "found inf, which is infinite"),
        ("protect: {closeness: {t: .nan}}", "protect.closeness.t", "which is not a number"),
        ("protect: {diversity: {l: .inf}}", "protect.diversity.l", "which is infinite"),
        ("protect: {diversity: {l: 2000000000}}", "protect.diversity.l", "absurd"),
        ("protect: {diversity: {l: 1000000}}", "protect.diversity.l", "1,000,000 candidates from a domain of 8 values"),
        ("prior: [1, 1, 1, 1, 1, 1, 1, .nan], protect: {diversity: {l: 2}}", "prior", ".nan, which is not a number"),
        ("prior: [1, 1, 1, 1, 1, 1, 1, .inf], protect: {diversity: {l: 2}}", "prior", ".inf, which is infinite"),
        ("distance: {taxonomy: icd01}, protect: {diversity: {l: 2}}", "distance.taxonomy", "did you mean 'icd10'"),
        ("distance: {taxonomy: moods}, protect: {diversity: {l: 2}}", "distance.taxonomy", "one of: countries"),
    ],
)
def test_odd_settings_are_called_what_they_are(tmp_path: Path, entry: str, place: str, words: str) -> None:
    (tmp_path / "odd.yaml").write_text(
        f"attributes:\n  level:\n    {{role: sensitive, domain: [a, b, c, d, e, f, g, h], {entry}}}\n"
    )
    result = polyseme("plan", "odd.yaml", cwd=tmp_path)
    assert result.returncode == 2
    assert f"odd.yaml, line 3: $.attributes.level.{place}: " in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        ("bins: [0, .nan, 5]", "a bin edge is .nan, which is not a number"),
        ("periods: {every: month, from: 2020-13, to: 2021-02}", "'2020-13' is no date of the calendar"),
        ("periods: {every: month, from: 2020-01, to: 2021-02-31}", "'2021-02-31' is no date of the calendar"),
    ],
)
def test_edges_that_are_no_edges(cut: str, words: str) -> None:
    with pytest.raises(ps.PolicyError, match=words):
        ps.plan(f"attributes: {{v: {{role: sensitive, {cut}, protect: {{diversity: {{l: 2}}}}}}}}")


def test_values_that_are_no_numbers_or_dates_are_called_that(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "amount,day\n5,2024-02-30\nQQMARKQQ,2024-01-05\nNaN,2024-01-05\ninf,QQMARKQQ\n-inf,2024-01-05\n99,2031-01-05\n"
    )
    (tmp_path / "p.yaml").write_text(
        "attributes:\n"
        "  amount: {role: sensitive, bins: [0, 3, 6, 9], protect: {diversity: {l: 2}}}\n"
        "  day: {role: sensitive, periods: {every: month, from: 2024-01, to: 2024-12}, protect: {diversity: {l: 2}}}\n"
    )
    result = polyseme("anonymize", "p.yaml", "t.csv", "--out", "out", cwd=tmp_path)
    assert result.returncode == 2
    for words in (
        "column 'amount': 1 value is not a number",
        "column 'amount': 1 value is written as nan, which is not a number",
        "column 'amount': 2 values are infinite",
        "column 'amount': 1 value falls outside the declared range of 3 values",
        "column 'day': 2 values are not a possible date",
        "column 'day': 1 value falls outside the declared range of 12 values",
    ):
        assert words in result.stderr
    assert "QQMARKQQ" not in result.stderr


@pytest.mark.parametrize(
    "described",
    [
        "domain: [x, y, z], protect: {diversity: {l: 2}}",
        "protect: {diversity: {l: 1}}",
        "bins: [0, 1, 2, 3], protect: {diversity: {l: 2}}",
        "bins: {count: 3}, protect: {diversity: {l: 1}}",
        "periods: month, protect: {diversity: {l: 1}}",
        "periods: {every: month, from: 2020-01, to: 2020-05}, protect: {diversity: {l: 2}}",
    ],
)
@pytest.mark.parametrize("typed", [True, False])
def test_a_column_without_any_value_may_have_a_category_for_that(tmp_path: Path, described: str, typed: bool) -> None:
    table = pl.DataFrame({"a": [1, 2, 3] * 20, "v": [None] * 60}, schema_overrides={"v": pl.String})
    if not typed:
        table.write_csv(tmp_path / "t.csv")
    described = f"role: sensitive, missing: {{category: none}}, {described}"
    rules = f"attributes: {{a: {{role: insensitive}}, v: {{{described}}}}}"
    release = ps.anonymize(table if typed else tmp_path / "t.csv", rules)
    assert ps.verify(release).holds
    found = dict(zip(*ps.estimate(release, "v").to_polars().select("v", "estimate").to_dict(as_series=False).values()))
    assert found["none"] == pytest.approx(60, abs=1e-3)


# -- what is handed in for something else ------------------------------------------------------------------------------


def test_a_policy_and_a_table_in_each_others_place(work: Path, tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    shutil.copy(work / "people.csv", tmp_path / "people.txt")
    for table in (work / "people.csv", tmp_path / "people.parquet", tmp_path / "people.txt"):
        for arguments in (("plan", table), ("anonymize", table, work / "policy.yaml", "--out", tmp_path / "out")):
            result = polyseme(*arguments)
            assert result.returncode == 2
            assert table.name in result.stderr
            assert "table, not" in result.stderr
            assert "polyseme anonymize POLICY DATA" in result.stderr
            assert "QQMARKQQ" not in result.stderr
    for arguments in (("init",), ("risk",), ("anonymize", work / "policy.yaml", "--out", tmp_path / "out")):
        result = polyseme(*arguments, work / "policy.yaml")
        assert result.returncode == 2
        assert "policy.yaml: by its name this is a policy or a document, not a table" in result.stderr
    for arguments in (("init",), ("risk",), ("plan", work / "policy.yaml", "--data")):
        result = polyseme(*arguments, work / "release")
        assert result.returncode == 2
        assert "release: a release, not a table" in result.stderr
    assert "release: a release, not a policy" in polyseme("plan", work / "release").stderr


def test_verify_with_a_policy_expects_a_table(work: Path) -> None:
    result = polyseme("verify", work / "release", "--policy", work / "policy.yaml")
    assert result.returncode == 2
    assert "--policy is for a table" in result.stderr
    assert "polyseme verify TABLE --policy POLICY" in result.stderr
    with pytest.raises(ps.PolicyError, match="is for a table"):
        ps.verify(ps.Release.open(work / "release"), POLICY)
    with pytest.raises(ps.PolicyError, match="needs a policy"):
        ps.verify(people())


def test_problems_of_a_policy_name_the_file_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "syntax.yaml").write_text("attributes:\n  a: {role: sensitive\n  b: [\n")
    assert "syntax.yaml, line 3, column 4: not valid YAML" in polyseme("plan", "syntax.yaml", cwd=tmp_path).stderr
    (tmp_path / "twice.yaml").write_text("attributes:\n  a: {role: sensitive}\n  a: {role: sensitive}\n")
    assert "twice.yaml, line 3, column 3" in polyseme("plan", "twice.yaml", cwd=tmp_path).stderr
    (tmp_path / "keys.yaml").write_text(
        "attributes:\n  a.b:\n    rle: x\n  a:\n    role: y\nmodels:\n  - {k-anonymity: {k: 2}}\n  - 5\n"
    )
    said = polyseme("plan", "keys.yaml", cwd=tmp_path).stderr
    for place in (
        "line 3: $.attributes.a.b.rle",
        "line 2: $.attributes.a.b: ",
        "line 5: $.attributes.a.role",
        "line 8: $.models[1]",
    ):
        assert f"keys.yaml, {place}" in said, said
    # What is found later, with the domain at hand, has its place in the file as well.
    (tmp_path / "late.yaml").write_text(POLICY.replace("l: 2, d: 2", "l: 20, d: 2"))
    (tmp_path / "t.csv").write_text("name,age,level\n1,2,a\n")
    for arguments in (("plan", "late.yaml"), ("anonymize", "late.yaml", "t.csv", "--out", "out")):
        said = polyseme(*arguments, cwd=tmp_path).stderr
        assert "late.yaml, line 9: $.attributes.level.protect.semantic-diversity.l" in said


def test_columns_with_commas_and_blanks_can_be_asked_for(tmp_path: Path) -> None:
    drawn = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "a, b": drawn.choice(["x", "y"], 200),
            " led": drawn.choice(["p", "q"], 200),
            "c d": drawn.choice(list("uvwxyz"), 200),
        }
    )
    table.write_csv(tmp_path / "t.csv")
    (tmp_path / "p.yaml").write_text(
        "attributes: {'a, b': {role: insensitive}, ' led': {role: insensitive}, 'c d': {role: sensitive, "
        "domain: [u, v, w, x, y, z], protect: {diversity: {l: 2}}}}"
    )
    assert polyseme("anonymize", "p.yaml", "t.csv", "--out", "out", cwd=tmp_path).returncode == 0
    for arguments in (
        ("estimate", "out", "--of", "c d", "--by", '"a, b"', "--by", '" led"'),
        ("estimate", "out", "--of", "c d", "--by", '"a, b"," led"'),
        ("evaluate", "out", "--original", "t.csv", "--of", "c d", "--by", '"a, b"'),
        ("report", "out", "--by", "a, b", "--out", "page.html"),
        ("risk", "t.csv", "--qi", '"a, b"', "--qi", '" led"', "--sensitive", "c d"),
        ("prior", "from-release", "out", "--of", "c d", "--by", '"a, b"'),
    ):
        result = polyseme(*arguments, cwd=tmp_path)
        assert result.returncode == 0, (arguments, result.stderr)
    result = polyseme("estimate", "out", "--of", "c d", "--by", "a, b", cwd=tmp_path)
    assert result.returncode == 2
    assert "--by '\"a, b\"'" in result.stderr


# -- from Python -------------------------------------------------------------------------------------------------------


def test_a_policy_may_be_a_file_a_text_or_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    document = {
        "attributes": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi-identifier"},
            "level": {"role": "sensitive", "domain": list("abcdefgh"), "protect": {"diversity": {"l": 2}}},
        }
    }
    one_line = "attributes: {v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    for policy in (tmp_path / "policy.yaml", str(tmp_path / "policy.yaml"), POLICY, document, ps.Policy.loads(POLICY)):
        assert ps.anonymize(people(), policy).manifest.records == ROWS
        assert ps.plan(policy).usable
    assert ps.plan(one_line).usable


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ps.anonymize(people(), None), ps.PolicyError, "expected a policy, not NoneType"),
        (lambda: ps.anonymize(people(), 3), ps.PolicyError, "expected a policy, not int"),
        (lambda: ps.anonymize(ps.Policy.loads(POLICY), people()), ps.PolicyError, "expected a policy, not DataFrame"),
        (lambda: ps.anonymize(ps.Policy.loads(POLICY), POLICY), ps.TableError, "expected a table, not a policy"),
        (lambda: ps.anonymize(3, POLICY), ps.TableError, "cannot read a table from int"),
        (lambda: ps.anonymize([1, 2], POLICY), ps.TableError, "cannot read a table from list"),
        (lambda: ps.plan({}), ps.PolicyError, "no attributes"),
        (lambda: ps.plan({"attributes": 3}), ps.PolicyError, "expected a mapping"),
        (lambda: ps.Policy(POLICY), ps.PolicyError, r"Policy\.loads"),  # type: ignore[arg-type]
        (lambda: ps.Policy.load(3), ps.PolicyError, "not int"),  # type: ignore[arg-type]
        (lambda: ps.Policy.loads(3), ps.PolicyError, "not int"),  # type: ignore[arg-type]
        (lambda: ps.Policy.from_dict("x"), ps.PolicyError, "expected a mapping, found text"),
        (lambda: ps.verify(3), ps.ReleaseError, "expected a release, not int"),
        (lambda: ps.estimate(None, "x"), ps.ReleaseError, "expected a release, not NoneType"),  # type: ignore[arg-type]
        (lambda: ps.attack(people()), ps.ReleaseError, "expected a release, not DataFrame"),  # type: ignore[arg-type]
        (lambda: ps.Release.open(3), ps.ReleaseError, "not int"),  # type: ignore[arg-type]
        (lambda: ps.risk(people(), qi=3), ps.QuestionError, "expected names of attributes, not int"),  # type: ignore[arg-type]
        (lambda: ps.risk(people(), qi=["age", 3]), ps.QuestionError, "not int"),  # type: ignore[list-item]
    ],
)
def test_wrong_types_are_errors_of_ours(call: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_wrong_types_in_a_question(work: Path) -> None:
    for wrong in ({"of": 3}, {"of": None}, {"of": ["level"], "level": "high"}, {"of": ["level"], "estimator": 3}):
        with pytest.raises(ps.QuestionError):
            ps.estimate(work / "release", **wrong)  # type: ignore[arg-type]


def test_pandas_frames_that_are_no_tables() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(ps.TableError, match="the same column name more than once: 'x'"):
        ps.anonymize(pd.DataFrame([[1, 2]], columns=["x", "x"]), POLICY)
    with pytest.raises(ps.TableError, match="cannot read a table from Series"):
        ps.init(pd.Series([1, 2]))


# -- questions that are too large, and intervals -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 records with attributes of 15, 14, 16 and 30 values, and a column with a value for nearly everybody."""
    drawn, sizes = np.random.default_rng(1), (15, 14, 16, 30, 60)
    table = {f"s{place}": drawn.integers(0, size, 500) for place, size in enumerate(sizes)}
    described = "".join(
        f"  s{place}: {{role: sensitive, domain: {list(range(size))}, protect: {{diversity: {{l: 3}}}}}}\n"
        for place, size in enumerate(sizes)
    )
    folder = tmp_path_factory.mktemp("wide") / "release"
    ps.anonymize(
        pl.DataFrame({**table, "by": drawn.integers(0, 480, 500)}),
        f"attributes:\n  by: {{role: insensitive}}\n{described}",
        folder,
    )
    return folder


@pytest.mark.slow
def test_a_question_of_very_many_cells_is_answered_and_its_cost_said_first(wide: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = polyseme("estimate", wide, "--of", "s0,s1,s2,s3", "--csv")
        found = ps.estimate(wide, ["s0", "s1", "s2", "s3"])
    assert result.returncode == 0
    assert result.stderr.startswith("Note: 100,800 cells for 500 records: ")
    assert "nan" not in result.stdout.lower()
    assert found.values.size == 100_800
    for array in (found.values, found.stderr, found.low, found.high):
        assert np.isfinite(array).all()
    assert found.values.sum() == pytest.approx(500, rel=1e-6)
    small = polyseme("estimate", wide, "--of", "s0", "--csv")
    assert "cells for" not in small.stderr


def test_a_question_beyond_all_measure_is_refused_at_once(wide: Path) -> None:
    for arguments in (("--of", "s0,s1,s2,s3,s4"), ("--of", "s0,s1,s2,s3", "--by", "by")):
        result = polyseme("estimate", wide, *arguments)
        assert result.returncode == 2
        assert "at most 5,000,000 are estimated" in result.stderr


@pytest.mark.parametrize(
    "estimator", ["paper", "simple", "existing", "valueadding", "bayes", "inverse", "ml", "shrink"]
)
@pytest.mark.parametrize("promise", ["diversity: {l: 3}", "semantic-diversity: {l: 2, d: 2}", "ldp: {epsilon: 1}"])
def test_every_interval_holds_its_value(estimator: str, promise: str) -> None:
    drawn = np.random.default_rng(4)
    rules = (
        "attributes: {b: {role: insensitive}, v: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7, 8], "
        f"distance: {{line: rank}}, protect: {{{promise}}}}}}}"
    )
    for values in (np.full(60, 2), drawn.integers(0, 9, 60), np.minimum(drawn.geometric(0.4, 60), 8)):
        release = ps.anonymize(pl.DataFrame({"b": drawn.integers(0, 4, 60), "v": values}), rules)
        for by in ((), ("b",)):
            for nonnegative in ("no", "project"):
                found = ps.estimate(release, "v", by, estimator=estimator, nonnegative=nonnegative)  # type: ignore[arg-type]
                assert np.isfinite(found.low).all()
                assert (found.low <= found.values + 1e-9).all()
                assert (found.values <= found.high + 1e-9).all()
