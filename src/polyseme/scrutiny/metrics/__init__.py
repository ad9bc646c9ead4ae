"""Metrics: how much was lost."""

from polyseme.scrutiny.metrics.cross_tabulations import (
    METRICS,
    QueryError,
    as_grid,
    compare,
    covered,
    per_cell,
    query_error,
)
from polyseme.scrutiny.metrics.prediction import learning
from polyseme.scrutiny.metrics.risk import (
    average_class_size,
    discernibility,
    diversity_degrees,
    entropy_loss,
    information_losses,
    precision,
)

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
