"""Tables for notebooks: plain HTML with every value escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from polyseme.models.base import Verdict
from polyseme.reports.tables import (
    PLAN_HEAD,
    VERDICT_HEAD,
    Planned,
    plan_remarks,
    plan_rows,
    verdict_notes,
    verdict_rows,
)

__all__ = ["plan_table", "verdict_table"]


def plan_table(plan: Planned) -> str:
    """What a policy comes to, attribute by attribute; what stands in the way is listed below."""
    records = plan.to_dict()["records"]
    caption = "Plan" if records is None else f"Plan for {records:,} records"
    return _table(caption, PLAN_HEAD, plan_rows(plan)) + _list(plan_remarks(plan))


def verdict_table(verdicts: Iterable[Verdict]) -> str:
    """Each model, whether it holds, and how far the worst class or set is from the bound."""
    verdicts = tuple(verdicts)
    held = sum(verdict.holds for verdict in verdicts)
    caption = "Nothing was checked" if not verdicts else f"{held} of {len(verdicts)} models hold"
    return _table(caption, VERDICT_HEAD, verdict_rows(verdicts)) + _list(verdict_notes(verdicts))


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
