"""What k, l and t a table has, without a policy."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import polyseme as ps
from polyseme.cli import cli
from polyseme.models import Background, check_models
from polyseme.tables.equivalence_classes import class_of_rows, kept_rows

NINE = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]
HOSPITAL = pl.DataFrame(
    {
        "zip": ["13*", "13*", "13*", "14*", "14*", "15*", "*"],
        "age": ["4*", "4*", "4*", "5*", "5*", "5*", "*"],
        "ill": ["flu", "flu", "cold", "ulcer", "ulcer", "flu", "flu"],
        "pay": [3, 4, 5, 6, 11, 8, 9],
    }
)


def by_model(frame: pl.DataFrame, known: list[str], name: str, ground: str = "equal") -> dict[str, float | None]:
    """The worst value of each model, as `verify` has it."""
    specs: list[dict[str, dict[str, Any]]] = [
        {"k-anonymity": {"k": 1}},
        {"distinct-diversity": {"l": 1}},
        {"entropy-diversity": {"l": 1}},
        {"frequency-diversity": {"l": 1}},
        {"closeness": {"t": 1.0, "ground": ground}},
    ]
    verdicts = check_models(frame, known, specs, sensitive=[name], background=Background(missing="category"))
    return {verdict.model: verdict.worst for verdict in verdicts}


def test_a_table_counted_by_hand() -> None:
    found = ps.risk(HOSPITAL, ["zip", "age"], ["ill", "pay"])
    # Classes of 3, 2 and 1 records; the last row is suppressed.
    assert (found.k, found.unique, found.classes, found.records, found.suppressed) == (1, 1, 3, 6, 1)
    assert (found.unique_share, found.average_size) == (1 / 6, 2.0)
    assert (found.prosecutor_risk, found.marketer_risk) == (1.0, 0.5)
    assert [(band.low, band.high, band.classes, band.records) for band in found.sizes[:4]] == [
        (1, 1, 1, 1),
        (2, 2, 1, 2),
        (3, 4, 1, 3),
        (5, 9, 0, 0),
    ]
    ill, pay = found.sensitive
    assert (ill.l, ill.entropy_l, ill.largest_share, ill.homogeneous, ill.values) == (1, 1.0, 1.0, 3, 3)
    assert (ill.guessed, ill.baseline) == (5 / 6, 0.5)
    # In the table flu 3/6, ulcer 2/6, cold 1/6: the class of ulcers is 4/6 away.
    assert (ill.t, ill.ground) == (pytest.approx(4 / 6, abs=1e-15), "equal")
    # Of 3, 4, 5, 6, 8, 11 the class with 8 alone is worst: running totals differ by 1, 2, 3, 4 and 1 sixths.
    assert (pay.ground, pay.t_equal) == ("ordered", pytest.approx(5 / 6, abs=1e-15))
    assert pay.t == pytest.approx(11 / 30, abs=1e-15)
    assert (found.l, found.t) == (1, ill.t)


def test_columns_counted_by_hand() -> None:
    zip_code, age = ps.risk(HOSPITAL, ["zip", "age"]).columns
    assert (zip_code.distinct, zip_code.distinction) == (3, 0.5)
    # Of 15 pairs 3 + 1 agree in zip, 3 + 3 in age.
    assert zip_code.separation == pytest.approx(11 / 15, abs=1e-15)
    assert age.separation == pytest.approx(9 / 15, abs=1e-15)
    assert (zip_code.unique_without, zip_code.k_without, zip_code.classes_without) == (0, 3, 2)
    assert (age.unique_without, age.k_without, age.classes_without) == (1, 1, 3)


cells = st.sampled_from(["a", "b", "*", None])
tables = st.lists(
    st.tuples(cells, cells, st.sampled_from(["x", "y", None]), st.integers(0, 3)), min_size=1, max_size=12
)


@given(tables)
@settings(max_examples=60)
def test_equal_to_what_the_models_say(rows: list[tuple[Any, ...]]) -> None:
    frame = pl.DataFrame(rows, {"p": pl.String, "q": pl.String, "s": pl.String, "n": pl.Int64}, orient="row")
    found = ps.risk(frame, ["p", "q"], ["s", "n", "q"])
    for item in found.sensitive:
        worst = by_model(frame, ["p", "q"], item.name, item.ground)
        assert item.l == worst["distinct-diversity"]
        assert item.entropy_l == pytest.approx(worst["entropy-diversity"], abs=1e-12)
        assert item.largest_share == pytest.approx(1 / (worst["frequency-diversity"] or 0), abs=1e-12)
        assert item.t == pytest.approx(worst["closeness"], abs=1e-12)
        assert item.t_equal == pytest.approx(by_model(frame, ["p", "q"], item.name)["closeness"], abs=1e-12)
        assert item.known == tuple(name for name in ("p", "q") if name != item.name)
    assert found.k == by_model(frame, ["p", "q"], "s")["k-anonymity"]


@given(tables)
@settings(max_examples=60)
def test_equal_to_the_definitions(rows: list[tuple[Any, ...]]) -> None:
    frame = pl.DataFrame(rows, {"p": pl.String, "q": pl.String, "s": pl.String, "n": pl.Int64}, orient="row")
    kept = [row for row in rows if row[:2] != ("*", "*")] or rows
    found = ps.risk(frame, ["p", "q", "n"] if len(kept) == len(rows) else ["p", "q"])
    width = len(found.quasi_identifiers)
    keys = [(*row[:2], row[3])[:width] for row in kept]
    sizes = Counter(keys)
    assert (found.records, found.suppressed) == (len(kept), len(rows) - len(kept))
    assert (found.k, found.classes) == (min(sizes.values()), len(sizes))
    assert found.unique == sum(size == 1 for size in sizes.values())
    for place, column in enumerate(found.columns):
        others = Counter(key[:place] + key[place + 1 :] for key in keys)
        pairs = [a[place] != b[place] for a, b in combinations(keys, 2)]
        assert column.separation == (pytest.approx(np.mean(pairs), abs=1e-12) if pairs else None)
        assert column.distinct == len({key[place] for key in keys})
        assert column.unique_without == sum(size == 1 for size in others.values())
        assert (column.k_without, column.classes_without) == (min(others.values()), len(others))


@given(tables)
@settings(max_examples=30)
def test_kept_rows_are_those_with_a_class(rows: list[tuple[Any, ...]]) -> None:
    frame = pl.DataFrame(rows, {"p": pl.String, "q": pl.String, "s": pl.String, "n": pl.Int64}, orient="row")
    for keys in ([], ["p"], ["p", "q"], ["p", "n"]):
        assert (kept_rows(frame, keys) == (class_of_rows(frame, keys) >= 0)).all()


def test_a_text_table_is_read_as_verify_reads_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = 400
    frame = pl.DataFrame(
        {
            "zip": rng.choice(["0130", "130", "14*"], rows),
            "age": rng.choice(["1", "2", "3"], rows),
            "pay": rng.choice(["5", "10", "200"], rows, p=[0.6, 0.3, 0.1]),
            "job": rng.choice(["x", "y"], rows, p=[0.9, 0.1]),
        }
    )
    frame.write_csv(tmp_path / "table.csv")
    policy = ps.Policy.loads("""
