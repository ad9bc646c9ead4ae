"""What an attacker sees, what an attack finds, and when a promise counts as broken.

A scene holds published sets and how they were drawn, or values in classes and groups; what was promised; and further
knowledge. It shows some of these and leaves the others out. An attack says what it lacks; one that lacks nothing runs.

Two kinds of success, two rules:

- *exact*: computed from the release and the public mechanism. It exceeds the bound when it is above it by more than
  `TOLERANCE` (rounding).
- *observed*: a share of right guesses counted against the original. It exceeds the bound only when the one-sided
  Clopper-Pearson lower limit at confidence `CONFIDENCE` is above it: chance alone does that to one finding in 1,000.

For an attacker who knows the mechanism, a published set gives the posterior

    P(v | R) = pi_v P(R | v) / sum_u pi_u P(R | u)

where
    R    the published set
    pi   the attacker's prior over the values
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from polyseme.designs.base import heaviest_outside
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.counts import distinct
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.release import People
from polyseme.results.attackers import Finding
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.ground import Ground
from polyseme.strata import Strata
from polyseme.tables.equivalence_classes import Classes, Counts

__all__ = [
    "CONFIDENCE",
    "NOTHING",
    "TOLERANCE",
    "Absent",
    "Everyone",
    "Finding",
    "Gathered",
    "Linked",
    "Posterior",
    "Promised",
    "Scene",
    "Shown",
    "Within",
    "above",
    "hit_rate",
    "largest_share",
    "posterior_of",
    "significantly_above",
    "uniform",
]

TOLERANCE = 1e-9
"""Rounding in a sum of up to a million probabilities; a real excess is larger by orders of magnitude."""
CONFIDENCE = 0.999
"""Chance alone puts one finding in 1,000 above its bound: a report with a dozen of them stays quiet."""


def above(success: float, bound: float | None) -> bool:
    """Whether an exact success is above the bound."""
    return bound is not None and success > bound + TOLERANCE


def significantly_above(hits: float, trials: int, bound: float | None) -> bool:
    """Whether an observed share is above the bound beyond chance.

    Guesses between equals count as fractions of a hit; their sum is rounded down.
    """
    from scipy.special import betaincinv

    if bound is None or trials == 0 or bound >= 1.0:
        return False
    whole = int(np.floor(hits + TOLERANCE))
    if whole == 0:
        return False
    return float(betaincinv(whole, trials - whole + 1, 1.0 - CONFIDENCE)) > bound


def hit_rate(score: Floats, right: Bools) -> Floats:
    """For each row, the chance that a guess among its best-scored entries is right.

    where
        score  how likely each entry of a row looks to the attacker: (n, k)
        right  whether the entry is the truth: (n, k)

    >>> hit_rate(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[True, False], [False, True]])).tolist()
    [0.5, 0.0]
    """
    best = score >= score.max(axis=1, keepdims=True) * (1.0 - TOLERANCE)
    share: Floats = (best & right).sum(axis=1) / best.sum(axis=1)
    return share


def largest_share(codes: Ints | None, prior: Floats) -> float:
    """The baseline: always guess the most frequent value."""
    return float(prior.max()) if codes is None else float(np.bincount(codes).max() / len(codes))


def uniform(size: int) -> Floats:
    """Every value equally likely."""
    return np.full(size, 1.0 / size)


@dataclass(frozen=True, eq=False)
class Posterior:
    """For each record: P of each member of its set (n, l), and of the likeliest other (n,)."""

    sets: Ints
    inside: Floats
    outside: Floats

    @property
    def best(self) -> Floats:
        """The probability of the best guess for each record."""
        best: Floats = np.maximum(self.inside.max(axis=1), self.outside)
        return best


def posterior_of(sets: Ints, mechanism: Mechanism, prior: Floats) -> Posterior:
    """Posterior of every record's set; identical sets are worked out once."""
    unique, inverse = distinct(sets, mechanism.size)
    inside, outside = mechanism.weights(unique)
    members = prior[unique]
    joint = members * inside
    rest = np.maximum(1.0 - members.sum(axis=1), 0.0) * outside
    total = joint.sum(axis=1) + rest
    possible = total > 0
    # A set the mechanism cannot have published says nothing beyond its members.
    scale = np.where(possible, total, 1.0)
    joint = np.where(possible[:, None], joint / scale[:, None], 1.0 / sets.shape[1])
    beyond = np.where(possible, outside * heaviest_outside(prior, unique) / scale, 0.0)
    return Posterior(sets, joint[inverse], beyond[inverse])


