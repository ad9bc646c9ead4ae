"""Generalization hierarchies: which coarser values may stand for a value, level by level.

A *rule* says how any value generalizes (`rules`, `listed`); a `Hierarchy` is a rule worked out for the values of one
column, as integers that a search can use; `declared` reads what a policy says, `fitting` brings a rule and a column
together.
"""

from polyseme.semantics.hierarchies.builders import Dates, Intervals, Prefixes, Rule, Suppression, TaxonomyRule
from polyseme.semantics.hierarchies.declaration import DeclaredHierarchy, read_hierarchy
from polyseme.semantics.hierarchies.hierarchy import TOP, Hierarchy, MissingAs
from polyseme.semantics.hierarchies.leaves import ColumnValues, Coverage, coverage, fit, values_of

__all__ = [
    "TOP",
    "ColumnValues",
    "Coverage",
    "Dates",
    "DeclaredHierarchy",
    "Hierarchy",
    "Intervals",
    "MissingAs",
    "Prefixes",
    "Rule",
    "Suppression",
    "TaxonomyRule",
    "coverage",
    "fit",
    "read_hierarchy",
    "values_of",
]
