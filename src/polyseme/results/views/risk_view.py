"""The risks of a table, for terminals and notebooks: numbers with meanings, in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.results.views.formats import count, name_of, percent, plain, quantity
from polyseme.results.views.html import titled_table
from polyseme.results.views.tables import Document, Head
from polyseme.results.views.terminal import titled_view
from polyseme.results.views.words import CHECKS

__all__ = ["risk_table", "risk_view"]

_MEASURES: Head = (("measure", False), ("value", True), ("what it means", False))
_COLUMNS: Head = (
    ("column", False),
    ("values", True),
    ("distinction", True),
    ("separation", True),
    ("still unique", True),
    ("k then", True),
)
_COLUMN_LEGEND = (
    "distinction: different values / records",
    "separation: pairs of records that the column tells apart / all pairs",
    "still unique, k then: for an attacker who knows all columns but this one",
)
_CHOICES: Head = (("column", False), ("taken as", False), ("why", False))
_BAR = 24
"""Characters of a bar for all records."""


@dataclass(frozen=True)
class _Section:
    title: str
    head: Head
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()


def risk_view(risk: Document) -> RenderableType:
    """What was measured, section by section."""
    parts: list[RenderableType] = [Text(_headline(risk), style="bold red" if risk["unique"] else "bold")]
    for part in _sections(risk):
        parts += [Text(), titled_view(part.title, part.head, part.rows, part.notes, part.legend)]
    return Group(*parts)


def risk_table(risk: Document) -> str:
    """The same for a notebook."""
    tables = [titled_table(part.title, part.head, part.rows, (*part.legend, *part.notes)) for part in _sections(risk)]
    return "".join([f"<p><strong>{escape(_headline(risk))}</strong></p>", *tables])


def _headline(risk: Document) -> str:
    if not risk["records"]:
        return "There are no records to measure."
    whole, units = _whole(risk), _units(risk)
    if risk["unique"]:
        share = f"{count(risk['unique'])} of {count(whole)} {units} ({percent(risk['unique_share'])})"
        verb = "is" if risk["unique"] == 1 else "are"
        return f"{share} {verb} unique: an attacker who knows {_known(risk)} finds them.{_advice(risk)}"
    one = "record" if units == "records" else "person"
    return f"No {one} is unique: each of {count(whole)} hides among at least {count(risk['k'] or 0)}."


def _units(risk: Document) -> str:
    """What was counted."""
    return "records" if risk.get("people") is None else "people"


def _whole(risk: Document) -> int:
    return int(risk["records"] if risk.get("people") is None else risk["people"])


def _known(risk: Document) -> str:
    names = risk["quasi_identifiers"]
    if len(names) == 1:
        return f"the column {plain(names[0])}" if names[0].strip() else name_of(names[0])
    return f"the {len(names)} columns" if names else "of the table"


def _sections(risk: Document) -> list[_Section]:
    parts: list[_Section] = []
    if risk["records"]:
        parts.append(_Section("The classes", _MEASURES, _class_rows(risk), _class_notes(risk)))
        parts.append(_Section("How large the classes are", _sizes(_units(risk)), _size_rows(risk)))
        parts += [_about(item, risk["quasi_identifiers"], _units(risk)) for item in risk["sensitive"]]
    if risk["records"] and risk["columns"]:
        parts.append(_Section("What each column adds", _COLUMNS, _column_rows(risk), legend=_COLUMN_LEGEND))
    if risk["choices"]:
        parts.append(_Section("How the columns were chosen", _CHOICES, _choice_rows(risk), _choice_notes(risk)))
    return parts


def _sizes(units: str) -> Head:
    return ((f"{units} in a class", False), ("classes", True), (units, True), ("share", True), ("", False))


def _class_rows(risk: Document) -> list[tuple[str, ...]]:
    units = _units(risk)
    return [
        (
            "k",
            quantity(risk["k"]),
            f"{units} in the smallest class; a class is all records that agree in these columns",
        ),
        ("unique", count(risk["unique"]), f"{units} alone in their class: {percent(risk['unique_share'])} of all"),
        ("classes", count(risk["classes"]), _each(risk["average_size"], units)),
        ("prosecutor risk", percent(risk["prosecutor_risk"]), "how surely the most exposed person is found: 1 / k"),
        (
            "marketer risk",
            percent(risk["marketer_risk"]),
            f"{units} found by guessing in every class: classes / {units}",
        ),
    ]


def _class_notes(risk: Document) -> tuple[str, ...]:
    names = ", ".join(map(name_of, risk["quasi_identifiers"])) or "none, so that all records are one class"
    set_aside = f"{count(risk['suppressed'])} suppressed rows (* in every one of them) are set aside and not counted"
    counted = (
        "records are counted, not people: whose they are is not known (--person COLUMN)"
        if risk.get("people") is None
        else f"{count(risk['people'])} people with {count(risk['records'])} records; a person is in a class once"
    )
    return (f"columns that others may know: {names}", counted, *([set_aside] if risk["suppressed"] else []))


def _size_rows(risk: Document) -> list[tuple[str, ...]]:
    last = max(place for place, band in enumerate(risk["sizes"]) if band["classes"])
    whole = sum(band["records"] for band in risk["sizes"])
    return [_size_row(band, whole) for band in risk["sizes"][: last + 1]]


def _size_row(band: Document, records: int) -> tuple[str, ...]:
    share = band["records"] / records
    return _span(band), count(band["classes"]), count(band["records"]), percent(share), "█" * round(_BAR * share)


def _span(band: Document) -> str:
    if band["high"] is None:
        return f"{band['low']:,} or more"
    return f"{band['low']:,}" if band["low"] == band["high"] else f"{band['low']:,} to {band['high']:,}"


def _about(item: Document, quasi_identifiers: Sequence[str], units: str) -> _Section:
    title = f"What a class tells about {item['name']}"
    return _Section(title, _MEASURES, _measure_rows(item, units), _measure_notes(item, quasi_identifiers, units))


def _measure_rows(item: Document, units: str) -> list[tuple[str, ...]]:
    apart = "numbers in their order" if item["ground"] == "ordered" else "all values equally far apart"
    rows: list[tuple[str, ...]] = [
        ("l", quantity(item["l"]), f"different values in the poorest class, of {count(item['values'])} in the table"),
        ("entropy l", quantity(item["entropy_l"]), "effective number of values in the poorest class: e to its entropy"),
        ("surest guess", percent(item["largest_share"]), CHECKS["alpha-k-anonymity"].measured),
        (
            "guessed right",
            percent(item["guessed"]),
            f"{units} guessed by their class; {percent(item['baseline'])} without",
        ),
        (
            "single value",
            count(item["homogeneous"]),
            f"{units} whose class has a single value: {_share(item)} of all",
        ),
        ("t", quantity(item["t"]), f"how far a class is from the table, 0 to 1; {apart}"),
    ]
    if item["ground"] == "ordered":
        rows.append(("t, equal", quantity(item["t_equal"]), "the same with all values equally far apart"))
    return rows


def _share(item: Document) -> str:
    return percent(item["homogeneous_share"])


def _measure_notes(item: Document, quasi_identifiers: Sequence[str], units: str) -> tuple[str, ...]:
    without = f"{count(item['missing'])} {units} have no value, which counts as one more value"
    among = f"classes are formed by the other columns: {', '.join(item['known']) or 'none'}"
    itself = among if item["name"] in quasi_identifiers else ""
    return (*([without] if item["missing"] else []), *([itself] if itself else []))


def _by_gain(risk: Document) -> list[Document]:
    """The order of columns: fewest unique records without it first, then fewest classes."""
    return sorted(risk["columns"], key=lambda column: (column["unique_without"], column["classes_without"]))


def _column_rows(risk: Document) -> list[tuple[str, ...]]:
    return [
        (
            name_of(column["name"]),
            count(column["distinct"]),
            quantity(column["distinction"]),
            percent(column["separation"]),
            count(column["unique_without"]),
            quantity(column["k_without"]),
        )
        for column in _by_gain(risk)
    ]


def _advice(risk: Document) -> str:
    """The column to begin with, where one of several helps."""
    first = _by_gain(risk)[0]
    if len(risk["columns"]) < 2 or first["unique_without"] == risk["unique"]:
        return ""
    left = f"{count(first['unique_without'])} stay unique" if first["unique_without"] else "none stays unique"
    return f" Generalize {name_of(first['name'])} first: without it {left}."


def _each(average: float, units: str) -> str:
    one = "record" if units == "records" else "person"
    return f"{quantity(average)} {one if quantity(average) == '1' else units} each on average"


def _choice_rows(risk: Document) -> list[tuple[str, ...]]:
    return [(name_of(choice["name"]), _taken(choice), choice["why"]) for choice in risk["choices"]]


def _taken(choice: Document) -> str:
    kept = choice["role"] == "quasi-identifier" or choice["why"] == "as asked for"
    return str(choice["role"] if kept else f"{choice['role']}, left out")


def _choice_notes(risk: Document) -> tuple[str, ...]:
    judged = {item["name"] for item in risk["sensitive"]}
    open_questions = [
        choice["name"] for choice in risk["choices"] if choice["role"] == "sensitive" and choice["name"] not in judged
    ]
    them = "it" if len(open_questions) == 1 else "them"
    ask = f"to see what the classes tell about {', '.join(open_questions)}, name {them} with --sensitive"
    return (
        "guesses from names and shapes: name the columns that others know with --qi",
        *([ask] if open_questions else []),
    )
