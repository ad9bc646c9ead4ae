"""Tests of published sets against their channel, with p-values for few records and many.

Chi-square approximations fail where sets are many and records few, which is where most tables are. So every p-value
here is a Chernoff bound, `P(T >= t) <= min over theta of E exp(theta T) / exp(theta t)`: never too small for the
distribution it is computed from, and too large by a small factor only.

- `share_tail`: a count of n independent records against its probability. Records that differ in their probabilities
  (people have different true values) are only more regular than that.
- `deviance_tail`: the deviance `2 sum c ln(c / e)` of counts against expected ones. Each cell contributes what a
  Poisson count does, computed for its own `e`, so cells with an expectation of a millionth are as welcome as full ones.

Sets and their order are tested against the channel that the manifest declares.

*Valid sets that can be listed.* With `x` the shares of true values that fit best, each set is expected `e_R = N sum_v
x_v P(R | v)` times. Compared with that is how often each set was published (the deviance), how often each value is in a
set, and how often each pair of values is in one set. The fit only draws the expectations nearer to the counts, so the
bounds above stay on the safe side.

*Too many valid sets to list.* Sets are drawn from the mechanism for values in the shares that fit best, and published
and drawn sets are compared as two samples: how often each value, each pair of values, and each gap between the codes of
two values is in a set. Given how often a pair occurs in both samples together, the part of the published ones is
binomial. Gaps show a rule that goes through the whole domain (every value beside the seventh after it) long before any
one pair is seen twice. Nothing of the size of the domain squared is made, and no more records are read than are needed.

*The long form*, in which it is not known which candidates belong together. How often each value stands among the
candidates is a mixture of the rows of `Q[v, u] = P(u in R | v)`; whether the counts can be one is all that can be
tested. For each value the records are split into those whose set holds it and those whose set does not, and the
deviances of these splits are added up at the shares of true values that make the sum least. The splits are of the same
sets, so they are not independent: a record moves l of them at once, and by the inequality of Cauchy and Schwarz no sum
of them varies more than l times as much as if they were. So the sum is divided by l.

*The order of rows.* Every order is equally likely where rows were shuffled, whatever they hold: people with several
records and sets that several records share make no difference. So the bounds below need nothing but the shuffle.

    blocks     how often a value occurs in a block of n rows: drawn without replacement from all rows, so at most as
               far from its share of the whole as a binomial count (Hoeffding 1963)
    neighbors  how many candidates the rows of a pair share, in all pairs: S = sum of a(i, pi(i)) for a random order pi
               of the second rows, a in [0, 1], so P(|S - E S| >= t) <= 2 exp(-t^2 / (4 E S + 2 t)) (Chatterjee 2007)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.counts import distinct
from polyseme.inference.likelihood import Likelihood, likelihood_of
from polyseme.inference.solver import MATRIX_CELLS, maximize, tolerance_for
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.tables.published import Neighbors, RowOrder

__all__ = [
    "Evidence",
    "Finding",
    "contained_evidence",
    "deviance",
    "deviance_tail",
    "fitted",
    "impossible",
    "least",
    "listable",
    "listed_evidence",
    "nothing",
    "order_evidence",
    "sampled_evidence",
    "share_tail",
    "tally",
    "thinned",
]

_STEPS, _STEPS_WITHOUT_MATRIX = 200, 6
"""Most steps of the fit: to convergence where a matrix makes them cheap, otherwise a few. Chosen by judgment; the
level and the power that go with it are measured in `benchmarks/evidence.py`."""


@dataclass(frozen=True)
class Finding:
    """One statistic.

    name     of the statistic
    value    what it came to
    tail     logarithm of the probability of something as unlikely, for each of `looks` looks
    looks    how many chances it had to be unlikely
    freedom  degrees of freedom, where a statistic has them
    """

    name: str
    value: float
    tail: float
    looks: int = 1
    freedom: int | None = None

    @property
    def log_p(self) -> float:
        return min(0.0, self.tail + float(np.log(self.looks)))


@dataclass(frozen=True)
class Evidence:
    """Whether published sets can have come from a mechanism.

    p_value   the probability, at most, of sets that fit as badly when the mechanism was followed
    records   how many independent records it rests on
    findings  the statistics behind it
    note      what the reader must know
    """

    p_value: float
    records: float
    findings: tuple[Finding, ...] = field(default=())
    note: str = ""

    def parameters(self) -> Mapping[str, Any]:
        """The statistics, for a verdict."""
        shown: dict[str, Any] = {}
        for finding in self.findings:
            if finding.freedom is None:
                shown[f"{finding.name}_p_value"] = float(np.exp(finding.log_p))
            else:
                shown |= {finding.name: finding.value, "degrees_of_freedom": finding.freedom}
        return shown


def least(findings: Sequence[Finding], records: float, note: str = "") -> Evidence:
    """The evidence of several statistics: the least likely one, corrected for their number."""
    best = min((finding.log_p for finding in findings), default=0.0)
    return Evidence(float(min(np.exp(best) * max(len(findings), 1), 1.0)), float(records), tuple(findings), note)


def impossible(records: float, note: str) -> Evidence:
    """Something was published that the mechanism never publishes."""
    return Evidence(0.0, float(records), (), note)


def nothing(records: float, note: str) -> Evidence:
    """Nothing could be tested."""
    return Evidence(1.0, float(records), (), note)


def tally(places: Ints, weights: Floats, size: int) -> Floats:
    """The sum of the weights at each place: (size,)."""
    return np.asarray(np.bincount(places, weights, size), dtype=np.float64)


def fitted(sets: Ints, counts: Floats, mechanism: Mechanism) -> tuple[Floats, float]:
    """The shares of true values under which the sets are likeliest, and the gap per record."""
    likelihood = likelihood_of((sets,), np.ones(len(sets), dtype=np.int64), (mechanism,)).counting(counts)
    steps = _STEPS if likelihood.size <= MATRIX_CELLS else _STEPS_WITHOUT_MATRIX
    solution = maximize(likelihood, tolerance_for(likelihood.records), steps)
    return solution.x, solution.gap


_THETA: Floats = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.43, 0.45])
"""Where the moment generating function of a deviance is looked at; it is infinite from one half on."""
_LOWEST, _HIGHEST, _TAIL_STEPS = -12.0, 2.5, 24
"""Powers of ten of the expectations that are tabled, and steps in each; beyond, cells are like chi-square variables."""


def share_tail(counts: Floats, trials: Floats | float, probability: Floats | float) -> Floats:
    """Logarithm of a bound on the probability of a count as far out, on its side, as each one.

    >>> bool(np.isclose(share_tail(np.array([10.0]), 10, 0.5), 10 * np.log(0.5))[0])
    True
    """
    from scipy.special import rel_entr

    trials = np.maximum(np.asarray(trials, dtype=np.float64), np.finfo(float).tiny)
    share = np.clip(counts / trials, 0.0, 1.0)
    likely = np.clip(np.asarray(probability, dtype=np.float64), 0.0, 1.0)
    return np.asarray(-trials * (rel_entr(share, likely) + rel_entr(1.0 - share, 1.0 - likely)), dtype=np.float64)


def deviance(counts: Floats, expected: Floats) -> float:
    """`2 sum (c ln(c / e) - c + e)`; infinite where something happened that cannot."""
    from scipy.special import rel_entr

    return 2.0 * float((rel_entr(counts, expected) - counts + expected).sum())


def deviance_tail(found: float, expected: Floats) -> float:
    """Logarithm of a bound on the probability of so large a deviance from these expectations.

    >>> deviance_tail(36.0, np.full(36, 50.0)), deviance_tail(5598.0, np.full(36, 50.0)) < -2000
    (0.0, True)
    """
    if not np.isfinite(found):
        return -np.inf
    growth = _table() @ _spread(expected[expected > 0.0])
    return min(0.0, float((growth - _THETA * found).min()))


def _spread(expected: Floats) -> Floats:
    """How many cells stand at each tabled expectation; one between two is shared between them."""
    steps = round((_HIGHEST - _LOWEST) * _TAIL_STEPS)
    place = np.clip((np.log10(expected) - _LOWEST) * _TAIL_STEPS, 0.0, steps)
    below = np.minimum(place.astype(np.int64), steps - 1)
    above = place - below
    size = steps + 1
    spread = np.bincount(below, 1.0 - above, size) + np.bincount(below + 1, above, size)
    return np.asarray(spread, dtype=np.float64)


@cache
def _table() -> Floats:
    """`ln E exp(theta D)` of the deviance D of a Poisson count: (thetas, expectations)."""
    powers = np.linspace(_LOWEST, _HIGHEST, round((_HIGHEST - _LOWEST) * _TAIL_STEPS) + 1)
    return np.column_stack([_growth(10.0**power) for power in powers])


def _growth(mean: float) -> Floats:
    from scipy.special import gammaln, logsumexp, rel_entr

    counts = np.arange(int(mean + 40.0 * np.sqrt(mean)) + 160, dtype=np.float64)
    chance = counts * np.log(mean) - mean - gammaln(counts + 1.0)
    apart = 2.0 * (rel_entr(counts, mean) - counts + mean)
    return np.asarray(logsumexp(chance + _THETA[:, None] * apart, axis=1), dtype=np.float64)


_COUNT_ROUNDING = 1e-9
"""Shares that are zero by construction come out this close to it."""
_SINGLES = "long form: only how often each value occurs could be tested, not which values occur together"


@dataclass(frozen=True, eq=False)
class _Splits(Likelihood):
    """For each value, how many records hold it and how many do not.

    matrix  (2F, F): the probability of holding each value, then that of not holding it, for each true value
    """

    matrix: Floats
    counts: Floats
    shape: tuple[int, ...]

    def product(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x, dtype=np.float64)

    def pull(self, rows: Floats) -> Floats:
        return np.asarray(self.matrix.T @ rows, dtype=np.float64)

    def information(self, rows: Floats, thin: int = 1) -> Floats:
        return np.asarray((self.matrix.T * rows) @ self.matrix, dtype=np.float64)


def contained_evidence(contained: Floats, mechanism: Mechanism) -> Evidence:
    """The evidence of the numbers of sets that hold each value: (F,)."""
    records = float(contained.sum()) / mechanism.l
    if mechanism.size > MATRIX_CELLS:
        return nothing(records, f"long form with more than {MATRIX_CELLS:,} values: not tested")
    try:
        inclusion = mechanism.inclusion_matrix().T
    except ImpossibleError:
        return nothing(records, "long form of a mechanism whose inclusion probabilities are not known: not tested")
    if not np.isfinite(inclusion).all():
        return impossible(records, "the channel in the manifest is not a valid channel: it does not give probabilities")
    matrix = _without_rounding(np.concatenate([inclusion, 1.0 - inclusion]))
    counts = _without_rounding(np.concatenate([contained, records - contained]) / records) * records
    if (counts < 0.0).any() or (counts[~matrix.any(axis=1)] > 0.0).any():
        return impossible(records, "some values occur more often, or less often, than any sets would allow")
    splits = _Splits(matrix, counts, (mechanism.size,))
    solution = maximize(splits, tolerance_for(records))
    expected = records * splits.product(solution.x)
    lacking = 2.0 * counts.sum() * solution.gap
    found = max(deviance(counts, expected) - lacking, 0.0) / mechanism.l
    rarer = np.minimum(*np.split(expected, 2))
    return least([Finding("singles", found, deviance_tail(found, rarer))], records, _SINGLES)


def _without_rounding(shares: Floats) -> Floats:
    return np.where(np.abs(shares) <= _COUNT_ROUNDING, 0.0, shares)


_SETS, _ENTRIES = 300_000, 6_000_000
"""Most valid sets, and pairs of values in them, that are gone through. Chosen by judgment."""
_LOST = 1e-12
"""Part of the records that may go missing among the valid sets: rounding of counts that are no whole numbers."""
_ROUNDING = 1e-6
"""How far the probabilities of a stored design may be from adding up to 1: they are written with 15 digits."""


def listable(mechanism: Mechanism) -> bool:
    """Whether the valid sets, and the pairs in them, are few enough to go through."""
    pairs = max(mechanism.l * (mechanism.l - 1) // 2, 1)
    return mechanism.design.has_at_most(min(_SETS, _ENTRIES // pairs))


def listed_evidence(sets: Ints, counts: Floats, mechanism: Mechanism) -> Evidence:
    """The evidence of distinct published sets; counts of independent records need not be whole."""
    valid = mechanism.design.sets()
    observed = _counted(valid, sets, counts, mechanism.size)
    if observed.sum() < counts.sum() * (1.0 - _LOST):
        return impossible(counts.sum(), "some published sets are not valid sets of the mechanism")
    inside = mechanism.design.likelihood(valid)
    if not _proper(valid, inside, mechanism):
        return impossible(
            counts.sum(), "the channel in the manifest is not a valid channel: its probabilities do not add up to one"
        )
    x, gap = fitted(sets, counts, mechanism)
    chance = mechanism.p * (x[valid] * inside).sum(axis=1)
    if mechanism.p < 1.0:
        chance = chance + (1.0 - mechanism.p) * mechanism.design.blind_likelihood(valid)
    expected = counts.sum() * chance
    if (observed[expected == 0.0] > 0.0).any():
        return impossible(counts.sum(), "some published sets are never drawn by the mechanism")
    # What the fit may still lack, at most: the deviance at the very best fit is not smaller than this.
    found = max(deviance(observed, expected) - 2.0 * counts.sum() * gap, 0.0)
    freedom = max(int((expected > 0.0).sum()) - mechanism.size, 0)
    findings = [
        Finding("deviance", float(found), deviance_tail(found, expected), 1, freedom),
        _held("singles", valid, observed, expected),
    ]
    if mechanism.l > 1:
        first, second = np.triu_indices(mechanism.l, 1)
        pairs = valid[:, first] * mechanism.size + valid[:, second]
        findings.append(_held("pairs", pairs, observed, expected))
    return least(findings, counts.sum())


def _counted(valid: Ints, sets: Ints, counts: Floats, size: int) -> Floats:
    """How often each valid set was published."""
    rows, place = distinct(np.concatenate([valid, sets]), size)
    return tally(place[len(valid) :], counts, len(rows))[place[: len(valid)]]


def _proper(valid: Ints, inside: Floats, mechanism: Mechanism) -> bool:
    """Whether the sets that hold each value have, given it, probability one in all."""
    total = tally(valid.ravel(), inside.ravel(), mechanism.size)
    blind = float(mechanism.design.blind_likelihood(valid).sum())
    return bool(np.all(np.abs(total - 1.0) <= _ROUNDING) and abs(blind - 1.0) <= _ROUNDING)


def _held(name: str, held: Ints, observed: Floats, expected: Floats) -> Finding:
    """The value, or pair of values, that is in a set most surprisingly often or seldom.

    held  numbers of the values or pairs that each valid set holds: (sets, k)
    """
    kinds, place = np.unique(held, return_inverse=True)
    place, width = place.ravel(), held.shape[1]
    published = tally(place, np.repeat(observed, width), len(kinds))
    likely = tally(place, np.repeat(expected, width), len(kinds)) / expected.sum()
    tail = float(share_tail(published, float(observed.sum()), likely).min(initial=0.0))
    return Finding(name, tail, tail, 2 * len(kinds))


_RECORDS, _MEMBERS, _PAIRS = 100_000, 1_000_000, 500_000
"""Most published records, members of their sets, and pairs in them that are looked at. Chosen by judgment."""
_TIMES = 4
"""How many sets are drawn for each published one: with four, a fifth of the variance of the comparison is the drawn
sets' own. Chosen by judgment."""
_WIDE = 8
"""Of larger sets only some values are looked at in pairs: 28 pairs a set. Chosen by judgment."""


