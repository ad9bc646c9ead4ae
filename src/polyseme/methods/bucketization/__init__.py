"""Bucketization: records in groups of at least l, with no two values too near to each other.

    |G| >= l,   u and v compatible for any two records of G with values u and v      for every group G

where
    G           a group; it is published with the values of its records, in no order
    compatible  different (Anatomy), at least d apart ((l, d)), or more than e apart ((l, e)): see `compositions.py`

What cannot be grouped is suppressed. `exact` suppresses as few records as any grouping would, and among those makes the
most groups it can; where similarity is not transitive it may miss that by `gap` records, which is proved. `mbf` is the
maximal-bucket-first algorithm of the (l, e) paper. No group has 2 l records or more under `exact`. With `left_out` what
is suppressed has several values too, so that being left out does not reveal one (`bucketize.py`).

How many records of which kind go into which group follows from counts of values alone (`compose`). Which record takes
which place is drawn (`bucketize`), so that the order of the table says nothing. Where no machine holds all records, it
follows from ranks in an order that was drawn (`Places.group_of`).

Memory: about 60 bytes for each record.

Xiao and Tao (2006), Anatomy; Wang, Han, Wang and Wang (2013), (l, e)-diversity.
"""

from polyseme.methods.bucketization.bucketize import Algorithm, Grouping, bucketize, compose, left_by_kind, planned
from polyseme.methods.bucketization.compositions import dissimilar, distinct, largest_set
from polyseme.methods.bucketization.seats import Places, Ranks, first_ranks

__all__ = [
    "Algorithm",
    "Grouping",
    "Places",
    "Ranks",
    "bucketize",
    "compose",
    "dissimilar",
    "distinct",
    "first_ranks",
    "largest_set",
    "left_by_kind",
    "planned",
]
