"""Models for tables whose attributes may be known to one attacker and secret from another.

A table publishes a set of candidates in each cell (its *aggregated expression*) and stands for its *expansion*: for
every record all combinations of its candidates. An ordinary table is the case of sets of one. From there:

    class for S_j      rows of the expansion that agree in every attribute except S_j        (Definition 10)
    diversity          no value of S_j has more than 1/l of a class                           (Definitions 11, 12)
    entropy-diversity  the entropy of S_j in a class is at least ln l                         (Definitions 13, 14)
    closeness          the distribution B_j of S_j that Bayes' rule infers for a class is
                       within t of its distribution A_j in the whole table                    (Definitions 15, 16)
    k-anonymity        a class has at least k rows                                            (Definitions 17, 18)

Where the combinations are too many to list, each record is checked as a class of its own. That is enough: shares of a
union are a weighted mean of the shares of its parts, entropy is concave and the earth mover's distance convex
(Lemma 1), so no union is worse than its worst record. It fails closed: a record that violates alone may be saved by a
larger class, which is then not looked for.

Nothing here trusts the program that made the table; the verdicts follow from the published cells and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.parameters import Parameter, read_parameters
from polyseme.kernel.spelling import Label
from polyseme.models.base import TOLERANCE, Score, Verdict, judge, unchecked
from polyseme.semantics.distances.ground import Equal, Ground
from polyseme.tables.expansion import QidClasses, classes_for, expand

__all__ = [
    "Public",
    "QidClasses",
    "anonymity",
    "check",
    "classes_for",
    "closeness",
    "diversity",
    "entropy_diversity",
    "expand",
]

Weights: TypeAlias = Callable[[Ints], tuple[Floats, Floats]]

_DENSE = 2_000_000


@dataclass(frozen=True, eq=False)
class Public:
    """What everybody may know about one published attribute.

    domain     its values in order, or how many codes there are; the values seen when None
    reference  A_j, its distribution; for an ordinary table the table's own when None
    p          the truth probability
    weights    `P(R | v)` up to a factor of the set, for each member (n, l) and for any value outside (n,); by default
               that of sets drawn uniformly with truth probability p
    ground     what it costs to move probability between values
    """

    domain: Sequence[Label] | int | None = None
    reference: Floats | None = None
    p: float = 1.0
    weights: Weights | None = None
    ground: Ground = field(default_factory=Equal)


def diversity(classes: QidClasses, l: int) -> Verdict:
    """Frequency [[l, j]]-diversity: the largest share of one value in a class is at most 1/l.

    Exact.
    """

    def score() -> Score:
        owner, _, count = classes.sums(np.ones(len(classes.value)))
        largest = np.maximum.reduceat(count, np.searchsorted(owner, np.arange(classes.count))).astype(np.int64)
        return Score(largest / classes.sizes, largest * l <= classes.sizes, 1.0 / l, False, classes.note)

    return judge("diversity", classes.attribute, {"l": l}, classes, classes.sizes, score)


def entropy_diversity(classes: QidClasses, l: float) -> Verdict:
    """Entropy [[l, j]]-diversity: the effective number of a class's values is at least l.

    That number is e to the entropy.
    """

    def score() -> Score:
        owner, _, count = classes.sums(np.ones(len(classes.value)))
        share = count / classes.sizes[owner]
        entropy = np.bincount(owner, weights=-share * np.log(share), minlength=classes.count)
        return Score(np.exp(entropy), entropy >= math.log(l) - TOLERANCE, float(l), True, classes.note)

    return judge("entropy-diversity", classes.attribute, {"l": l}, classes, classes.sizes, score)


def anonymity(classes: QidClasses, k: int) -> Verdict:
    """[[k, j]]-anonymity: a class has at least k rows of the expansion."""

    def score() -> Score:
        note = "rows of the expansion are counted, as the definition says: one record can fill a class by itself"
        alone = bool((classes.records < k).any())
        notes = [part for part in (note if alone else "", classes.note) if part]
        return Score(classes.sizes, classes.sizes >= k, float(k), True, "; ".join(notes))

    return judge("k-anonymity", classes.attribute, {"k": k}, classes, classes.sizes, score)


def closeness(classes: QidClasses, t: float, public: Public | None = None) -> Verdict:
    """[[t, j]]-closeness with Bayesian inference: distances of A_j and B_j are at most t.

    What a record shows about S_j is the posterior given its set; a class shows the mean over its records.
    """
    public = public or Public()
    parameters = {"t": t, "ground": public.ground.name}
    reference = _reference(classes, public)
    if reference is None:
        note = "no reference distribution was given, and a table of sets does not show one"
        return unchecked("closeness", classes.attribute, parameters, classes.flaw or note)

    def score() -> Score:
        value = _distances(classes, reference, public)
        return Score(value, value <= t + TOLERANCE, t, False, classes.note)

    return judge("closeness", classes.attribute, parameters, classes, classes.sizes, score)


def _reference(classes: QidClasses, public: Public) -> Floats | None:
    if public.reference is not None:
        given = np.asarray(public.reference, dtype=np.float64)
        if given.shape != (len(classes.labels),):
            raise PolicyError(f"a reference for {len(classes.labels):,} values is needed, not for {given.size:,}")
        return np.asarray(given / given.sum())
    if classes.flaw or classes.lengths.max(initial=0) > 1:
        return None
    return np.bincount(classes.value, minlength=len(classes.labels)) / len(classes.value)


def _distances(classes: QidClasses, reference: Floats, public: Public) -> Floats:
    """The earth mover's distance between A_j and B_j for each class."""
    pulled, gain = _posteriors(classes, reference, public)
    owner, code, mass = classes.sums(pulled)
    weight = np.bincount(classes.owner, weights=gain[classes.row], minlength=classes.count) / classes.records
    result = np.empty(classes.count)
    step = max(1, _DENSE // len(reference))
    for start in range(0, classes.count, step):
        stop = min(start + step, classes.count)
        part = slice(*np.searchsorted(owner, [start, stop]))
        shift = -weight[start:stop, None] * reference
        shift[owner[part] - start, code[part]] += mass[part] / classes.records[owner[part]]
        result[start:stop] = public.ground.work(shift)
    # A set of values that no person has, published as surely holding the truth, contradicts the reference.
    broken = np.isnan(gain)[classes.row]
    result[classes.owner[broken]] = np.inf
    return result


def _posteriors(classes: QidClasses, reference: Floats, public: Public) -> tuple[Floats, Floats]:
    """Posterior = (1 - gain) prior + pulled: `pulled` per candidate, `gain` per record."""
    pulled, gain = np.empty(len(classes.value)), np.empty(len(classes.lengths))
    for length in np.unique(classes.lengths):
        rows = np.flatnonzero(classes.lengths == length)
        places = classes.starts[rows][:, None] + np.arange(length)
        sets = classes.value[places]
        inside, outside = (public.weights or _uniform(public.p, len(reference)))(sets)
        extra = (inside - outside[:, None]) * reference[sets]
        total = outside + extra.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            pulled[places] = extra / total[:, None]
            gain[rows] = extra.sum(axis=1) / total
    return pulled, gain


def _uniform(p: float, size: int) -> Weights:
    """kappa_c and kappa_d of the paper, times the number of sets."""

    def weights(sets: Ints) -> tuple[Floats, Floats]:
        inside = p * size / sets.shape[1] + 1.0 - p
        return np.full(sets.shape, inside), np.full(len(sets), 1.0 - p)

    return weights


_CHECKS: Mapping[str, tuple[Parameter, Callable[..., Verdict]]] = {
    "diversity": (Parameter("l", low=1, example=3), diversity),
    "entropy-diversity": (Parameter("l", low=1, example=3), entropy_diversity),
    "closeness": (Parameter("t", low=0, example=0.2), closeness),
    "k-anonymity": (Parameter("k", low=1, example=5), anonymity),
}


def check(
    table: pl.DataFrame,
    models: Mapping[str, Mapping[str, Mapping[str, Any]]],
    public: Mapping[str, Public] | None = None,
    attributes: Sequence[str] | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each model of each attribute: (l_1 ... l_q)-diversity and its kin.

    models      attribute -> model -> parameters
    public      what is known about attributes
    attributes  all sensitive quasi-identifiers; every column when None
    """
    problems = [
        problem
        for attribute, wanted in models.items()
        for model, given in wanted.items()
        for problem in _problems(f"{attribute}.{model}", model, given)
    ]
    if problems:
        raise PolicyError(problems)
    verdicts = []
    for attribute, wanted in models.items():
        known = (public or {}).get(attribute, Public())
        classes = classes_for(table, attribute, attributes, known.domain)
        for model, given in wanted.items():
            parameter, verify = _CHECKS[model]
            extra = (known,) if model == "closeness" else ()
            verdicts.append(verify(classes, given[parameter.name], *extra))
    return tuple(verdicts)


def _problems(where: str, model: str, given: Mapping[str, Any]) -> list[Problem]:
    if model not in _CHECKS:
        return [Problem(where, "unknown model", nearest(model, _CHECKS))]
    return read_parameters(where, _CHECKS[model][:1], given)[1]
