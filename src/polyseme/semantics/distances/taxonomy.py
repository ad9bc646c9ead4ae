"""Taxonomies of the package: trees of public classifications, found by code or name.

Each is a small table of ours in `data/`: the upper levels only. Codes below them are found by their structure, so that
`J45.0` has its place without a list of every code. See `taxonomy_names` for what there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyseme.kernel.errors import PolicyError, Problem
from polyseme.kernel.spelling import Label, spellings, written
from polyseme.semantics.distances.tree import Measure, TreeDistance
from polyseme.semantics.taxonomies import Node, Taxonomy, load_taxonomy, named, taxonomy_names

__all__ = ["Coverage", "Node", "Taxonomy", "check", "load_taxonomy", "taxonomy_distance", "taxonomy_names"]


@dataclass(frozen=True)
class Coverage:
    """Which of some values a taxonomy knows."""

    taxonomy: str
    found: tuple[str, ...]
    """Different values that have a place."""
    unknown: tuple[str, ...]
    """Different values that have none."""
    repeated: tuple[tuple[str, ...], ...]
    """Groups of values that are words for one and the same place, such as J450 and J45.0."""
    found_records: int
    unknown_records: int

    @property
    def complete(self) -> bool:
        """Whether every value has a place of its own."""
        return not self.unknown and not self.repeated


def check(name: str, values: Iterable[Label]) -> Coverage:
    """How a taxonomy covers `values`, which may repeat: then records are counted as well.

    >>> check("icd10", ["J45.0", "J45.0", "flu"]).unknown
    ('flu',)
    """
    taxonomy = load_taxonomy(name)
    counts = _counted(Counter(map(written, values)))
    paths = {label: taxonomy.find(label) for label in counts}
    unknown = [label for label, path in paths.items() if path is None]
    words = _words(paths.items())
    return Coverage(
        taxonomy=name,
        found=tuple(label for labels in words for label in labels),
        unknown=tuple(unknown),
        repeated=tuple(tuple(labels) for labels in words if len(labels) > 1),
        found_records=sum(counts.values()) - sum(counts[label] for label in unknown),
        unknown_records=sum(counts[label] for label in unknown),
    )


def taxonomy_distance(name: str, values: Sequence[Label], measure: Measure = "ancestor") -> TreeDistance:
    """The tree distance of a taxonomy over the domain `values`, in their order.

    Every value gets the full number of levels: one that names a category above the lowest level counts as a leaf below
    it. So all are equally deep, and both measures agree.

    >>> import numpy as np
    >>> taxonomy_distance("icd10", ["J45.0", "J45.1", "J44.9", "K02"]).between(np.array([0]), np.array([1, 2, 3]))
    array([1., 2., 4.])
    """
    taxonomy = load_taxonomy(name)
    labels = [written(value) for value in values]
    paths = [taxonomy.find(name) for name in spellings(values)]
    problems = []
    missing = [label for label, path in zip(labels, paths) if path is None]
    if missing:
        what = f"{len(missing)} of {len(labels)} values are not in the taxonomy {name}: {named(missing)}"
        problems.append(Problem("", what, f"for '{missing[0]}': {taxonomy.hint(missing[0])}"))
    repeated = [same for same in _words(zip(labels, paths)) if len(same) > 1]
    if repeated:
        shared = (
            f"{sum(map(len, repeated))} of {len(labels)} values share their place in the taxonomy {name} with another"
        )
        what = f"{shared}: {named([' = '.join(same) for same in repeated])}"
        problems.append(Problem("", what, "values at distance zero count as one value: keep one of them"))
    if problems:
        raise PolicyError(problems)
    highest = [(node.code, "*") for node in taxonomy.children()]
    return TreeDistance.from_paths([(*path, "*") for path in paths if path is not None], measure, highest)


def _counted(texts: Mapping[str, int]) -> dict[str, int]:
    """How many records have each value, by its spelling."""
    counts: dict[str, int] = {}
    for name, records in zip(spellings(texts), texts.values()):
        counts[name] = counts.get(name, 0) + records
    return counts


def _words(paths: Iterable[tuple[str, tuple[str, ...] | None]]) -> list[list[str]]:
    """The values at each place, of those that have one."""
    words: dict[tuple[str, ...], list[str]] = {}
    for label, path in paths:
        if path is not None:
            words.setdefault(path, []).append(label)
    return list(words.values())
