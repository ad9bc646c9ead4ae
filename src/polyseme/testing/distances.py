"""Laws of distances, judged on every pair of values, and how a broken law is reported.

For domains of up to some hundred values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.semantics.distances import Distance, distance_from
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

__all__ = [
    "agree",
    "broadcasts",
    "check_distance",
    "compatible_pairs",
    "finds_clusters",
    "hold",
    "ignores_the_order_of_values",
    "is_a_distance",
    "pairs",
    "shows_no_values",
    "structure_agrees",
    "survives_json",
    "thresholds",
]

Numbers: TypeAlias = Floats | Ints | Bools | Sequence[float] | float
Restore = Callable[[Mapping[str, Any], int], Distance]


def check_distance(
    distance: Distance,
    make: Callable[[Sequence[int]], Distance] | None = None,
    restore: Restore = distance_from,
) -> None:
    """Every law of distances.

    make     builds the same distance over the values in another order, given as codes; without it, one law is left out
    restore  builds a distance from its parameters; the registered kinds unless given
    """
    is_a_distance(distance)
    broadcasts(distance)
    shows_no_values(distance)
    survives_json(distance, restore)
    for threshold in thresholds(distance):
        structure_agrees(distance, threshold)
    finds_clusters(distance)
    if make is not None:
        ignores_the_order_of_values(make, distance.size)


def pairs(distance: Distance) -> Floats:
    """All pairwise distances: (F, F)."""
    codes = np.arange(distance.size)
    return distance.between(codes[:, None], codes[None, :])


def thresholds(distance: Distance) -> list[float]:
    """Every distance that occurs, the floats just beside it, and points between and beyond."""
    occurring = np.unique(pairs(distance))
    beside = [np.nextafter(occurring, -np.inf), np.nextafter(occurring, np.inf), occurring + 0.4]
    return [*np.concatenate([occurring, *beside]).tolist(), -1.0, 0.3, 0.1 + 0.2, 1.0, 1e9, np.inf]


def is_a_distance(distance: Distance) -> None:
    """Symmetric, finite, and zero only between a value and itself."""
    matrix, size = pairs(distance), distance.size
    hold(matrix.dtype == np.float64, "distances are doubles")
    hold(matrix.shape == (size, size), "`between` gives one number for each pair of codes")
    agree(matrix, matrix.T, "a distance is symmetric")
    hold(np.all(np.diag(matrix) == 0), "a value has distance zero from itself")
    hold(np.all(matrix[~np.eye(size, dtype=bool)] > 0), "different values have a positive distance")
    hold(np.all(np.isfinite(matrix)), "distances are finite")


def broadcasts(distance: Distance) -> None:
    """`between` and `matrix` say the same, whatever the shapes of the codes."""
    first = distance.between(np.array([0]), np.arange(distance.size))
    agree(first, pairs(distance)[0], "`between` broadcasts its arguments")
    agree(distance.matrix(), pairs(distance), "`matrix` has the distances of `between`")


def shows_no_values(distance: Distance) -> None:
    """The text form gives the kind and the number of values only."""
    expected = f"<{type(distance).__name__} over {distance.size:,} values>"
    hold(repr(distance) == expected, f"the text form of a distance is {expected}")


def survives_json(distance: Distance, restore: Restore = distance_from) -> None:
    """`parameters` have the kind as only key, are plain JSON, and give the same distance."""
    parameters = json.loads(json.dumps(distance.parameters(), allow_nan=False))
    hold(list(parameters) == [distance.kind], "the only key of `parameters` is the kind of the distance")
    again = restore(parameters, distance.size)
    hold(type(again) is type(distance), "a distance restored from its parameters has the same class")
    hold(again.parameters() == distance.parameters(), "a distance restored from its parameters has the same ones")
    agree(pairs(again), pairs(distance), "a distance restored from its parameters is the same")


def structure_agrees(distance: Distance, threshold: float) -> None:
    """The structure at a threshold has exactly the pairs at least so far apart, well formed."""
    structure = distance.structure(threshold)
    expected = pairs(distance) >= threshold
    np.fill_diagonal(expected, False)
    hold(structure.size == distance.size, f"the structure at {threshold!r} has as many values as the distance")
    agree(compatible_pairs(structure), expected, f"the structure says what the distance says at {threshold!r}")
    if isinstance(structure, Line):
        hold(np.all(np.diff(structure.ahead) >= 0), "`ahead` of a line ascends")
        hold(np.all(structure.ahead > np.arange(structure.size)), "`ahead` of a line looks ahead")
        hold(sorted(structure.order) == list(range(structure.size)), "`order` of a line has every code once")
    if isinstance(structure, Circle):
        hold(np.all(np.diff(structure.positions) > 0), "positions on a circle ascend")
        hold(structure.positions[0] >= 0, "positions on a circle are not negative")
        hold(structure.positions[-1] < structure.length, "positions on a circle lie within its length")
    if isinstance(structure, Clusters):
        labels = sorted(np.unique(structure.labels))
        hold(labels == list(range(structure.count)), "clusters are numbered from zero without gaps")


def finds_clusters(distance: Distance) -> None:
    """Where being close is an equivalence, the structure is not a mere graph.

    Clusters are always an equivalence.
    """
    for threshold in thresholds(distance):
        close = pairs(distance) < threshold
        np.fill_diagonal(close, True)
        equivalence = np.array_equal((close.astype(int) @ close) > 0, close)
        structure = distance.structure(threshold)
        hold(equivalence or not isinstance(structure, Clusters), f"clusters at {threshold!r} are an equivalence")
        taken = equivalence and isinstance(structure, Graph)
        hold(not taken, f"clusters at {threshold!r} are recognized and not given as a graph")


def ignores_the_order_of_values(make: Callable[[Sequence[int]], Distance], size: int) -> None:
    """The same values in another order have the same distances and the same structure."""
    order = experiment(3).permutation(size)
    here, there = make(range(size)), make(order.tolist())
    agree(pairs(there), pairs(here)[np.ix_(order, order)], "distances do not depend on the order of the values")
    for threshold in thresholds(here):
        expected = compatible_pairs(here.structure(threshold))[np.ix_(order, order)]
        law = f"the structure at {threshold!r} does not depend on the order of the values"
        agree(compatible_pairs(there.structure(threshold)), expected, law)


def compatible_pairs(structure: Structure) -> Bools:
    """Which pairs may stand together, read off a structure alone."""
    size = structure.size
    matrix = np.zeros((size, size), dtype=bool)
    if isinstance(structure, Line):
        for place in range(size):
            later = structure.order[structure.ahead[place] :]
            matrix[structure.order[place], later] = matrix[later, structure.order[place]] = True
    elif isinstance(structure, Circle) and structure.spacing is not None:
        steps = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :])
        matrix[np.ix_(structure.order, structure.order)] = np.minimum(steps, size - steps) >= structure.spacing
    elif isinstance(structure, Circle):
        straight = np.abs(structure.positions[:, None] - structure.positions[None, :])
        far = np.minimum(straight, structure.length - straight) >= structure.threshold
        matrix[np.ix_(structure.order, structure.order)] = far
    elif isinstance(structure, Clusters):
        matrix = structure.labels[:, None] != structure.labels[None, :]
    else:
        matrix = structure.compatible.copy()
    np.fill_diagonal(matrix, False)
    return matrix


def hold(kept: bool | np.bool_, law: str) -> None:
    """Raise unless the law was kept.

    >>> hold(1 > 2, "one is more than two")
    Traceback (most recent call last):
    AssertionError: broken law: one is more than two
    """
    if not kept:
        raise AssertionError(f"broken law: {law}")


def agree(found: Numbers, expected: Numbers, law: str, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Raise unless two arrays are equal, or as near as the tolerances say."""
    if rtol or atol:
        one, other = (np.asarray(numbers, dtype=np.float64) for numbers in (found, expected))
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=f"broken law: {law}")
    else:
        np.testing.assert_array_equal(found, expected, err_msg=f"broken law: {law}")
