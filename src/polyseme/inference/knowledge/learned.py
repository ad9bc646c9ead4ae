"""What published sets reveal about groups: which columns distinguish them, and shares.

The shares of a group are those under which its sets are most likely, with some people like everybody else added:

    share(q, v)  ~  sum over the sets R of q of P(v | R) + added * share(v)        P(v | R) ~ share(q, v) P(R | v)

found by repeating (expectation and maximization, sped up by squared extrapolation). How many are added decides what is
learned: many where groups are alike, few where they differ. `like_everyone` looks under which number records that were
left out are likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.counts import distinct, ranked, tallied
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.work import check_cancelled
from polyseme.strata import Strata

__all__ = ["NEWS", "PEOPLE", "combined", "learned_shares", "like_everyone", "most_groups", "repeated", "telling"]

PEOPLE = 100
"""Records that a group has on average at least: with fewer, what stands out in it is mostly chance."""
_GROUPS = 200
"""Groups at the most: finer ones change the average little (single years of age by sex are 100)."""
_VALUES = 20_000
"""Groups times values at the most: with 5,000 values, what can be guessed in a group takes a second to compute."""

ADDED = (1.0, 5.0, 30.0, 150.0)
"""People like everybody else that may be added to each group. On the demo's table with 10,000 records by age and sex,
guesses at (3, 4) are right in 63.6% with 1, 72.1% with 30 and 71.7% with 100 of them. Where each age has incomes of its
own (20,000 records) they are right in 94.7% with 1 and in 85.5% with 30."""
_ROUNDS = 100
"""Cycles of three steps at the most."""
_STEP = 1e-5
"""Largest change of a share in a cycle below which no guess changes."""
_LEAST = 0.01
"""Part of a share that a leap leaves of it at least."""
_LEFT_OUT = 5
"""Every fifth record is left out to see how many people like everybody else suit it."""
NEWS = 5.0
"""Standard errors by which a column must tell more than chance alone, to be worth splitting groups for."""
_CODES = 1 << 62
"""Combinations of levels that fit into one number."""
_COLUMNS = 3
"""Columns that are taken together at the most."""


def most_groups(records: int, size: int) -> int:
    """How many groups so many records of an attribute with so many values may be split into."""
    return max(min(_GROUPS, records // PEOPLE, _VALUES // size), 1)


def telling(
    features: Ints, sets: Ints, size: int, most: int, given: Sequence[int] = (), news: float = NEWS
) -> list[int]:
    """The columns that together tell most about the values, as numbers.

    `given` are taken in any case.

    features  codes of the untouched columns: (n, q)
    sets      candidates of each record, or its value alone: (n, l)
    most      groups that there may be
    news      standard errors by which a column must tell more than chance alone

    What a column tells is the mutual information of group and candidate, less what chance alone gives.
    """
    chosen, group = list(given), combined(features[:, list(given)])
    known = _information(group, sets, size)
    while len(chosen) < len(given) + _COLUMNS:
        finer = {
            column: combined(np.column_stack([group, features[:, column]]))
            for column in range(features.shape[1])
            if column not in chosen
        }
        gains = {column: _information(code, sets, size) for column, code in finer.items() if code.max(initial=0) < most}
        # A column of many levels may seem to tell most by chance; that must not hide one that surely tells something.
        sure = [column for column, one in gains.items() if one.value - known.value > news * one.error]
        if not sure:
            break
        best = max(sure, key=lambda column: gains[column].value)
        chosen.append(best)
        known, group = gains[best], finer[best]
    return chosen


@dataclass(frozen=True)
class _Information:
    """Information of groups about values in nats, less chance, and the standard error of chance."""

    value: float
    error: float


def combined(features: Ints) -> Ints:
    """Combinations of columns as one code, dense and in the order of the columns: (n,).

    >>> combined(np.array([[0, 5], [1, 0], [0, 5]])).tolist()
    [0, 1, 0]
    """
    code, codes = np.zeros(len(features), dtype=np.int64), 1
    for column in features.T:
        count = int(column.max(initial=0)) + 1
        if codes * count > _CODES:
            code = ranked(code)[1]
            codes = int(code.max(initial=0)) + 1
        code, codes = code * count + column, codes * count
    return ranked(code)[1]


def _information(group: Ints, sets: Ints, size: int) -> _Information:
    if not len(group):
        return _Information(0.0, 0.0)
    counts = np.bincount((group[:, None] * size + sets).ravel(), minlength=(int(group.max()) + 1) * size)
    table = counts.reshape(-1, size) / counts.sum()
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    there = table > 0.0
    information = float((table[there] * np.log(table[there] / (rows * columns)[there])).sum())
    # Where groups tell nothing, twice the records times the information is about chi-squared. Candidates of one set are
    # no records of their own: a group of n has n rho (1 - rho) for the variance of each count, of an expected n rho.
    freedom = (np.count_nonzero(rows) - 1) * max(np.count_nonzero(columns) / sets.shape[1] - 1.0, 0.0)
    return _Information(information - freedom / (2.0 * len(group)), np.sqrt(2.0 * freedom) / (2.0 * len(group)))


def learned_shares(
    sets: Ints,
    group: Ints,
    drawn: Mechanism | Strata,
    groups: int | None = None,
    added: float | None = None,
    places: Ints | None = None,
) -> Floats:
    """The shares of the values in each group, as every reader can estimate them: (groups, F).

    sets    candidates of each record: (n, l)
    group   of each record, from 0 on
    drawn   how sets are drawn; for strata, which may share a group, sets are in codes of the domain
    groups  how many there are, also where the last ones have no record
    added   people like everybody else; the number that suits the release unless given
    places  the stratum of each record, where there are several
    """
    groups = int(group.max(initial=0)) + 1 if groups is None else groups
    places = np.zeros(len(sets), dtype=np.int64) if places is None else places
    everyone = _Seen.of(sets, np.zeros(len(sets), dtype=np.int64), 1, drawn, places).fitted()
    if groups == 1:
        return everyone
    added = like_everyone(sets, group, drawn, places) if added is None else added
    return _Seen.of(sets, group, groups, drawn, places).fitted(added * everyone[0])


def like_everyone(sets: Ints, group: Ints, drawn: Mechanism | Strata, places: Ints | None = None) -> float:
    """How many average people suit the groups: under them, left-out records are likeliest."""
    groups, left = int(group.max(initial=0)) + 1, np.arange(len(sets)) % _LEFT_OUT == 0
    places = np.zeros(len(sets), dtype=np.int64) if places is None else places
    kept, mine = ~left, group[left]
    everyone = _Seen.of(sets[kept], np.zeros(int(kept.sum()), dtype=np.int64), 1, drawn, places[kept]).fitted()[0]
    seen = _Seen.of(sets[kept], group[kept], groups, drawn, places[kept])
    inside, outside = _weights(drawn, sets[left], places[left])
    likely = []
    for added in ADDED:
        shares = seen.fitted(added * everyone)
        members = shares[mine[:, None], sets[left]]
        chance = (members * inside).sum(axis=1) + np.maximum(1.0 - members.sum(axis=1), 0.0) * outside
        likely.append(float(np.log(np.maximum(chance, np.finfo(np.float64).tiny)).sum()))
    return ADDED[int(np.argmax(likely))]


def _weights(drawn: Mechanism | Strata, sets: Ints, places: Ints) -> tuple[Floats, Floats]:
    return drawn.weights(sets) if isinstance(drawn, Mechanism) else drawn.weights(sets, places)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The pairs of a group and a set that occur.

    shape    of the table of shares: groups and values
    group    of each pair
    counts   how many records have it
    inside   the weights of the candidates, a row for each place in a set: sums over the few candidates of a set are
             then sums of long rows
    outside  the weight of any other value
    places   the cell of each candidate in the table of shares, like `inside`
    """

    shape: tuple[int, int]
    group: Ints
    counts: Ints
    inside: Floats
    outside: Floats
    places: Ints

    @classmethod
    def of(cls, sets: Ints, group: Ints, groups: int, drawn: Mechanism | Strata, places: Ints) -> _Seen:
        """From the candidates, the group and the stratum of each record."""
        size, strata = drawn.size, int(places.max(initial=0)) + 1
        different, which = distinct(sets, size)
        pairs, counts = tallied((group * strata + places) * len(different) + which)
        cell, sets = pairs // max(len(different), 1), different[pairs % max(len(different), 1)]
        group, places = cell // strata, cell % strata
        inside, outside = _weights(drawn, sets, places)
        cells = np.ascontiguousarray((group[:, None] * size + sets).T)
        return cls((groups, size), group, counts, np.ascontiguousarray(inside.T), outside, cells)

    def fitted(self, added: Floats | None = None) -> Floats:
        """Shares by group, with so many people of each value added.

        Without any help for everybody together.
        """
        (groups, size), flat, outside = self.shape, self.places.ravel(), self.outside
        prior = np.zeros(self.shape) if added is None else np.tile(added, (groups, 1))
        lies = bool(outside.any())

        def again(shares: Floats) -> Floats:
            mine = shares.ravel()[self.places]
            joint = mine * self.inside
            total = joint.sum(axis=0)
            if lies:
                total = total + np.maximum(1.0 - mine.sum(axis=0), 0.0) * outside
            seen = np.divide(self.counts, total, out=np.zeros(len(total)), where=total > 0.0)
            # A value outside a set is believed in proportion to its share; what its members have of that is taken off.
            members = joint - mine * outside if lies else joint
            sums = np.bincount(flat, (seen * members).ravel(), groups * size)
            held: Floats = sums.reshape(self.shape) + prior
            if lies:
                held = held + shares * np.bincount(self.group, seen * outside, groups)[:, None]
            return np.asarray(held / np.maximum(held.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))

        return repeated(
            again, np.full(self.shape, 1.0 / size) if added is None else prior / prior.sum(1, keepdims=True)
        )


def repeated(again: Callable[[Floats], Floats], shares: Floats) -> Floats:
    """Where repeating leads, by extrapolation of two steps (Varadhan 2008)."""
    for _ in range(_ROUNDS):
        check_cancelled()
        once = again(shares)
        twice = again(once)
        step, bend = once - shares, twice - 2.0 * once + shares
        curved = float(np.linalg.norm(bend))
        length = max(float(np.linalg.norm(step)) / curved, 1.0) if curved > 0.0 else 1.0
        # Nothing comes back from a share of nought.
        leap = np.maximum(shares + 2.0 * length * step + length**2 * bend, _LEAST * twice)
        found = again(leap / np.maximum(leap.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))
        moved = float(np.abs(found - shares).max(initial=0.0))
        shares = found
        if moved < _STEP:
            break
    return shares
