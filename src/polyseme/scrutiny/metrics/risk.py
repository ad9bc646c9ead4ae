"""The risks of a table as it stands, and what a grouping or generalization costs.

    k            = min |E|
    unique       = records in classes of one
    marketer     = classes / records

where |E| is the number of records of a class, or of different people where it is known whose the records are: then
records are people everywhere below. A person with records in several classes is in each of them, once.

    distinction  = different values of a column / records
    separation   = pairs of records that differ in the column / all pairs

l and t are the worst values of the models of the same name, by their own functions. Each column is coded once, and the
codes of several columns become one number, so that a table is grouped by whole numbers however many columns it has.

The costs of a grouping use c(E, v), the records of E with sensitive value v, and N, the records of the table.

Motwani and Xu (2007) for distinction and separation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints, multipliable
from polyseme.kernel.errors import TableError
from polyseme.kernel.work import tracked
from polyseme.models import closeness, diversity
from polyseme.models.diversity import largest_count
from polyseme.results.risk import ColumnRisk, Risk, SensitiveRisk, SizeBand
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.ground import Equal, Ordered
from polyseme.tables.distinct import distinct_rows
from polyseme.tables.equivalence_classes import Counts, classes_of, kept_rows, people_in

__all__ = [
    "average_class_size",
    "discernibility",
    "diversity_degrees",
    "entropy_loss",
    "information_losses",
    "measure",
    "precision",
]


def discernibility(sizes: Ints, suppressed: int = 0) -> int:
    """DM*: sum of |E|^2, plus `N` for every suppressed row when their number is given.

    >>> discernibility(np.array([2, 3]))
    13
    """
    records = int(sizes.sum()) + suppressed
    return int((sizes.astype(np.int64) ** 2).sum()) + suppressed * records


def average_class_size(sizes: Ints, k: int = 1) -> float:
    """N / (number of classes * k): 1 is as good as k-anonymity can be."""
    return float(sizes.sum() / (len(sizes) * k))


def precision(levels: Sequence[int] | Ints, heights: Sequence[int] | Ints) -> float:
    """1 - mean of (level / height): how little was generalized, over attributes or over cells.

    where
        levels   how high each attribute was generalized, (attributes,); or each cell, (records, attributes)
        heights  how high each hierarchy is, (attributes,); an attribute without hierarchy has height 0

    >>> precision([1, 0], [2, 4])
    0.75
    """
    climbed, full = np.asarray(levels, dtype=np.float64), np.asarray(heights, dtype=np.float64)
    return float(1.0 - np.mean(np.divide(climbed, full, out=np.zeros(climbed.shape), where=full > 0)))


def entropy_loss(original: pl.DataFrame, generalized: pl.DataFrame) -> float:
    """Bits lost by generalizing: sum of -log2(freq(value) / freq(generalized value)).

    Rows correspond one to one. Frequencies of values are taken in `original`, those of generalized values in
    `generalized`, before any row is suppressed.
    """
    if original.height != generalized.height:
        raise TableError(f"the tables have {original.height:,} and {generalized.height:,} rows", "keep rows in order")
    total = 0.0
    for name in generalized.columns:
        pairs = pl.DataFrame({"v": original[name], "g": generalized[name]}).group_by("v", "g").len("n")
        pairs = pairs.with_columns(
            pl.col("n").sum().over("v").alias("value"), pl.col("n").sum().over("g").alias("node")
        )
        n, value, node = (pairs[column].to_numpy().astype(np.float64) for column in ("n", "value", "node"))
        total += float((n * (np.log2(node) - np.log2(value))).sum())
    return total


def information_losses(counts: Counts, reading: Literal["equation", "example"] = "equation") -> Floats:
    """Information loss of each class when only values are published (Anatomy): Equations 3 to 6.

        IL(t) = (1 - c(E, v)/|E|)^2 + sum over u != v of (c(E, u)/|E|)^2,   v being the value of record t

    `equation` is this, summed over the records of the class: `|E| - sum_v c(E, v)^2 / |E|`. The paper's own example,
    IL(t1) = (1/3 - 1)^2, keeps the first term only: `example`, summed `sum_v c(E, v) (1 - c(E, v)/|E|)^2`. Suppressed
    records are in no class, so their number belongs beside it.
    """
    if reading == "equation":
        squares = np.add.reduceat(counts.count.astype(np.float64) ** 2, counts.starts[:-1])
        return counts.sizes - squares / counts.sizes
    wrong = 1.0 - counts.count / counts.sizes[counts.owner]
    return np.add.reduceat(counts.count * wrong**2, counts.starts[:-1])


def diversity_degrees(counts: Counts, distance: Distance) -> Floats:
    """Diversity degree of each class: sum over pairs of records of their distance, over |E|.

    Equation 9 of the (l, e) paper; the table's degree is the mean over classes (Equation 10).
    """
    degree = np.zeros(len(counts.sizes))
    for rows, values, count in counts.blocks():
        for step in range(1, values.shape[1]):
            apart = distance.between(values[:, :-step], values[:, step:])
            degree[rows] += (apart * count[:, :-step] * count[:, step:]).sum(axis=1)
    return degree / counts.sizes


_EDGES = (1, 2, 3, 5, 10, 20, 50, 100, 1_000)
"""Where the bands of class sizes begin."""
_LARGEST = 2**62
"""Combinations that one number can tell apart."""
_KNOWN, _COUNT = "\0known", "\0count"


def measure(
    frame: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    counts: Ints | None = None,
    people: Ints | None = None,
) -> Risk:
    """The risks of the classes that the quasi-identifiers form.

    counts  how many records each row stands for; None for one
    people  whose each row is, numbered from 0: then people are counted in place of records

    >>> found = measure(pl.DataFrame({"zip": ["1", "1", "2"], "ill": ["flu", "cold", "flu"]}), ["zip"], ["ill"])
    >>> found.k, found.l, found.unique, found.classes
    (1, 1, 1, 2)
    """
    kept = kept_rows(frame, quasi_identifiers)
    whose = _Whose(counts, people)
    here = whose.of(kept)
    rows = int(kept.sum())
    records, everyone = (rows, frame.height) if counts is None else (int(counts[kept].sum()), int(counts.sum()))
    codes = [_codes(frame[name].filter(kept)) for name in quasi_identifiers]
    key = _packed(codes, rows)
    sizes = here.sizes(key)
    without = _without_each(codes, rows, len(sizes))
    names = iter(tracked([*quasi_identifiers, *sensitive], "exposure", "Measuring columns"))
    return Risk(
        records,
        everyone - records,
        tuple(quasi_identifiers),
        int(sizes.min()) if records else None,
        here.unique(key),
        len(sizes),
        _bands(sizes),
        tuple(_columns(islice(names, len(codes)), codes, without, here)),
        tuple(
            _among_others(frame, quasi_identifiers, name, whose)
            if name in quasi_identifiers
            else _sensitive(tuple(quasi_identifiers), key, frame[name].filter(kept), here)
            for name in names
        ),
        people=None if here.people is None else len(np.unique(here.people)),
    )


@dataclass(frozen=True, eq=False)
class _Whose:
    """What is counted: the records of each row, or its people where these are known."""

    counts: Ints | None
    people: Ints | None = None

    def of(self, kept: Bools) -> _Whose:
        """The same for some of the rows."""
        counts = None if self.counts is None else self.counts[kept]
        return _Whose(counts, None if self.people is None else self.people[kept])

    def sizes(self, key: Ints) -> Ints:
        """How many have each number."""
        if self.people is not None:
            classes, number = _classes(key)
            return people_in(classes, self.people, number)
        if self.counts is None:
            return pl.Series(key).unique_counts().cast(pl.Int64).to_numpy()
        return distinct_rows(pl.DataFrame({_KNOWN: key}), self.counts, _COUNT)[_COUNT].to_numpy()

    def unique(self, key: Ints) -> int:
        """How many records are the only one with their number; a person counts once."""
        sizes = self.sizes(key)
        if self.people is None:
            return int((sizes == 1).sum())
        return len(np.unique(self.people[sizes[_classes(key)[0]] == 1]))


def _classes(key: Ints) -> tuple[Ints, int]:
    """Equal ones with one number from 0, and how many there are."""
    found, number = np.unique(key, return_inverse=True)
    return number.reshape(-1).astype(np.int64), len(found)


def _codes(series: pl.Series) -> Ints:
    """A whole number for each value, from 0; a missing value is a value of its own."""
    values = series.cast(pl.Categorical).to_physical() if series.dtype == pl.String else series
    present = pl.DataFrame({_KNOWN: values.unique()}).with_row_index("code")
    found = pl.DataFrame({_KNOWN: values}).join(present, on=_KNOWN, how="left", nulls_equal=True, maintain_order="left")
    return found["code"].cast(pl.Int64).to_numpy()


def _packed(codes: Sequence[Ints], rows: int) -> Ints:
    """One number for each combination of codes."""
    return _Key(np.zeros(rows, dtype=np.int64)).joined(codes).numbers


@dataclass(frozen=True, eq=False)
class _Key:
    """A number for each combination of some columns; below `size`."""

    numbers: Ints
    size: int = 1

    def joined(self, codes: Sequence[Ints], most: int | None = None) -> _Key:
        """With the codes of more columns; `most` combinations are as many as there can be."""
        key, size = self.numbers, self.size
        for column in codes:
            values = int(column.max(initial=0)) + 1
            if size > _LARGEST // values:
                key, size = _Key(key, size).dense()
                if size == most:
                    break
            key, size = key * values + column, size * values
        return _Key(key, size)

    def dense(self) -> tuple[Ints, int]:
        """The same with the numbers that occur made consecutive, and how many there are."""
        key = _classes(self.numbers)[0] if len(self.numbers) <= _SORTED else _codes(pl.Series(self.numbers))
        return key, int(key.max(initial=0)) + 1


_SORTED = 1 << 16
"""Numbers up to which sorting is quicker than hashing."""
_SOME = 8
"""Columns from which it is worth while to see whether the others say as much as all together."""


def _without_each(codes: Sequence[Ints], rows: int, classes: int) -> Iterator[Ints]:
    """For each column, one number for each combination of all the others.

    Columns are left out by halves, so that each half is joined to the others once. Where all but some columns form as
    many classes as all of them, each of these columns can be left out; then the same array comes again.

    classes  how many all columns form
    """
    if codes:
        yield from _without(codes, _Key(np.zeros(rows, dtype=np.int64)), classes)


def _without(codes: Sequence[Ints], others: _Key, classes: int) -> Iterator[Ints]:
    if len(codes) >= _SOME:
        others = _Key(*others.dense())
    if len(codes) == 1 or (len(codes) >= _SOME and others.size == classes):
        for _ in codes:
            yield others.numbers
        return
    middle = len(codes) // 2
    yield from _without(codes[:middle], others.joined(codes[middle:], classes), classes)
    yield from _without(codes[middle:], others.joined(codes[:middle], classes), classes)


def _bands(sizes: Ints) -> tuple[SizeBand, ...]:
    limits = pairwise((*_EDGES, None))
    return tuple(_band(sizes, low, high) for low, high in limits if low is not None)


def _band(sizes: Ints, low: int, high: int | None) -> SizeBand:
    within = sizes[(sizes >= low) & (sizes < (np.inf if high is None else high))]
    return SizeBand(low, None if high is None else high - 1, len(within), int(within.sum()))


def _columns(
    names: Iterable[str], codes: Sequence[Ints], without: Iterable[Ints], whose: _Whose
) -> Iterator[ColumnRisk]:
    last: Ints | None = None
    unique, least, classes = 0, None, 0
    for name, column, others in zip(names, codes, without):
        own = np.bincount(column, whose.counts).astype(np.int64)
        records = int(own.sum())
        if others is not last:
            sizes = whose.sizes(others)
            last, unique, classes = others, whose.unique(others), len(sizes)
            least = int(sizes.min()) if records else None
        pairs = records * (records - 1)
        (wide,) = multipliable(records, own)
        separation = 1.0 - int((wide * (wide - 1)).sum()) / pairs if pairs else None
        distinction = len(own) / records if records else None
        yield ColumnRisk(name, len(own), distinction, separation, unique, least, classes)


def _among_others(frame: pl.DataFrame, quasi_identifiers: Sequence[str], name: str, whose: _Whose) -> SensitiveRisk:
    """The verdict on a sensitive quasi-identifier in the classes of the others; `*` is a value."""
    known = tuple(key for key in quasi_identifiers if key != name)
    kept = kept_rows(frame, known)
    key = _packed([_codes(frame[other].filter(kept)) for other in known], int(kept.sum()))
    return _sensitive(known, key, frame[name].filter(kept), whose.of(kept), [name])


def _sensitive(
    known: tuple[str, ...], key: Ints, column: pl.Series, whose: _Whose, generalized: Sequence[str] = ()
) -> SensitiveRisk:
    name = column.name
    rows = pl.DataFrame([pl.Series(_KNOWN, key), column])
    classes = classes_of(
        rows,
        [_KNOWN],
        [name],
        missing="category",
        generalized=generalized,
        counts=whose.counts,
        people=whose.people,
    )
    counts = classes.attributes[name]
    missing = int(counts.total[-1]) if None in counts.labels else 0
    return _sensitive_risk(name, known, counts, missing, column.dtype.is_numeric() and not missing)


def _sensitive_risk(name: str, known: tuple[str, ...], counts: Counts, missing: int, numeric: bool) -> SensitiveRisk:
    records, ground = counts.records, Ordered() if numeric else Equal()
    if not records:
        return SensitiveRisk(name, known, 0, 0, 0, None, None, None, None, None, None, ground.name, None, 0)
    largest = largest_count(counts)
    return SensitiveRisk(
        name,
        known,
        records,
        counts.domain_size,
        missing,
        int(_worst(diversity.score_distinct(counts, 1).value)),
        _worst(diversity.score_entropy(counts, 1).value),
        float((largest / counts.sizes).max()),
        float(largest.sum() / counts.sizes.sum()),
        float(counts.total.max() / records),
        -_worst(-closeness.score(counts, 1.0, ground).value),
        ground.name,
        -_worst(-closeness.score(counts, 1.0, Equal()).value),
        int(counts.sizes[counts.distinct == 1].sum()),
    )


def _worst(values: Floats | Ints) -> float:
    return float(values.min())
