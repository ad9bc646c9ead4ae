"""k-anonymity: every class has at least k records, or records of at least k people where these are known.

    |E| >= k   for every class E

where
    E    an equivalence class
    k    the number of records among which a person must be hidden
"""

from __future__ import annotations

from polyseme.arrays import Ints
from polyseme.models.base import Score, Verdict, judge
from polyseme.tables.classes import Classes

__all__ = ["check", "score"]


def score(sizes: Ints, k: int, note: str = "") -> Score:
    """How many records each class has."""
    return Score(sizes, sizes >= k, k, at_least=True, note=note)


def check(classes: Classes, k: int) -> Verdict:
    """Does every class have at least k records, or people where these are counted?

    >>> from polyseme.tables.classes import classes_of
    >>> import polars as pl
    >>> check(classes_of(pl.DataFrame({"zip": ["1", "1", "2", "2", "2"]}), ["zip"]), k=2).worst
    2.0
    """
    note = f"{classes.suppressed:,} suppressed rows set aside" if classes.suppressed else ""
    return judge("k-anonymity", None, {"k": k}, classes, classes.sizes, lambda: score(classes.sizes, k, note))
