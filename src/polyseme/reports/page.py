"""One self-contained HTML page about a release: opens from disk, no script, no network.

Charts are inline SVG, made here from Vega-Lite. Their colors follow the reader's light or dark setting through the
page's own style sheet; pointing at a mark shows its numbers, because every mark carries its description as a title.

Without the extra `charts` the page has the numbers in tables instead, and says what draws them.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from polyseme.kernel.plugins import installed, pip_line
from polyseme.models.base import Verdict
from polyseme.release.facts import Collected
from polyseme.reports.contents import FindingLine, Outcome, Page, Provenance
from polyseme.reports.figures import NARROW, sections_of, sizes_figure
from polyseme.reports.glossary import with_glossary
from polyseme.reports.judgment import risk_paragraph, signal, value_risks
from polyseme.reports.templates import environment_of
from polyseme.results.attackers import Guessers
from polyseme.results.views import formats
from polyseme.results.views.formats import chance, day, moment
from polyseme.results.views.plan_tables import above_sentence
from polyseme.results.views.words import (
    attack_words,
    check_words,
    compared_with,
    found,
    looked_at,
    metric_words,
    metric_written,
    reached,
)

__all__ = ["is_page", "render_page"]

_GENERATOR = b'<meta name="generator" content="polyseme">'
_HEAD = 1_000
"""Bytes of a page within which it says what made it."""

_GLOSSARY = "<!-- glossary -->"
"""Where the terms that occur on a page are listed."""


def render_page(page: Page) -> str:
    """The page as HTML text."""
    text = _template().render(
        page=page,
        state=page.outcome,
        State=Outcome,
        sections=sections_of(page.distributions),
        light=signal(page),
        paragraph=risk_paragraph(page),
        risks=value_risks(page),
        way=_way(page),
        left_out=_left_out(page),
        made_with=_made_with(page.provenance),
        checks=_by_model(page.checks),
        attacks=_by_attack(page.findings or ()),
        in_sets={fact.attribute for fact in page.facts},
        glossary=Markup(_GLOSSARY),  # noqa: S704 - a constant
        protected=[line for line in page.attributes if line.protected],
        from_data=[line for line in page.attributes if line.domain_from_data],
        questions=_questions(page),
        leaks=_leaks(page),
        learned=" ".join(filter(None, [_learned(page), *map(_learned_in_group, page.learned_in_groups)])),
        learned_sentences={name: _sentence(attackers) for name, attackers in page.learners.items()},
        excesses=_excesses(page),
        infinity=math.inf,
        class_sizes=sizes_figure(page.treatment, 640, "wide"),
        class_sizes_narrow=sizes_figure(page.treatment, NARROW - 40, "narrow") or "",
        drawn=installed("charts"),
        pip_line=pip_line("charts"),
    )
    return with_glossary(text, _GLOSSARY)


def _by_model(checks: Sequence[Verdict]) -> list[tuple[str, str, list[Verdict]]]:
    """Checks of one kind together, with the note that all of them have."""
    models = dict.fromkeys(verdict.model for verdict in checks)
    kinds = [(model, [verdict for verdict in checks if verdict.model == model]) for model in models]
    return [(model, _common([verdict.note for verdict in group]), group) for model, group in kinds]


def _by_attack(findings: Sequence[FindingLine]) -> list[tuple[str, str, list[FindingLine]]]:
    """Findings of one attack together, with what it knows in all of them."""
    keys = dict.fromkeys((item.attack, item.knows) for item in findings)
    return [
        (attack, knows, [one for one in findings if (one.attack, one.knows) == (attack, knows)])
        for attack, knows in keys
    ]


def _common(texts: Sequence[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else ""


def _way(page: Page) -> str:
    """How values were made safe, in a few words."""
    ways = [f"{_UNITS[page.treatment.unit]} ({page.treatment.method})"] if page.treatment is not None else []
    if page.sets:
        ways.append("sets of candidates" if page.form == "set" else "candidates, one a row (long form)")
    return ", ".join(ways)


def _period(collected: Collected) -> str:
    """When people could answer, as far as it was announced."""
    parts = [("from", collected.opens), ("until", collected.closes)]
    return " ".join(f"{word} {moment(text)}" for word, text in parts if text) or "no dates were announced"


def _left_out(page: Page) -> str:
    """Why there are fewer records than there were."""
    if not page.dropped:
        return ""
    few = page.collected is not None and page.collected.k is not None
    return f"{page.dropped:,} left out {'because too few share their open values' if few else 'for missing values'}"


_UNITS = {"class": "classes of records that look alike", "group": "groups that share their values"}


def _made_with(origin: Provenance) -> str:
    """The format of the manifest, and the program of the page where it is another."""
    parts = [f"manifest format {origin.format}"] if origin.format is not None else []
    if origin.reporter != origin.program:
        parts.append(f"this page: Polyseme {origin.reporter}")
    return "; ".join(parts)


_PLAIN = frozenset(string.ascii_letters + string.digits + " ")


def _in_style(text: str, most: int = 80) -> Markup:
    """A text inside a string of the style sheet: whatever could end it is written as a number."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    kept = (letter if letter in _PLAIN else f"\\{ord(letter):x} " for letter in short)
    return Markup("".join(kept))  # noqa: S704 - letters and numbers


