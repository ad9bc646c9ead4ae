"""In a notebook every result shows itself, and frames come back as they went in."""

from __future__ import annotations

import html.parser
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.results.base import Result
from polyseme.results.explanation import Explained, Explanation
from polyseme.results.regression import Regression
from polyseme.verbs.preview import preview

HOSTILE = '<script>alert("x")</script>'
POLICY = ps.Policy.from_dict(
    {
        "attributes": {
            "name": {"role": "identifier"},
            HOSTILE: {"role": "quasi-identifier"},
            "rank": {
                "role": "sensitive",
                "domain": [HOSTILE, "<b>", "c", "d", "e & f"],
                "distance": {"line": "rank"},
                "protect": {"semantic-diversity": {"l": 2, "d": 2}},
            },
        },
        "models": [{"k-anonymity": {"k": 2}}],
    }
)
_VOID = {"br", "hr", "img", "input", "meta", "link", "col"}


class Balanced(html.parser.HTMLParser):
    """Elements that are closed in the order in which they were opened, none of them a script or an event."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not any(name.startswith("on") or "javascript:" in (value or "") for name, value in attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag


def check(text: str) -> None:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert parser.seen
    assert not parser.seen & {"script", "iframe", "object", "embed", "link"}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "name": [f"p{number}" for number in range(400)],
            HOSTILE: rng.choice(["f", "<i>m"], 400),
            "rank": rng.choice([HOSTILE, "<b>", "c", "d", "e & f"], 400),
        }
    )


@pytest.fixture(scope="module")
def results(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """One of every kind."""
    release = ps.anonymize(people, POLICY, warn=lambda text: None)
    plan, estimate = ps.plan(POLICY, 1_000), ps.estimate(release, of=["rank"], by=[HOSTILE])
    findings, verification = ps.attack(release, people), ps.verify(release)
    place = tmp_path_factory.mktemp("ledger")
    ledger = ps.record(place / "ledger.json", ps.save(release, place / "r"), "everybody")
    exposures = ps.exposures(ledger)
    prior = ps.prior_from_release(release, "rank", [HOSTILE])
    risk, evaluation = ps.risk(people, [HOSTILE], ["rank"]), ps.evaluate(release, people)
    explanation = Explanation((HOSTILE,), (Explained((HOSTILE,), 3, "rule", "merge", True, 2.0),))
    seen, drafted = preview(people, POLICY, 2), ps.init(people)
    one = np.ones(1)
    fitted = Regression(f"y ~ {HOSTILE}", "linear", (HOSTILE,), one, one, one, one, one, one, np.eye(1), 400)
    several = [release, POLICY, plan, plan.attributes[0], estimate, findings, findings[0], verification, ledger]
    return [
        *several,
        exposures,
        exposures.items[0],
        prior,
        risk,
        evaluation,
        explanation,
        seen,
        estimate.top(3),
        drafted,
        fitted,
    ]


def test_every_result_is_well_formed_html_without_scripts(results: list[Any]) -> None:
    for result in results:
        check(result._repr_html_())


def test_no_public_result_is_left_out(results: list[Any]) -> None:
    silent = (BaseException, ps.Cancellation, ps.Progress, ps.Planner)
    public = [item for name in ps.__all__ if isinstance(item := getattr(ps, name), type)]
    wanted = {item for item in public if not issubclass(item, silent)} | set(_all_below(Result))
    shown = {type(result) for result in results}
    assert {
        item for item in wanted if not any(issubclass(kind, item) or issubclass(item, kind) for kind in shown)
    } == set()


def _all_below(kind: type) -> list[type]:
    return [
        each for one in kind.__subclasses__() for each in (one, *_all_below(one)) if one.__module__.startswith("poly")
    ]


def test_the_text_of_a_policy_is_short() -> None:
    assert repr(POLICY) == "<Policy of 3 attributes, protected: rank; models: k-anonymity>"
    many = {
        f"a{number}": {"role": "sensitive", "domain": list("abc"), "protect": {"diversity": {"l": 2}}}
        for number in range(9)
    }
    assert repr(ps.Policy.from_dict({"attributes": many})).endswith("protected: a0, a1, a2, a3, 5 more>")


def test_a_release_shows_its_first_rows(people: pl.DataFrame, tmp_path: Path) -> None:
    release = ps.anonymize(people, POLICY, warn=lambda text: None)
    whole, head = release.to_polars(), release.head(3)
    assert whole.shape == (400, 2)
    assert isinstance(head, pl.DataFrame)
    assert head.equals(whole.head(3))
    assert release.head().height == 5
    assert release.head(0).height == 0
    assert release.head(1_000).height == 400
    assert all(len(cell) == 2 for cell in whole["rank"].to_list())
    for file_format in ("parquet", "csv"):
        stored = ps.anonymize(people, POLICY, tmp_path / file_format, file_format=file_format, warn=lambda text: None)
        opened = ps.Release.open(tmp_path / file_format)
        assert opened.to_polars().shape == (400, 2)
        assert opened.head(2)["rank"].to_list() == stored.to_polars()["rank"].to_list()[:2]
    with pytest.raises(ps.QuestionError, match="a number of rows"):
        release.head(-1)


def test_a_frame_of_pandas_comes_back_as_one(people: pl.DataFrame) -> None:
    pd = pytest.importorskip("pandas")
    release = ps.anonymize(pd.DataFrame(people.to_dict(as_series=False)), POLICY, warn=lambda text: None)
    assert isinstance(release.head(), pd.DataFrame)
    frame = release.to_pandas()
    assert list(frame.columns) == [HOSTILE, "rank"]
    assert all(isinstance(cell, list) and len(cell) == 2 for cell in frame["rank"])
    assert frame["rank"].to_list() == release.to_polars()["rank"].to_list()
    assert isinstance(ps.anonymize(people, POLICY, warn=lambda text: None).head(), pl.DataFrame)


def test_without_pandas_the_line_that_installs_it_is_named(
    people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("polyseme.kernel.plugins.find_spec", lambda name: None if name == "pandas" else found(name))
    release = ps.anonymize(people, POLICY, warn=lambda text: None)
    with pytest.raises(ps.QuestionError) as error:
        release.to_pandas()
    assert "pip install 'polyseme[pandas]'" in str(error.value)
