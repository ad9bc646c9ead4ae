"""Strata: records with the same prior knowledge, and the mechanism made for them.

A policy can declare that some values of a protected attribute are impossible where untouched attributes have certain
values, and that some are likelier there than elsewhere. The values that are impossible for a record are those of every
constraint that applies to it. Records with the same impossible values and the same distributions form a *stratum*, and
each stratum has a mechanism over the values that are left. So no decoy gives itself away.
"""

from polyseme.strata.stratum import STRATA_LIMIT, Found, Key, Placing, Strata, Stratum, by_stratum

__all__ = ["STRATA_LIMIT", "Found", "Key", "Placing", "Strata", "Stratum", "by_stratum"]
