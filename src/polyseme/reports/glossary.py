"""The glossary of a page: the terms that occur on it, each a link where it is used first.

Which terms occur is read off the page itself, so that the list has no term that is not used, and lacks none that is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["TERMS", "Term", "with_glossary"]


@dataclass(frozen=True)
class Term:
    """A word of a report: how it is found, and what it means.

    forms  further ways to write it, such as the plural
    """

    name: str
    meaning: str
    forms: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        return "term-" + re.sub(r"[^a-z]+", "-", self.name.lower()).strip("-")

    @property
    def pattern(self) -> re.Pattern[str]:
        words = "|".join(re.escape(word) for word in sorted((self.name, *self.forms), key=len, reverse=True))
        # Rows are "set aside", and a "data set" is a table: neither is a set of candidates.
        return re.compile(rf"(?<![\w-])(?<!data )(?:{words})(?![\w-]| aside)", re.IGNORECASE)


TERMS: Final = (
    Term(
        "accepted risk",
        "A promise that did not hold when the data was published, and that the data holder knowingly accepted.",
        ("accepted_risk",),
    ),
    Term(
        "attack",
        "An attempt to learn a person's protected value, or record, from the release; run here to measure the risk.",
        ("attacks",),
    ),
    Term(
        "balanced",
        "A way to draw sets in which every candidate of a set is equally likely to be the true value.",
    ),
    Term(
        "candidate",
        "One of the values that a record shows in place of the true one.",
        ("candidates",),
    ),
    Term(
        "channel",
        "How likely each published set is for each true value; the manifest states all of it.",
    ),
    Term(
        "checksum",
        "A number computed from every byte of the release (SHA-256). If one byte changes, it changes too.",
    ),
    Term(
        "class",
        "Records that look alike in all quasi-identifiers.",
        ("classes",),
    ),
    Term(
        "closeness",
        "The promise that a record, or a class, moves an attacker's belief about a value by at most a stated amount.",
    ),
    Term(
        "decoy",
        "A candidate that is not the true value.",
        ("decoys",),
    ),
    Term(
        "diversity",
        "The promise that several different values are equally possible for every record.",
        ("l-diversity", "frequency-diversity", "distinct-diversity", "entropy-diversity", "recursive-diversity"),
    ),
    Term(
        "generalized",
        "Shown less exactly: a range in place of a number, a month in place of a day.",
    ),
    Term(
        "group",
        "Records that share a list of sensitive values without saying which belongs to whom, or a part of the records "
        "with something in common.",
        ("groups",),
    ),
    Term(
        "hierarchy",
        "What a value becomes when it is shown less exactly, level by level.",
        ("hierarchies",),
    ),
    Term(
        "interval",
        "The range that contains the true number with the stated probability; a wide one means a large error.",
        ("intervals",),
    ),
    Term(
        "k-anonymity",
        "The promise that at least k records look alike in everything that others may know.",
    ),
    Term(
        "learner",
        "An attacker who knows, or learns from the release, the distribution of the values.",
        ("learners",),
    ),
    Term(
        "local differential privacy",
        "The promise that every value could have produced every published set, whatever else an attacker knows; a "
        "small ε is strong.",
        ("ε",),
    ),
    Term(
        "lower bound",
        "The smallest possible share of right guesses for any method that always includes the true value.",
    ),
    Term(
        "manifest",
        "The file beside the data that states how it was made and what is promised.",
    ),
    Term(
        "mechanism",
        "How sets are drawn for the true values, with all probabilities.",
    ),
    Term(
        "p-value",
        "How often a correct release would deviate at least as much as this one; a very small one means that "
        "something is wrong.",
    ),
    Term(
        "percentage point",
        "The difference between 4% and 5%.",
        ("percentage points",),
    ),
    Term(
        "policy",
        "The file in which the data holder declares what the columns mean and what is promised.",
    ),
    Term(
        "prior",
        "The distribution of a value that an attacker expects before seeing the release.",
    ),
    Term(
        "promise",
        "A guarantee of the data holder: a limit on what can be learned about a person.",
        ("promises", "promised"),
    ),
    Term(
        "protected attribute",
        "A column whose true values must stay secret.",
        ("protected attributes", "protected value"),
    ),
    Term(
        "quasi-identifier",
        "A column that others may know about a person, such as age or postal code; several together can single "
        "out a person.",
        ("quasi-identifiers",),
    ),
    Term(
        "record",
        "One row of the table: usually one person.",
        ("records",),
    ),
    Term(
        "release",
        "The published data together with its manifest.",
        ("releases",),
    ),
    Term(
        "seed",
        "A number from which all random choices of a run can be repeated.",
        ("seeded",),
    ),
    Term(
        "semantic diversity",
        "The promise that the values possible for a record are also far apart in meaning.",
        ("semantic-diversity",),
    ),
    Term(
        "sensitive",
        "A column that holds a secret, such as a diagnosis or an income.",
    ),
    Term(
        "set",
        "The candidates that a record shows in place of its true value.",
        ("sets",),
    ),
    Term(
        "stratum",
        "A part of the records with its own mechanism for drawing sets.",
        ("strata",),
    ),
    Term(
        "suppressed",
        "Left out, or shown as * only.",
    ),
    Term(
        "truth probability",
        "How often a set is drawn around the true value instead of blindly.",
    ),
)
"""In the order in which they are listed."""

_TOKEN: Final = re.compile(r"(<svg\b.*?</svg>|<style\b.*?</style>|<[^>]*>)", re.S)
_TAG: Final = re.compile(r"</?([a-z0-9]+)")
_SILENT: Final = frozenset({"a", "code", "h1", "h2", "h3", "h4", "summary", "title", "dt", "button"})
"""Elements in which nothing becomes a link: headings and names."""
_VOID: Final = frozenset({"br", "meta", "hr", "img", "wbr"})


def with_glossary(page: str, place: str) -> str:
    """The page with first uses of terms as links, and the terms that occur at `place`.

    Only what is said before that place counts as use. Texts in it are escaped already; `>` in an attribute is not
    expected, because it is escaped too.
    """
    before, after = page.split(place, 1)
    start = before.index("<body")
    said, used = _linked(before[start:])
    return before[:start] + said + _listed(used) + after


def _linked(body: str) -> tuple[str, list[Term]]:
    parts: list[str] = []
    open_tags: list[str] = []
    left = {term.name: term for term in sorted(TERMS, key=lambda term: -len(term.name))}
    for token in _TOKEN.split(body):
        if token.startswith("<"):
            _step(open_tags, token)
        elif left and token.strip() and not _SILENT.intersection(open_tags):
            token = _link_in(token, left)
        parts.append(token)
    return "".join(parts), [term for term in TERMS if term.name not in left]


def _step(open_tags: list[str], token: str) -> None:
    """Keep track of the elements that are open; pictures and style sheets come as one token."""
    found = _TAG.match(token)
    if found is None or token.startswith(("<svg", "<style")) or found[1] in _VOID or token.endswith("/>"):
        return
    if token.startswith("</"):
        open_tags.pop()
    else:
        open_tags.append(found[1])


def _link_in(text: str, left: dict[str, Term]) -> str:
    """A text with links for the terms that were not met before, which are then no longer left."""
    found: list[tuple[int, int, Term]] = []
    for term in list(left.values()):
        spans = (match.span() for match in term.pattern.finditer(text))
        free = next((span for span in spans if not any(a < span[1] and span[0] < b for a, b, _ in found)), None)
        if free is not None:
            found.append((*free, term))
            del left[term.name]
    for start, end, term in sorted(found, key=lambda place: place[0], reverse=True):
        text = f'{text[:start]}<a class="term" href="#{term.anchor}">{text[start:end]}</a>{text[end:]}'
    return text


def _listed(terms: list[Term]) -> str:
    entries = "\n".join(
        f'<div id="{term.anchor}"><dt>{escape(term.name)}</dt><dd>{escape(term.meaning)}</dd></div>' for term in terms
    )
    return f'<dl class="glossary">\n{entries}\n</dl>'