@dataclass(frozen=True, eq=False)
class Promised:
    """What was promised, in the terms of attackers; None where nothing was.

    guess      the most that a guess is worth to those who share the prior of the promise
    apart      candidates are at least this far apart
    moved      the most that a set moves the reference, on the ground
    reference  the distribution that closeness was promised for; the prior unless given
    ground     on which closeness was promised; the equal one unless given
    any_prior  the most that a set moves an attacker's belief, whatever the prior
    learned    the most that an attacker gets right with what the release says about people in general
    k          the fewest records that share their quasi-identifiers
    people     the fewest people of a population who fit the quasi-identifiers of a record
    alike      the most of a class that lies nearer than `apart` to one value
    struck     (c, l) where a value stays rarer than c times the others, even after l - 2 of them are ruled out
    """

    guess: float | None = None
    apart: float | None = None
    moved: float | None = None
    reference: Floats | None = None
    ground: Ground | None = None
    any_prior: float | None = None
    learned: float | None = None
    k: int | None = None
    people: int | None = None
    alike: float | None = None
    struck: tuple[float, int] | None = None


NOTHING = Promised()


@dataclass(frozen=True, eq=False)
class Shown:
    """The published sets of one attribute, and what is public about them.

    sets           codes of the candidates, a row for each record, ascending: (n, l)
    mechanism      that drew them
    attribute      its name
    prior          over the values, that of the promise; uniform unless given
    distance       between the values
    learner_prior  the distribution that a learner is taken to know, where one is declared
    repeats        records to a draw, where decoys are sticky
    """

    sets: Ints
    mechanism: Mechanism
    attribute: str = ""
    prior: Floats | None = None
    distance: Distance | None = None
    learner_prior: Floats | None = None
    repeats: float = 1.0

    @property
    def expected(self) -> Floats:
        """The prior, uniform where none is given."""
        return uniform(self.mechanism.size) if self.prior is None else np.asarray(self.prior, dtype=np.float64)

    @cached_property
    def _distinct(self) -> tuple[Ints, Ints]:
        return distinct(self.sets, self.mechanism.size)

    @property
    def unique(self) -> Ints:
        """The distinct sets: (m, l)."""
        return self._distinct[0]

    @property
    def inverse(self) -> Ints:
        """Which of the distinct sets each record has: (n,)."""
        return self._distinct[1]

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of each distinct set for an attacker with the prior of the promise."""
        return posterior_of(self.unique, self.mechanism, self.expected)

    @cached_property
    def readiness(self) -> Posterior:
        """How readily each candidate of the distinct sets draws its set: posterior, uniform prior."""
        return (
            self.posterior
            if self.prior is None
            else posterior_of(self.unique, self.mechanism, uniform(self.mechanism.size))
        )


@dataclass(frozen=True, eq=False)
class Everyone:
    """The published sets of one attribute in all strata, for attackers who learn from all.

    sets       codes of the domain, a row for each record: (n, l)
    places     the stratum of each record: (n,)
    strata     how sets are drawn in each of them
    attribute  its name
    repeats    records to a draw, where decoys are sticky
    """

    sets: Ints
    places: Ints
    strata: Strata
    attribute: str = ""
    repeats: float = 1.0

    @classmethod
    def of(cls, shown: Shown) -> Everyone:
        """Where all records have one mechanism."""
        alone = Strata.alone(shown.mechanism)
        return cls(shown.sets, np.zeros(len(shown.sets), dtype=np.int64), alone, shown.attribute, shown.repeats)

    @property
    def size(self) -> int:
        """F, the number of values of the domain."""
        return self.strata.size

    def part(self, rows: Ints) -> Everyone:
        """Some of the records."""
        return replace(self, sets=self.sets[rows], places=self.places[rows])

    def weights(self) -> tuple[Floats, Floats]:
        """`P(R | v)` up to a factor a record: for each candidate (n, l), and any other value (n,)."""
        return self.strata.weights(self.sets, self.places)


@dataclass(frozen=True, eq=False)
class Within:
    """The values of one attribute in classes or groups of records.

    counts    how often each value occurs in each class
    unit      what a class is called: "class" or "group"
    distance  between the values
    members   the class of each record, for those who look at records: (n,)
    """

    counts: Counts
    unit: str = "class"
    distance: Distance | None = None
    members: Ints | None = None

    @property
    def attribute(self) -> str:
        return self.counts.attribute

    @property
    def whole(self) -> Floats:
        """How the values are distributed in the whole table: (F,)."""
        return self.counts.total / self.counts.records


@dataclass(frozen=True, eq=False)
class Gathered:
    """The sets of records that belong to groups, whatever their strata.

    group     of each record, from 0 on: (n,)
    sets      codes of the whole domain: (n, l)
    inside    how readily each candidate draws its set: (n, l); `outside`, every other value: (n,)
    prior     over the whole domain
    by        what members of a group have in common, in words
    truth     true codes, where the original is at hand: (n,); -1 for whom it does not tell
    one_draw  whether equal sets of a group are known to be one draw
    """

    attribute: str
    group: Ints
    sets: Ints
    inside: Floats
    outside: Floats
    prior: Floats
    by: str
    truth: Ints | None = None
    one_draw: bool = False

    @property
    def size(self) -> int:
        return len(self.prior)

    @cached_property
    def groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    def take(self, rows: Ints | Bools) -> Gathered:
        """Some of the records, with their groups numbered from 0 on."""
        return replace(
            self,
            group=np.unique(self.group[rows], return_inverse=True)[1],
            sets=self.sets[rows],
            inside=self.inside[rows],
            outside=self.outside[rows],
            truth=None if self.truth is None else self.truth[rows],
        )

    def several(self) -> Gathered:
        """The records of groups with two or more."""
        return self.take(np.bincount(self.group, minlength=self.groups)[self.group] > 1)

    def distinct(self) -> Gathered:
        """Each set of a group once."""
        unique, place = distinct(self.sets, self.size)
        # In the order of the records: neighbors that were sorted by their sets would look alike.
        return self.take(np.sort(np.unique(self.group * len(unique) + place, return_index=True)[1]))


@dataclass(frozen=True, eq=False)
class Linked:
    """Records that share all columns that are published as they are or generalized.

    That includes columns that are declared insensitive.

    names  the columns that are called so
    """

    classes: Classes
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Absent:
    """People who were in the table and are not in the release.

    attribute  what an attacker wants to know of them
    records    how many there are
    expected   the share of each value among them, as a reader of the release expects it: (F,)
    whole      the share of each value among the published records, or in the original where it is at hand: (F,)
    by_method  whether `expected` follows from how the method works; otherwise it is that of the published records
    worst      the most that one value can have of them, as far as the release says
    truth      how many of them have each value, where the original is at hand: (F,)
    """

    attribute: str
    records: int
    expected: Floats
    whole: Floats
    by_method: bool
    worst: float = 1.0
    truth: Ints | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """What an attacker sees of some records.

    column    the sets of the attribute it is after
    promised  for these records
    truth     true codes of the attribute, when the original is at hand: (n,); -1 for whom it does not tell
    features  codes of the untouched columns: (n, q)
    struck    how many values of the person the attacker can rule out
    helper    the sets of another attribute of the same records
    again     the sets of the same attribute and people in another release, in the same codes
    sticky    whether decoys were keyed in both releases, so that equal sets are one draw
    classes   records that share their quasi-identifiers
    linked    those that share insensitive columns too, where there are any
    people    of how many people they are, by what the publisher claims; None where that is not said
    matches   how many people of a reference population fit each class
    seeded    whether the release was made with a seed
    within    the values of the attribute it is after, where they are published with their class or group
    gathered  the sets of records that belong to groups which may share a value
    absent    people who are left out, where the attacker knows that
    strata    the sets of the attribute in all its strata; then `truth` and `features` are of these records
    """

    column: Shown | None = None
    promised: Promised = field(default=NOTHING)
    truth: Ints | None = None
    features: Ints | None = None
    struck: int = 1
    helper: Shown | None = None
    again: Shown | None = None
    sticky: bool = False
    classes: Classes | None = None
    linked: Linked | None = None
    people: People | None = None
    matches: Ints | None = None
    seeded: bool = False
    within: Within | None = None
    gathered: Gathered | None = None
    absent: Absent | None = None
    strata: Everyone | None = None

    @property
    def everyone(self) -> Everyone:
        """The sets of all records; only for attackers that do not lack them."""
        return Everyone.of(self.shown) if self.strata is None else self.strata

    @property
    def shown(self) -> Shown:
        """The sets of the attribute; only for attackers that do not lack them."""
        if self.column is None:
            raise LookupError("this scene shows no published sets")
        return self.column

    @property
    def classed(self) -> Within:
        """The values in classes; only for attackers that do not lack them."""
        if self.within is None:
            raise LookupError("this scene shows no values in classes")
        return self.within

    @property
    def guess_bound(self) -> float:
        """What was promised about a guess: 1/l unless anything else was."""
        return 1.0 / self.shown.mechanism.l if self.promised.guess is None else self.promised.guess
