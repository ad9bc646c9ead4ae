"""Methods the papers compare with."""

from polyseme.baselines.random_table import random_table
from polyseme.baselines.rating import rating

__all__ = ["random_table", "rating"]
