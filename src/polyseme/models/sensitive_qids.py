"""Privacy models for tables in which every attribute may be known to one attacker and secret from another.

A table publishes a set of candidates in each cell (its *aggregated expression*) and stands for its *expansion*: for
every record all combinations of its candidates. An ordinary table is the case of sets of one. From there:

    class for S_j      rows of the expansion that agree in every attribute except S_j        (Definition 10)
    diversity          no value of S_j has more than 1/l of a class                           (Definitions 11, 12)
    entropy-diversity  the entropy of S_j in a class is at least ln l                         (Definitions 13, 14)
    closeness          the distribution B_j of S_j that Bayes' rule infers for a class is
                       within t of its distribution A_j in the whole table                    (Definitions 15, 16)
    k-anonymity        a class has at least k rows                                            (Definitions 17, 18)

A class for S_j is the union of the records whose other sets all contain its values, so nothing needs expanding but the
other attributes. When even these combinations are too many (`EXPANSION_LIMIT`), each record is checked as a class of
its own. That is enough: shares of a union are a weighted mean of the shares of its parts, entropy is concave and the
earth mover's distance convex (Lemma 1), so no union is worse than its worst record. It fails closed: a record that
violates alone may be saved by a larger class, which is then not looked for.

Nothing here trusts the program that made the table; the verdicts follow from the published cells and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from polyseme.distances.structure import Floats, Ints
from polyseme.errors import PolicyError, Problem, QuestionError, TableError, nearest
from polyseme.models.base import TOLERANCE, Score, Verdict, judge, unchecked
from polyseme.recipes.ground import Equal, Ground
from polyseme.schema import Label

__all__ = [
    "EXPANSION_LIMIT",
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

EXPANSION_LIMIT = 2_000_000
"""Largest number of combinations that is ever listed."""

Weights: TypeAlias = Callable[[Ints], tuple[Floats, Floats]]

_ROW, _CLASS, _CODE = "\0row", "\0class", "\0code"
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


@dataclass(frozen=True, eq=False)
class QidClasses:
    """The equivalence classes for one attribute S_j.

    attribute  its name
    owner      class of each (class, record) pair, ascending
    row        record of each pair
    starts     where each record's set begins in `value`: (records + 1,)
    value      codes of the candidates of S_j
    labels     its domain in order of codes
    listed     whether these are all classes; otherwise each record stands for itself
    flaw       why nothing can be said; empty when all is well
    """

    attribute: str
    owner: Ints
    row: Ints
    starts: Ints
    value: Ints
    labels: tuple[Label, ...] = field(repr=False)
    listed: bool = True
    flaw: str = ""

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self.owner[-1]) + 1 if len(self.owner) else 0

    @cached_property
    def lengths(self) -> Ints:
        """How many candidates each record has."""
        return np.diff(self.starts)

    @cached_property
    def first(self) -> Ints:
        """A record of each class."""
        return self.row[np.searchsorted(self.owner, np.arange(self.count))]

    @cached_property
    def sizes(self) -> Ints:
        """Rows of the expansion in each class."""
        return np.bincount(self.owner, weights=self.lengths[self.row], minlength=self.count).astype(np.int64)

    @cached_property
    def records(self) -> Ints:
        """Records that take part in each class."""
        return np.bincount(self.owner, minlength=self.count)

    def sums(self, weight: Floats) -> tuple[Ints, Ints, Floats]:
        """Class, value and summed weight of the candidates, one entry for each value of each class."""
        lengths = self.lengths[self.row]
        offset = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entry = np.repeat(self.starts[self.row], lengths) + offset
        keys = np.repeat(self.owner, lengths) * len(self.labels) + self.value[entry]
        keys, inverse = np.unique(keys, return_inverse=True)
        summed: Floats = np.bincount(inverse, weights=weight[entry], minlength=len(keys)).astype(np.float64)
        return keys // len(self.labels), keys % len(self.labels), summed

    @property
    def note(self) -> str:
        if self.listed:
            return ""
        return "too many combinations to list: each record was checked as a class of its own, the worst case"


def _as_sets(table: pl.DataFrame, attributes: Sequence[str]) -> pl.DataFrame:
    """Every attribute as a column of lists without repeats, and the row number."""
    absent = [name for name in attributes if name not in table.columns]
    if absent:
        raise TableError(Problem(name, "the table has no such column", nearest(name, table.columns)) for name in absent)
    columns = []
    for name in attributes:
        dtype = table.schema[name]
        column = pl.concat_list(name)
        if isinstance(dtype, pl.List | pl.Array):
            column = pl.col(name).cast(pl.List(dtype.inner))
        columns.append(column.list.unique(maintain_order=True).alias(name))
    return table.select(columns).with_row_index(_ROW)


def expand(table: pl.DataFrame, attributes: Sequence[str] | None = None) -> pl.DataFrame:
    """The expansion of a table of sets: all combinations of each record's candidates, record by record.

    >>> expand(pl.DataFrame({"age": [[33, 41]], "disease": [["cold", "HIV"]]})).rows()
    [(33, 'cold'), (33, 'HIV'), (41, 'cold'), (41, 'HIV')]
    """
    attributes = list(table.columns if attributes is None else attributes)
    sets = _as_sets(table, attributes)
    rows = _combinations(sets, attributes)
    if rows > EXPANSION_LIMIT:
        raise TableError(
            f"the expansion would have {rows:,.0f} rows (limit {EXPANSION_LIMIT:,})",
            "the table of sets says the same; expand fewer records or attributes",
        )
    return _exploded(sets, attributes).drop(_ROW)


def _combinations(sets: pl.DataFrame, attributes: Sequence[str]) -> float:
    lengths = np.ones(sets.height)
    for name in attributes:
        lengths = lengths * sets[name].list.len().fill_null(1).to_numpy()
    return float(lengths.sum())


def _exploded(sets: pl.DataFrame, attributes: Sequence[str]) -> pl.DataFrame:
    for name in attributes:
        sets = sets.explode(name)
    return sets


def classes_for(
    table: pl.DataFrame,
    attribute: str,
    attributes: Sequence[str] | None = None,
    domain: Sequence[Label] | int | None = None,
) -> QidClasses:
    """The equivalence classes for `attribute` (Definition 10); `attributes` are all sensitive quasi-identifiers."""
    attributes = list(table.columns if attributes is None else attributes)
    if attribute not in attributes:
        raise QuestionError(f"'{attribute}' is not among the attributes", nearest(attribute, attributes))
    sets = _as_sets(table, attributes)
    others = [name for name in attributes if name != attribute]
    listed = _combinations(sets, others) <= EXPANSION_LIMIT
    owner, row = _membership(sets, others) if listed else (np.arange(sets.height), np.arange(sets.height))
    starts, value, labels, flaw = _members(sets[attribute], domain)
    return QidClasses(attribute, owner, row, starts, value, labels, listed, flaw)


def _membership(sets: pl.DataFrame, others: list[str]) -> tuple[Ints, Ints]:
    """Pairs (class, record) in order of classes."""
    if not others:
        return np.zeros(sets.height, dtype=np.int64), np.arange(sets.height)
    rows = _exploded(sets.select(_ROW, *others), others)
    groups = rows.group_by(others, maintain_order=True).agg(pl.col(_ROW)).with_row_index(_CLASS)
    pairs = groups.select(_CLASS, _ROW).explode(_ROW)
    return pairs[_CLASS].to_numpy().astype(np.int64), pairs[_ROW].to_numpy().astype(np.int64)


def _members(lists: pl.Series, domain: Sequence[Label] | int | None) -> tuple[Ints, Ints, tuple[Label, ...], str]:
    """Starts, codes and labels of a column of sets, and its flaw if it has one."""
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    members = lists.filter(pl.Series(lengths > 0)).explode()
    if domain is None:
        present = members.drop_nulls().unique().sort()
    else:
        present = pl.Series(range(domain) if isinstance(domain, int) else list(domain))
    labels = tuple(present.to_list())
    if present.dtype != members.dtype:
        numeric = present.dtype.is_numeric() and members.dtype.is_numeric()
        target = pl.Float64() if numeric else pl.String()
        present, members = present.cast(target), members.cast(target)
    table = pl.DataFrame({_CODE: present}).with_row_index(_CLASS)
    joined = pl.DataFrame({_CODE: members}).join(table, on=_CODE, how="left", maintain_order="left")
    codes = joined[_CLASS].cast(pl.Int64).fill_null(-1).to_numpy()
    return starts, codes, labels, _flaw(lengths, codes)


def _flaw(lengths: Ints, codes: Ints) -> str:
    if not len(lengths):
        return "the table has no rows"
    empty, unknown = int((lengths == 0).sum()), int((codes < 0).sum())
    flaws = [f"{empty:,} records have no candidates"] if empty else []
    flaws += [f"{unknown:,} candidates are missing or outside the domain"] if unknown else []
    return "; ".join(flaws)


def diversity(classes: QidClasses, l: int) -> Verdict:
    """Frequency [[l, j]]-diversity: the largest share of one value in a class is at most 1/l. Exact."""

    def score() -> Score:
        owner, _, count = classes.sums(np.ones(len(classes.value)))
        largest = np.maximum.reduceat(count, np.searchsorted(owner, np.arange(classes.count))).astype(np.int64)
        return Score(largest / classes.sizes, largest * l <= classes.sizes, 1.0 / l, False, classes.note)

    return judge("diversity", classes.attribute, {"l": l}, classes, classes.sizes, score)


def entropy_diversity(classes: QidClasses, l: float) -> Verdict:
    """Entropy [[l, j]]-diversity: the effective number of values of a class (e to its entropy) is at least l."""

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
    """[[t, j]]-closeness with Bayesian inference: the worst distance between A_j and B_j is at most t.

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
    # A set of values that nobody has, published as surely holding the truth, contradicts the reference.
    broken = np.isnan(gain)[classes.row]
    result[classes.owner[broken]] = np.inf
    return result


