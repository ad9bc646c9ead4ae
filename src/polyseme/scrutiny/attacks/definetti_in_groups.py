"""The deFinetti attacker in groups: learns which values go with which columns (Kifer 2009).

It learns that from the release, and so distinguishes the members of a group.

A group shows its members' columns and, separately, its values: who has which is a permutation. With a naive Bayes model
of the columns,

    P(permutation)  ~  product over members r of  w(r, value given to r)
    w(r, v)         =  product over columns j of  P_j(q_rj | v) / P_j(q_rj)

where
    P_j(q | v)  share of level q of column j among records with value v: from the beliefs, with half a record for each
                level of the column added, spread like P_j
    P_j(q)      the share of the records with this level

The belief that r has v is the share of the permutations in which it has: exact, summed over all ways to give the values
to the members one after the other, for groups of up to 8 records; for larger ones the matrix w is scaled until its rows
and columns add up as they must, an approximation. Beliefs give new P_j(q | v), and so on.

With the original, success is the observed share of right best guesses. Without, it is a confidence that does not trust
itself: groups are split in three; for the groups of one part, an attacker who learned from the second guesses, and
a judge who learned from the third says how likely that is. Where there is nothing to learn the two have nothing in
common, and the answer is a blind guess within the group. No model of classes bounds this attacker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, Within, hit_rate
from polyseme.tables.equivalence_classes import Counts

__all__ = ["attack", "beliefs", "lacks"]

_ROUNDS = 20
"""Revisions of the beliefs, as for published sets."""
_SMOOTHING = 0.5
"""Half a record for each level (Jeffreys), so that a level that was never seen is unlikely, not impossible."""
_FEWEST = 2
"""Records that share a level of a column on average; with fewer there is nothing to learn from it."""
_EXACT = 8
"""Members of a group up to which all permutations are summed over: 256 subsets."""
_SCALINGS = 60
"""Times that rows and columns of a larger group are scaled; they then add up to 1 within 1e-6."""
_PARTS = 3
"""To learn from twice, and to judge."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Groups of one size: their records (m, g) and values (m, g), in arbitrary order."""

    records: Ints
    values: Ints


