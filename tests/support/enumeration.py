"""Small random policies, and what they come to by enumeration: written from the definitions, with nothing of ours.

valid set      l values, pairwise at least d apart
P(R | v)       p K(R | v) + (1 - p) B(R)
balanced       K(R | v) = P(R) [v in R] / rho_v and B = P, of maximum entropy with rho = l pi
simple         the true value, then decoys one by one, uniform over those from which a valid set can be completed
duplicate      the same on a circle of ranks, every member taking 2d - 1 ranks away that were still there
blind          B is P, or for simple and duplicate the mean of K over all values
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog

Sets = list[tuple[int, ...]]


@dataclass
class Case:
    """A policy for the attribute x, and the same in plain terms.

    between     distances of all pairs; None where there is no distance
    steps       how many ranks apart candidates must be, where values are equally spaced
    impossible  for each value of the untouched column `group`, the codes that it rules out
    """

    policy: dict[str, Any]
    size: int
    l: int
    design: str
    between: np.ndarray | None = None
    d: float = 0.0
    prior: np.ndarray | None = None
    reference: np.ndarray | None = None
    promises: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    impossible: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    steps: int | None = None

    def pi(self, allowed: Sequence[int]) -> np.ndarray:
        """The prior given that the value is one of the allowed ones; uniform when there is none."""
        shares = np.ones(self.size) if self.prior is None else self.prior
        return shares[list(allowed)] / shares[list(allowed)].sum()

    def strata(self) -> list[list[int]]:
        """The allowed codes of each stratum, first all."""
        excluded = sorted({tuple(codes) for codes in self.impossible.values() if codes}, key=lambda u: (len(u), u))
        return [[code for code in range(self.size) if code not in gone] for gone in ((), *excluded)]

    def sets(self, allowed: Sequence[int], l: int) -> Sets:
        """All valid sets of a stratum, in places of `allowed`."""
        return [
            chosen
            for chosen in combinations(range(len(allowed)), l)
            if self.between is None
            or all(self.between[allowed[one], allowed[other]] >= self.d for one, other in combinations(chosen, 2))
        ]


# Distances: the spec of a policy, and all pairs from the definition.


def _line(rng: np.random.Generator, size: int) -> tuple[Any, np.ndarray, bool]:
    if rng.random() < 0.5:
        places = np.arange(size)
        return {"line": "rank"}, np.abs(places[:, None] - places), True
    places = rng.permutation(3 * size)[:size]
    return {"line": places.tolist()}, np.abs(places[:, None] - places), False


def _circle(rng: np.random.Generator, size: int) -> tuple[Any, np.ndarray, bool]:
    even = rng.random() < 0.5
    length = size if even else 3 * size
    places = np.arange(size) if even else rng.permutation(length)[:size]
    straight = np.abs(places[:, None] - places)
    spec = "rank" if even else {"positions": places.tolist(), "length": length}
    return {"circle": spec}, np.minimum(straight, length - straight), even


def _tree(rng: np.random.Generator, size: int) -> tuple[Any, np.ndarray, bool]:
    """Paths of one to three inner nodes below the root; the label of a node is its way down."""
    paths = []
    for _ in range(size):
        way = tuple(rng.integers(0, 2, int(rng.integers(1, 4))).tolist())
        paths.append([way[: level + 1] for level in range(len(way))])
    nested: dict[str, Any] = {}
    for code, path in enumerate(paths):
        here = nested
        for way in path:
            here = here.setdefault("n" + "".join(map(str, way)), {})
        here[label(code)] = None
    height: dict[tuple[int, ...], int] = {}
    for path in paths:
        for way in [(), *path]:
            height[way] = max(height.get(way, 0), len(path) + 1 - len(way))
    measure = rng.choice(["ancestor", "path"])
    between = np.zeros((size, size))
    for one, other in combinations(range(size), 2):
        shared = [way for way in [(), *paths[one]] if way in [(), *paths[other]]][-1]
        apart = (len(paths[one]) + len(paths[other]) + 2 - 2 * len(shared)) / 2
        between[one, other] = between[other, one] = height[shared] if measure == "ancestor" else apart
    return {"tree": {"nested": nested, "measure": str(measure)}}, between, False


def _lattice(rng: np.random.Generator, size: int) -> tuple[Any, np.ndarray, bool]:
    """Values under one or two of a few groups, groups under one or two of two regions."""
    groups = [set(rng.integers(0, 4, int(rng.integers(1, 3))).tolist()) for _ in range(size)]
    regions = [set(rng.integers(0, 2, int(rng.integers(1, 3))).tolist()) for _ in range(4)]
    above = {label(code): [f"g{group}" for group in sorted(groups[code])] for code in range(size)}
    above |= {f"g{group}": [f"r{region}" for region in sorted(regions[group])] for group in range(4)}
    between = np.zeros((size, size))
    for one, other in combinations(range(size), 2):
        mine, theirs = (set().union(*(regions[group] for group in groups[code])) for code in (one, other))
        apart = 1 if groups[one] & groups[other] else 2 if mine & theirs else 3
        between[one, other] = between[other, one] = apart
    return {"lattice": above}, between, False


def _matrix(rng: np.random.Generator, size: int) -> tuple[Any, np.ndarray, bool]:
    upper = np.triu(rng.integers(1, 6, (size, size)), 1)
    between = upper + upper.T
    return {"matrix": between.tolist()}, between, False


_DISTANCES = (_line, _circle, _tree, _lattice, _matrix)


def label(code: int) -> str:
    return f"v{code}"


def random_case(rng: np.random.Generator, size: int | None = None) -> Case:
    """A policy over 4 to 9 values with one protected attribute."""
    size = int(rng.integers(4, 10)) if size is None else size
    kind = rng.choice(["semantic"] * 5 + ["diversity", "odds"])
    attribute: dict[str, Any] = {"role": "sensitive", "domain": [label(code) for code in range(size)]}
    case = Case({}, size, int(rng.integers(2, min(4, size - 2) + 1)), "balanced")
    promises: dict[str, Any] = {}
    if kind == "semantic":
        make = _DISTANCES[rng.integers(len(_DISTANCES))]
        attribute["distance"], case.between, even = make(rng, size)
        occurring = np.unique(case.between[case.between > 0])
        # Small thresholds are the ones that can be kept.
        case.d = float(rng.choice(occurring[: max(2, len(occurring) // 2)]))
        case.steps = int(case.d) if even else None
        case.design = str(rng.choice(["balanced", "simple", "duplicate" if even else "balanced"]))
        promises["semantic-diversity"] = {"l": case.l, "d": case.d, "mechanism": case.design}
    elif kind == "diversity":
        promises["diversity"] = {"l": case.l}
    if kind == "odds" or rng.random() < 0.3:
        if rng.random() < 0.5:
            promises["ldp"] = {"epsilon": round(float(rng.uniform(0.2, 4)), 2)}
        else:
            ground = str(rng.choice(["equal", "ordered"]))
            promises["closeness"] = {"t": round(float(rng.uniform(0.05, 0.6)), 2), "ground": ground}
            if rng.random() < 0.6:
                case.reference = rng.integers(1, 20, size) / 1.0
                attribute["reference"] = case.reference.tolist()
    if case.design == "balanced" and rng.random() < 0.4:
        case.prior = rng.integers(3, 9, size) / 1.0
        attribute["prior"] = case.prior.tolist()
    attribute["protect"] = case.promises = promises
    case.policy = {
        "attributes": {"row": {"role": "quasi-identifier"}, "group": {"role": "quasi-identifier"}, "x": attribute}
    }
    if size >= 6 and case.design != "duplicate" and rng.random() < 0.35:
        _exclude(rng, case)
    return case


def _exclude(rng: np.random.Generator, case: Case) -> None:
    """One or two groups for which one or two values are impossible."""
    case.impossible = {
        group: tuple(sorted(rng.permutation(case.size)[: int(rng.integers(1, 3))].tolist()))
        for group in ("a", "b")[: int(rng.integers(1, 3))]
    }
    case.policy["impossible"] = [
        {"when": {"group": group}, "attribute": "x", "values": [label(code) for code in codes], "may-be-empty": True}
        for group, codes in case.impossible.items()
    ]


# Designs, from their definitions.


def membership(sets: Sets, size: int) -> np.ndarray:
    """(F, sets): which values are in which set."""
    member = np.zeros((size, len(sets)))
    for column, chosen in enumerate(sets):
        member[list(chosen), column] = 1.0
    return member


def balanced_exists(sets: Sets, rho: np.ndarray) -> bool:
    """Whether some distribution over the sets has these inclusion probabilities."""
    if not sets:
        return False
    found = linprog(np.zeros(len(sets)), A_eq=membership(sets, len(rho)), b_eq=rho, method="highs")
    return found.x is not None


def never_drawn(sets: Sets, rho: np.ndarray) -> np.ndarray:
    """Which sets have probability zero in every distribution with these inclusion probabilities."""
    member, never = membership(sets, len(rho)), np.ones(len(sets), dtype=bool)
    while never.any():
        # Most of the sets still in doubt at once; whatever is positive is drawn by some distribution.
        cost = np.where(never, -1.0, 0.0)
        found = linprog(cost, A_eq=member, b_eq=rho, method="highs").x
        drawn = never & (found > 1e-8)
        if not drawn.any():
            break
        never &= ~drawn
    return never


def not_of_maximum_entropy(sets: Sets, probability: np.ndarray, rho: np.ndarray) -> str:
    """What keeps a distribution from being the one of maximum entropy; empty for the one.

    Entropy is concave and the conditions are linear, so these are necessary and sufficient: the inclusion probabilities
    are met, whatever can be drawn is drawn, and `ln P` is a sum of one number for each member.
    """
    member = membership(sets, len(rho))
    if abs(probability.sum() - 1.0) > 1e-9 or probability.min() < 0.0:
        return "no distribution"
    if np.abs(member @ probability - rho).max() > 1e-7:
        return "other inclusion probabilities"
    drawn = probability > 0.0
    if probability.min() <= 1e-7 and np.any(never_drawn(sets, rho) != (probability <= 1e-7)):
        return "another support"
    logs, factors = np.log(probability[drawn]), member[:, drawn].T
    rest = logs - factors @ np.linalg.lstsq(factors, logs, rcond=None)[0]
    return "" if np.abs(rest).max() < 1e-5 else "no product of weights"


def simple_channel(sets: Sets, size: int) -> np.ndarray | None:
    """K of Algorithm 1, by following every draw; None when a value is in no set."""
    parts = {frozenset(part) for chosen in sets for k in range(len(chosen) + 1) for part in combinations(chosen, k)}
    column = {frozenset(chosen): number for number, chosen in enumerate(sets)}
    channel = np.zeros((size, len(sets)))
    for true in range(size):
        if frozenset({true}) not in parts:
            return None
        reached = {frozenset({true}): 1.0}
        for _ in range(len(sets[0]) - 1):
            further: dict[frozenset[int], float] = {}
            for part, chance in reached.items():
                choices = [part | {code} for code in range(size) if code not in part and part | {code} in parts]
                for larger in choices:
                    further[larger] = further.get(larger, 0.0) + chance / len(choices)
            reached = further
        for chosen, chance in reached.items():
            channel[true, column[chosen]] = chance
    return channel


def duplicate_channel(sets: Sets, size: int, steps: int) -> np.ndarray | None:
    """K of Algorithm 1 with Algorithm 3; None when it runs out of ranks."""
    window = 2 * steps - 1
    l = len(sets[0]) if sets else 0
    if not sets or (l - 1) * window >= size:
        return None
    column = {frozenset(chosen): number for number, chosen in enumerate(sets)}
    channel = np.zeros((size, len(sets)))

    def draw(true: int, members: list[int], chance: float, gone: set[int]) -> None:
        if len(members) == l:
            channel[true, column[frozenset(members)]] += chance
            return
        rank, left, gone = members[-1] - steps + 1, window, set(gone)
        while left:
            left -= rank % size not in gone
            gone.add(rank % size)
            rank += 1
        free = [code for code in range(size) if code not in gone]
        for code in free:
            draw(true, [*members, code], chance / len(free), gone)

    for true in range(size):
        draw(true, [true], 1.0, set())
    return channel


# What a channel is worth.


def moved(channel: np.ndarray, pi: np.ndarray, ground: str) -> float:
    """The farthest that a set moves an attacker who expects `pi`: earth mover's distance, equal or ordered ground."""
    joint = channel * pi[:, None]
    seen = joint.sum(axis=0) > 0.0
    shift = joint[:, seen] / joint[:, seen].sum(axis=0) - pi[:, None]
    if ground == "equal":
        return float(np.abs(shift).sum(axis=0).max() / 2.0)
    return float(np.abs(np.cumsum(shift, axis=0)[:-1]).sum(axis=0).max() / (len(pi) - 1))


def largest_ratio(channel: np.ndarray) -> float:
    """Epsilon: the largest logarithm of the ratio of two entries of a column."""
    possible = channel[:, channel.max(axis=0) > 0.0]
    with np.errstate(divide="ignore"):
        return float(np.log(possible.max(axis=0) / possible.min(axis=0)).max())


def errors(channel: np.ndarray, member: np.ndarray, pi: np.ndarray, records: int) -> tuple[float, float]:
    """Expected squared error of a share, of the inverse estimator and of the best unbiased one.

    The true values of the N records are what is estimated, so only the draws are random: Cov(w) is the sum over the
    records of the covariance of membership given their values.
    """
    inclusion = channel @ member.T
    spread = (member * (pi @ channel)) @ member.T - (inclusion.T * pi) @ inclusion
    inverse = np.linalg.inv(inclusion.T)
    mixed = pi @ channel
    information = (channel[:, mixed > 0] / mixed[mixed > 0]) @ channel[:, mixed > 0].T
    scale = len(pi) * records
    limit = (np.trace(np.linalg.inv(information)) - 1.0) / scale
    return float(np.trace(inverse @ spread @ inverse.T) / scale), float(limit)
