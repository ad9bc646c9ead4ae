"""Where a distribution of the values comes from: the policy, the table itself, or a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.inference.counts import ranked
from polyseme.inference.knowledge.held_out import Reached, reached
from polyseme.inference.knowledge.learned import combined, learned_shares
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ReleaseError
from polyseme.kernel.spelling import spelled
from polyseme.policy import Policy
from polyseme.policy.priors import kept_columns
from polyseme.policy.resolution import match_columns
from polyseme.privacy.analysis.leave_one_out import Columns, Served, gained, held, information
from polyseme.release import Release, Sets
from polyseme.schema import Attribute, Condition, Role, Schema
from polyseme.scrutiny.attacks.definetti import judged, levels_of
from polyseme.scrutiny.attacks.scene import Everyone
from polyseme.strata import Strata
from polyseme.strata.stratum import Groups
from polyseme.tables.codes import as_series, encode
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import Source
from polyseme.tables.published import code_sets

__all__ = ["Learned", "Looked", "declared", "from_release", "look", "looks_at_all", "some_records"]

_CELLS = 16_000_000
"""Codes that are held at a time (128 MB)."""
_ROWS = 200_000
"""Records that are looked at of a release at the most; it is shuffled, so the first ones are any ones."""

_ANY_OTHER = "any other"
"""What a column is in the group of those to whom no condition applies."""
_RANGES = 10
"""Ranges that numbers are put into: ten of age lose 0.001 of the success of an attacker who knows income by year."""
_JUDGED, _ALL_JUDGED = 100_000, 600_000
"""Records of an attribute, and of all together, that are judged by what was learned from others: 50,000 a second."""
_OTHERS = 2
"""Records of a group on average at least: each is guessed at from another."""
_TABLE = 10_000_000
"""Groups times values of all attributes together (80 MB)."""
_COLUMNS = 3
"""Columns that are taken together at the most."""
_WORTH = 5.0
"""Nats that another column must tell: chance alone rarely tells so much about records that were left out."""
_LISTED = 3
"""Texts of a column that are named for a stratum."""
_FEWEST = 2_000
"""Records of an attribute that are judged in any case, if it has so many."""


def declared(attribute: Attribute) -> Groups | None:
    """What a policy says is publicly known; None where it says nothing."""
    shares = [item.share for item in attribute.conditional if item.share is not None]
    if shares and len(shares) == len(attribute.conditional):
        return _by_condition(attribute, shares)
    known = attribute.distributions.known
    return None if known is None else Groups.everyone(known)


def _by_condition(attribute: Attribute, shares: Sequence[float]) -> Groups | None:
    """Knowledge under exclusive conditions; None where one of them has no distribution."""
    known = [item.distributions.known for item in attribute.conditional]
    found = [distribution for distribution in known if distribution is not None]
    by = dict.fromkeys(name for item in attribute.conditional for name in item.condition.when)
    cells = {name: [" ".join(item.condition.when.get(name, ())) for item in attribute.conditional] for name in by}
    if len(found) < len(known):
        return None
    return Groups(np.array(shares)[:, None] * np.array(found), pl.DataFrame(cells))


@dataclass(frozen=True, eq=False)
class _Split:
    """Records put into groups.

    group    of each record, from 0 on: (n,)
    columns  that tell it, beside the strata
    gain     what other records of a group tell about one, in nats for all records together
    """

    group: Ints
    columns: tuple[int, ...]
    gain: float


def _worthwhile(finer: Sequence[_Split]) -> _Split:
    """The finest groups in which each column is informative beyond chance; at least one column."""
    chosen = finer[0]
    for one in finer[1:]:
        if chosen.group.any() and one.gain <= chosen.gain + _WORTH:
            break
        chosen = one
    return chosen


@dataclass(frozen=True, eq=False)
class Looked:
    """Some records of a table, as codes.

    features  codes of the untouched columns that have few enough values: (n, q)
    names     of these columns
    levels    the texts of their codes
    values    for each attribute the value of each record, or its candidates: (n, l)
    places    for each attribute the stratum of each record: (n,)
    persons   whose record each is: (n,); None where each is of a person of its own
    """

    features: Ints
    names: tuple[str, ...]
    levels: tuple[pl.Series, ...]
    values: Mapping[str, Ints]
    places: Mapping[str, Ints]
    persons: Ints | None = None

    def groups(self, name: str, strata: Strata) -> Groups | None:
        """The distribution of an attribute's true values in the groups that say most about them."""
        if not len(self.places[name]):
            return None
        if name not in self._exact:
            self._exact[name] = self._groups(name, strata, True, _worthwhile(self._finer(name, strata)))
        return self._exact[name]

    def gained(self, name: str, strata: Strata) -> tuple[tuple[str, ...], float, float]:
        """Columns that are informative one by one, and success with all of them: before and after.

        Over an attacker who knows the distribution among all people, from true values.
        """
        if name not in self._informed:
            self._informed[name] = self._inform(name, strata)
        chosen, columns, rows = self._informed[name]
        served = [
            Served(strata.members[number].mechanism, mine, strata.members[number].allowed) for number, mine in rows
        ]
        found = gained(columns, served) if chosen else (0.0, 0.0)
        return tuple(self.names[column] for column in chosen), *found

    def _inform(self, name: str, strata: Strata) -> tuple[list[int], Columns, list[tuple[int, Ints]]]:
        """The columns that are informative, and the records of each stratum."""
        place, values, size = self.places[name], self.values[name][:, 0], strata.members[0].size
        chosen = self._telling(name, size)
        columns = Columns(values, levels_of(self.features[:, chosen]), size, self.persons)
        rows = [
            (number, rows[~member.forbids[values[rows]]])
            for number, member in enumerate(strata.members)
            if len(rows := np.flatnonzero(place == number))
        ]
        return chosen, columns, rows

    @cached_property
    def _informed(self) -> dict[str, tuple[list[int], Columns, list[tuple[int, Ints]]]]:
        return {}

    def _telling(self, name: str, size: int) -> list[int]:
        """The columns that are informative about other records; a number or its bins, the better."""
        values = self.values[name]
        whole = np.bincount(values.ravel(), minlength=size) / max(values.size, 1)
        best: dict[str, tuple[float, int]] = {}
        for column, (called, level) in enumerate(zip(self.names, self.features.T)):
            if (int(level.max(initial=0)) + 1) * size <= _TABLE // len(self.names):
                gain = information(level, values, size, whole, self.persons)
                best[called] = max(best.get(called, (0.0, -1)), (gain, column))
        return [column for gain, column in best.values() if gain > 0.0]

    def group_of(self, name: str, strata: Strata) -> Ints:
        """The group of each record, as in `groups` and in `learnt`."""
        return _worthwhile(self._finer(name, strata)).group

    def _finer(self, name: str, strata: Strata) -> Sequence[_Split]:
        """Finer and finer groups; found once for each attribute."""
        if name not in self._known:
            self._known[name] = self._split(name, strata)
        return self._known[name]

    @cached_property
    def _known(self) -> dict[str, Sequence[_Split]]:
        return {}

    @cached_property
    def _exact(self) -> dict[str, Groups]:
        """The groups of each attribute: they follow from the values, whatever sets are drawn."""
        return {}

    def learned(self, name: str, strata: Strata) -> tuple[Groups | None, Learned]:
        """What candidates teach: the groups with estimated shares, and the success of guesses."""
        if not len(self.places[name]):
            return None, Learned(None, ())
        finer = self._finer(name, strata)
        chosen = _worthwhile(finer)
        return self._groups(name, strata, False, chosen), self._judged(name, strata, chosen.group, finer[-1].group)

    def _groups(self, name: str, strata: Strata, exact: bool, split: _Split) -> Groups:
        place, sets = self.places[name], self.values[name]
        group, columns = split.group, sorted(split.columns)
        first = np.unique(group, return_index=True)[1]
        counts = self._counts(sets, group, strata, place[first], exact)
        # Ranges come after the columns they are made of: what is finer is named.
        cells = {
            self.names[column]: self.levels[column].gather(self.features[first, column]) for column in columns[::-1]
        }
        named = {column: cells[column] for column in sorted(cells, key=self.names.index)}
        decided = {name: self._deciding(name, strata, place)[place[first]] for name in self._undecided(strata, place)}
        own = self._own(sets[:, 0], group, counts) if exact else {}
        return Groups(counts, pl.DataFrame({**decided, **named}), place[first], own)

    def _undecided(self, strata: Strata, place: Ints) -> Sequence[str]:
        """The columns that put records into strata, where there are several."""
        return strata.columns if len(np.unique(place)) > 1 else ()

    def _deciding(self, name: str, strata: Strata, place: Ints) -> pl.Series:
        """What a column that decides the stratum is in each of them, in words."""
        return pl.Series(
            name,
            [
                self._condition_text(name, member.condition, place == number)
                for number, member in enumerate(strata.members)
            ],
            dtype=pl.Utf8,
        )

    def _condition_text(self, name: str, condition: Condition, mine: Bools) -> str:
        """The condition of a stratum, or its records' values where these have few different texts."""
        if name in condition.when:
            return " or ".join(condition.when[name])
        if name not in self.names:
            return _ANY_OTHER
        column = self.names.index(name)
        found = self.levels[column].gather(np.unique(self.features[mine, column])).drop_nulls().to_list()
        return " or ".join(found) if 0 < len(found) <= _LISTED else _ANY_OTHER

    def _own(self, values: Ints, group: Ints, counts: Floats) -> Mapping[int, Floats]:
        """For each number of records a person has with one value in a group, their records."""
        if self.persons is None:
            return {1: counts}
        pairs = group * counts.shape[1] + values
        taken = held(pairs, self.persons)
        return {
            number: np.bincount(pairs[taken == number], minlength=counts.size).reshape(counts.shape).astype(float)
            for number in np.unique(taken).tolist()
        }

    def _split(self, name: str, strata: Strata) -> list[_Split]:
        """Finer and finer groups of records, by the columns most informative about other records.

        The first ones are those of the columns that decide the stratum; the last ones take as many as there may be.
        """
        values, size = self.values[name], strata.members[0].size
        whole = np.bincount(values.ravel(), minlength=size) / values.size
        most = min(len(values) // _OTHERS, _TABLE // len(self.values) // size)
        group, columns = self._in_strata(name, strata, most)
        found = [_Split(group, columns, information(group, values, size, whole, self.persons))]
        while len(found) <= _COLUMNS:
            last = found[-1]
            rest = [column for column in range(self.features.shape[1]) if column not in last.columns]
            codes = {column: combined(np.column_stack([last.group, self.features[:, column]])) for column in rest}
            finer = [
                _Split(code, (*last.columns, column), information(code, values, size, whole, self.persons))
                for column, code in codes.items()
                if last.group.max() < code.max() < most
            ]
            if not finer:
                break
            found.append(max(finer, key=lambda one: one.gain))
        return found

    def _in_strata(self, name: str, strata: Strata, most: int) -> tuple[Ints, tuple[int, ...]]:
        """Records by the columns that decide their stratum; by stratum if these are too many."""
        place = self.places[name]
        deciding = self._undecided(strata, place)
        columns = tuple(self.names.index(column) for column in deciding if column in self.names)
        group = combined(np.column_stack([place, self.features[:, list(columns)]]))
        return (group, columns) if group.max(initial=0) < most else (ranked(place)[1], ())

    def _judged(self, name: str, strata: Strata, group: Ints, every: Ints) -> Learned:
        """How often guesses are right that were learned from candidates, judged by other records.

        every  groups by as many columns as there may be
        """
        alone = len(np.unique(self.places[name])) == 1
        grouped = [one for one in [group] if one.any()] + ([] if _alike(group, every) else [every])
        ways = [self._reached(name, one, strata) for one in grouped]
        ways += [self._naive(name, strata)] if self.names else []
        return Learned(
            self._reached(name, np.zeros_like(group), strata) if alone else None,
            tuple(way for way in ways if way is not None),
        )

    def _naive(self, name: str, strata: Strata) -> Reached | None:
        """For an attacker who combines all columns, as far as they tell something one by one."""
        place, sets = self.places[name][: self._most], self.values[name][: self._most]
        # Of a number and its ranges one is enough.
        columns = [self.names.index(column) for column in dict.fromkeys(self.names)]
        levels = levels_of(self.features[: self._most][:, columns])
        found = judged(Everyone(sets, place, strata, name), levels) if levels.shape[1] else None
        return None if found is None else Reached(found[0].success, 0.0, found[0].error)

    @property
    def _most(self) -> int:
        """Records of an attribute that are judged."""
        return min(max(_ALL_JUDGED // len(self.values), _FEWEST), _JUDGED)

    def _reached(self, name: str, group: Ints, strata: Strata) -> Reached | None:
        """Over the strata of the first records."""
        most = self._most
        place, sets, group = self.places[name][:most], self.values[name][:most], group[:most]
        parts, weights = list[Reached | None](), list[float]()
        for number in np.unique(place).tolist():
            mine, member = place == number, strata.members[number]
            dense = ranked(group[mine])[1]
            parts.append(reached(member.narrow(sets[mine]), dense, member.mechanism))
            weights.append(float(mine.sum()))
        return Reached.over(parts, weights)

    def _counts(self, sets: Ints, group: Ints, strata: Strata, places: Ints, exact: bool) -> Floats:
        """How many people of each group have each value: (groups, F)."""
        size = strata.members[0].size
        if exact:
            counts = np.bincount(group * size + sets[:, 0], minlength=len(places) * size)
            return counts.reshape(-1, size).astype(np.float64)
        people, found = np.bincount(group).astype(np.float64), np.zeros((len(places), size))
        for number in np.unique(places).tolist():
            mine = np.flatnonzero(places == number)
            rows = np.flatnonzero(np.isin(group, mine))
            member = strata.members[number]
            if member.forbids[sets[rows]].any():
                raise ReleaseError("some sets hold a value that is impossible for their record", "run polyseme verify")
            shares = learned_shares(member.narrow(sets[rows]), np.searchsorted(mine, group[rows]), member.mechanism)
            found[np.ix_(mine, member.allowed)] = people[mine, None] * shares
        return found


def _alike(one: Ints, other: Ints) -> bool:
    """Whether the same records are together in both; groups are numbered densely."""
    return len(np.unique(one)) == len(np.unique(other)) == len(np.unique(combined(np.column_stack([one, other]))))


@dataclass(frozen=True)
class Learned:
    """How often an attacker who reads a release is right, as far as held-out records say.

    marginal     and learns how the values are distributed among all people; None for several strata
    conditional  and learns it given other columns, in several ways
    """

    marginal: Reached | None
    conditional: tuple[Reached, ...]


def _looked(texts: pl.DataFrame, values: Mapping[str, Ints], places: Mapping[str, Ints]) -> Looked:
    """Columns with about as many values as records tell nothing about groups, and are left out.

    Numbers are also looked at in ranges, as additional columns of the same name: fewer groups, of which something can
    be learned from fewer records.
    """
    rows = max((len(codes) for codes in values.values()), default=0)
    coarse = [found for series in texts if (found := _ranges(series)) is not None]
    few = [series for series in [*texts, *coarse] if series.n_unique() * _OTHERS <= rows]
    levels = [series.unique().sort() for series in few]
    codes = [series.rank("dense").fill_null(0).to_numpy().astype(np.int64) for series in few]
    # A missing value sorts first and has the code 0; without one, codes begin at 1.
    codes = [code - int(level.null_count() == 0) for code, level in zip(codes, levels)]
    features = np.column_stack(codes) if codes else np.zeros((rows, 0), dtype=np.int64)
    return Looked(features, tuple(series.name for series in few), tuple(levels), values, places)


def _ranges(texts: pl.Series) -> pl.Series | None:
    """Numbers as quantile bins; None where there are few numbers, or none."""
    numbers = texts.cast(pl.Float64, strict=False)
    known = numbers.drop_nulls()
    if numbers.null_count() > texts.null_count() or known.n_unique() <= _RANGES or not known.is_finite().all():
        return None
    ordered = known.sort().to_numpy()
    starts = np.unique(ordered[np.arange(_RANGES) * len(ordered) // _RANGES])
    place = np.searchsorted(starts, numbers.fill_null(ordered[0]).to_numpy(), side="right") - 1
    ends = ordered[np.append(np.searchsorted(ordered, starts[1:]), len(ordered)) - 1]
    names = [f"{start:g} to {end:g}" for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    named = pl.DataFrame({texts.name: [names[number] for number in place.tolist()], "known": numbers.is_not_null()})
    return named.select(pl.when("known").then(texts.name).alias(texts.name)).to_series()


def look(policy: Policy, schema: Schema, strata: Mapping[str, Strata], source: Source) -> Looked:
    """The records of a table that would be published, or evenly spaced ones of a large table."""
    matched = match_columns(policy, source)
    protected = [item for item in schema.protected if item.name in strata]
    names, key = _untouched(schema), [] if policy.record_key is None else [policy.record_key]
    wanted = list(dict.fromkeys([*names, *(item.name for item in protected), *key]))
    every = ceil((source.rows or source.count()) * len(wanted) / _CELLS) or 1
    texts, persons = list[pl.DataFrame](), list[pl.Series]()
    codes: dict[str, list[Ints]] = {item.name: [] for item in protected}
    for columns, _ in kept_columns(matched, source, wanted, one_by_one=True):
        columns = {name: series.gather_every(every) for name, series in columns.items()}
        texts.append(pl.DataFrame({name: spelled(columns[name]) for name in names}))
        persons += [spelled(columns[name]) for name in key]
        for item in protected:
            if item.domain is not None:
                codes[item.name].append(encode(columns[item.name], item.domain).codes)
    shown = pl.concat(texts) if texts else pl.DataFrame({name: [] for name in names})
    whose = _numbered(pl.concat(persons)) if persons else None
    return _fitting(shown, {name: np.concatenate(found) for name, found in codes.items() if found}, strata, whose)


def some_records(source: Source, most: int, whole: bool) -> Source:
    """The first records of a table, in memory.

    whole  whether the full number may be read; otherwise as few as a quick look takes
    """
    batches, rows = list[pa.RecordBatch](), 0
    names = source.schema.names
    for batch in source.batches(names) if whole else filter(None, [source.head(names)]):
        batches.append(batch.slice(0, most - rows))
        rows += batch.num_rows
        if rows >= most:
            break
    return FrameSource(pa.Table.from_batches(batches, source.schema))


def _numbered(keys: pl.Series) -> Ints:
    """The number of each person; a record without a key is that of a person of its own."""
    ranks = keys.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return np.where(ranks > 0, ranks, len(ranks) + np.arange(len(ranks)))


def _fitting(
    texts: pl.DataFrame, codes: Mapping[str, Ints], strata: Mapping[str, Strata], persons: Ints | None
) -> Looked:
    """Only records whose values are all in their domains, and possible for them."""
    rows = len(next(iter(codes.values()))) if codes else 0
    fits = np.all([column >= 0 for column in codes.values()], axis=0) if rows else np.zeros(0, dtype=bool)
    for name, column in codes.items():
        fits[strata[name].impossible(column, strata[name].places(texts.to_dict(), rows))] = False
    shown = texts.filter(pl.Series(fits)) if texts.width else texts
    columns, count = shown.to_dict(), int(fits.sum())
    places = {name: strata[name].places(columns, count) for name in codes}
    found = _looked(shown, {name: column[fits][:, None] for name, column in codes.items()}, places)
    return found if persons is None else replace(found, persons=persons[fits])


def _untouched(schema: Schema) -> list[str]:
    return [item.name for item in schema.attributes if not item.protected and item.role is not Role.IDENTIFIER]


def looks_at_all(release: Release) -> bool:
    """Whether the first records that are looked at are all that there are."""
    return release.manifest.records <= _most(release)


def _most(release: Release) -> int:
    """Records that are looked at."""
    held = len(release.manifest.shown) + sum(item.l for item in release.manifest.sets)
    return min(_ROWS, _CELLS // held)


def from_release(release: Release, heard: Callable[[pa.RecordBatch], None] | None = None) -> Looked:
    """The first records of a release, of the attributes whose cells are valid sets.

    heard  is given the same records, so that they need not be read again
    """
    items, names = release.manifest.sets, list(release.manifest.shown)
    texts: list[pl.DataFrame] = []
    sets: dict[str, list[Ints | None]] = {item.name: [] for item in items}
    places: dict[str, list[Ints]] = {item.name: [] for item in items}
    for batch in _first(release, [*names, *(item.name for item in items)], _most(release)):
        if heard is not None:
            heard(batch)
        columns = {name: as_series(batch.column(name)) for name in names}
        texts.append(pl.DataFrame({name: spelled(series) for name, series in columns.items()}))
        for item in items:
            sets[item.name].append(_valid(batch, item))
            places[item.name].append(item.strata.places(columns, batch.num_rows))
    shown = pl.concat(texts) if texts else pl.DataFrame({name: [] for name in names})
    whole = {name: joined for name, found in sets.items() if (joined := _joined(found)) is not None}
    return _looked(shown, whole, {name: np.concatenate(places[name]) for name in whole})


def _first(release: Release, names: Sequence[str], most: int) -> Iterator[pa.RecordBatch]:
    left = most
    for batch in release.batches(names):
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _joined(parts: Sequence[Ints | None]) -> Ints | None:
    """All sets; None where some of them are not valid."""
    valid = [part for part in parts if part is not None]
    return np.concatenate(valid) if valid and len(valid) == len(parts) else None


def _valid(batch: pa.RecordBatch, item: Sets) -> Ints | None:
    return code_sets(batch.column(item.name), item.domain).regular(item.l)
