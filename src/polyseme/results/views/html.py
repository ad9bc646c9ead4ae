"""Tables for notebooks: plain HTML with every value escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from polyseme.models.base import Verdict
from polyseme.results.views.plan_tables import (
    NO_LEARNERS,
    PLAN_HEAD,
    above_sentence,
    guesser_head,
    guesser_notes,
    guesser_rows,
    plan_remarks,
    plan_rows,
    planned_learners,
)
from polyseme.results.views.tables import (
    FINDING_HEAD,
    LEARNING_HEAD,
    METRIC_HEAD,
    VERDICT_HEAD,
    Document,
    Planned,
    Reached,
    Scored,
    adversary_rows,
    finding_notes,
    finding_rows,
    finding_title,
    learning_rows,
    metric_rows,
    verdict_notes,
    verdict_rows,
)

__all__ = ["evaluation_tables", "finding_table", "plan_table", "titled_table", "verdict_table"]


def plan_table(plan: Planned) -> str:
    """What a policy comes to, attribute by attribute; what prevents it is listed below."""
    records = plan.to_dict()["records"]
    caption = "Plan" if records is None else f"Plan for {records:,} records"
    return _table(caption, PLAN_HEAD, plan_rows(plan)) + _guessing(planned_learners(plan)) + _list(plan_remarks(plan))


def _guessing(learners: Mapping[str, Document]) -> str:
    """How often each attacker guesses right, and what that means."""
    if not learners:
        return ""
    table = _table("How often each attacker guesses right", guesser_head(learners), guesser_rows(learners))
    return table + _list(guesser_notes(learners))


def verdict_table(
    verdicts: Iterable[Verdict], learners: Mapping[str, Document] = NO_LEARNERS, remarks: Sequence[str] = ()
) -> str:
    """Each model, whether it holds, and how far the worst class or set is from the bound."""
    verdicts = tuple(verdicts)
    held = sum(verdict.holds for verdict in verdicts)
    caption = "Nothing was checked" if not verdicts else f"{held} of {len(verdicts)} models hold"
    besides = "No model covers what is remarked below." if remarks else ""
    above = " ".join(filter(None, [besides, above_sentence(learners)]))
    beyond = f"<p><b>{escape(f'{caption}. {above}')}</b></p>" if above else ""
    table = (
        beyond
        + _table("What was checked" if above else caption, VERDICT_HEAD, verdict_rows(verdicts))
        + _list([*verdict_notes(verdicts), *remarks])
    )
    return table + _guessing(learners)


def finding_table(findings: Iterable[Reached]) -> str:
    """What each attack reached against what was promised, and what each attacker knows."""
    findings = tuple(findings)
    table = _table(finding_title(findings), FINDING_HEAD, finding_rows(findings)) + _list(finding_notes(findings))
    people = [_person(word, says) for word, says, _ in adversary_rows(findings)]
    return f"{table}<dl>{''.join(people)}</dl>" if people else table


def _person(word: str, says: str) -> str:
    return f"<dd>{escape(word.strip())}: {escape(says)}</dd>" if says else f"<dt>{escape(word)}</dt>"


def evaluation_tables(metrics: Mapping[str, Mapping[str, float]], learned: Mapping[str, Mapping[str, Scored]]) -> str:
    """How far estimates are from the truth, a table a question; and what can be learned."""
    compared = [
        _table(f"Estimated against true: {question}", METRIC_HEAD, metric_rows(found))
        for question, found in metrics.items()
    ]
    scores = [_table(f"Predicted: {question}", LEARNING_HEAD, learning_rows(learned[question])) for question in learned]
    return "".join([*compared, *scores])


def titled_table(
    caption: str, head: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """Any table, with notes below."""
    return _table(caption, head, rows) + _list(notes)


def _table(caption: str, head: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    def cells(texts: Iterable[str], tag: str) -> str:
        aligned = zip(texts, (numeric for _, numeric in head), strict=True)
        return "".join(
            f'<{tag} style="text-align:{"right" if numeric else "left"}">{escape(text)}</{tag}>'
            for text, numeric in aligned
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{cells((title for title, _ in head), 'th')}</tr></thead><tbody>{body}</tbody></table>"
    )


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>" if items else ""
