"""An estimated table is drawn as a report draws it: a title, units, the same marks, readable intervals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from polyseme.results.drawing.bars import chart_svg, distribution_chart
from polyseme.results.drawing.distribution import COLORS, Distribution
from polyseme.results.table import Table


def table(groups: int = 1, sizes: tuple[int, ...] = (3,), by: bool = True) -> Table:
    """Cells of 10, 11, 12 .. records, each between 2 less and 5 more."""
    shape = (groups, *sizes)
    values = 10.0 + np.arange(np.prod(shape), dtype=float).reshape(shape)
    totals = values.reshape(groups, -1).sum(axis=1)
    labels = tuple(
        tuple(f"{letter}{place}" for place in range(size)) for letter, size in zip("abc", sizes, strict=False)
    )
    named = ("income", "job", "car")[: len(sizes)]
    cells = {"sex": tuple(f"s{group}" for group in range(groups))} if by else {}
    return Table(
        named, labels, cells, values, np.ones(shape), values - 2, values + 5, "ml", int(totals.sum()), totals, level=0.9
    )


def title_of(chart: Any) -> tuple[str, str]:
    title = chart.to_dict()["title"]
    return title["text"], title["subtitle"][0]


def texts_of(chart: Any) -> set[str]:
    return set(re.findall(r'aria-label="([^"]*)" role="graphics-symbol"', chart_svg(chart)))


def test_one_attribute_has_a_title_units_and_intervals() -> None:
    drawn = table(by=False).plot()
    assert title_of(drawn) == (
        "income: estimated number of records",
        "33 records; estimator ml; the lines are 90% intervals",
    )
    assert texts_of(drawn) == {f"a{n}: {10 + n} estimated, 90% interval {8 + n} to {15 + n}" for n in range(3)}
    assert ">records</text>" in chart_svg(drawn)


def test_the_marks_are_those_of_a_report() -> None:
    made = table(by=False)
    same = Distribution(
        "income", ["a0", "a1", "a2"], None, made.values[0], made.low[0], made.high[0], ordered=True, level=0.9
    )
    report = distribution_chart(same, legend=False).to_dict()
    drawn = made.plot().to_dict()
    assert {key: value for key, value in drawn.items() if key != "title"} == report
    assert set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', chart_svg(made.plot()))) <= set(COLORS.values())


def test_groups_are_shown_in_percent_of_their_records_and_on_one_scale() -> None:
    drawn = table(2).plot()
    assert title_of(drawn)[0] == "income: estimated share of the records of each group, in percent"
    parts = drawn.to_dict()["concat"]
    assert [part["title"] for part in parts] == ["sex = s0: 33 records", "sex = s1: 42 records"]
    ends = {layer["encoding"]["y"]["scale"]["domainMax"] for part in parts for layer in part["layer"]}
    assert ends == {55.0}  # 17 of 33 records are 51.5%
    assert "a0: 30.3% estimated, 90% interval 24.2% to 45.5%" in texts_of(drawn)


def test_many_groups_become_one_heat_map() -> None:
    drawn = table(13).plot()
    assert drawn.to_dict()["layer"][0]["mark"]["type"] == "rect"
    assert "sex = s0, a0: 30.3% of the group" in texts_of(drawn)
    assert "the 60 first of 70 groups" in title_of(table(70).plot())[1]


def test_two_attributes_are_squares_in_numbers_of_records() -> None:
    drawn = table(sizes=(3, 2), by=False).plot()
    assert title_of(drawn)[0] == "income and job: estimated number of records"
    assert "a1, b1: 13 records, 90% interval 11 to 18" in texts_of(drawn)
    assert len(texts_of(drawn)) == 6
    assert ">records</text>" in chart_svg(drawn)
    by_sex = table(2, (3, 2)).plot().to_dict()
    assert [part["title"] for part in by_sex["concat"]] == ["sex = s0", "sex = s1"]


def test_further_attributes_are_groups_of_bars() -> None:
    drawn = table(sizes=(3, 2), by=False).plot("bars").to_dict()
    assert [part["title"] for part in drawn["concat"]] == ["job = b0: 36 records", "job = b1: 39 records"]


def test_shares_are_not_called_records() -> None:
    counts = table(by=False)
    shares = Table(
        counts.of,
        counts.labels,
        {},
        counts.values / 33,
        counts.stderr / 33,
        counts.low / 33,
        counts.high / 33,
        "ml",
        33,
        np.array([1.0]),
    )
    drawn = shares.plot()
    assert title_of(drawn)[0] == "income: estimated share of the records, in percent"
    assert "a0: 30.3% estimated, 95% interval 24.2% to 45.5%" in texts_of(drawn)
    assert ">records</text>" not in chart_svg(drawn)


@pytest.mark.parametrize("sizes", [(90,), (90, 70)])
def test_large_domains_say_what_is_left_out(sizes: tuple[int, ...]) -> None:
    drawn = table(sizes=sizes, by=False).plot()
    assert "the 40 largest of 90 values" in title_of(drawn)[1]
    assert len(texts_of(drawn)) == (40 if len(sizes) == 1 else 40 * 60)


def test_cells_without_intervals_are_drawn_without_them() -> None:
    made = table(by=False)
    nothing = np.full_like(made.values, np.nan)
    bare = Table(made.of, made.labels, {}, made.values, nothing, nothing, nothing, "paper", 33, made.totals)
    assert "without intervals" in title_of(bare.plot())[1]
    assert "a0: 10 estimated" in texts_of(bare.plot())


def test_charts_are_made_in_one_folder_and_pictures_in_one_module() -> None:
    source = Path(polyseme.__file__).parent
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    assert {name for name, text in texts.items() if "import vl_convert" in text} == {"results/drawing/bars.py"}
    assert {name.rpartition("/")[0] for name, text in texts.items() if "import altair" in text} == {"results/drawing"}
