"""k-map: every published combination of quasi-identifiers fits at least k people of a reference population.

    |{r in reference : r matches E}| >= k   for every class E

where
    E          an equivalence class of the published table
    reference  a table of the population with the same quasi-identifiers, as they are or generalized in the same way
    matches    the labels of E stand for the values of r: see `polyseme.tables.population`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polyseme.arrays import Ints
from polyseme.models.base import Score, Verdict, judge
from polyseme.tables.classes import classes_of, match_counts
from polyseme.tables.population import Meaning

__all__ = ["check_k_map", "score_k_map"]


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
) -> Verdict:
    """Does every class of `frame` match at least k rows of `reference`?

    counts    how many records each row of `frame` stands for; None for one
    meanings  what the labels of some columns stand for
    """
    classes = classes_of(frame, quasi_identifiers, counts=counts)
    return judge(
        "k-map",
        None,
        {"k": k},
        classes,
        classes.sizes,
        lambda: score_k_map(match_counts(frame, reference, quasi_identifiers, meanings), k),
    )
