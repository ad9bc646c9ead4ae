"""The small structures of the design tests, and crowds from their definition."""

import sys
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "designs"))

from design_structures import (
    STRUCTURES,
    circle_of,
    compatible,
    even_circle,
    line_of,
    random_graph,
    valid_sets,
)

__all__ = [
    "STRUCTURES",
    "circle_of",
    "compatible",
    "even_circle",
    "line_of",
    "maximal_cliques",
    "random_graph",
    "valid_sets",
]


def maximal_cliques(structure):
    """Sets of mutually incompatible values that no other one contains, by going through all subsets."""
    pairs, size = compatible(structure), structure.size
    cliques = []
    for mask in range(1, 2**size):
        values = [value for value in range(size) if mask >> value & 1]
        if not any(pairs[one, other] for one, other in combinations(values, 2)):
            cliques.append(frozenset(values))
    top = sorted(cliques, key=len, reverse=True)
    found: set[frozenset[int]] = set()
    for crowd in top:
        if not any(crowd < larger for larger in found):
            found.add(crowd)
    return found
