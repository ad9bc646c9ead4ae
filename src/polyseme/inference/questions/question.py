"""What can be asked of a release, of its published records or of the whole table.

Everything that is wrong with a question is said at once.

A question about the whole table has records that were left out because of their values:

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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Never

import numpy as np

from polyseme.inference.base import Estimator
from polyseme.inference.classes.estimate import EXACT
from polyseme.inference.sets.estimate import Estimate, reached
from polyseme.inference.sets.registry import estimator_given
from polyseme.inference.sets.smooth import Smooth
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import Problem, QuestionError, nearest
from polyseme.release import Column, Generalized, Grouped, Release, Sets
from polyseme.results.table import Summary
from polyseme.schema import Domain

__all__ = [
    "MOST_CELLS",
    "SCALED",
    "WholeTable",
    "check_help",
    "check_size",
    "check_weighted",
    "domain_of",
    "has_domain",
    "of_whole_table",
    "size_note",
    "targets_of",
]

MANY_CELLS = 20_000
"""From here on it is said before the work how large a table is: about a second for the usual estimators."""
MOST_CELLS = 5_000_000
"""More cells need gigabytes and many minutes, and cannot be read."""


def targets_of(release: Release, of: Sequence[str], by: Sequence[str], using: Sequence[str] = ()) -> list[Column]:
    """The attributes asked for; all that is wrong with the question at once."""
    columns = {item.name: item for item in release.manifest.columns}
    protected = [name for name, item in columns.items() if isinstance(item, Sets | Grouped)]
    askable = [name for name, item in columns.items() if has_domain(item)]
    problems = []
    if not of:
        problems.append(Problem("of", "no attribute was asked for", f"protected attributes: {', '.join(askable)}"))
    for name in of:
        if name not in columns:
            problems.append(Problem("of", f"no attribute '{name}' in this release", _neighbor("of", name, askable)))
        elif name not in askable:
            problems.append(Problem("of", f"'{name}' is published {columns[name].in_words}", f"use it as --by {name}"))
    for name in by:
        if name in protected:
            words = "as sets" if isinstance(columns[name], Sets) else columns[name].in_words
            problems.append(Problem("by", f"'{name}' is published {words}", f"ask for it together: --of {name},..."))
        elif name in of and name in askable:
            problems.append(Problem("by", f"'{name}' is asked for already", "name it once"))
        elif name not in columns:
            untouched = [name for name in columns if name not in protected]
            problems.append(Problem("by", f"no attribute '{name}' in this release", _neighbor("by", name, untouched)))
    for name in using:
        if name in (*of, *by):
            problems.append(Problem("using", f"'{name}' is already in the question", "name it once"))
        elif name not in release.manifest.names:
            hint = _neighbor("using", name, release.manifest.names)
            problems.append(Problem("using", f"no attribute '{name}' in this release", hint))
    for place, names in (("of", of), ("by", by), ("using", using)):
        if len(set(names)) != len(names):
            problems.append(Problem(place, "the same attribute is asked for more than once"))
        problems += [
            Problem(place, f"'{name}' is also the name of a result column", "rename the attribute before publishing")
            for name in names
            if place != "using" and name in ("estimate", "stderr", "low", "high")
        ]
    targets = [columns[name] for name in of if name in askable]
    problems += _apart(targets)
    if using and not all(isinstance(item, Sets) for item in targets):
        problems.append(Problem("using", "columns can only help where sets were drawn", "use them as --by"))
    if problems:
        raise QuestionError(problems)
    return targets


def cells_of(targets: Sequence[Column]) -> int:
    """How many cells the table of some attributes has, for everybody together."""
    return math.prod(domain_of(item).size for item in targets)


def check_size(targets: Sequence[Column], groups: int = 1) -> None:
    """Raise where the requested table is too large to be of use, before memory runs out."""
    cells = cells_of(targets) * max(groups, 1)
    if cells > MOST_CELLS:
        by = f" in {groups:,} groups" if groups > 1 else ""
        raise QuestionError(
            Problem(
                "of",
                f"a table of {cells:,} cells{by}; at most {MOST_CELLS:,} are estimated",
                "ask for fewer attributes at a time, or publish coarser values",
            )
        )


def size_note(release: Release, of: Sequence[str]) -> str:
    """What to expect of a question that has very many cells, to be said before the work.

    Empty for others.
    """
    columns = {item.name: item for item in release.manifest.columns if has_domain(item)}
    cells = cells_of([columns[name] for name in of if name in columns])
    if cells <= MANY_CELLS:
        return ""
    return (
        f"{cells:,} cells for {release.manifest.records:,} records: this takes from seconds to minutes, and most cells "
        "will say little; fewer attributes at a time are answered faster and better"
    )


def _neighbor(place: str, name: str, choices: Sequence[str]) -> str:
    """What may be meant instead of a name; it may be a piece of one that holds commas."""
    whole = [choice for choice in choices if name in (part.strip() for part in choice.split(",")) and name != choice]
    if whole:
        return f"a name that holds a comma stands in double quotes: --{place} '\"{whole[0]}\"'"
    return nearest(name, choices)


def has_domain(column: Column) -> bool:
    """Whether a column can be asked for: the values that a record may have are known."""
    if isinstance(column, Generalized):
        return bool(column.stands_for)
    return isinstance(column, Sets | Grouped) or (column.attribute.role.is_secret and bool(column.attribute.domain))


def domain_of(column: Column) -> Domain:
    """The values that are asked for; of a generalized column those that its labels stand for."""
    if isinstance(column, Generalized):
        return Domain(_leaves(column))
    if column.attribute.domain is None:
        raise QuestionError(f"'{column.name}' has no domain")
    return column.attribute.domain


def _leaves(column: Generalized) -> tuple[str, ...]:
    """Leaves in the order of their parent's label; else numbers by size and texts as they come."""
    leaves = tuple(dict.fromkeys(leaf for texts in column.stands_for.values() for leaf in texts))
    whole = next((texts for texts in column.stands_for.values() if len(texts) == len(leaves)), None)
    if whole is not None:
        return tuple(whole)
    try:
        return tuple(sorted(leaves, key=float))
    except ValueError:
        return leaves


