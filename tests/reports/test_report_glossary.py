"""The glossary lists the terms that occur and no others, and each is linked where it is used first."""

from __future__ import annotations

import re

import pytest
from parsed_page import Element, parsed
from report_samples import distribution, fact, page, verdict

from polyseme.reports.contents import AttributeLine, FindingLine, Page, Treatment
from polyseme.reports.glossary import TERMS, with_glossary
from polyseme.reports.page import render_page

SILENT = {"dl.glossary", "a", "code", "h1", "h2", "h3", "h4", "summary", "title", "dt", "style", "svg"}

PAGES: dict[str, Page] = {
    "sets": page(),
    "everything": page(
        for_publication=False,
        accepted=("k-anonymity",),
        checks=(verdict(), verdict(model="mechanism", note="p-value of the published sets"), verdict(model="ldp")),
        facts=(fact(p=0.5, p_most=1.0, design="balanced"),),
        findings=(FindingLine("skewness", "income", 0.3, None, False, knows="the largest stratum"),),
    ),
    "classes": page(
        sets=False,
        facts=(),
        promises=(),
        distributions=(),
        metrics=None,
        attributes=(AttributeLine("age", "quasi-identifier", "generalized", known=False),),
        treatment=Treatment("full-domain", "Each column is shown at one level of its hierarchy.", "class"),
    ),
}


def texts(element: Element, silent: bool = False) -> list[tuple[str, bool]]:
    """What is said, piece by piece, each with whether a link may stand there."""
    found = []
    for part in element.inside:
        if isinstance(part, str):
            found.append((part, not silent))
        else:
            name = f"{part.tag}.{part.attributes.get('class', '')}".removesuffix(".")
            found += texts(part, silent or bool({part.tag, name} & SILENT))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_terms_are_listed_if_and_only_if_they_are_used(name: str) -> None:
    tree = parsed(render_page(PAGES[name]))
    (glossary,) = tree.all("dl", "glossary")
    listed = [one.text for one in glossary.all("dt")]
    links = tree.all("a", "term")
    assert [one.attributes["id"] for one in glossary.all("div")] == sorted(
        (one.attributes["href"].removeprefix("#") for one in links),
        key=[term.anchor for term in TERMS].index,
    ), "each listed term is linked once, and each link leads to a listed term"
    assert len(listed) == len(set(listed)) >= 5
    (body,) = tree.all("body")
    said = " | ".join(text for text, open_ in texts(body) if open_)
    for term in TERMS:
        if term.name not in listed:
            longer = [one for one in TERMS if one.name in listed and len(one.name) > len(term.name)]
            rest = said
            for one in longer:
                rest = one.pattern.sub("", rest)
            assert not term.pattern.search(rest), term.name


@pytest.mark.parametrize("name", PAGES)
def test_the_link_is_at_the_first_use(name: str) -> None:
    text = render_page(PAGES[name])
    for link in parsed(text).all("a", "term"):
        (term,) = (one for one in TERMS if f"#{one.anchor}" == link.attributes["href"])
        assert term.pattern.fullmatch(link.text)
        before = text[text.index("<body") : text.index(f'<a class="term" href="#{term.anchor}"')]
        plain = re.sub(r"<(svg|code|h1|h2|h3|h4|summary|dt|a)\b.*?</\1>|<[^>]*>", " | ", before, flags=re.S)
        # A longer term may have taken its place: "diversity" in "semantic diversity".
        taken = [one for one in TERMS if len(one.name) > len(term.name) and term.pattern.search(one.name)]
        for one in taken:
            plain = one.pattern.sub("", plain)
        assert not term.pattern.search(plain), term.name


def test_names_and_meanings_are_fit_to_print() -> None:
    assert [term.name for term in TERMS] == sorted((term.name for term in TERMS), key=str.lower)
    assert len({term.anchor for term in TERMS}) == len(TERMS)
    for term in TERMS:
        assert term.meaning.endswith((".", "%."))
        assert term.pattern.fullmatch(term.name)


def test_texts_with_markup_in_them_stay_as_they_are() -> None:
    said = (
        '<body><p title="decoy">a decoy&lt;b&gt; <code>seed</code> decoys, pre-seeded, reseed</p><!-- here --></body>'
    )
    made = with_glossary(said, "<!-- here -->")
    assert made.startswith(
        '<body><p title="decoy">a <a class="term" href="#term-decoy">decoy</a>&lt;b&gt; <code>seed</code> decoys, '
        "pre-seeded, reseed</p><dl"
    )
    assert made.count("<dt>") == 1


def test_words_that_mean_something_else_are_no_terms() -> None:
    made = with_glossary("<body><p>2 rows set aside of a data set, one set</p>@</body>", "@")
    assert 'one <a class="term" href="#term-set">set</a>' in made


def test_a_page_without_any_term_has_an_empty_list() -> None:
    assert "<dt>" not in with_glossary("<body><p>Nothing.</p>@</body>", "@")


def test_charts_have_no_links_in_them() -> None:
    shown = distribution(3, labels=["decoy", "seed", "prior"], attribute="stratum")
    for picture in parsed(render_page(page(distributions=(shown,)))).all("svg"):
        assert not picture.all("a")
