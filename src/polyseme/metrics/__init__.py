"""Metrics: how much was lost."""

from polyseme.metrics.cross_tabulations import METRICS, compare, covered, per_cell
from polyseme.metrics.groupings import (
    average_class_size,
    discernibility,
    diversity_degrees,
    entropy_loss,
    information_losses,
    precision,
)
from polyseme.metrics.learning import learning
from polyseme.metrics.queries import QueryError, as_grid, query_error

__all__ = [
    "METRICS",
    "QueryError",
    "as_grid",
    "average_class_size",
    "compare",
    "covered",
    "discernibility",
    "diversity_degrees",
    "entropy_loss",
    "information_losses",
    "learning",
    "per_cell",
    "precision",
    "query_error",
]