def _apart(targets: Sequence[Column]) -> list[Problem]:
    """Columns that one question cannot combine: the release has no information on both."""
    sets = [item for item in targets if isinstance(item, Sets)]
    grouped = [item for item in targets if isinstance(item, Grouped)]
    others = [item for item in targets if not isinstance(item, Sets | Grouped)]
    coarse = [item for item in others if isinstance(item, Generalized)]
    pairs: list[tuple[Column, Column]] = [(item, other) for item in sets for other in (*grouped, *others)]
    pairs += [(item, other) for item in grouped for other in coarse]
    pairs += [(item, other) for place, item in enumerate(grouped) for other in grouped[place + 1 :]]
    return [
        Problem(
            "of",
            f"'{item.name}' ({item.in_words}) cannot be asked for together with '{other.name}' ({other.in_words})",
            "ask for one at a time" if isinstance(other, Grouped) else f"use --by {other.name}",
        )
        for item, other in pairs
    ]


def check_weighted(weight: str, targets: Sequence[Column], by: Sequence[str], using: Sequence[str]) -> None:
    """Raise unless survey weights can be summed up in this question."""
    hint = "--unweighted counts the records instead (unweighted=True)"
    problems = [
        Problem("of", f"'{item.name}' is published {item.in_words}, and only sets are weighted", hint)
        for item in targets
        if not isinstance(item, Sets)
    ]
    if using:
        problems.append(Problem("using", "no column helps with a weighted table", f"omit it, or: {hint}"))
    if weight in by:
        problems.append(Problem("by", f"'{weight}' is the survey weight itself", hint))
    if problems:
        raise QuestionError(problems)


def check_help(estimator: str | Estimator | None, long: bool) -> None:
    """Raise unless columns can help in this question."""
    chosen = estimator_given(estimator)
    problems = []
    if chosen is not None and chosen.name != Smooth.name:
        hint = f"omit --estimator, or use {Smooth.name}"
        problems.append(Problem("using", f"{chosen.name} uses the published sets only", hint))
    if long:
        problems.append(Problem("using", "in the long form no column can help", "publish the set form"))
    if problems:
        raise QuestionError(problems)


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
        return self._with_bounds(found, low, high)

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
        return self._with_bounds(found, low, high)

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
        return self._with_bounds(found, low, high)

    def top(self, k: int = 10) -> Summary:
        found = self.published.top(k)
        if self.factor is not None:
            raise QuestionError(Problem("top", "this table holds shares", "take the largest cells of the counts"))
        value = np.asarray(found.value) * self._growth
        return self._with_bounds(found, np.asarray(found.low), np.asarray(found.high) + self.left_out, value)

    def independence(self, left: str | None = None, right: str | None = None) -> Never:
        raise QuestionError(
            Problem("independence", "records that are left out cannot be tested", "test the published records")
        )

    def _with_bounds(self, found: Summary, low: Floats, high: Floats, value: Floats | None = None) -> Summary:
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
