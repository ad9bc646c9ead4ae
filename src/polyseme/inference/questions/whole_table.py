"""From published records to the whole table, of which some records are left out.

They are left out because of their values.

    x(c, v) in [low(c, v), high(c, v) + S],      share(c, v) in [low / (n(c) + S), (high + S) / (n(c) + S)]

where
    low, high  the interval of a cell among the published records; the number itself where these are counted exactly
    n(c)       published records of cell c
    S          records that are left out; any of them may belong to any place

The intervals hold whichever values the missing records have: suppression chooses records by their values, so that
nothing can be learned about them from the others. The estimate in an interval is what it would be if the missing
records were like the others, which they are not. It has no standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Never

import numpy as np

from polyseme.inference.classes.estimate import EXACT
from polyseme.inference.sets.estimate import Estimate, reached
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.results.table import Summary

__all__ = ["SCALED", "WholeTable", "of_whole_table"]

SCALED = "scaled"
"""The estimator's name where published records are counted exactly, and others are left out."""

_NOTE = (
    "intervals hold whatever the values of the records that are left out; estimates take these records to be like the "
    "published ones, and have no standard error"
)


@dataclass(frozen=True, eq=False, repr=False)
class WholeTable(Estimate):
    """An estimate for all records of a table, of which some are not published.

    published  the same of the published records
    """

    published: Estimate = field(kw_only=True)

    def sums(self, contrasts: Floats, given: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        self._refuse_shares("sums", "sums are computed from counts")
        value, _, low, high = self.published.sums(contrasts, given)
        flat = contrasts.reshape(len(contrasts), -1)
        low, high = low + self.left_out * flat.min(axis=1), high + self.left_out * flat.max(axis=1)
        return value * self._growth, np.full(len(value), np.nan), low, high

    @property
    def _growth(self) -> float:
        """How many records there are for each published one."""
        return self.records / max(self.records - self.left_out, 1)

    @property
    def _missing(self) -> Floats:
        """What share of each cell the missing records would have, if they all were in it: (cells,)."""
        totals = self.published.totals
        return np.asarray(self.left_out / np.maximum(totals + self.left_out, 1.0), dtype=np.float64)

    def margin(self, of: Sequence[str] | str | None = None, by: Sequence[str] | str | None = None) -> Estimate:
        self._refuse_shares("margin", "take the margin first, then the proportions")
        return of_whole_table(self.published.margin(of, by))

    def proportions(self) -> Estimate:
        shares = self.published.proportions()
        missing = self._missing.reshape(-1, *[1] * len(self.of))
        low, high = shares.low * (1.0 - missing), shares.high * (1.0 - missing) + missing
        return _whole(shares, shares.values, low, high, shares.totals)

    def mean(self, of: str | None = None, positions: Sequence[float] | None = None) -> Summary:
        """The mean of a numeric attribute in each cell.

        Its interval holds every value of the missing records.
        """
        table, places = self.published._numeric(of, positions)
        found = table.mean(of, positions)
        missing = of_whole_table(table)._missing
        low, high = (
            np.asarray(limit) * (1.0 - missing) + missing * edge
            for limit, edge in ((found.low, places.min()), (found.high, places.max()))
        )
        return self._told(found, low, high)

    def quantile(self, q: float = 0.5, of: str | None = None, positions: Sequence[float] | None = None) -> Summary:
        """The smallest value that at least a share q of the records do not exceed; as `mean`."""
        found = self.published.quantile(q, of, positions)
        table, places = self.published._numeric(of, positions)
        order = np.argsort(places, kind="stable")
        whole, limits = of_whole_table(table), []
        for cell, missing in enumerate(whole._missing.tolist()):
            contrasts = np.zeros((len(order), *table.values.shape))
            contrasts[:, cell] = np.tril(np.ones((len(order), len(order))))[:, np.argsort(order)]
            contrasts /= max(float(table.totals[cell]), 1.0)
            _, _, low, high = table.sums(contrasts, given=True)
            upper, lower = high * (1.0 - missing) + missing, low * (1.0 - missing)
            # All records together are at most the largest value, wherever the missing ones are.
            lower[-1] = 1.0 if np.isfinite(lower[-1]) else lower[-1]
            limits.append([reached(column, places[order], q) for column in (upper, lower)])
        low, high = np.array(limits).T
        return self._told(found, low, high)

    def difference(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> Summary:
        """Shares in one group minus shares in another; as `mean`."""
        self._refuse_shares("difference", "differences are computed from counts")
        found = self.published.difference(left, right)
        room = 0.0
        for group in (left, right):
            total = float(self.published.totals[self._group(group)].sum())
            room += self.left_out / max(total + self.left_out, 1.0)
        low, high = (
            np.clip(np.asarray(limit) + step, -1.0, 1.0) for limit, step in ((found.low, -room), (found.high, room))
        )
        return self._told(found, low, high)

    def top(self, k: int = 10) -> Summary:
        found = self.published.top(k)
        if self.factor is not None:
            raise QuestionError(Problem("top", "this table holds shares", "take the largest cells of the counts"))
        value = np.asarray(found.value) * self._growth
        return self._told(found, np.asarray(found.low), np.asarray(found.high) + self.left_out, value)

    def independence(self, left: str | None = None, right: str | None = None) -> Never:
        raise QuestionError(
            Problem("independence", "records that are left out cannot be tested", "test the published records")
        )

    def _told(self, found: Summary, low: Floats, high: Floats, value: Floats | None = None) -> Summary:
        error, value = np.full(len(found), np.nan), np.asarray(found.value if value is None else value)
        return Summary.of(found.columns, value, error, low, high, notes=found.notes)


def of_whole_table(table: Estimate) -> WholeTable:
    """The estimate of a table with the records that are left out.

    Refuses questions that have no interval then.
    """
    problems = []
    if table.weight is not None:
        what = "the weights of records that are left out are not known"
        problems.append(Problem("target", what, "--unweighted counts the records (unweighted=True)"))
    if table.population == "super" and table.left_out:
        what = "records are left out because of their values, so that they say nothing about a population"
        problems.append(Problem("target", what, "population finite, or target published"))
    if problems:
        raise QuestionError(problems)
    records = table.records + table.left_out
    growth = records / max(table.records, 1)
    alone = len(table.totals) == 1 and not table.of
    low, high = table.low + (table.left_out if alone else 0), table.high + table.left_out
    return _whole(table, table.values * growth, low, high, table.totals * growth, records)


def _whole(
    table: Estimate, values: Floats, low: Floats, high: Floats, totals: Floats, records: int | None = None
) -> WholeTable:
    shown: dict[str, Any] = {each.name: getattr(table, each.name) for each in fields(Estimate)}
    shown |= {
        "values": values,
        "stderr": np.full_like(values, np.nan) if table.left_out else table.stderr,
        "low": low,
        "high": high,
        "totals": totals,
        "estimator": SCALED if table.left_out and table.estimator == EXACT else table.estimator,
        "records": table.records + table.left_out if records is None else records,
        "target": "table",
        "notes": (*([_NOTE] if table.left_out else []), *table.notes),
    }
    return WholeTable(**shown, published=table)
