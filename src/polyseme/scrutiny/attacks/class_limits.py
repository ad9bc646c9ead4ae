"""Bounds on attackers in classes, where the promised models imply any by a theorem.

The share p of the most frequent value of a class, which a guess is worth:

    frequency-diversity, diversity      p <= 1/l
    le-diversity by frequency           p <= 1/l
    semantic-diversity by frequency     p <= 1/l (d > 0: a value is near itself)
    alpha-k-anonymity                   p <= alpha
    entropy-diversity                   p <= the root of h(p) + (1 - p) ln(F - 1) = ln l, h the entropy of p and 1 - p
    recursive-diversity                 p <  x / (1 + x),  x = c (F - l + 1) / (F - 1);  p < c for l = 1
    closeness on the equal ground       p <= max q + t
    beta-likeness, delta-disclosure     p <= max (1 + gain) q,  max exp(delta) q
    distinct-diversity and the others   nothing: one value may have nearly all of a class

where
    F  how many values the domain has
    q  the share of a value in the whole table

Entropy: given p, it is largest when the other values share the rest evenly (Fano). Recursive: the tail r_l + ... + r_m
has at most F - l + 1 values, each at most as frequent as each of r_2 ... r_(l-1), so that these have together at least
(l - 2) / (F - l + 1) of the tail; what is left for r_1 < c tail follows.

Values that are alike: by frequency they have at most 1/l of a class. Where any two values of a class are far apart
(strictly semantic, or (l, e)-diverse), a neighborhood holds one value, and what bounds a guess bounds it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from polyseme.models import Background, ground_of, is_about, read_spec
from polyseme.models.base import TOLERANCE, Spec
from polyseme.scrutiny.attacks.scene import Promised
from polyseme.tables.equivalence_classes import Counts

__all__ = ["promised_in_classes"]

Parameters: TypeAlias = Mapping[str, Any]


def promised_in_classes(
    models: Iterable[Mapping[str, Mapping[str, Any]]], counts: Counts, background: Background
) -> Promised:
    """What the models about an attribute mean as bounds on attacks."""
    specs = [read_spec(model) for model in models if is_about(model, counts.attribute)]
    guess = _least(_GUESSES[spec.model.name](spec.parameters, counts) for spec in specs if spec.model.name in _GUESSES)
    apart, alike = _alike(specs, guess)
    moved, ground = _moved(specs, counts, background)
    return Promised(guess=guess, apart=apart, alike=alike, moved=moved, ground=ground, struck=_struck(specs))


def _least(bounds: Iterable[float | None]) -> float | None:
    return min((min(bound, 1.0) for bound in bounds if bound is not None), default=None)


# -- a guess ----------------------------------------------------------------------------------------------------------


def _by_frequency(parameters: Parameters, counts: Counts) -> float | None:
    """1/l; for the semantic models only in the reading that counts records."""
    if (
        parameters.get("represented", "frequency") != "frequency"
        or parameters.get("reading", "frequency") != "frequency"
    ):
        return None
    return None if parameters.get("d") == 0 else 1.0 / float(parameters["l"])


def _by_entropy(parameters: Parameters, counts: Counts) -> float:
    from scipy.optimize import brentq

    size, goal = counts.domain_size, math.log(parameters["l"]) - TOLERANCE
    if goal >= math.log(size):
        return 1.0 / size
    if goal <= 0.0:
        return 1.0
    return float(brentq(lambda p: _entropy(p, size) - goal, 1.0 / size, 1.0, xtol=1e-14))


def _entropy(p: float, size: int) -> float:
    """The largest entropy of a distribution over `size` values of which one has the share p."""
    rest = 1.0 - p
    if rest <= 0.0:
        return 0.0
    return -p * math.log(p) - rest * math.log(rest / (size - 1))


def _by_recursion(parameters: Parameters, counts: Counts) -> float:
    c, l, size = float(parameters["c"]), int(parameters["l"]), counts.domain_size
    if l == 1:
        return c
    if size < l:
        return 0.0
    scaled = c * (size - l + 1) / (size - 1)
    return scaled / (1.0 + scaled)


def _by_closeness(parameters: Parameters, counts: Counts) -> float | None:
    return float(_whole(counts).max()) + float(parameters["t"]) if parameters["ground"] == "equal" else None


def _by_likeness(parameters: Parameters, counts: Counts) -> float:
    share = _whole(counts)
    share = share[share > 0]
    gain = np.minimum(parameters["beta"], -np.log(share)) if parameters["enhanced"] else parameters["beta"]
    return float(((1.0 + gain) * share).max())


def _by_disclosure(parameters: Parameters, counts: Counts) -> float:
    return float(math.exp(min(parameters["delta"], 700.0)) * _whole(counts).max())


def _whole(counts: Counts) -> np.ndarray:
    share: np.ndarray = counts.total / counts.records
    return share


_GUESSES: Mapping[str, Callable[[Parameters, Counts], float | None]] = {
    "frequency-diversity": _by_frequency,
    "diversity": _by_frequency,
    "le-diversity": _by_frequency,
    "semantic-diversity": _by_frequency,
    "alpha-k-anonymity": lambda parameters, counts: float(parameters["alpha"]),
    "entropy-diversity": _by_entropy,
    "recursive-diversity": _by_recursion,
    "closeness": _by_closeness,
    "beta-likeness": _by_likeness,
    "delta-disclosure": _by_disclosure,
}


# -- the others -------------------------------------------------------------------------------------------------------


def _alike(specs: Iterable[Spec], guess: float | None) -> tuple[float | None, float | None]:
    """The largest promised distance, and the bound on the share of records that near a value."""
    promised: list[tuple[float, float | None]] = []
    for spec in specs:
        parameters = spec.parameters
        if spec.model.name == "le-diversity":
            # Two values are more than e apart: nothing but a value itself is nearer than the next number after e.
            promised.append((float(np.nextafter(parameters["e"], np.inf)), guess))
        elif spec.model.name == "semantic-diversity" and parameters["d"] > 0:
            bounds = {"strict": guess, "exists": None, "frequency": 1.0 / parameters["l"]}
            promised.append((float(parameters["d"]), bounds[parameters["reading"]]))
    if not promised:
        return None, None
    widest = max(d for d, _ in promised)
    return widest, _least(bound for d, bound in promised if d == widest)


def _moved(specs: Iterable[Spec], counts: Counts, background: Background) -> tuple[float | None, Any]:
    """The smallest t of closeness and its ground; other grounds may bound more."""
    parameters = min(
        (s.parameters for s in specs if s.model.name == "closeness"), key=lambda one: one["t"], default=None
    )
    if parameters is None:
        return None, None
    ground = ground_of(counts, background, parameters["ground"])
    return (None, None) if ground is None else (float(parameters["t"]), ground)


def _struck(specs: Iterable[Spec]) -> tuple[float, int] | None:
    """(c, l) of the recursive diversity that rules out most values."""
    found = [(s.parameters["c"], s.parameters["l"]) for s in specs if s.model.name == "recursive-diversity"]
    return max(found, key=lambda pair: (pair[1], -pair[0]), default=None)