def is_page(file: Path) -> bool:
    """Whether a file is a page that was made here."""
    with file.open("rb") as opened:
        return _GENERATOR in opened.read(_HEAD)


def _learned(page: Page) -> str:
    return above_sentence({name: attackers.to_dict() for name, attackers in page.learners.items()})


def _learned_in_group(found: tuple[str, float, float]) -> str:
    name, promised, reached = found
    return (
        f"However, the promised {promised:.1%} for {name} is for an attacker who knows only the group of a person; "
        f"an attacker who learns from all groups how its values go with the other columns is right in about "
        f"{reached:.1%} of all cases."
    )


@cache
def _template() -> jinja2.Template:
    environment = environment_of("polyseme", "reports")
    environment.filters |= {
        "count": formats.count,
        "quantity": formats.quantity,
        "points": formats.points,
        "percent": formats.percent,
        "parameters": formats.parameters,
        "yes_no": formats.yes_no,
        "asked_for": compared_with,
        "attack_words": attack_words,
        "chance": chance,
        "check_words": check_words,
        "css": _in_style,
        "day": day,
        "found": found,
        "looked_at": looked_at,
        "metric_words": metric_words,
        "metric_written": metric_written,
        "period": _period,
        "reached": reached,
    }
    return environment.get_template("page.html.j2")


def _questions(page: Page) -> list[tuple[str, list[float | None]]]:
    """Metrics as rows, questions as columns."""
    if not page.metrics:
        return []
    names = dict.fromkeys(name for metrics in page.metrics.values() for name in metrics)
    return [(name, [metrics.get(name) for metrics in page.metrics.values()]) for name in names]


def _sentence(attackers: Guessers) -> str:
    sentence = attackers.sentence()
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _leaks(page: Page) -> list[str]:
    """Where the method itself reveals more than was promised, in sentences."""
    return [
        f"The sets for {fact.attribute} have the promised form, but the mechanism favors some candidates: "
        f"an attacker who knows it guesses right in up to {chance(fact.worst_posterior)} of cases instead of "
        f"{chance(fact.promised)}. The balanced mechanism does not have this weakness."
        for fact in page.facts
        if fact.exceeded
    ]


def _excesses(page: Page) -> list[str]:
    """Which attacks did better than their bound, in sentences."""
    return [
        f"The attack “{attack_words(item.attack)}”{f' on {item.attribute}' if item.attribute is not None else ''} "
        f"reaches {reached(item.attack, item.success)}, and at most {reached(item.attack, item.bound)} was promised"
        f"{f'; it knows {item.knows}' if item.knows else ''}."
        for item in page.findings or ()
        if item.exceeded
    ]
