"""Methods the papers compare with."""

from polyseme.baselines.random_table import random_table
from polyseme.baselines.rating import rating, rating_table, value_groups

__all__ = ["random_table", "rating", "rating_table", "value_groups"]
