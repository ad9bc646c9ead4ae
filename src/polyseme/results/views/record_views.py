"""Ledgers, and records before and after, for terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.results.views.formats import percent, quantity, yes_no
from polyseme.results.views.html import titled_table
from polyseme.results.views.tables import Head
from polyseme.results.views.terminal import remarks, titled_view

__all__ = ["exposure_table", "exposure_view", "ledger_table", "ledger_view", "preview_tables", "preview_view"]

_RELEASE_HEAD: Head = (
    ("people", False),
    ("date", False),
    ("records", True),
    ("sets", False),
    ("attributes", False),
    ("manifest", False),
)
_EXPOSURE_HEAD: Head = (
    ("attribute", False),
    ("releases", True),
    ("draws", True),
    ("epsilon", True),
    ("intersected", False),
    ("left alone", True),
    ("learner, one", True),
    ("learner, all", True),
)
_LEGEND = (
    "draws: independent sets that a person has in all releases; epsilon: their sum",
    "intersected: whether several sets of a person leave fewer candidates than one",
    "left alone: how often the true value is the only one in all sets",
    "learner: how often an attacker who knows the distribution guesses right, "
    "with the most revealing release and with all",
)
_PREFIX = 12
"""Digits of a checksum that are shown."""


def ledger_view(document: Mapping[str, Any]) -> RenderableType:
    """The releases of a ledger, one a line."""
    if not document["releases"]:
        return Text("The ledger is empty.")
    return titled_view("Releases", _RELEASE_HEAD, _release_rows(document))


def ledger_table(document: Mapping[str, Any]) -> str:
    """The same for a notebook."""
    return titled_table(f"{len(document['releases'])} releases", _RELEASE_HEAD, _release_rows(document))


def exposure_view(document: Mapping[str, Any]) -> RenderableType:
    """What all releases tell together, one attribute a line."""
    people = list(dict.fromkeys(item["people"] for item in document["exposures"]))
    tables = [
        titled_view(f"What all releases together reveal about {name}", _EXPOSURE_HEAD, _exposure_rows(document, name))
        for name in people
    ]
    return Group(
        *tables, *(remarks(_LEGEND, _notes(document)) if people else [Text("They hold no protected attribute.")])
    )


def exposure_table(document: Mapping[str, Any]) -> str:
    """The same for a notebook."""
    found = document["exposures"]
    caption = f"{sum(item['intersected'] for item in found)} of {len(found)} attributes can be intersected"
    rows = [(item["people"], *row) for item in found for row in _exposure_rows({"exposures": [item]}, item["people"])]
    return titled_table(caption, (("people", False), *_EXPOSURE_HEAD), rows, _notes(document))


def _release_rows(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            item["people"],
            item["date"][:10],
            f"{item['records']:,}",
            "sticky" if item["sticky"] else "fresh",
            ", ".join(_drawn(entry) for entry in item["attributes"] if "summary" in entry),
            item["manifest"][:_PREFIX],
        )
        for item in document["releases"]
    ]


def _drawn(entry: Mapping[str, Any]) -> str:
    return f"{entry['name']} (l={entry['summary']['l']}, p={quantity(entry['summary']['p'])})"


def _exposure_rows(document: Mapping[str, Any], people: str) -> list[tuple[str, ...]]:
    return [
        (
            item["attribute"],
            str(item["releases"]),
            str(item["draws"]),
            quantity(math.inf if "epsilon" in item.get("nonfinite", ()) else item["epsilon"]),
            yes_no(item["intersected"]),
            *(_range(item[name]) for name in ("alone", "single", "success")),
        )
        for item in document["exposures"]
        if item["people"] == people
    ]


def _range(limits: Sequence[float]) -> str:
    low, high = limits
    return percent(low) if low == high else f"{percent(low)} to\n{percent(high)}"


def _notes(document: Mapping[str, Any]) -> list[str]:
    notes = [f"{item['attribute']}: values {item['assumed']}" for item in document["exposures"]]
    notes += [f"{item['attribute']}: {reason}" for item in document["exposures"] for reason in item["reasons"]]
    return notes + [
        f"{people}: epsilons of what may lie (p < 1) add up to {quantity(spent)}"
        for people, spent in document["epsilon"].items()
        if spent is None or spent > 0.0
    ]


_HEAD: Head = (("column", False), ("before", False), ("after", False))
_LONGEST = 400
"""Characters of a value that are shown."""


class Record(Protocol):
    """What is known of one record; nothing afterwards where it would be left out."""

    @property
    def before(self) -> Mapping[str, Any]: ...
    @property
    def after(self) -> Mapping[str, Any] | None: ...


class Previewed(Protocol):
    """Records before and after."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def total(self) -> int: ...


def preview_view(preview: Previewed) -> RenderableType:
    """A block for each record, a line for each column."""
    parts: list[RenderableType] = [Text(_headline(preview))]
    for title, rows in _records(preview):
        parts += [Text(), titled_view(title, _HEAD, rows) if rows else Text(title, "bold")]
    return Group(*parts)


def preview_tables(preview: Previewed) -> str:
    """The same for a notebook."""
    return f"<p>{_headline(preview)}</p>" + "".join(
        titled_table(title, _HEAD, rows) for title, rows in _records(preview)
    )


def _headline(preview: Previewed) -> str:
    return f"{len(preview.records)} of {preview.total:,} records, drawn at random. Nothing is written."


def _records(preview: Previewed) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    for number, record in enumerate(preview.records, 1):
        after = record.after
        if after is None:
            yield f"Record {number}: would be left out of the release", []
        else:
            yield f"Record {number}", [_row(name, record.before, after) for name in preview.columns]


def _row(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str, str]:
    return (
        name,
        _shown(before[name]) if name in before else "(new)",
        _shown(after[name]) if name in after else "(not published)",
    )


def _shown(value: Any) -> str:
    if value is None:
        return "(missing)"
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    text = f"{{{', '.join(map(_shown, value))}}}" if several else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
