"""The page stands alone, says what it must, and cannot be steered by what stands in the data."""

from __future__ import annotations

import math
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from parsed_page import cells, parsed
from report_samples import distribution, fact, page, verdict

from polyseme.reports.contents import AttributeLine, ClassSizes, FindingLine, Outcome, PromiseLine, Treatment
from polyseme.reports.page import render_page
from polyseme.results.drawing.distribution import COLORS

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&{{ 7 * 7 }}"
_VOID = {"meta", "br", "img", "link", "input", "hr"}


class Structure(HTMLParser):
    """Tags and attributes of a page, and whether every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def words(text: str) -> str:
    """What a reader sees: no tags, single spaces."""
    body = text[text.index("<body>") :]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


def test_page_is_well_formed_and_fetches_nothing() -> None:
    text = render_page(page())
    structure = Structure(text)
    assert structure.open == []
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(structure.tags)
    addresses = [item for item in structure.attributes if item[1] in {"src", "href", "srcset", "action", "xlink:href"}]
    assert all(tag == "a" and name == "href" and value.startswith("#") for tag, name, value in addresses)
    assert not [item for item in structure.attributes if item[1].startswith("on")]
    assert not re.search(r"https?://|//[a-z]|@import|url\(", text)
    assert "default-src 'none'" in text


def test_page_is_small() -> None:
    assert len(render_page(page())) < 150_000


def test_page_follows_light_dark_and_print() -> None:
    text = render_page(page())
    assert "@media (prefers-color-scheme: dark)" in text
    assert "@media print" in text
    for name in ("estimate", "published", "original", "muted", "rule"):
        assert f'="{COLORS[name]}"]' in text, f"{name} is not recolored in the dark"
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', text))
    assert used <= set(COLORS.values()), "a color of a chart is unknown to the style sheet"


def test_page_says_things_in_order() -> None:
    text = words(render_page(page()))
    headings = [
        "Guarantees",
        "Verification",
        "What is not protected",
        "What the release shows",
        "How much was lost",
        "How it was made",
        "Notes",
    ]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "12,345" in text
    assert "age is published as it is" in text
    assert "membership and identity are not hidden" in text


@pytest.mark.parametrize("ordered", [True, False])
def test_hostile_text_is_shown_not_run(ordered: bool) -> None:
    hostile = distribution(3, labels=[HOSTILE, "b", "]]>"], attribute=HOSTILE, ordered=ordered)
    grouped = distribution(3, labels=[HOSTILE, "b", "c"], attribute=HOSTILE, ordered=ordered, group=HOSTILE)
    text = render_page(
        page(
            title=HOSTILE,
            promises=(PromiseLine(HOSTILE, HOSTILE, (HOSTILE,)),),
            attributes=(AttributeLine(HOSTILE, HOSTILE, HOSTILE, domain_from_data=True),),
            checks=(verdict(False, model=HOSTILE, attribute=HOSTILE, parameters={HOSTILE: HOSTILE}, note=HOSTILE),),
            facts=(fact(attribute=HOSTILE, design=HOSTILE, worst_posterior=0.9),),
            distributions=(hostile, grouped),
            metrics={HOSTILE: {HOSTILE: 1.0}},
            findings=(FindingLine(HOSTILE, HOSTILE, 1.0, 0.5, True, None, HOSTILE, HOSTILE),),
            notes=(HOSTILE,),
        )
    )
    structure = Structure(text)
    assert structure.open == []
    assert not {"script", "img"} & set(structure.tags)
    assert not [item for item in structure.attributes if item[1].startswith("on")]
    assert "&lt;script&gt;alert(1)" in text
    assert "7 * 7" in text


def test_a_broken_promise_is_prominent() -> None:
    text = render_page(page(checks=(verdict(), verdict(False, note="12 sets are too close"))))
    seen = words(text)
    assert "A promise is broken." in seen
    assert "1 of 2 checks violated" in seen
    assert "Do not publish this data as it is" in seen
    assert "12 sets are too close" in seen
    assert 'class="verdict bad"' in text
    assert "Every check holds" not in seen


def test_nothing_checked_is_not_called_good() -> None:
    text = words(render_page(page(checks=())))
    assert "Nothing was checked" in text
    assert "Every check holds" not in text


def test_a_method_that_gives_away_more_is_pointed_out() -> None:
    text = words(render_page(page(facts=(fact(design="simple", worst_posterior=0.5059),))))
    assert "The method reveals more than promised" in text
    assert "up to 50.6% of cases instead of 33.3%" in text
    assert "Every check holds" not in text


def test_an_attack_above_its_bound_is_pointed_out() -> None:
    found = FindingLine("repetition", "income", 0.9, 1 / 3, True, knows="two releases", helps="a key")
    text = words(render_page(page(findings=(found,))))
    assert "Every check holds, but an attack exceeds its bound." in text
    assert (
        "“Repetition: combines two releases about the same people” on income reaches 90.0%, and at most 33.3% was "
        "promised; it knows two releases." in text
    )
    assert "What helps: a key." in text


def test_outcomes_fail_closed() -> None:
    assert page().outcome is Outcome.HOLDS
    assert page(checks=()).outcome is Outcome.UNCHECKED
    assert page(checks=(verdict(False),), facts=(fact(worst_posterior=1.0),)).outcome is Outcome.VIOLATED
    assert page(facts=(fact(worst_posterior=1 / 3 + 1e-6),)).outcome is Outcome.EXCEEDED
    assert page(facts=(fact(worst_posterior=1 / 3 + 1e-12),)).outcome is Outcome.HOLDS


def test_unknown_facts_are_called_unknown() -> None:
    unknown = fact(worst_posterior=math.nan, epsilon=None, identifiable=None, expected_mse=None)
    tree = parsed(render_page(page(facts=(unknown,))))
    assert cells(tree, "Attacker who knows the method") == ["not known"]
    assert cells(tree, "Local differential privacy") == ["not known"]
    assert cells(tree, "Estimable") == ["not known"]
    assert cells(tree, "Expected error of a share") == ["not known"]
    assert unknown.kept is None


def test_a_seeded_run_is_not_for_publication() -> None:
    text = words(render_page(page(for_publication=False)))
    assert "Not for publication." in text
    assert "seed" in text
    assert "Not for publication." not in words(render_page(page()))


def test_repeated_releases_and_domains_from_data_are_mentioned() -> None:
    attributes = (AttributeLine("job", "sensitive", "sets of 2", protected=True, domain_from_data=True),)
    text = words(render_page(page(attributes=attributes)))
    assert "the sets can be intersected" in text
    assert "The possible values of job were taken from the data" in text
    sticky = words(render_page(page(sticky=True)))
    assert "tied to each record by a secret key" in sticky
    assert "the sets can be intersected" not in sticky


def test_page_without_original() -> None:
    text = render_page(page(distributions=(distribution(original=False),), metrics=None, findings=None))
    assert "How much was lost" not in text
    assert "in the original" not in text
    assert "Attacks that were run" not in text
    assert Structure(text).open == []


def test_page_with_original_counts_covered_truths() -> None:
    sample = distribution(4)
    assert sample.original is not None
    low = sample.low.copy()
    low[0] = sample.original[0] + 1
    text = words(render_page(page(distributions=(distribution(4, low=low),))))
    assert "3 of 4 true numbers lie within their 95% interval." in text


def test_numbers_are_on_the_marks_and_in_the_table() -> None:
    text = render_page(page(distributions=(distribution(2, labels=["low", "high"]),)))
    assert "<title>low: 21 estimated, 95% interval 15 to 27</title>" in text
    assert "<title>low: 20 in the original</title>" in text
    assert "<title>low: 15 of the published candidates</title>" in text
    assert "low 20 15 21 15 27" in words(text)


def test_one_value() -> None:
    for ordered in (True, False):
        assert Structure(render_page(page(distributions=(distribution(1, ordered=ordered),)))).open == []


@pytest.mark.parametrize("ordered", [True, False])
def test_seventy_thousand_values_show_the_largest(ordered: bool) -> None:
    text = render_page(page(distributions=(distribution(70_000, ordered=ordered, label="code {}"),)))
    assert "The 40 largest of 70,000 values" in text
    assert "code 39" in text
    assert "code 40<" not in text
    assert len(text) < 250_000


def test_groups_become_panels_or_a_heat_map() -> None:
    few = [distribution(group=f"age = {index}") for index in range(3)]
    text = render_page(page(distributions=(distribution(), *few)))
    assert text.count("<h4>") == 3
    assert "age = 2" in text
    many = [distribution(group=f"age = {index}") for index in range(70)]
    text = render_page(page(distributions=tuple(many)))
    assert "<h4>" not in text
    assert "The first 60 of 70 groups." in text
    assert Structure(text).open == []


def test_missing_intervals_and_empty_groups() -> None:
    nothing = np.full(6, np.nan)
    zero = np.zeros(6)
    empty = distribution(group="sex = x", published=zero, estimate=zero, low=nothing, high=nothing, original=False)
    text = render_page(page(distributions=(distribution(low=nothing, high=nothing), empty)))
    assert "interval nan" not in text
    assert "nan" not in words(text).lower().split()
    assert Structure(text).open == []


def test_distribution_needs_a_number_for_each_label() -> None:
    with pytest.raises(ValueError, match="one number for each of 3 labels"):
        distribution(3, high=np.zeros(2))


def test_without_charts_groups_are_tables_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    groups = [distribution(4, group=f"place = {number}") for number in range(15)]
    text = render_page(page(distributions=[distribution(4), *groups]))
    assert Structure(text).open == []
    assert "place = 11" in text
    assert "place = 12" not in text
    assert "3 more groups are not listed" in words(text)
    assert words(text).count("Estimated From To") == 13


def test_every_cell_of_a_narrow_table_says_what_it_is() -> None:
    """On a narrow screen rows become blocks: a cell without a label, or with another one's, would say nothing."""
    tables = re.findall(r"<table>.*?</table>", render_page(page()), re.S)
    assert len(tables) >= 5
    for table in tables:
        head, body = table.split("<tbody>")
        titles = [re.sub(r"<[^>]+>", "", title) for title in re.findall(r"<th[^>]*>(.*?)</th>", head)]
        rows = [row for row in re.findall(r"<tr[ >].*?</tr>", body, re.S) if "colspan" not in row]
        for row in rows:
            assert re.findall(r'<td data-label="([^"]*)"', row) == titles[1:]
            assert row.count("<td") == len(titles) - 1


def test_strata_of_which_some_lie_are_not_called_truthful() -> None:
    text = words(render_page(page(facts=(fact(p=0.5, p_most=1.0),))))
    assert "50.0% to 100%" in text
    assert "otherwise independently of it" in text


def test_charts_that_are_too_wide_for_a_telephone_are_there_twice() -> None:
    groups = [distribution(group=f"age = {index}") for index in range(70)]
    sizes = ClassSizes(("2", "3"), (5, 6), (10, 18))
    made = page(distributions=(distribution(), *groups), treatment=Treatment("mondrian", "", "class", sizes=sizes))
    for figure in parsed(render_page(made)).all("figure"):
        kinds = [one.attributes["class"].split()[-1] for one in figure.all("svg", "chart")]
        assert kinds == ["wide", "narrow"]
