"""The attacker who knows which records share a value, and puts their sets together.

Members of a household have one household income. Where each of them has a set of its own, the true value is the one
that all sets hold. The attacker need not be sure that members agree: with probability `e` a member's value is another
one, drawn from the prior. For the record i with the set R_i in a group,

    P(v | all sets)  ~  pi_v P(R_i | v) ((1 - e) * product over others j of M_j(v) / m_j  +  e)

where
    M_j(v)  (1 - e) P(R_j | v) + e m_j
    m_j     the probability of the set R_j, whatever the value
    pi      the prior of the promise

How often members agree is estimated from the sets alone: of two records of a group, the likelihood of their sets is

    s * (sum over v of q_v P(R_i | v) P(R_j | v)) / (m_i m_j)  +  1 - s

with q the distribution of the values that fits all sets best; e = 1 - sqrt(s). Where s is below a quarter, or not above
0 beyond chance, there is no finding: what such groups have in common is what published columns tell about values in
general, which other attackers use. Sets that are one draw (sticky, or shared by the group) count once.

With the original, success is the share of right guesses among the records of groups of two or more whose value is known
from it; without it, the mean probability of the best guess.
"""

from __future__ import annotations

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import TOLERANCE, Gathered, Scene, above, hit_rate, significantly_above

__all__ = ["FEWEST_GROUPS", "attack", "lacks", "paired", "sharing"]

FEWEST_GROUPS = 10
"""Groups of two or more records below which nothing is said of them; a judgment."""
_LEAST = 0.25
"""The share of pairs that agree, beyond chance, from which on groups are taken to share values; a judgment."""
_SURE = 16.0
"""Twice the gain in log-likelihood from which on groups are taken to share values: four standard deviations."""
_ONE_DRAW = 0.5
"""The share of groups with one set from which on they are taken to share it by design; a judgment."""
_LARGEST = 700.0
"""Beyond this exponent a float overflows; the odds are then beyond any doubt."""
_MEMBERS = 30
"""Members of a group beyond which its pairs are not looked at: there are too many, and it is no household."""
_STEPS = 60
"""Of the two one-dimensional searches; each settles within a few."""


def lacks(scene: Scene) -> str:
    return "" if scene.gathered is not None else "groups of records that may share a value"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """One finding, where members of groups share values beyond chance."""
    if scene.gathered is None:
        return ()
    seen = scene.gathered
    draws = seen.distinct() if seen.one_draw else seen
    kept = draws.several()
    same = 1.0 - _share_of(kept, seen) if seen.one_draw else 0.0
    share = sharing(kept) if kept.groups >= FEWEST_GROUPS else 0.0
    if share <= 0.0 and same < _ONE_DRAW:
        return ()
    members = seen.several()
    # Where every group has one set, there is nothing to put together: each record says what its own set says.
    best, hits = _guesses(kept, 1.0 - np.sqrt(share)) if share > 0.0 else _guesses(members, 1.0)
    success = float(best.mean() if hits is None or not len(hits) else hits.mean())
    bound = scene.promised.guess
    exceeded = (
        above(success, bound)
        if hits is None or not len(hits)
        else significantly_above(float(hits.sum()), len(hits), bound)
    )
    resolved = _resolved(kept) if share > 0.0 else np.zeros(0, dtype=np.bool_)
    finding = Finding(
        "shared-value",
        seen.attribute,
        success,
        bound,
        float(seen.prior.max()),
        exceeded,
        knows=f"which records have the same {seen.by}, and so the same value",
        gains=f"the value of the group, when only one candidate is left: in {int(resolved.sum()):,} of "
        f"{members.groups:,} groups of two or more records",
        helps=f"one set for each group: shared-by on '{seen.attribute}', with the column that tells groups",
        detail={
            "groups": float(members.groups),
            "groups_resolved": float(resolved.sum()),
            **({"groups_right": float(_right(kept, resolved))} if seen.truth is not None else {}),
            "records": float(len(members.group)),
            "sharing": share,
            "same_set": same,
        },
    )
    return (finding,)


def _share_of(kept: Gathered, seen: Gathered) -> float:
    """The share of groups of two or more records in which not all sets are the same."""
    return kept.groups / max(seen.several().groups, 1)


def sharing(seen: Gathered) -> float:
    """The share of pairs of a group with the same value, by their sets; 0 if small, or chance."""
    first, second, weight = paired(seen.group)
    if not len(first):
        return 0.0
    ratio = _together(seen, first, second, _learned(seen))
    share = 0.5
    for _ in range(_STEPS):
        check_cancelled()
        share = float(np.average(share * ratio / (share * ratio + 1.0 - share), weights=weight))
    gain = 2.0 * float(weight @ np.log(share * ratio + 1.0 - share))
    return share if gain > _SURE and share >= _LEAST else 0.0


def paired(group: Ints) -> tuple[Ints, Ints, Floats]:
    """All pairs of rows of a group and their weights: m members count as much as m - 1 pairs.

    >>> paired(np.array([0, 1, 0, 0]))
    (array([0, 2, 0]), array([2, 3, 3]), array([0.66666667, 0.66666667, 0.66666667]))
    """
    order = np.argsort(group, kind="stable")
    ordered, members = group[order], np.bincount(group)
    steps = range(1, min(int(members.max(initial=1)), _MEMBERS))
    few = members[ordered] <= _MEMBERS
    pairs = [(rows, rows + step) for step in steps for rows in [_beside(ordered, few, step)]]
    first, second = (np.concatenate([order[:0], *(order[pair[side]] for pair in pairs)]) for side in (0, 1))
    return first, second, 2.0 / members[group[first]]