attributes:
  zip: {role: quasi-identifier}
  age: {role: quasi-identifier}
  pay: {role: sensitive}
  job: {role: sensitive-qid}
models:
  - {k-anonymity: {k: 1}}
  - {distinct-diversity: {l: 1}}
  - {entropy-diversity: {l: 1}}
  - {closeness: {t: 1, ground: ordered, attribute: pay}}
  - {closeness: {t: 1, attribute: job}}
""")
    worst = {(item.model, item.attribute): item.worst for item in ps.verify(tmp_path / "table.csv", policy).verdicts}
    found = ps.risk(tmp_path / "table.csv", ["zip", "age", "job"], ["pay", "job"])
    pay, job = found.sensitive
    assert found.k == worst["k-anonymity", None]
    for item in (pay, job):
        assert item.l == worst["distinct-diversity", item.name]
        assert item.entropy_l == pytest.approx(worst["entropy-diversity", item.name], abs=1e-12)
        assert item.t == pytest.approx(worst["closeness", item.name], abs=1e-12)
    assert (pay.ground, job.ground) == ("ordered", "equal")
    assert pay.t is not None
    assert pay.t_equal is not None
    # 5, 10 and 200 are three places in their order, not in that of letters.
    assert pay.t < pay.t_equal


def test_adult_has_the_published_figures(adult: Path) -> None:
    found = ps.risk(adult, NINE, "occupation")
    assert found.classes == 19_502
    assert found.marketer_risk == pytest.approx(0.6465751607983555, abs=1e-15)
    assert found.unique_share == pytest.approx(0.5142895033485844, abs=1e-15)
    assert found.sensitive[0].known == tuple(name for name in NINE if name != "occupation")
    # What another program counts: without age, 19,502 classes become fewer.
    frame = pl.read_csv(adult, separator=";", infer_schema=False)
    without = frame.group_by([name for name in NINE if name != "age"]).len()["len"]
    age = found.columns[NINE.index("age")]
    assert (age.classes_without, age.unique_without) == (len(without), (without == 1).sum())
    counts = frame["age"].value_counts()["count"].to_numpy()
    pairs = frame.height * (frame.height - 1)
    assert age.separation == pytest.approx(1 - (counts * (counts - 1)).sum() / pairs, abs=1e-14)


def test_columns_are_guessed_as_init_does() -> None:
    rows = 50
    frame = pl.DataFrame(
        {
            "Name": [f"person {row}" for row in range(rows)],
            "notes": [f"free text {row}" for row in range(rows)],
            "sex": ["f", "m"] * 25,
            "height": [150 + row % 7 for row in range(rows)],
            "disease": ["flu", "cold", "ulcer", "none", "flu"] * 10,
            "empty": pl.Series([None] * rows, dtype=pl.String),
        }
    )
    found = ps.risk(frame)
    assert found.quasi_identifiers == ("sex", "height")
    roles = {choice.name: (choice.role, choice.why) for choice in found.choices}
    assert roles["Name"] == ("identifier", "by its name")
    assert roles["notes"][0] == "identifier"
    assert roles["disease"] == ("sensitive", "by its name")
    assert roles["empty"][0] == "insensitive"
    assert "published" not in str(roles)
    assert "name it with --sensitive" in str(found)
    given = ps.risk(frame, sensitive=["sex"])
    assert given.quasi_identifiers == ("height",)
    assert given.sensitive[0].known == ("height",)
    assert not ps.risk(frame, qi=["sex"]).choices


def test_a_table_in_which_nothing_can_be_guessed_asks_for_names() -> None:
    frame = pl.DataFrame({"name": ["ann", "bob"]})
    with pytest.raises(ps.TableError, match="--qi"):
        ps.risk(frame)
    assert ps.risk(frame, []).k == 2


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_next_to_nothing(rows: int, tmp_path: Path) -> None:
    frame = HOSPITAL.head(rows)
    found = ps.risk(frame, ["zip", "age"], ["ill", "pay", "age"])
    assert (found.k, found.l, found.t) == ((None, None, None) if not rows else (1, 1, 0.0))
    assert (found.classes, found.unique, found.records) == (rows, rows, rows)
    assert ps.Risk.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found
    assert found._repr_html_()
    assert str(found)
    frame.write_csv(tmp_path / "small.csv")
    assert ps.risk(tmp_path / "small.csv", ["zip", "age"]).classes == rows
    if rows:
        assert ps.risk(tmp_path / "small.csv").records == rows
    else:
        # There is nothing to guess from.
        with pytest.raises(ps.TableError, match="has no rows"):
            ps.risk(tmp_path / "small.csv")


def test_all_rows_suppressed_is_one_class() -> None:
    found = ps.risk(pl.DataFrame({"zip": ["*"] * 4, "ill": ["a", "b", "b", "*"]}), "zip", "ill")
    assert (found.k, found.classes, found.suppressed) == (4, 1, 0)
    assert (found.sensitive[0].l, found.sensitive[0].missing) == (3, 1)
    assert "1 records have no value" in str(found)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, -0.0, 0.0, float("nan"), None],
        [True, False, False, None, None],
        [dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(2020, 1, 2), None, None],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2), None, None],
        [dt.time(1), dt.time(2), dt.time(2), None, None],
        [dt.timedelta(1), dt.timedelta(2), dt.timedelta(2), None, None],
        [Decimal("1.5"), Decimal("2.5"), Decimal("2.50"), None, None],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_every_type_of_column(values: list[Any]) -> None:
    frame = pl.DataFrame({"q": values, "s": values}, strict=False)
    found = ps.risk(frame, "q", "s")
    # A missing value is a value of its own.
    assert (found.classes, found.k, found.unique) == (3, 1, 1)
    assert (found.sensitive[0].values, found.sensitive[0].missing) == (3, 2)
    assert ps.risk(frame, ["q", "s"]).classes == 3
    assert ps.risk(pl.DataFrame({"q": [None, None]}), "q").k == 2


def test_every_kind_of_table(tmp_path: Path) -> None:
    expected = ps.risk(HOSPITAL, ["zip", "age"], "ill")
    HOSPITAL.write_parquet(tmp_path / "t.parquet")
    HOSPITAL.write_csv(tmp_path / "t.csv", separator=";")
    HOSPITAL.write_csv(tmp_path / "latin.csv")
    coded = HOSPITAL.cast({"zip": pl.Categorical, "ill": pl.Categorical})
    for data in (
        coded,
        HOSPITAL.lazy(),
        HOSPITAL.to_pandas(),
        HOSPITAL.to_arrow(),
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
    ):
        assert ps.risk(data, ["zip", "age"], "ill") == expected
    assert ps.risk(tmp_path / "latin.csv", ["zip", "age", "zip"], ["ill", "ill"], encoding="latin-1") == expected


def test_combinations_beyond_one_number_are_told_apart() -> None:
    # Five columns of 2^14 values: packed into 64 bits without care, only 8 of the 14 bits of the first would be left.
    values = pl.Series(range(2**14))
    frame = pl.concat(
        [
            pl.DataFrame(dict.fromkeys("abcde", values)),
            pl.DataFrame({"a": values}).with_columns(pl.lit(7, pl.Int64).alias(name) for name in "bcde"),
        ]
    )
    found = ps.risk(frame, list("abcde"))
    assert (found.classes, found.unique) == (2**15 - 1, 2**15 - 2)


def test_the_order_of_numbers_has_no_place_for_a_missing_one() -> None:
    frame = pl.DataFrame({"q": ["a", "a", "b", "b"], "pay": [1, 2, 3, None]})
    (pay,) = ps.risk(frame, "q", "pay").sensitive
    assert (pay.ground, pay.t, pay.t_equal, pay.missing) == ("equal", 0.5, 0.5, 1)
    assert ps.risk(frame.head(3), "q", "pay").sensitive[0].ground == "ordered"


def test_wrong_columns_are_named_at_once_with_their_neighbors() -> None:
    with pytest.raises(ps.TableError) as caught:
        ps.risk(HOSPITAL, ["zpi", "age"], ["il"])
    assert "zpi: the table has no such column\n  hint: did you mean 'zip'?" in str(caught.value)
    assert "did you mean 'ill'?" in str(caught.value)
    assert len(caught.value.problems) == 2
    lists = HOSPITAL.with_columns(sets=pl.lit(["flu", "cold"]), raw=pl.lit(b"x"))
    with pytest.raises(ps.TableError) as caught:
        ps.risk(lists, ["zip", "sets"], ["raw"])
    assert len(caught.value.problems) == 2
    assert "lists, records or bytes" in str(caught.value)
    assert ps.risk(lists).quasi_identifiers == ("zip", "age", "ill", "pay")


def test_double_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ps.TableError, match="the same column name more than once: 'a'"):
        ps.risk(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "a")
    (tmp_path / "double.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ps.TableError, match="columns 1 and 3"):
        ps.risk(tmp_path / "double.csv", "a")


def test_results_come_back_from_their_document() -> None:
    for found in (ps.risk(HOSPITAL, ["zip", "age"], ["ill", "pay"]), ps.risk(HOSPITAL)):
        document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        again = ps.Risk.from_dict(document)
        assert again == found
        assert again.to_dict() == document
        assert (str(again), again._repr_html_()) == (str(found), found._repr_html_())
    with pytest.raises(ps.InvalidInput, match="stored Risk"):
        ps.Risk.from_dict({"k": 1})


def test_no_value_is_shown_and_names_cannot_steer() -> None:
    frame = HOSPITAL.with_columns(ill=pl.lit("QZXMARK")).rename({"zip": "z\x1b[2J<b>ip"})
    found = ps.risk(frame, ["z\x1b[2J<b>ip", "age"], ["ill"])
    shown = str(found) + found._repr_html_() + json.dumps(found.to_dict()) + repr(found)
    assert not any(text in shown for text in ("QZXMARK", "13*", "4*"))
    assert "\x1b" not in str(found)
    assert "<b>" not in found._repr_html_()


def terminal(found: ps.Risk, width: int) -> list[str]:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(found)
    return captured.get().splitlines()


def test_the_terminal_view_fits_80_columns_without_cutting_words(adult: Path) -> None:
    found = ps.risk(adult, None, ["occupation", "age"])
    narrow, wide = terminal(found, 80), terminal(found, 200)
    assert max(map(len, narrow)) <= 80
    words = Counter(word for line in wide for word in line.split() if "─" not in word)
    assert Counter(word for line in narrow for word in line.split() if "─" not in word) == words


def test_the_first_line_says_what_matters() -> None:
    assert "1 of 6 records (16.7%) is unique" in str(ps.risk(HOSPITAL, ["zip", "age"])).splitlines()[0]
    found = " ".join(str(ps.risk(HOSPITAL, ["zip", "age"])).split())
    assert "Generalize zip first: without it none stays unique." in found
    safe = ps.risk(HOSPITAL, ["age"])
    assert str(safe).startswith("No record is unique: each of 6 hides among at least 3.")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["risk", *arguments])


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    HOSPITAL.write_csv(path)
    result = run(str(path), "--qi", "zip,age", "--sensitive", "ill", "--sensitive", "pay", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document == ps.risk(path, ["zip", "age"], ["ill", "pay"]).to_dict()
    assert {"k", "l", "t", "unique", "classes"} <= document.keys()
    assert (document["k"], document["l"], document["unique"], document["classes"]) == (1, 1, 1, 3)
    shown = run(str(path))
    assert shown.exit_code == 0
    assert "How the columns were chosen" in shown.output
    assert run(str(path), "--qi", "zpi").exit_code != 0
    assert run(str(path), "--qi", ",").exit_code == 2


@settings(max_examples=15, deadline=None)
@given(st.data(), st.integers(1, 25), st.integers(1, 40))
def test_each_column_is_left_out_as_by_counting_the_others(data: st.DataObject, columns: int, rows: int) -> None:
    values = data.draw(st.integers(0, 2**32 - 1).map(np.random.default_rng)).integers(
        0, data.draw(st.sampled_from([1, 2, 60, 2**40])), (rows, columns)
    )
    values = values * (np.random.default_rng(columns).random(columns) < 0.5)  # some say nothing
    names = [f"c{place}" for place in range(columns)]
    found = ps.risk(pl.DataFrame(values, schema=names), names)
    for place, column in enumerate(found.columns):
        sizes = Counter(tuple(row) for row in np.delete(values, place, axis=1).tolist())
        assert (column.unique_without, column.k_without) == (list(sizes.values()).count(1), min(sizes.values()))
        assert (column.distinct, column.classes_without) == (len(set(values[:, place].tolist())), len(sizes))
