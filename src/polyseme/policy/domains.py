"""The values of an attribute: as the policy declares them, or as they were found in the table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, cast

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Floats, Ints
from polyseme.distances.implied import policy_values
from polyseme.marks import period_labels
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy, AutomaticBins, PeriodRange
from polyseme.policy.binning import FEWEST, equal_width_edges, quantile_edges
from polyseme.policy.distributions import kept_columns
from polyseme.policy.reading import Reader
from polyseme.schema import Bins, Domain, Periods
from polyseme.spelling import Label, different, spelling, spellings
from polyseme.tables.coding.codes import missing_label, numbers, require_labels
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = ["Seen", "bin_count", "declared_domain", "domain_of", "is_described", "is_open", "look"]

_SAMPLE = 1_000_000
"""Numbers kept for finding bins (8 MB): the share below a quantile of so many has a standard error of 0.0005."""
_DOMAIN_LIMIT = 1_000_000
"""A judgment: more different values are no domain but names or measurements."""


def is_described(attribute: AttributePolicy) -> bool:
    """Whether an attribute needs a domain: it is protected, or its values have a distance or an order to be checked."""
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
    """What a piece of a column adds; `counts` says how many records each of its values stands for."""
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
    """The domain of an attribute, declared or from what was seen; what is wrong with it goes to the reader."""
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
    """The values that the policy declares for an attribute, protected or not; None where it leaves them open."""
    if is_open(attribute, policy):
        return None
    return domain_of(attribute, None, policy, reader)


def _different(labels: Iterable[Label]) -> list[Label]:
    """One label for each value, in their order: the one that is its own spelling where the table has it."""
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
    """The domain of a column in which every value is missing: the label for those, if the policy gives one."""
    if not missing_label(attribute.missing):
        reader.problem(f"there are no {what} from")
    return Domain(missing_label(attribute.missing), False, None, attribute.missing)


def _day(text: str) -> date | None:
    """A day, or the first of a month or year; None where the calendar has none of this name."""
    try:
        return date.fromisoformat(text + "-01" * (2 - text.count("-")))
    except ValueError:
        return None