def _beside(ordered: Ints, few: Bools, step: int) -> Ints:
    """Places whose record has another one of its group so many places further on."""
    return np.flatnonzero((ordered[step:] == ordered[:-step]) & few[step:])


def _learned(seen: Gathered) -> Floats:
    """The maximum likelihood distribution of the values, as an attacker estimates it from sets."""
    shares = seen.prior.copy()
    for _ in range(_STEPS):
        check_cancelled()
        inside = shares[seen.sets] * (seen.inside - seen.outside[:, None])
        total = inside.sum(axis=1) + seen.outside
        more = np.bincount(seen.sets.ravel(), (inside / total[:, None]).ravel(), len(shares))
        shares = more + shares * float((seen.outside / total).sum())
        shares /= shares.sum()
    return shares


def _together(seen: Gathered, first: Ints, second: Ints, shares: Floats) -> Floats:
    """Likelihood ratio of two sets: one value for both against two independent values."""
    one, two = seen.sets[first], seen.sets[second]
    (more, rest), (also, other) = (
        (seen.inside[rows] - seen.outside[rows][:, None], seen.outside[rows]) for rows in (first, second)
    )
    mine, theirs = (shares[one] * more).sum(axis=1), (shares[two] * also).sum(axis=1)
    common = (one[:, :, None] == two[:, None, :]) * shares[one][:, :, None] * more[:, :, None] * also[:, None, :]
    joint = common.sum(axis=(1, 2)) + mine * other + theirs * rest + rest * other
    return np.asarray(joint / ((mine + rest) * (theirs + other)))


def _guesses(seen: Gathered, doubt: float) -> tuple[Floats, Floats | None]:
    """How sure each record's best guess is, and how often it is right where that is known.

    doubt  the probability that a member's value is not that of its group
    """
    # A doubt of nothing at all would make one stray member rule out the truth.
    doubt = max(doubt, 1e-6)
    mean = (seen.prior[seen.sets] * (seen.inside - seen.outside[:, None])).sum(axis=1) + seen.outside
    inside, outside = (
        np.log((1.0 - doubt) * part + doubt * whole) - np.log(whole)
        for part, whole in ((seen.inside, mean[:, None]), (seen.outside, mean))
    )
    rest = np.bincount(seen.group, outside, seen.groups).astype(np.float64)
    values, place = np.unique(seen.group[:, None] * seen.size + seen.sets, return_inverse=True)
    score = rest[values // seen.size] + np.bincount(place.ravel(), (inside - outside[:, None]).ravel(), len(values))
    if seen.outside.any():
        return _of_groups(seen, values, score, rest)
    others = score[place.reshape(seen.sets.shape)] - inside
    likelihood = (1.0 - doubt) * np.exp(np.minimum(others, _LARGEST)) + doubt
    weight = seen.prior[seen.sets] * seen.inside * likelihood
    sure = weight.max(axis=1) / weight.sum(axis=1)
    if seen.truth is None:
        return sure, None
    return sure, hit_rate(weight, seen.sets == seen.truth[:, None])[seen.truth >= 0]


def _of_groups(seen: Gathered, values: Ints, score: Floats, rest: Floats) -> tuple[Floats, Floats | None]:
    """The guess where sets may lie: the group's value among all candidates of its sets.

    values  group and code as one number, ascending
    rest    the score of all other values
    """
    group, code = values // seen.size, values % seen.size
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    known = np.log(seen.prior[code]) + score
    left = np.maximum(1.0 - np.add.reduceat(seen.prior[code], starts), 0.0)
    highest = np.maximum.reduceat(known, starts)
    total = np.add.reduceat(np.exp(known - highest[group]), starts) + left * np.exp(
        np.minimum(rest - highest, _LARGEST)
    )
    sure = (1.0 / total)[seen.group]
    if seen.truth is None:
        return sure, None
    top = known >= highest[group] - TOLERANCE
    tied = np.bincount(group, top, seen.groups)
    right = np.isin(seen.group * seen.size + seen.truth, values[top])
    return sure, (right / tied[seen.group])[seen.truth >= 0]


def _resolved(seen: Gathered) -> Bools:
    """The groups whose sets have exactly one candidate in common."""
    members = np.bincount(seen.group, minlength=seen.groups)
    values, times = np.unique(seen.group[:, None] * seen.size + seen.sets, return_counts=True)
    common = values[times == members[values // seen.size]] // seen.size
    return np.asarray(np.bincount(common, minlength=seen.groups) == 1)


def _right(seen: Gathered, resolved: Bools) -> int:
    """Of the groups with one candidate left, those in which it is the value of every member."""
    if seen.truth is None or not resolved.any():
        return 0
    members = np.bincount(seen.group, minlength=seen.groups)
    values, times = np.unique(seen.group[:, None] * seen.size + seen.sets, return_counts=True)
    left = values[(times == members[values // seen.size])]
    left = left[resolved[left // seen.size]]
    found = np.full(seen.groups, -1, dtype=np.int64)
    found[left // seen.size] = left % seen.size
    wrong = np.bincount(seen.group, found[seen.group] != seen.truth, seen.groups)
    return int(np.count_nonzero(resolved & (wrong == 0)))
