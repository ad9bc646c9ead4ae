"""The laws of hierarchies, over every kind of rule."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.documents import Folder
from polyseme.kernel.errors import InvalidInput, PolicyError, QuestionError, TableError
from polyseme.methods.microdata import Ladder
from polyseme.semantics.hierarchies import (
    Hierarchy,
    Intervals,
    MissingAs,
    Suppression,
    coverage,
    fit,
    read_hierarchy,
    values_of,
)
from polyseme.semantics.hierarchies.builders import arx_text, read_listed

NUMBERS = st.one_of(st.integers(-300, 300), st.decimals(-50, 50, places=2).map(str))
DATES = st.dates().map(str)
CODES = st.text("0123456789", min_size=1, max_size=6)
COUNTRIES = st.sampled_from(["DE", "France", "JPN", "Kenya", "Brazil"])
KINDS: list[tuple[object, st.SearchStrategy[object]]] = [
    ({"intervals": [5, 10, 20]}, NUMBERS),
    ({"intervals": [0.1, 0.5, 2]}, NUMBERS),
    ({"dates": ["day", "month", "quarter", "year", "decade"]}, DATES),
    ({"prefix": 5}, CODES),
    ({"prefix": [3, 1]}, CODES),
    ({"taxonomy": "countries"}, COUNTRIES),
    ({"taxonomy": "countries", "unknown": "other"}, st.one_of(COUNTRIES, CODES)),
    ({"tree": {"lung": {"upper": ["flu"], "lower": ["asthma", "copd"]}, "skin": {"any": ["rash"]}}},
     st.sampled_from(["flu", "asthma", "copd", "rash"])),
    ("suppress", st.text("abc é", max_size=3)),
]  # fmt: skip


def columns(values: st.SearchStrategy[object]) -> st.SearchStrategy[pl.Series]:
    return st.lists(st.one_of(st.none(), values), max_size=12).map(
        lambda found: pl.Series("c", [None if value is None else str(value) for value in found], dtype=pl.String)
    )


def check_laws(hierarchy: Hierarchy, series: pl.Series) -> None:
    codes = hierarchy.codes(series)
    assert hierarchy.generalize(series, 0).equals(series)
    assert hierarchy.labels[-1] == ("*",)
    assert set(hierarchy.generalize(series, hierarchy.height)) <= {"*"}
    assert np.array_equal(hierarchy.groups[0], np.arange(len(hierarchy.labels[0])))
    for level in range(1, hierarchy.height + 1):
        finer, coarser = hierarchy.groups[level - 1], hierarchy.groups[level]
        assert len(set(zip(finer.tolist(), coarser.tolist()))) == len(set(finer.tolist()))
        assert len(hierarchy.labels[level]) == len(set(hierarchy.labels[level]))
        groups = hierarchy.groups_at(codes, level).tolist()
        shown = [hierarchy.labels[level][group] if group >= 0 else None for group in groups]
        assert hierarchy.generalize(series, level).to_list() == shown


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind[0])[:24])
@pytest.mark.parametrize("missing", ["leaf", "wildcard"])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_laws(kind: tuple[object, st.SearchStrategy[object]], missing: MissingAs, data: st.DataObject) -> None:
    series = data.draw(columns(kind[1]))
    rule = read_hierarchy(kind[0]).open(Folder(Path()))
    check_laws(fit(rule, values_of([series]), missing), series)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind[0])[:24])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_what_is_written_reads_back(kind: tuple[object, st.SearchStrategy[object]], data: st.DataObject) -> None:
    series = data.draw(columns(kind[1]).filter(lambda found: bool(len(found.drop_nulls()))))
    if any(value.strip() == "" for value in series.drop_nulls()):
        return  # nothing that a file can list
    made = fit(read_hierarchy(kind[0]).open(Folder(Path())), values_of([series]))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "h.csv"
        file.write_text(arx_text(made), encoding="utf-8")
        again = fit(read_listed(file))
    assert list(again.paths()) == [path for path, _ in zip(made.paths(), made.leaves)]


@given(st.decimals(-1000, 1000, places=3), st.sampled_from([(5, 10, 20), (0.1, 0.3), (0.25,)]))
@settings(max_examples=50, deadline=None)
def test_a_number_lies_in_its_intervals(number: Decimal, widths: tuple[float, ...]) -> None:
    for level, width in zip(Intervals(widths).labels(pl.Series([str(number)])), widths):
        low, high = (Decimal(edge) for edge in level[0].strip("[)").split(", "))
        assert low <= number < high
        assert high - low == Decimal(str(width))


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "one", "", "1e+300", "3e40"])
def test_what_is_no_number_has_no_interval(text: str) -> None:
    assert Intervals((5,)).known(pl.Series([text, "-7"])).to_list() == [False, True]


def test_a_group_with_two_parents_is_no_hierarchy() -> None:
    with pytest.raises(PolicyError, match="1 groups of level 1 have more than one parent at level 2"):
        Hierarchy.from_labels(["a", "b", "c"], [["x", "x", "y"], ["p", "q", "q"]])


def test_missing_values() -> None:
    column = pl.Series([31, None])
    rule = Intervals((5,))
    assert fit(rule, values_of([column])).generalize(column, 1).to_list() == ["[30, 35)", "(missing)"]
    wild = fit(rule, values_of([column]), "wildcard")
    assert wild.generalize(column, 1).to_list() == ["[30, 35)", None]
    assert wild.generalize(column, 2).to_list() == ["*", "*"]
    assert wild.codes(column).tolist() == [0, -1]


def test_values_without_a_place_are_counted_and_not_named() -> None:
    rule = Intervals((5,))
    column = pl.Series(["31", "secret", "secret"])
    found = coverage(rule, values_of([column]))
    assert (found.unknown_values, found.unknown_records, found.complete) == (1, 2, False)
    with pytest.raises(TableError, match=r"1 of 2 values \(2 of 3 records\)") as error:
        fit(rule, values_of([column]))
    assert "secret" not in str(error.value)
    with pytest.raises(TableError, match="2 of 3 records") as error:
        fit(rule, values_of([pl.Series(["31"])])).generalize(column, 1)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;x;*\nb;x\n", r"uneven depth: 1 of 2 values do not have 3 levels, the first in line 2"),
        ("a;x;*\nb;;*\n", "uneven depth: 1 of 2 values do not have 3 levels, the first in line 2"),
        ("a;x;p;*\nb;x;q;*\n", "two parents: at level 1, 1 entry is .* the first in line 1 and line 2"),
        ("a;x;*\na;y;*\nb;y;*\n", "two parents: at level 0, 1 entry is .* the first in line 1 and line 2"),
        ("1;x;*\n1.0;y;*\n", "two parents: at level 0, 1 entry is"),
        ("age;group;root\n1;x;*\n2;x;*\n", "line 1 has another root"),
        ("\n", "is empty"),
    ],
)
def test_files_that_are_no_hierarchy(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text(text)
    with pytest.raises(PolicyError, match=message):
        read_listed(tmp_path / "h.csv")


def test_a_file_in_the_form_of_arx(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("1;0-4;0-9;*\n2;0-4;0-9;*\n7;5-9;0-9;*\n")
    found = fit(read_listed(tmp_path / "h.csv"))
    assert (found.height, found.leaves) == (3, ("1", "2", "7"))
    assert found.generalize(pl.Series([2.0, 7.0]), 1).to_list() == ["0-4", "5-9"]
    with pytest.raises(QuestionError, match="no level 4"):
        found.generalize(pl.Series([1]), 4)


@pytest.mark.parametrize(
    ("spec", "places"),
    [
        ({"intervals": [5, 12]}, ["intervals[1]"]),
        ({"intervals": [0, -1]}, ["intervals[0]", "intervals[1]"]),
        ({"intervals": []}, ["intervals"]),
        ({"intervals": ["a"]}, ["intervals"]),
        ({"dates": ["year", "month"]}, ["dates"]),
        ({"dates": ["month", "week"]}, ["dates[1]"]),
        ({"prefix": 0}, ["prefix"]),
        ({"prefix": [1, 3]}, ["prefix"]),
        ({"taxonomy": "icd"}, ["taxonomy"]),
        ({"intervalls": [5], "missing": "no"}, ["intervalls", "missing"]),
        ({"prefix": 2, "dates": ["day"]}, [""]),
        ({}, [""]),
        ([5], [""]),
        ({"tree": {"a": ["b"], "c": {"d": ["e"]}}}, ["tree"]),
    ],
)
def test_every_problem_has_its_place(spec: object, places: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        read_hierarchy(spec)
    assert [problem.where for problem in error.value.problems] == places


@pytest.mark.parametrize("missing", ["leaf", "wildcard"])
def test_a_leaf_for_missing_values_needs_missing_values(missing: MissingAs) -> None:
    """A leaf that no record has makes every group look smaller."""
    full, gap = pl.Series(["a", "b"]), pl.Series(["a", "b", None])
    assert [Ladder.of("q", fit(Suppression(), values_of([c]), missing)).leaves for c in (full, gap)] == [2, 3]
    with pytest.raises(TableError, match="1 of 3 records have a value that the hierarchy lacks"):
        fit(Suppression(), values_of([full]), missing).generalize(gap, 1)
