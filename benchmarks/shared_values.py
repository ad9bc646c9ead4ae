"""What records that share a value, or nearly so, tell together: the tables of docs/shared-values.md.

    python benchmarks/shared_values.py [--households 20000] [--people 20000]

Two simulations on 14 ranks with three candidates at least 2 apart (the balanced design, a uniform prior):

- members of a household who agree mostly, not always: each has another value with some probability. The adversary
  `shared-value` knows who belongs together; success is counted against the truth.
- one person in several waves, whose value moves to a neighboring rank now and then. An attacker who knows how often
  follows the person with a hidden Markov model, written here: what is left is the posterior of the last value.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

import polyseme as ps
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.semantics.distances.line import LineDistance

RANKS, L, D = 14, 3, 2
SIZES = np.array([0.35, 0.30, 0.14, 0.13, 0.05, 0.03])
"""Of households with 1 to 6 people, about as in Austria."""
DIFFERING = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4)
MOVES = (0.02, 0.05, 0.1, 0.2)
WAVES = (2, 4, 8)
POLICY = f"""
attributes:
  home: {{role: quasi-identifier}}
  person: {{role: quasi-identifier}}
  x: {{role: sensitive, SHARED domain: {list(range(RANKS))}, distance: {{line: rank}},
      protect: {{semantic-diversity: {{l: {L}, d: {D}}}}}}}
"""


def households(count: int, differing: float, near: bool) -> pl.DataFrame:
    """People; each has another value than the household with some probability, a neighboring one or any."""
    rng = np.random.default_rng(1)
    home = np.repeat(np.arange(count), rng.choice(6, count, p=SIZES) + 1)
    shared = rng.integers(0, RANKS, count)[home]
    stray = rng.choice([-1, 1], len(home)) if near else rng.integers(1, RANKS, len(home))
    moved = np.where(near, np.abs(RANKS - 1 - np.abs(RANKS - 1 - np.abs(shared + stray))), (shared + stray) % RANKS)
    value = np.where(rng.random(len(home)) < differing, moved, shared)
    return pl.DataFrame({"home": home, "person": np.arange(len(home)), "x": value})


def members(count: int) -> None:
    """How often members of households are guessed right, with sets of their own and with one for the household."""
    print("| another value | share of members | own sets | one set for those who agree |\n|---|---:|---:|---:|")
    for near in (True, False):
        for differing in DIFFERING:
            table, found = households(count, differing, near), []
            for shared in ("", "shared-by: home,"):
                policy = ps.Policy.loads(POLICY.replace("SHARED", shared))
                release = ps.anonymize(table, policy, seed=1, accept_risk=True, warn=lambda text: None)
                attacks = [one for one in ps.attack(release, table, seed=1) if one.attack == "shared-value"]
                found.append(f"{attacks[0].success:.1%}" if attacks else "no more than one set")
            print(f"| {'a neighbor' if near else 'any'} | {differing:.0%} | {' | '.join(found)} |")


def walks(people: int, waves: int, move: float) -> np.ndarray:
    """The ranks of each person in each wave; at an end a step leads back."""
    rng = np.random.default_rng(2)
    ranks = [rng.integers(0, RANKS, people)]
    for _ in range(waves - 1):
        step = np.where(rng.random(people) < move, rng.choice([-1, 1], people), 0)
        ranks.append(np.abs(RANKS - 1 - np.abs(RANKS - 1 - np.abs(ranks[-1] + step))))
    return np.array(ranks)


def steps(move: float) -> np.ndarray:
    """How ranks follow each other."""
    found = np.diag(np.full(RANKS, 1.0 - move))
    for rank in range(RANKS):
        for step in (-1, 1):
            found[rank, abs(RANKS - 1 - abs(RANKS - 1 - abs(rank + step)))] += move / 2
    return found


def followed(ranks: np.ndarray, move: float, sticky: bool) -> tuple[float, float]:
    """How often the likeliest last rank is the true one, and the share of people whose last rank is certain."""
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(RANKS).structure(D), L))
    stay = steps(move)
    belief, before, old = np.full((ranks.shape[1], RANKS), 1.0 / RANKS), None, None
    for wave, now in enumerate(ranks):
        sets = mechanism.sample(now, SystemStream.seeded(f"{wave} {sticky}"))
        if sticky and before is not None and old is not None:
            sets = np.where((now == old)[:, None], before, sets)
        likely = np.zeros_like(belief)
        np.put_along_axis(likely, sets, mechanism.weights(sets)[0], axis=1)
        if before is None:
            belief = belief * likely
        elif sticky:
            same = (sets == before).all(axis=1)[:, None]
            off = stay - np.diag(np.diag(stay))
            # A value that stays keeps its set; one that moves draws another, which may be the same by chance.
            design = mechanism.design.blind_likelihood(sets)[:, None]
            belief = np.where(same, belief * np.diag(stay), 0.0) + (belief @ off) * likely * design
        else:
            belief = (belief @ stay) * likely
        belief /= belief.sum(axis=1, keepdims=True)
        before, old = sets, now
    top = belief >= belief.max(axis=1, keepdims=True) * (1.0 - 1e-9)
    right = top[np.arange(len(top)), ranks[-1]] / top.sum(axis=1)
    return float(right.mean()), float((belief.max(axis=1) > 0.999).mean())


def moving(people: int) -> None:
    """How far a person is followed from wave to wave."""
    print("\n| moves a wave | waves | fresh sets | certain | sticky sets | certain |\n|---:|---:|---:|---:|---:|---:|")
    for move in MOVES:
        for waves in WAVES:
            ranks = walks(people, waves, move)
            found = [number for sticky in (False, True) for number in followed(ranks, move, sticky)]
            print(f"| {move:.0%} | {waves} | {' | '.join(f'{number:.1%}' for number in found)} |")


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--households", type=int, default=20_000)
    given.add_argument("--people", type=int, default=20_000)
    options = given.parse_args()
    members(options.households)
    moving(options.people)
