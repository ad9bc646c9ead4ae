"""The values of an attribute, as declared or as found in the table, and edges of bins.

Edges of bins that are found in the data are published, so none may reveal a single person.

- The outer edges are infinite: the first bin says "below", the last one "from here on", never how far the data reach.
- Every bin holds at least `FEWEST` records; edges that would leave fewer in a bin are left out.
- An inner edge is the roundest number within a stretch of at least that many records, or a multiple of a round step:
  it depends on where many records lie, and has no digits of any one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, cast

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints, period_labels
from polyseme.kernel.documents import Reader
from polyseme.kernel.spelling import Label, different, spelling, spellings
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy, AutomaticBins, PeriodRange
from polyseme.policy.priors import kept_columns
from polyseme.schema import Bins, Domain, Periods
from polyseme.semantics.distances.declaration import policy_values
from polyseme.tables.codes import missing_label, numbers, require_labels
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = [
    "FEWEST",
    "Seen",
    "bin_count",
    "declared_domain",
    "domain_of",
    "equal_width_edges",
    "is_described",
    "is_open",
    "look",
    "quantile_edges",
]

FEWEST = 5
"""The fewest records in a bin that was made from them: the usual threshold for publishing a cell of a table."""
_SHIFT = 8
"""A quantile may move by this part of a bin to reach a round number."""
_STEPS = (10, 15, 20, 25, 30, 40, 50, 60, 80)
"""Tenths of a power of ten that are round enough for the width of a bin."""

_LEAST_POWER = -300
"""Smaller numbers have no place on any scale: floats run out of digits there."""


def quantile_edges(values: Floats, count: int) -> tuple[float, ...]:
    """Edges of at most `count` bins with about equally many of the finite `values` in each.

    >>> quantile_edges(np.arange(1000) + 0.123, 4)
    (-inf, 250.0, 500.0, 750.0, inf)
    """
    ordered = np.sort(values)
    total = len(ordered)
    cuts, count = _places_to_cut(ordered), min(count, total // FEWEST)
    if not len(cuts) or count < 2:
        return (-math.inf, math.inf)
    reach = max(FEWEST, total // (_SHIFT * count))
    edges = set()
    for number in range(1, count):
        wanted = number * total / count
        cut = int(cuts[np.argmin(np.abs(cuts - wanted))])
        low, high = max(cut - reach, FEWEST - 1), min(cut + reach - 1, total - FEWEST)
        edges.add(_roundest(float(ordered[low]), float(ordered[high]), float(ordered[cut])))
    return _filled(edges, ordered)


def equal_width_edges(values: Floats, count: int) -> tuple[float, ...]:
    """Edges of at most `count` bins of one round width, where `values` are dense enough.

    >>> equal_width_edges(np.arange(1000) / 10.0, 10)
    (-inf, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, inf)
    """
    ordered = np.sort(values)
    count = min(count, len(ordered) // FEWEST)
    if not len(_places_to_cut(ordered)) or count < 2:
        return (-math.inf, math.inf)
    # The few records at either end decide nothing: one far away would make all other bins too wide.
    low, high = float(ordered[FEWEST - 1]), float(ordered[-FEWEST])
    edges = next(found for found in _evenly_cut(low, high, count) if len(found) < count)
    return _filled(edges, ordered)


def _places_to_cut(ordered: Floats) -> Ints:
    """Where a cut leaves enough records on both sides and goes between two different values."""
    places = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    return places[(places >= FEWEST) & (places <= len(ordered) - FEWEST)]


def _filled(edges: Iterable[float], ordered: Floats) -> tuple[float, ...]:
    """The edges, low to high, with enough records between them, and open ends."""
    kept, before = [], 0
    for edge in sorted(edges):
        below = int(np.searchsorted(ordered, edge, side="left"))
        if min(below - before, len(ordered) - below) >= FEWEST:
            kept.append(edge)
            before = below
    return (-math.inf, *kept, math.inf)


def _roundest(low: float, high: float, wanted: float) -> float:
    """The number in (low, high] with the fewest digits; of several, the nearest to `wanted`.

    >>> _roundest(17.31, 24.8, 21.0), _roundest(-0.00274, -0.00213, -0.0024), _roundest(-3.0, 8.0, 7.0)
    (20.0, -0.0025, 0.0)
    """
    if low < 0.0 <= high:
        return 0.0
    start = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for power in range(start, max(start - 18, _LEAST_POWER), -1):
        for digit in (5, 2, 1):
            fitting = [edge for edge in _multiples(digit, power, low, high) if low < edge <= high]
            if fitting:
                return min(fitting, key=lambda edge: abs(edge - wanted))
    return high  # as floats the two are neighbors, so that all records from the cut on have this one


def _evenly_cut(low: float, high: float, count: int) -> Iterator[list[float]]:
    """Multiples of rounder and rounder steps between two numbers; the first makes `count` bins."""
    width = max((high - low) / count, 10.0**_LEAST_POWER)
    if math.isinf(width):
        width = high / count - low / count
    for power in itertools.count(math.floor(math.log10(width)) - 1):
        for step in _STEPS:
            if float(f"{step}e{power}") >= width * (1 - 1e-9):
                yield sorted({edge for edge in _multiples(step, power, low, high) if low < edge < high})


def _multiples(step: int, power: int, low: float, high: float) -> Iterator[float]:
    """Multiples of `step` times ten to `power` around an interval, as floats of their decimals."""
    size = float(f"{step}e{power}")
    for number in range(math.floor(low / size), math.ceil(high / size) + 1):
        yield float(f"{number * step}e{power}")


_SAMPLE = 1_000_000
"""Numbers kept for finding bins (8 MB): the share below a quantile of so many has a standard error of 0.0005."""
_DOMAIN_LIMIT = 1_000_000
"""A judgment: more different values are no domain but names or measurements."""


def is_described(attribute: AttributePolicy) -> bool:
    """Whether an attribute needs a domain: it is protected, or has a distance or order."""
    declared = attribute.distance is not None or attribute.values is not None or attribute.edges is not None
    if attribute.periods is not None:
        declared = declared or None not in (attribute.periods.first, attribute.periods.last)
    return bool(attribute.protect) or (declared and attribute.role.is_secret)


def is_open(attribute: AttributePolicy, policy: Policy) -> bool:
    """Whether the domain has to be looked up in the data."""
    if attribute.values is not None or attribute.edges is not None:
        return False
    if attribute.periods is not None:
        return attribute.periods.first is None or attribute.periods.last is None
    return attribute.bins is not None or policy_values(attribute.distance, policy.files) is None


@dataclass
class Seen:
    """What one pass over a column found."""

    labels: set[Any]
    sample: list[np.ndarray[tuple[int], np.dtype[np.float64]]]
    stride: int = 1
    unreadable: int = 0
    hint: str = ""

    def add(self, values: Floats, counts: Ints | None) -> None:
        """Numbers of some records; of too many, only every so manyth is kept."""
        while counts is not None and counts.sum() > _SAMPLE * self.stride:
            self._thin()
        if len(values):
            self.sample.append(_every(values, counts, self.stride))
        if sum(map(len, self.sample)) > _SAMPLE:
            self._thin()

    def _thin(self) -> None:
        self.sample = [np.concatenate(self.sample)[::2]] if self.sample else []
        self.stride *= 2


def _every(values: Floats, counts: Ints | None, stride: int) -> Floats:
    """The value of every so manyth record."""
    if counts is None:
        return values[::stride]
    ends = np.cumsum(counts)
    return np.asarray(values[np.searchsorted(ends, np.arange(0, int(ends[-1]), stride), side="right")])


def _records(which: Bools, counts: Ints | None) -> int:
    return int(np.count_nonzero(which) if counts is None else counts[which].sum())


def look(policy: Policy, source: Source) -> Mapping[str, Seen]:
    """One pass over the columns whose domain the policy leaves open."""
    wanted = [attribute for attribute in policy.attributes if is_described(attribute) and is_open(attribute, policy)]
    seen = {attribute.name: Seen(set(), []) for attribute in wanted}
    for columns, counts in kept_columns(policy, source, list(seen)):
        for attribute in wanted:
            _note(seen[attribute.name], attribute, columns[attribute.name], counts)
    return seen


def _note(seen: Seen, attribute: AttributePolicy, series: pl.Series, counts: Ints | None) -> None:
    """Add a piece of a column; `counts` has the records of each of its values."""
    if attribute.bins is not None:
        values, marks = numbers(series)
        # A date is no number, although it can be counted in days.
        unread = marks != -1 if series.dtype.is_temporal() else (marks == -2) | np.isnan(values)
        seen.unreadable += _records(unread, counts)
        seen.hint = seen.hint or dialect_hint(series.filter(pl.Series(unread)))
        inside = (marks == 0) & np.isfinite(values)
        seen.add(values[inside], None if counts is None else counts[inside])
    elif attribute.periods is not None:
        labels = period_labels(series, "day")
        seen.unreadable += _records((labels.is_null() & series.is_not_null()).to_numpy(), counts)
        seen.hint = seen.hint or dialect_hint(series.filter(labels.is_null()))
        seen.labels.update(label for label in (labels.min(), labels.max()) if label is not None)
    elif len(seen.labels) <= _DOMAIN_LIMIT:
        require_labels(series.alias(attribute.name))
        seen.labels.update(_labels(series))


def domain_of(attribute: AttributePolicy, seen: Seen | None, policy: Policy, reader: Reader) -> Domain:
    """The domain of an attribute, declared or from what was seen.

    What is wrong with it goes to the reader.
    """
    extra = missing_label(attribute.missing)
    if attribute.edges is not None:
        return _bin_domain(attribute, attribute.edges)
    if seen is not None and seen.unreadable:
        kind, hint = ("numbers", "dates are cut with periods: month") if attribute.bins else ("dates", "")
        reader.problem(f"{seen.unreadable:,} values cannot be read as {kind}", seen.hint or hint)
    if attribute.bins is not None and seen is not None:
        return _automatic_bins(attribute, attribute.bins, seen, reader)
    if attribute.periods is not None:
        return _period_domain(attribute, attribute.periods, seen, reader)
    values: Iterable[Label] | None = attribute.values or policy_values(attribute.distance, policy.files)
    if values is None and seen is not None:
        if len(seen.labels) > _DOMAIN_LIMIT:
            reader.problem(f"more than {_DOMAIN_LIMIT:,} different values", "cut a numeric column with bins: ...")
        values = _different(seen.labels)
        if not values and not extra:
            reader.problem("there are no values to form a domain from", "declare them with domain: [...]")
    if extra and spelling(extra[0]) in spellings(values or ()):
        reader.at("missing", None).problem(
            f"'{extra[0]}' is a value of the domain already", "choose another label for missing values"
        )
        extra = ()
    ordered = attribute.distance is not None and next(iter(attribute.distance)) in ("line", "circle")
    return Domain((*(values or ()), *extra), ordered, None, attribute.missing)


def declared_domain(attribute: AttributePolicy, policy: Policy, reader: Reader) -> Domain | None:
    """The values that the policy declares for an attribute, protected or not.

    None where it leaves them open.
    """
    if is_open(attribute, policy):
        return None
    return domain_of(attribute, None, policy, reader)


def _different(labels: Iterable[Label]) -> list[Label]:
    """One label for each value, in order: its own spelling where the table has it."""
    found = different(sorted(labels, key=_natural))
    return [found[name] for name in sorted(found, key=_natural)]


def _natural(label: Label) -> tuple[bool, float, str]:
    """Numbers by size, also when they are written as text, then everything else by the alphabet.

    The order must not depend on anything but the labels ("1" and "1.0" too): codes follow from it, and sticky decoys
    from the codes.
    """
    try:
        number = float(label)
    except ValueError:
        return (True, 0.0, str(label))
    return (False, number, str(label)) if math.isfinite(number) else (True, 0.0, str(label))


def _labels(series: pl.Series) -> list[Label]:
    """The different values of a column, as labels: dates and the like by how they are written."""
    plain = series.dtype in (pl.String, pl.Boolean) or series.dtype.is_integer() or series.dtype.is_float()
    return (series if plain else series.cast(pl.String)).drop_nulls().unique().to_list()


def _bin_domain(attribute: AttributePolicy, edges: tuple[float, ...]) -> Domain:
    labels = [f"[{_short(low)}, {_short(high)})" for low, high in itertools.pairwise(edges)]
    labels[-1] = labels[-1][:-1] + "]"
    return Domain((*labels, *missing_label(attribute.missing)), True, Bins(edges), attribute.missing)


def _short(edge: float) -> str:
    return f"{edge:.12g}"


def _automatic_bins(attribute: AttributePolicy, bins: AutomaticBins, seen: Seen, reader: Reader) -> Domain:
    if not seen.sample:
        return _only_missing(attribute, "numbers to form bins", reader)
    find = quantile_edges if bins.method == "quantile" else equal_width_edges
    # Of a large table only a part is looked at: what is enough there is enough in the whole.
    edges = find(np.concatenate(seen.sample), bins.count)
    if len(edges) == 2 and bins.count > 1 and attribute.protect.hides:
        reader.at("bins", None).problem(
            f"too few different numbers in the table for two bins of at least {FEWEST} records",
            "declare the edges with bins: [...]",
        )
    return _bin_domain(attribute, edges)


def bin_count(count: int) -> str:
    """So many bins, in words."""
    return "1 bin" if count == 1 else f"{count:,} bins"


def _period_domain(attribute: AttributePolicy, periods: PeriodRange, seen: Seen | None, reader: Reader) -> Domain:
    days = sorted(seen.labels) if seen is not None else []
    place = reader.at("periods", None)
    wrong = [end for end in (periods.first, periods.last) if end is not None and _day(end) is None]
    for end in wrong:
        place.problem(f"'{end}' is no date of the calendar", "{every: month, from: 2020-01-01, to: 2020-12-31}")
    if wrong:
        return Domain(())
    first, last = _day(periods.first or (days[0] if days else "")), _day(periods.last or (days[-1] if days else ""))
    if first is None or last is None:
        return _only_missing(attribute, "dates to form periods", reader)
    steps = pl.Series([first + timedelta(days=step) for step in range((last - first).days + 1)], dtype=pl.Date)
    labels = period_labels(steps, periods.every).unique(maintain_order=True).to_list()
    if not labels:
        reader.problem("the last period comes before the first")
    return Domain(
        (*labels, *missing_label(attribute.missing)), True, Periods(cast("Any", periods.every)), attribute.missing
    )


def _only_missing(attribute: AttributePolicy, what: str, reader: Reader) -> Domain:
    """The domain of a column with only missing values: their label, if the policy gives one."""
    if not missing_label(attribute.missing):
        reader.problem(f"there are no {what} from")
    return Domain(missing_label(attribute.missing), False, None, attribute.missing)


def _day(text: str) -> date | None:
    """A day, or the first of a month or year; None where the calendar has none of this name."""
    try:
        return date.fromisoformat(text + "-01" * (2 - text.count("-")))
    except ValueError:
        return None
