"""Which reading of Rating is the one the sensitive quasi-identifier paper measured.

    python benchmarks/rating_readings.py [FOLDER]

The paper's own setting: all 15 attributes of the 45,222 complete Adult records, continuous ones in classes; l for every
attribute, or one less than its number of values; questions about q' attributes chosen at random. Printed is the mean L2
distance of the reconstructed tables as a share of that of ValueAdding, and ValueAdding's as a share of Random's. The
paper says that Rating and ValueAdding have similar distances, both about half of Random's when l is small.

groups   the values of each attribute in fixed groups of l, records point to groups (AT and IDT)
drawn    each set filled with values drawn from other records
parted   records parted into groups of l different values, attribute by attribute, all with the set of their group
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from adult import records

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.papers.baselines import random_table, rating, rating_table, value_groups
from polyseme.semantics.distances.base import Clusters

CLASSES = {0: (5, 90), 2: (50_000, 600_000), 10: (1_000, 20_000), 11: (250, 3_000), 12: (5, 99)}
"""Continuous columns: the width of their classes, and where the last one begins."""
LS, ATTRIBUTES, QUESTIONS = (2, 3, 5), (1, 2, 3), 30


def columns(folder: Path) -> list[Ints]:
    """Codes of all fifteen attributes."""
    rows = records(folder)
    coded = []
    for place in range(15):
        texts = np.array([row[place].rstrip(".") for row in rows])
        if place in CLASSES:
            width, last = CLASSES[place]
            texts = np.minimum(texts.astype(np.int64), last) // width
        coded.append(np.unique(texts, return_inverse=True)[1].astype(np.int64))
    return coded


def parted(codes: Ints, l: int, generator: np.random.Generator) -> Ints:
    """The set of each record when the l most frequent values left always make a group (as Anatomy does).

    Records left over take the set of some group that holds their value.
    """
    waiting = {int(value): list(generator.permutation(np.flatnonzero(codes == value))) for value in np.unique(codes)}
    heap = [(-len(rows), value) for value, rows in waiting.items()]
    heapq.heapify(heap)
    sets, holding = np.empty((len(codes), l), dtype=np.int64), {}
    while len(heap) >= l:
        taken = [heapq.heappop(heap)[1] for _ in range(l)]
        for value in taken:
            sets[waiting[value].pop()] = taken
            holding[value] = taken
        for value in taken:
            if waiting[value]:
                heapq.heappush(heap, (-len(waiting[value]), value))
    for value, rows in waiting.items():
        sets[rows] = holding.get(value, [value] * l)
    return sets


def shared_evenly(sets: list[Ints], shape: tuple[int, ...]) -> Floats:
    """Every record shared out evenly over the combinations of its candidates (Equation 18)."""
    table = np.zeros(int(np.prod(shape)))
    for members in product(*(range(part.shape[1]) for part in sets)):
        flat = np.ravel_multi_index(tuple(part[:, place] for part, place in zip(sets, members)), shape)
        table += np.bincount(flat, minlength=len(table))
    return table.reshape(shape) / np.prod([part.shape[1] for part in sets])


def publish(coded: list[Ints], sizes: list[int], l: int) -> dict[str, Callable[[tuple[int, ...]], Floats]]:
    """Each method's table of the attributes asked for."""
    generator, stream = experiment(l), SystemStream.seeded(l)
    ls = [min(l, size - 1) for size in sizes]
    plain = [Mechanism(make_design("balanced", Clusters(np.arange(size)), k)) for size, k in zip(sizes, ls)]
    sets = {
        "valueadding": [mechanism.sample(codes, stream) for mechanism, codes in zip(plain, coded)],
        "drawn": [rating(codes, size, k, stream) for codes, size, k in zip(coded, sizes, ls)],
        "parted": [parted(codes, k, generator) for codes, k in zip(coded, ls)],
    }
    groups = [value_groups(np.bincount(codes, minlength=size), k) for codes, size, k in zip(coded, sizes, ls)]
    made: dict[str, Callable[[tuple[int, ...]], Floats]] = {
        name: lambda places, chosen=chosen: shared_evenly([chosen[j] for j in places], tuple(sizes[j] for j in places))
        for name, chosen in sets.items()
    }
    made["groups"] = lambda places: rating_table([coded[j] for j in places], [groups[j] for j in places])
    made["random"] = lambda places: random_table(len(coded[0]), tuple(sizes[j] for j in places), generator)
    return made


def main(folder: Path) -> None:
    coded = columns(folder)
    sizes = [int(codes.max()) + 1 for codes in coded]
    print(f"{'l':>2} {'q':>2} {'groups':>9} {'drawn':>9} {'parted':>9}   of ValueAdding, which is .. of Random")
    for l in LS:
        methods = publish(coded, sizes, l)
        for q in ATTRIBUTES:
            generator, found = experiment(q), dict.fromkeys(methods, 0.0)
            for _ in range(QUESTIONS):
                places = tuple(int(place) for place in generator.choice(15, q, replace=False))
                shape = tuple(sizes[j] for j in places)
                flat = np.ravel_multi_index(tuple(coded[j] for j in places), shape)
                truth = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
                for name, table in methods.items():
                    found[name] += float(np.sqrt(((table(places) - truth) ** 2).sum()))
            shares = [found[name] / found["valueadding"] for name in ("groups", "drawn", "parted")]
            last = found["valueadding"] / found["random"]
            print(f"{l:>2} {q:>2} " + " ".join(f"{share:>9.2f}" for share in shares) + f"   {last:.2f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/adult"))