def lacks(scene: Scene) -> str:
    if scene.within is None:
        return "values in groups"
    if scene.within.unit != "group" or scene.within.members is None:
        return "records whose values are shown by group"
    return "" if scene.features is not None and scene.features.shape[1] else "untouched columns"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On groups, with the untouched columns of their records."""
    within, features = scene.classed, scene.features
    if features is None or within.members is None:
        return ()
    blocks = _blocks(within.counts, within.members)
    confidence = _confidence(blocks, features, within)
    truth = scene.truth
    detail = {"confidence": confidence, "blind": _blind(within)}
    success = confidence
    if truth is not None and (truth >= 0).any():
        success = _observed(blocks, beliefs(blocks, features, within.counts.domain_size), truth)
    finding = Finding(
        "definetti",
        within.attribute,
        success,
        None,
        float(within.whole.max()),
        False,
        knows="the whole release, and the quasi-identifiers of all people",
        gains="the value, where quasi-identifiers and sensitive values are associated",
        helps="a larger l, generalized quasi-identifiers, or sets of candidates in the place of groups",
        detail=detail,
    )
    return (finding,)


def _blind(within: Within) -> float:
    """How often a guess is right that takes the most frequent value of each group."""
    counts = within.counts
    return float(np.maximum.reduceat(counts.count, counts.starts[:-1]).sum() / counts.sizes.sum())


def _blocks(counts: Counts, members: Ints) -> list[_Block]:
    """Groups by size; `counts` and `members` number them alike and cover the same records."""
    records = np.argsort(members, kind="stable")
    values = np.repeat(counts.value, counts.count)
    starts = np.concatenate(([0], np.cumsum(counts.sizes)))
    blocks = []
    for size in np.unique(counts.sizes):
        places = starts[:-1][counts.sizes == size][:, None] + np.arange(size)
        blocks.append(_Block(records[places], values[places]))
    return blocks


# -- beliefs ----------------------------------------------------------------------------------------------------------


def beliefs(blocks: Sequence[_Block], features: Ints, size: int) -> list[Floats]:
    """How likely each member of each group has each value: (m, g, g) for groups of g members."""
    levels = _useful(features)
    found = [np.full((*block.values.shape, block.values.shape[1]), 1.0 / block.values.shape[1]) for block in blocks]
    for _ in range(_ROUNDS):
        check_cancelled()
        tables = _learned(blocks, found, levels, size)
        found = [_judged(block, levels, tables) for block in blocks]
    return found


def _useful(features: Ints) -> list[Ints]:
    """The columns as levels from 0, without those that have about one level per record."""
    columns = [np.unique(column, return_inverse=True)[1].ravel() for column in features.T]
    return [column for column in columns if _FEWEST * (int(column.max(initial=0)) + 1) <= len(column)]


def _learned(blocks: Sequence[_Block], found: Sequence[Floats], levels: Sequence[Ints], size: int) -> list[Floats]:
    """`ln P_j(q | v) / P_j(q)` of each column: (levels, F)."""
    return [_learned_column(blocks, found, column, size) for column in levels]


def _learned_column(blocks: Sequence[_Block], found: Sequence[Floats], column: Ints, size: int) -> Floats:
    count = int(column.max(initial=0)) + 1
    together, seen = np.zeros(count * size), np.zeros(count)
    for block, belief in zip(blocks, found, strict=True):
        level = column[block.records]
        pairs = level[:, :, None] * size + block.values[:, None, :]
        together += np.bincount(pairs.ravel(), weights=belief.ravel(), minlength=count * size)
        seen += np.bincount(level.ravel(), minlength=count)
    table = together.reshape(count, size)
    # A level without a record here tells nothing.
    share = np.maximum(seen, np.finfo(np.float64).tiny)[:, None] / max(seen.sum(), 1.0)
    added = _SMOOTHING * count
    logs: Floats = np.log((table / share + added) / (table.sum(axis=0) + added))
    logs[seen == 0] = 0.0
    return logs


def _judged(block: _Block, levels: Sequence[Ints], tables: Sequence[Floats]) -> Floats:
    """Beliefs about the members of some groups, by what was learned."""
    evidence = np.zeros((*block.values.shape, block.values.shape[1]))
    for column, table in zip(levels, tables, strict=True):
        evidence += table[column[block.records][:, :, None], block.values[:, None, :]]
    # Scaled by the largest of each member, which changes no permutation's share.
    weight = np.exp(np.maximum(evidence - evidence.max(axis=2, keepdims=True), -600.0 / max(evidence.shape[1], 1)))
    return _exact(weight) if weight.shape[1] <= _EXACT else _scaled(weight)


def _exact(weight: Floats) -> Floats:
    """The share of the permutations in which each member has each value, by weight: (m, g, g)."""
    size = weight.shape[1]
    before = _sums(weight)
    after = _sums(weight[:, ::-1])
    everything = (1 << size) - 1
    result = np.zeros(weight.shape)
    for taken in range(everything + 1):
        member = taken.bit_count()
        for value in range(size):
            if member < size and not taken >> value & 1:
                # The members before have the values taken, those after have the rest.
                rest = everything & ~taken & ~(1 << value)
                result[:, member, value] += before[:, taken] * weight[:, member, value] * after[:, rest]
    total: Floats = result / np.maximum(before[:, everything], np.finfo(np.float64).tiny)[:, None, None]
    return total


def _sums(weight: Floats) -> Floats:
    """For each subset of values, the weight of all assignments to the first members: (m, 2^g)."""
    groups, size = weight.shape[:2]
    sums = np.zeros((groups, 1 << size))
    sums[:, 0] = 1.0
    for taken in range(1, 1 << size):
        member = taken.bit_count() - 1
        for value in range(size):
            if taken >> value & 1:
                sums[:, taken] += sums[:, taken & ~(1 << value)] * weight[:, member, value]
    return sums


def _scaled(weight: Floats) -> Floats:
    scaled = weight
    for _ in range(_SCALINGS):
        scaled = scaled / np.maximum(scaled.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        scaled = scaled / np.maximum(scaled.sum(axis=2, keepdims=True), np.finfo(np.float64).tiny)
    return scaled


# -- how good they are ------------------------------------------------------------------------------------------------


def _by_value(belief: Floats, values: Ints) -> Floats:
    """Beliefs in a value that occurs several times in a group, added up: (m, g, g)."""
    same = values[:, :, None] == values[:, None, :]
    summed: Floats = np.einsum("mrj,mjk->mrk", belief, same.astype(np.float64))
    return summed


def _observed(blocks: Sequence[_Block], found: Sequence[Floats], truth: Ints) -> float:
    hits, trials = 0.0, 0
    for block, belief in zip(blocks, found, strict=True):
        true = truth[block.records]
        right = block.values[:, None, :] == true[:, :, None]
        rate = hit_rate(_flat(_by_value(belief, block.values)), _flat(right))[true.ravel() >= 0]
        hits, trials = hits + float(rate.sum()), trials + len(rate)
    return hits / trials


def _flat(cells: np.ndarray) -> np.ndarray:
    return cells.reshape(-1, cells.shape[2])


def _confidence(blocks: Sequence[_Block], features: Ints, within: Within) -> float:
    """What one half-informed person's guesses are worth to another; see above."""
    parts = [[_Block(b.records[p::_PARTS], b.values[p::_PARTS]) for b in blocks] for p in range(_PARTS)]
    levels, size = _useful(features), within.counts.domain_size
    tables = [_learned_alone(part, features, levels, size) for part in parts]
    worth = 0.0
    for place, part in enumerate(parts):
        for block in part:
            if len(block.records):
                guess, judge = (
                    _by_value(_judged(block, levels, tables[(place + step) % _PARTS]), block.values) for step in (1, 2)
                )
                worth += _worth(_flat(guess), _flat(judge))
    return worth / int(within.counts.sizes.sum())


def _learned_alone(part: Sequence[_Block], features: Ints, levels: Sequence[Ints], size: int) -> list[Floats]:
    """What is learned from some of the groups alone."""
    return _learned(part, beliefs(part, features, size), levels, size)


def _worth(guess: Floats, judge: Floats) -> float:
    """The judge's belief in the guess, summed over records; the mean over equal guesses."""
    best: Bools = guess >= guess.max(axis=1, keepdims=True) * (1.0 - 1e-9)
    return float(((judge * best).sum(axis=1) / best.sum(axis=1)).sum())
