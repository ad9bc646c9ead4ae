"""The demo of a campaign: everything on this machine, over real connections."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import polyseme as ps
from polyseme.demo.respondents import no_browser, run_respondents


@pytest.mark.lane
@pytest.mark.browser
def test_a_crowd_answers_and_is_released(tmp_path: Path) -> None:
    said = "\n".join(run_respondents(tmp_path / "out", 300))
    assert "297 reports stored" in said or "298 reports stored" in said
    assert "checks from the definitions: all hold" in said
    opened = "1 answered on the page" if not no_browser() else f"1 answered without the page: {no_browser()}"
    assert opened in said
    release = ps.Release.open(tmp_path / "out" / "release")
    assert release.manifest.records == 300
    # Open columns travel as they are; nothing leads from a set to the person.
    people = pl.read_parquet(tmp_path / "out" / "people.parquet")
    assert sorted(release.to_polars()["sex"].to_list()) == sorted(people["sex"].to_list())
    assert "<html" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    # A crowd is done again only where that is asked for.
    with pytest.raises(ps.InvalidInput, match="exists already"):
        list(run_respondents(tmp_path / "out", 300))