def thinned(sets: Ints, counts: Ints, most: int) -> tuple[Ints, Ints]:
    """About `most` of the records, each kept with the same probability; which is unpredictable."""
    total = int(counts.sum())
    if total <= most:
        return sets, counts
    digest = hashlib.sha256(np.ascontiguousarray(sets).tobytes() + np.ascontiguousarray(counts).tobytes()).digest()
    kept = experiment(int.from_bytes(digest[:8], "big")).binomial(counts, most / total)
    return sets[kept > 0], kept[kept > 0]


def sampled_evidence(sets: Ints, counts: Ints, mechanism: Mechanism, scale: float = 1.0) -> Evidence:
    """The evidence of distinct published sets; `scale` records count as one."""
    if not all(np.isfinite(weight).all() for weight in mechanism.weights(sets)):
        return impossible(
            counts.sum() / scale, "the channel in the manifest is not a valid channel: it does not give probabilities"
        )
    if not mechanism.design.can_draw(sets).all():
        return impossible(counts.sum() / scale, "some published sets are never drawn by the mechanism")
    sets, counts = thinned(sets, counts, _enough(mechanism.l))
    x, _ = fitted(sets, counts.astype(np.float64), mechanism)
    records = int(counts.sum())
    draws = _TIMES * records
    codes = experiment(1).choice(mechanism.size, draws, p=x / x.sum())
    drawn = mechanism.sample(codes, SystemStream.seeded("evidence"))
    once = np.ones(draws)
    weights = counts.astype(np.float64)
    part = records / (records + draws)
    width = mechanism.l
    published = tally(sets.ravel(), np.repeat(weights, width), mechanism.size)
    expected = tally(drawn.ravel(), np.repeat(once, width), mechanism.size)
    findings = [_compare("singles", published, expected, part, scale)]
    if width > 1:
        size, left, right = _some_values(sets, drawn, mechanism)
        findings.append(_compare("pairs", *_pairs(left, weights, right, once, size), part, scale))
        # A set may have a gap several times, but not as often as it has members.
        gaps = (_gaps(left, weights, size), _gaps(right, once, size))
        findings.append(_compare("gaps", *gaps, part, scale * max(left.shape[1] - 1, right.shape[1] - 1, 1)))
    note = f"{mechanism.size:,} values have too many sets to list: values and pairs were compared with drawn sets"
    return least(findings, records / scale, note)


