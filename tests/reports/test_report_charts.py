"""Charts show the right numbers and can be saved without a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from report_samples import distribution

from polyseme.kernel.errors import QuestionError
from polyseme.reports.contents import shown_values
from polyseme.reports.figures import strips
from polyseme.results.drawing.bars import (
    AnyChart,
    chart_svg,
    distribution_chart,
    distribution_svg,
    heatmap,
    save_chart,
)
from polyseme.results.drawing.charts import frontier_chart
from polyseme.results.drawing.distribution import COLORS
from polyseme.results.table import Table


def settings() -> list[Any]:
    def facts(l: int, d: float) -> Any:
        return SimpleNamespace(worst_posterior=1 / l, expected_mse=1e-6 * l * d, epsilon=None, identifiable=True)

    return [
        SimpleNamespace(l=l, d=float(d), status=status, facts=facts(l, d) if status == "feasible" else None)
        for l, d, status in [(2, 1, "feasible"), (2, 7, "unestimable"), (3, 4, "feasible"), (4, 5, "infeasible")]
    ]


CHARTS: dict[str, AnyChart] = {
    "ordered": distribution_chart(distribution()),
    "listed": distribution_chart(distribution(ordered=False)),
    "without original": distribution_chart(distribution(original=False)),
    "heat map": heatmap([distribution(group="a"), distribution(group="b")]),
    "frontier": frontier_chart(settings()),
    "frontiers": frontier_chart({"income": settings(), "job": settings()}),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_save_as_png_and_svg(name: str, tmp_path: Path) -> None:
    picture = save_chart(CHARTS[name], tmp_path / "chart.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert len(picture) > 5_000
    drawing = save_chart(CHARTS[name], tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(drawing).tag.endswith("svg")  # noqa: S314 - our own text


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("original", [True, False])
def test_the_picture_on_a_page_is_that_of_the_chart(ordered: bool, original: bool) -> None:
    for labels in (None, [f"<{letter}>'\\\"" for letter in "abcd\0\x7f"]):
        shown = distribution(ordered=ordered, original=original, **({} if labels is None else {"labels": labels}))
        twice = replace(shown, estimate=shown.estimate * 2)  # the same labels with other numbers
        for item in (shown, twice):
            for options in ({}, {"shares": True, "ceiling": 35.0}):
                drawn = chart_svg(distribution_chart(item, 370, legend=False, **options))
                assert distribution_svg(item, 370, **options) == drawn


def test_labels_that_no_picture_can_hold_are_written_out(tmp_path: Path) -> None:
    odd = [f"f{letter}" for letter in "\0\x0b\x1b\x7f\ud800\uffff"]
    shown = distribution(ordered=False, labels=odd)
    for chart in (distribution_chart(shown), heatmap([replace(shown, group=label) for label in odd])):
        drawing = chart_svg(chart)
        ElementTree.fromstring(drawing)  # noqa: S314 - our own text
        assert all(f"f‹{code}›" in drawing for code in ("00", "0b", "1b", "d800", "ffff"))
        assert save_chart(chart, tmp_path / "chart.png").stat().st_size > 5_000
    figures = [np.full((1, 2), number) for number in (5.0, 1.0, 3.0, 7.0)]
    estimate = Table(("a\x0bb",), (("f\x0b", "g"),), {}, *figures, "ml", 10, np.array([10.0]))
    assert "f‹0b›" in chart_svg(estimate.plot())


def test_the_suffix_can_be_given_apart(tmp_path: Path) -> None:
    assert save_chart(CHARTS["ordered"], tmp_path / "partial", ".pdf").read_bytes().startswith(b"%PDF")
    assert save_chart(CHARTS["ordered"], tmp_path / "partial", ".PNG").read_bytes().startswith(b"\x89PNG")


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match=r"chart\.jpg: .* \.png, \.svg or \.pdf, not as '\.jpg'"):
        save_chart(CHARTS["ordered"], tmp_path / "chart.jpg")
    assert list(tmp_path.iterdir()) == []


def test_heights_are_in_proportion() -> None:
    svg = chart_svg(distribution_chart(distribution(4)))
    heights = {}
    for element in ElementTree.fromstring(svg).iter():  # noqa: S314 - our own text
        label = element.get("aria-label", "")
        if label.endswith("in the original"):
            heights[label.split(":")[0]] = float(element.get("d", "").split("v")[1].split("h")[0])
    ratios = np.array([heights[f"value {index}"] for index in range(4)]) / heights["value 3"]
    np.testing.assert_allclose(ratios, [4, 3, 2, 1], rtol=1e-9)


def test_shown_values_are_the_largest() -> None:
    estimate = np.array([3.0, 9.0, 1.0, 7.0])
    sample = distribution(4, estimate=estimate, ordered=False)
    assert shown_values(sample, 2).tolist() == [1, 3]
    assert shown_values(distribution(4, estimate=estimate[::-1].copy()), 2).tolist() == [0, 2]
    assert shown_values(distribution(100)).tolist() == list(range(40))


def test_shares_are_of_the_group() -> None:
    svg = chart_svg(distribution_chart(distribution(4, published=np.full(4, 25.0)), shares=True))
    assert 'aria-label="value 0: 40% in the original"' in svg
    assert 'aria-label="value 0: 41% estimated, 95% interval 35% to 47%"' in svg


def test_heat_map_shows_shares_of_each_group() -> None:
    svg = chart_svg(heatmap([distribution(2, group="g", published=np.full(2, 20.0), estimate=np.array([30.0, -2.0]))]))
    assert 'aria-label="g, value 0: 75.0% of the group"' in svg
    assert 'aria-label="g, value 1: 0.0% of the group"' in svg


def test_frontier_marks_every_setting() -> None:
    svg = chart_svg(CHARTS["frontier"])
    for text in ("possible, worst posterior 0.333", "not estimable", "impossible"):
        assert text in svg
    assert svg.count('aria-label="l = 3, d = 4: possible') == 2
    assert svg.count('aria-label="l = 4, d = 5: impossible') == 1


def test_strips_for_a_telephone_have_the_same_numbers() -> None:
    sample = distribution(3, labels=["<low> & \0", "b" * 40, "c"], low=np.array([np.nan, -4.0, 5.0]))
    svg = str(strips(sample, shown_values(sample))).split("</p>")[1]
    tree = ElementTree.fromstring(svg)  # noqa: S314 - our own text
    kinds = {tag: [one for one in tree.iter() if one.tag == tag] for tag in ("rect", "line", "circle", "text")}
    end = 37.0  # the high end of the first interval, 30 + 7
    bars, ticks = kinds["rect"][::2], kinds["rect"][1::2]
    assert [float(bar.get("width", "").rstrip("%")) for bar in bars] == pytest.approx(
        [100 * true / end for true in (30, 20, 10)], abs=0.01
    )
    assert {tick.get("x") for tick in ticks} == {f"{100 * 20 / end:.2f}%"}
    assert [float(dot.get("cx", "").rstrip("%")) for dot in kinds["circle"]] == pytest.approx(
        [100 * value / end for value in (31, 21, 11)], abs=0.01
    )
    whiskers = [(line.get("x1"), line.get("x2")) for line in kinds["line"]]
    assert whiskers == [("0.00%", f"{100 * 27 / end:.2f}%"), (f"{100 * 5 / end:.2f}%", f"{100 * 17 / end:.2f}%")]
    said = ["".join(text.itertext()) for text in kinds["text"]]
    assert said == [
        "<low> & ‹00›<low> & ‹00›",
        "31",
        "b" * 40 + "b" * 25 + "…",
        "21 (−4 to 27)",
        "cc",
        "11 (5 to 17)",
    ]
    colors = {one.get(name) for one in tree.iter() for name in ("fill", "stroke")} - {None}
    assert colors <= set(COLORS.values())


def test_a_strip_of_nothing_is_drawn() -> None:
    nothing = distribution(2, original=False, estimate=np.zeros(2), high=np.zeros(2), published=np.zeros(2))
    assert "nan" not in strips(nothing, shown_values(nothing))
