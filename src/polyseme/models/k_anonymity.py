"""k-anonymity, k-map and (alpha, k)-anonymity: classes with enough records or people.

*k-anonymity*: every class has at least k records, or records of at least k people where these are known.

    |E| >= k   for every class E

where
    E    an equivalence class
    k    the number of records among which a person must be hidden

*k-map*: every published combination of quasi-identifiers fits at least k people of a reference population.

    |{r in reference : r matches E}| >= k   for every class E

where
    E          an equivalence class of the published table
    reference  a table of the population with the same quasi-identifiers, as they are or generalized in the same way
    matches    the labels of E stand for the values of r: see `polyseme.tables.people`

*(alpha, k)-anonymity*: k-anonymity, and no sensitive value has more than a share alpha of a class.

    |E| >= k   and   n(E, s) / |E| <= alpha   for every class E and value s

where
    n(E, s)  records of E with sensitive value s
    alpha    largest share, in (0, 1]

Wong, Li, Fu and Wang (2006).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.models.base import SLACK, Score, Verdict, judge
from polyseme.models.diversity import largest_count
from polyseme.tables.equivalence_classes import Classes, Counts, classes_of, match_counts
from polyseme.tables.people import Meaning

__all__ = ["check", "check_alpha_k", "check_k_map", "relaxed_alpha_k", "score", "score_alpha_k", "score_k_map"]


def score(sizes: Ints, k: int, note: str = "") -> Score:
    """How many records each class has."""
    return Score(sizes, sizes >= k, k, at_least=True, note=note)


def check(classes: Classes, k: int) -> Verdict:
    """Does every class have at least k records, or people where these are counted?

    >>> from polyseme.tables.equivalence_classes import classes_of
    >>> import polars as pl
    >>> check(classes_of(pl.DataFrame({"zip": ["1", "1", "2", "2", "2"]}), ["zip"]), k=2).worst
    2.0
    """
    note = f"{classes.suppressed:,} suppressed rows set aside" if classes.suppressed else ""
    return judge("k-anonymity", None, {"k": k}, classes, classes.sizes, lambda: score(classes.sizes, k, note))


def score_k_map(matches: Ints, k: int) -> Score:
    """How many people of the reference each class fits."""
    return Score(matches, matches >= k, k, at_least=True)


def check_k_map(
    frame: pl.DataFrame,
    reference: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    k: int,
    counts: Ints | None = None,
    meanings: Mapping[str, Meaning] | None = None,
    first: Ints | None = None,
) -> Verdict:
    """Does every class of `frame` match at least k rows of `reference`?

    counts    how many records each row of `frame` stands for; None for one
    meanings  what the labels of some columns stand for
    first     the row of a table in which each row that was counted occurs first
    """
    classes = classes_of(frame, quasi_identifiers, counts=counts, first=first)
    return judge(
        "k-map",
        None,
        {"k": k},
        classes,
        classes.sizes,
        lambda: score_k_map(match_counts(frame, reference, quasi_identifiers, meanings), k),
    )


def score_alpha_k(counts: Counts, alpha: float, k: int) -> Score:
    """The largest share of a value in each class."""
    share = largest_count(counts) / counts.sizes
    small = counts.sizes < k
    note = f"{int(small.sum()):,} classes have fewer than {k} records" if np.any(small) else ""
    return Score(share, (share <= alpha) & ~small, alpha, at_least=False, note=note)


def relaxed_alpha_k(counts: Counts, alpha: float, k: int) -> Bools:
    """Whether each class has k records, and enough values for shares of at most alpha."""
    return np.asarray((counts.sizes >= k) & (counts.distinct >= math.ceil(1.0 / alpha - SLACK)))


def check_alpha_k(counts: Counts, alpha: float, k: int) -> Verdict:
    """Is every class large enough, and no value too frequent? Worst is the largest share."""
    parameters = {"alpha": alpha, "k": k}
    return judge(
        "alpha-k-anonymity", counts.attribute, parameters, counts, counts.sizes, lambda: score_alpha_k(counts, alpha, k)
    )
