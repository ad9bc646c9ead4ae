"""Methods the papers compare with."""

from polyseme.studies.baselines.random_table import random_table
from polyseme.studies.baselines.rating import rating, rating_table, value_groups

__all__ = ["random_table", "rating", "rating_table", "value_groups"]
