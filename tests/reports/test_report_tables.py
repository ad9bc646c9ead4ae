"""Tables for notebooks and terminals say the same and cannot be steered by labels."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from report_samples import verdict
from rich.console import Console, RenderableType

from polyseme.results.attackers import Finding
from polyseme.results.views.html import plan_table, verdict_table
from polyseme.results.views.terminal import (
    estimate_view,
    evaluation_view,
    findings_view,
    frontier_view,
    plan_view,
    verdict_view,
)

HOSTILE = "<b>[red]\x1b[2Jx"


class Plan:
    """A plan by what it says as JSON."""

    def __init__(self, **attributes: dict[str, Any]) -> None:
        self.attributes = attributes

    def to_dict(self) -> dict[str, Any]:
        return {"records": 100_000, "usable": True, "attributes": self.attributes}


def entry(**changes: Any) -> dict[str, Any]:
    parts = {
        "mechanism": "balanced",
        "l": 3,
        "d": 4.0,
        "p": 1.0,
        "feasible": True,
        "identifiable": True,
        "worst_posterior": 1 / 3,
        "epsilon": None,
        "expected_mse": 4e-6,
        "warnings": [],
        "obstacle": "",
        "nearest": [],
        "nonfinite": {"epsilon": "Infinity"},
    }
    return parts | changes


PLAN = Plan(
    income=entry(),
    education=entry(identifiable=False, l=2, d=7.0, expected_mse=None, nearest=[{"l": 2, "d": 6.0}]),
    disease=entry(
        feasible=False,
        identifiable=False,
        worst_posterior=None,
        expected_mse=None,
        obstacle="a cluster is too heavy",
        nonfinite={},
    ),
    region=entry(p=0.2512, epsilon=2.0, nonfinite={}, warnings=["sets are large"]),
)


def printed(view: RenderableType, width: int = 80, terminal: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=terminal).print(view)
    return file.getvalue()


def estimate(rows: int = 3, label: str = "value") -> Any:
    frame = pl.DataFrame(
        {
            "sex": ["no"] * rows,
            "income": [f"{label} {index}" for index in range(rows)],
            "estimate": [1000.4] * rows,
            "stderr": [None] * rows,
            "low": [float("nan")] * rows,
            "high": [1200.0] * rows,
        },
        schema_overrides={"stderr": pl.Float64},
    )
    return SimpleNamespace(
        to_polars=lambda: frame,
        notes=("not converged",),
        estimator="ml",
        level=0.95,
        weight=None,
        target="published",
        left_out=0,
    )


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_plan_fits_the_terminal(width: int) -> None:
    text = printed(plan_view(PLAN), width)
    assert max(map(len, text.splitlines())) <= width
    assert "Plan for 100,000 records" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert rows["income"] == ["income", "balanced", "3", "4", "1", "yes", "0.333", "∞", "0.2"]
    assert rows["education"][:9] == ["education", "balanced", "2", "7", "1", "not", "estimable", "0.333", "∞"]
    assert rows["disease"] == ["disease", "balanced", "3", "4", "–", "no", "–", "–", "–"]
    assert rows["region"][4] == "0.251"
    assert rows["region"][7] == "2"


def test_a_plan_says_what_is_in_the_way() -> None:
    for text in (printed(plan_view(PLAN), 120), plan_table(PLAN)):
        assert "disease: not possible. a cluster is too heavy" in text
        assert "education: nearest settings that work: (l = 2, d = 6)" in text
        assert "region: sets are large" in text


def test_plan_table_has_a_row_for_each_attribute() -> None:
    text = plan_table(PLAN)
    assert text.count("<tr>") == 5
    assert '<td style="text-align:right">0.333</td>' in text


def test_verdicts_say_whether_all_holds() -> None:
    good, bad = verdict(), verdict(False, note="12 sets are too close")
    assert "Every model holds." in printed(verdict_view([good]))
    text = printed(verdict_view([good, bad]))
    assert "Violated: 1 of 2 models." in text
    assert "12 sets are too close" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Nothing was checked" in printed(verdict_view([]))
    assert "1 of 2 models hold" in verdict_table([good, bad])
    assert "Nothing was checked" in verdict_table([])


def test_what_is_said_of_many_verdicts_is_said_once() -> None:
    noted = [verdict(note="made with a seed")] * 3
    assert printed(verdict_view(noted)).count("made with a seed") == 1
    assert verdict_table(noted).count("made with a seed") == 1


def test_hostile_labels_are_shown_as_they_are() -> None:
    plan = Plan(**{HOSTILE: entry(warnings=[HOSTILE])})
    verdicts = [verdict(attribute=HOSTILE, note=HOSTILE)]
    html = plan_table(plan) + verdict_table(verdicts)
    assert "<b>" not in html
    assert "&lt;b&gt;[red]" in html
    views = [
        plan_view(plan),
        verdict_view(verdicts),
        estimate_view(estimate(label=HOSTILE)),
        evaluation_view({HOSTILE: {HOSTILE: 1.0}}, {}),
    ]
    for view in views:
        text = printed(view, 120)
        assert "\x1b" not in text
        assert "[red]" in text
        assert "\x1b[2J" not in printed(view, 120, terminal=True)


def test_estimates_show_cells_and_leave_out_many() -> None:
    text = printed(estimate_view(estimate()))
    assert "Estimated numbers of records (ml)" in text
    assert "1,000" in text
    assert "not converged" in text
    assert "nan" not in text
    many = printed(estimate_view(estimate(1_000)))
    assert "940 more cells: use --csv FILE to see all" in many


def test_bars_only_on_a_wide_terminal() -> None:
    assert "█" in printed(estimate_view(estimate()), 110, terminal=True)
    assert "█" not in printed(estimate_view(estimate()), 110)
    assert "█" not in printed(estimate_view(estimate()), 50, terminal=True)


def test_answers_are_colored_values_are_not() -> None:
    assert "\x1b[32myes" in printed(verdict_view([verdict()]), terminal=True)
    assert "\x1b[1;31mno" not in printed(estimate_view(estimate()), terminal=True)


def test_findings_and_metrics() -> None:
    findings = [
        Finding("bayes", "income", 0.32, 1 / 3, 0.1, False, "the set", "the value", "a larger l"),
        Finding("linkage", None, 0.9, None, 0.00001, False, "the columns", "the record", "levels"),
        Finding("skewness", "income", 0.7, None, 0.0, False, "the set; shown for the largest stratum", "", "t"),
        Finding("repetition", "income", 0.9, 0.5, 0.2, True, "two releases", "the value", "a key"),
    ]
    short, text = printed(findings_view(findings)), printed(findings_view(findings, explain=True))
    assert len(short.splitlines()) == 2 + len(findings) + 3 + 1
    rows = [line.split() for line in text.splitlines()]
    assert "4 attacks: 1 exceeds the promise; nothing was promised against 2 of them" in text
    assert ["bayes", "income", "32.0%", "10.0%", "33.3%", "yes"] in rows
    assert ["linkage", "–", "90.0%", "<", "0.1%", "–", "–"] in rows
    assert ["skewness", "income", "0.7", "0", "–", "–"] in rows
    assert ["repetition", "income", "90.0%", "20.0%", "50.0%", "no"] in rows
    assert ["-", "repetition:", "a", "key"] in rows
    assert ["knows", "two", "releases"] in rows
    assert ["what", "helps", "levels"] in rows
    assert ["knows", "the", "set"] in rows
    assert "attacks on sets are shown for the largest stratum" in text
    metrics = {
        "income": {"mse": 3.1e-6},
        "income by sex": {"l1": 5.0, "cells": 28.0, "covered": 26.0, "coverage": 26 / 28, "level": 0.95},
    }
    shown = printed(evaluation_view(metrics, {}), 120)
    assert "3.1 × 10⁻⁶" in shown
    assert "Estimated against true: income by sex" in shown
    assert "26 of 28 true numbers lie in their confidence intervals" in shown
    assert "sum of the absolute errors" in shown


def test_settings_are_listed() -> None:
    known = SimpleNamespace(worst_posterior=0.5, expected_mse=4e-6, epsilon=None, identifiable=True)
    grid: list[Any] = [
        SimpleNamespace(l=2, d=3.0, status="feasible", facts=known),
        SimpleNamespace(l=2, d=7.0, status="unestimable", facts=None),
        SimpleNamespace(l=4, d=5.0, status="infeasible", facts=None),
    ]
    rows = [line.split() for line in printed(frontier_view("income", grid)).splitlines()]
    assert ["2", "3", "possible", "0.5", "0.2"] in rows
    assert ["2", "7", "not", "estimable", "–", "–"] in rows
    assert ["-", "impossible:", "l", "=", "4", "with", "d", "=", "5"] in rows