def _posteriors(classes: QidClasses, reference: Floats, public: Public) -> tuple[Floats, Floats]:
    """Posterior = (1 - gain) prior + pulled: `pulled` for each candidate, `gain` for each record."""
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


_CHECKS: Mapping[str, tuple[str, Callable[..., Verdict]]] = {
    "diversity": ("l", diversity),
    "entropy-diversity": ("l", entropy_diversity),
    "closeness": ("t", closeness),
    "k-anonymity": ("k", anonymity),
}


def check(
    table: pl.DataFrame,
    promises: Mapping[str, Mapping[str, Mapping[str, Any]]],
    public: Mapping[str, Public] | None = None,
    attributes: Sequence[str] | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each promise of each attribute: (l_1 .. l_q)-diversity and its kin.

    promises    attribute -> model -> parameters
    public      what is known about attributes
    attributes  all sensitive quasi-identifiers; every column when None
    """
    unknown = {model for models in promises.values() for model in models} - set(_CHECKS)
    if unknown:
        raise PolicyError(Problem(model, "unknown model", nearest(model, _CHECKS)) for model in sorted(unknown))
    verdicts = []
    for attribute, models in promises.items():
        known = (public or {}).get(attribute, Public())
        classes = classes_for(table, attribute, attributes, known.domain)
        for model, parameters in models.items():
            key, verify = _CHECKS[model]
            extra = (known,) if model == "closeness" else ()
            verdicts.append(verify(classes, parameters[key], *extra))
    return tuple(verdicts)
