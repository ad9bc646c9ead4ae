"""The head of a report: what it is about, whose it is, which version, and whether it may leave the house."""

from __future__ import annotations

import getpass
import re
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from parsed_page import cells, head_facts, parsed
from report_samples import distribution, page

import polyseme as ps
from polyseme.kernel.errors import QuestionError
from polyseme.kernel.version import __version__
from polyseme.reports.page import render_page

POLICY = """
about: {title: Pain of 300 patients, publisher: Registry of Pain, version: 3, date: 2026-02-01}
attributes:
  ward: {role: quasi-identifier}
  pain: {role: sensitive, domain: [none, mild, strong, worst], distance: {line: rank}, protect: {diversity: {l: 2}}}
"""


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    pains = ["none", "mild", "strong", "worst"]
    return pl.DataFrame({"ward": [f"w{n % 3}" for n in range(300)], "pain": [pains[n * n % 4] for n in range(300)]})


@pytest.fixture(scope="module")
def release(table: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head") / "release"
    with pytest.warns(ps.PrivacyWarning):
        ps.anonymize(table, ps.Policy.loads(POLICY), folder)
    return folder


def test_what_the_manifest_says_is_at_the_head(release: Path) -> None:
    tree = parsed(ps.report(release))
    facts = head_facts(tree)
    assert tree.all("h1")[0].text == "Pain of 300 patients"
    assert facts["Published by"] == "Registry of Pain"
    assert facts["Date of the release"] == "1 February 2026"
    assert facts["Version of the policy"] == "3"
    assert facts["Made with"] == f"Polyseme {__version__}manifest format 2"
    assert facts["Records"] == "300"
    assert facts["Protected attributes"] == "1 of 2 columns"
    assert facts["Way of publishing"] == "sets of candidates"
    assert facts["Checksum of the release (SHA-256)"] == ps.Release.open(release).manifest.checksum
    assert re.fullmatch("[0-9a-f]{64}", facts["Checksum of the release (SHA-256)"])
    assert not tree.all("div", "internal")
    assert "@top-center" not in ps.report(release)


def test_the_date_of_the_page_is_that_of_the_day(release: Path) -> None:
    before = date.today()
    shown = head_facts(parsed(ps.report(release)))["Date of this report"]
    assert shown in {f"{day.day} {day:%B %Y}" for day in (before, date.today())}


def test_title_and_publisher_can_be_given_later_and_differ(release: Path) -> None:
    tree = parsed(ps.report(release, title="Pain <b>2026</b>", publisher="Office of “Data”"))
    assert tree.all("h1")[0].text == "Pain <b>2026</b>"
    assert head_facts(tree)["Published by"] == "Office of “Data”"


@pytest.mark.parametrize(("given", "where"), [({"title": " "}, "--title"), ({"publisher": "a\nb"}, "--publisher")])
def test_a_title_that_is_none_is_refused_before_the_work(given: dict[str, str], where: str) -> None:
    with pytest.raises(QuestionError, match=where):
        ps.report("no such folder", **given)


def test_no_name_appears_that_was_not_stated(table: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "user-of-this-machine")
    assert getpass.getuser() == "user-of-this-machine"
    text = POLICY.replace(POLICY.splitlines()[1], "")
    with pytest.warns(ps.PrivacyWarning):
        made = ps.anonymize(table, ps.Policy.loads(text))
    shown = ps.report(made)
    facts = head_facts(parsed(shown))
    for name in ("Published by", "Date of the release", "Version of the policy"):
        assert facts[name] == "not stated"
    assert facts["Checksum of the release (SHA-256)"].startswith("none")
    assert parsed(shown).all("h1")[0].text == "Release of 300 records"
    assert "about:" in shown
    assert "user-of-this-machine" not in shown


def test_a_page_with_the_original_is_marked_on_screen_and_on_every_printed_page(
    release: Path, table: pl.DataFrame
) -> None:
    shown = ps.report(release, table)
    tree = parsed(shown)
    (mark,) = tree.all("div", "internal")
    assert mark.text.startswith("INTERNAL")
    (body,) = tree.all("body")
    first = next(part for part in body.inside if not isinstance(part, str))
    assert first is mark
    (sheet,) = tree.all("style")
    style = "".join(part for part in sheet.inside if isinstance(part, str))
    printed = style[style.index("@page") : style.index("@page") + 400]
    assert re.search(r'@top-center \{ content: "INTERNAL', printed)


@pytest.mark.parametrize(
    ("changes", "internal"),
    [
        ({"metrics": None, "distributions": (distribution(original=False),)}, False),
        ({"metrics": None, "distributions": (distribution(original=False),), "original": True}, True),
        ({"metrics": None, "distributions": (distribution(),)}, True),
        ({"distributions": ()}, True),
    ],
)
def test_whatever_comes_from_the_original_makes_a_page_internal(changes: dict[str, object], internal: bool) -> None:
    made = page(**changes)
    assert made.internal is internal
    assert bool(parsed(render_page(made)).all("div", "internal")) is internal


def test_a_title_cannot_end_the_style_sheet() -> None:
    hostile = '"; } </style><script>alert(1)</script> \\ é 漢'
    tree = parsed(render_page(page(title=hostile)))
    assert not tree.all("script")
    assert tree.all("h1")[0].text == hostile
    (sheet,) = tree.all("style")
    style = "".join(part for part in sheet.inside if isinstance(part, str))
    line = next(line for line in style.splitlines() if "@bottom-left" in line)
    assert re.fullmatch(r'\s*@bottom-left \{ content: "Privacy report: [A-Za-z0-9 \\]*"; font: 8pt [^"]*\}', line)


def test_attacks_and_checks_have_plain_names_units_and_technical_names(release: Path) -> None:
    tree = parsed(ps.report(release))
    kinds = {row.all("span", "tech")[0].text.split(":")[0]: row.all("th")[0].text for row in tree.all("tr", "kind")}
    assert kinds["linkage-prosecutor"].startswith(
        "Linkage, prosecutor: finds the record of a person who is known to be in the table"
    )
    assert kinds["published-estimate"].startswith(
        "Published estimate: estimates the distribution of the values from the release"
    )
    assert kinds["candidates"].startswith("Every set has the promised number of candidates")
    for label in ("Reached", "Promised at most", "Without the release"):
        for shown in cells(tree, label):
            assert shown == "–" or shown.endswith(("%", " of 1")), shown
    for label in ("Worst found", "Asked for", "Looked at", "Violating"):
        for shown in cells(tree, label):
            assert not re.fullmatch(r"[−\d.,]+", shown), f"{label}: {shown} has no unit"
