"""Recipes: from what was promised for an attribute to the parameters of its mechanism."""

from polyseme.recipes.accuracy import expected_l2
from polyseme.recipes.choice import Choice, choose, choose_within, mechanism_for
from polyseme.recipes.closeness import closeness_of_epsilon
from polyseme.recipes.ground import ground_from
from polyseme.recipes.promises import PROMISES
from polyseme.recipes.reached import closeness_reached

__all__ = [
    "PROMISES",
    "Choice",
    "choose",
    "choose_within",
    "closeness_of_epsilon",
    "closeness_reached",
    "expected_l2",
    "ground_from",
    "mechanism_for",
]