def _enough(l: int) -> int:
    """How many records are looked at: fewer when their sets are large."""
    seen = min(l, _WIDE)
    return min(_RECORDS, max(_MEMBERS // l, 1), _PAIRS // max(seen * (seen - 1) // 2, 1))


def _some_values(sets: Ints, drawn: Ints, mechanism: Mechanism) -> tuple[int, Ints, Ints]:
    """The number of codes and both samples; unchecked members of large sets are -1."""
    if mechanism.l <= _WIDE:
        return mechanism.size, sets, drawn
    # As many values as leave a set `_WIDE` members on average.
    some = experiment(2).permutation(mechanism.size)[: max(mechanism.size * _WIDE // mechanism.l, 2)]
    number = np.full(mechanism.size, -1, dtype=np.int64)
    number[np.sort(some)] = np.arange(len(some))
    return len(some), _leading(number[sets]), _leading(number[drawn])


def _leading(sets: Ints) -> Ints:
    """The members that count, first in each row; -1 behind them."""
    return -np.sort(-sets, axis=1)[:, : int((sets >= 0).sum(axis=1).max(initial=1))]


def _pairs(sets: Ints, weights: Floats, drawn: Ints, once: Floats, size: int) -> tuple[Floats, Floats]:
    """How often each pair that occurs stands in published and in drawn sets."""
    frames = []
    for chosen, weight, mine in ((sets, weights, 1.0), (drawn, once, 0.0)):
        for first, second, both in _both(chosen):
            pair = chosen[both, first] * size + chosen[both, second]
            counted = {"published": weight[both] * mine, "drawn": weight[both] * (1.0 - mine)}
            frames.append(pl.DataFrame({"pair": pair, **counted}))
    found = pl.concat(frames).group_by("pair").sum()
    return found["published"].to_numpy(), found["drawn"].to_numpy()


def _gaps(sets: Ints, weights: Floats, size: int) -> Floats:
    """How many pairs are apart by each number of codes: (size,)."""
    found = np.zeros(size)
    for first, second, both in _both(sets):
        found += tally(np.abs(sets[both, first] - sets[both, second]), weights[both], size)
    return found


def _both(sets: Ints) -> Iterator[tuple[int, int, Bools]]:
    """Each pair of columns, and the rows in which both hold a value."""
    for first in range(sets.shape[1]):
        for second in range(first + 1, sets.shape[1]):
            yield first, second, (sets[:, first] >= 0) & (sets[:, second] >= 0)


def _compare(name: str, published: Floats, drawn: Floats, part: float, scale: float) -> Finding:
    """The count that differs most surprisingly between the two samples."""
    tails = share_tail(published / scale, (published + drawn) / scale, part)
    tail = float(tails.min(initial=0.0))
    return Finding(name, tail, tail, 2 * max(int((published + drawn > 0.0).sum()), 1))


_COUNTED = "another engine counted the rows: their order was not tested"
_FEW = 4
"""Fewer rows have no blocks that could differ."""


def order_evidence(order: RowOrder) -> Evidence:
    """Whether the order of the candidates, or of the rows, can be a random one."""
    if order.unsorted:
        what = "records have their candidates in another order than the domain's"
        return impossible(order.rows, f"{order.unsorted:,} {what}")
    if order.counted or order.rows < _FEW:
        return nothing(order.rows, _COUNTED if order.counted else "")
    return least([_blocks(order), _neighbors(order.neighbors())], order.rows)


def _blocks(order: RowOrder) -> Finding:
    """The value whose share in some block differs most surprisingly from its share in all rows."""
    rows, held = order.blocks()
    whole = order.held / order.rows
    some = (whole > 0.0) & (whole < 1.0)
    tails = share_tail(held[:, some], rows[:, None], whole[some])
    tail = float(tails.min(initial=0.0))
    return Finding("blocks", tail, tail, 2 * max(tails.size, 1))


def _neighbors(found: Neighbors) -> Finding:
    """Whether neighbors share more or fewer candidates than any two rows."""
    shared, expected = found.shared / found.width, found.expected / found.width
    apart = abs(shared - expected)
    tail = -(apart**2) / (4.0 * expected + 2.0 * apart) if apart else 0.0
    return Finding("neighbors", float(np.exp(tail)), tail, 2)
