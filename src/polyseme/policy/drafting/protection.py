"""How a sensitive column may be protected: domain, distance, and a promise to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import InvalidInput, numbered
from polyseme.kernel.spelling import Label, different, written
from polyseme.methods import method_named
from polyseme.policy import Policy
from polyseme.policy.domains import FEWEST, quantile_edges
from polyseme.policy.drafting.observation import Looked
from polyseme.policy.drafting.roles import Recognized, taxonomy_of
from polyseme.policy.resolution import resolve
from polyseme.semantics.distances.taxonomy import load_taxonomy, taxonomy_names

__all__ = ["COMMENTS", "Tried", "promise_remark", "protecting_lines"]

_BINS = 14
"""Bins that a draft proposes: as many as the papers' income classes. A judgment."""
_CLIQUE = 1 / 3
"""The share of rows in one bin of equal width from which on edges follow the rows instead. A judgment."""
_FEW_EDGES = 4
"""Edges of three bins, the open ones with them: fewer bins than that say less than crowded ones. A judgment."""
_MANY = 60
"""A judgment: with more different numbers a column reads as a measurement, to be cut into bins, not as a code."""
_HARDLY_ANY = 0.05
"""The share of rows without a value that a draft leaves out; more of them are a category of their own. A judgment."""
_LISTED = (
    "# The values in the table. They are published: add those that can occur but did not, or a rare one",
    "# reveals that at least one person has it.",
)
_NOT_LISTED = "# Values that cannot be listed here: the domain comes from the table, and is published."
_DAYS = "# From the first to the last day in the table, which are published."
_STEPS = "# The table's range in round steps, which are published; distance is measured between middles."
_QUANTILES = (
    f"# Round edges with about equally many rows between them, at least {FEWEST}; they are published.",
    "# Distance is counted in bins.",
)
_SINGLE = "# A single value: there is nothing to hide it among. Left unprotected until there are more."
COMMENTS = frozenset({*_LISTED, _NOT_LISTED, _DAYS, _STEPS, *_QUANTILES, _SINGLE})
"""Lines of remarks about the values of a secret: they go when the column is none any more."""
_CATEGORIES = ("unknown", "missing", "(missing)", "(no value)")


Tried: TypeAlias = dict[tuple[str, int, int, tuple[tuple[int, ...], ...]], bool]
"""Whether a promise can be kept, by the taxonomy, l, d and the shape of the tree of the values."""


def protecting_lines(column: Looked, tried: Tried) -> list[str]:
    """What stands below the role of a sensitive column.

    tried  what was tried for other columns: each shape of a tree is planned once
    """
    if column.missing > _HARDLY_ANY * column.rows and not _binned(column) and not column.dates:
        return _with_category(column)
    lines = []
    if column.missing:
        lines.append(
            f"    missing: drop   # {numbered(column.missing, 'rows have none')}; or missing: {{category: unknown}}"
        )
    if _binned(column):
        return lines + _numeric_lines(column)
    if column.dates and not column.numeric:
        return [
            *lines,
            f"    {_DAYS}",
            f"    periods: {{every: year, from: {column.low_day}, to: {column.high_day}}}",
            *_promise_lines(int(column.high_day[:4]) - int(column.low_day[:4]) + 1, ordered=True),
        ]
    if _unlisted(column):
        return [*lines, *_unlisted_lines(), *_promise_lines(len(column.values), ordered=False)]
    values = _values(column)
    lines += _domain_lines(values)
    known = taxonomy_of(column)
    if known is not None and known.complete and (semantic := _taxonomy_lines(known, values, tried)):
        return lines + semantic
    remark = [] if known is None or known.complete else [_why_not(known)]
    return lines + remark + _promise_lines(len(values), ordered=column.numeric)


def _binned(column: Looked) -> bool:
    return column.numeric and column.wide and len(column.values) > _MANY


def _unlisted(column: Looked) -> bool:
    return column.many or (column.numeric and not column.finite)


def _values(column: Looked) -> list[Label]:
    ordered = sorted(column.values, key=lambda value: (float(value) if column.numeric else 0.0, str(value)))
    return list(different(ordered).values())


def _with_category(column: Looked) -> list[str]:
    """Missing values as a category where many rows have none: dropping them would bias a table."""
    taken = {str(value).strip().lower() for value in column.values}
    word = next(word for word in _CATEGORIES if word not in taken)
    lines = [f'    missing: {{category: "{word}"}}   # {numbered(column.missing, "rows have none")}; or missing: drop']
    if _unlisted(column):
        return [*lines, *_unlisted_lines(), *_promise_lines(len(column.values) + 1, ordered=False)]
    values = _values(column)
    return [*lines, *_domain_lines(values), *_promise_lines(len(values) + 1, ordered=False)]


def _domain_lines(values: list[Label]) -> list[str]:
    labels = json.dumps(values, ensure_ascii=False, default=str)
    return [*(f"    {line}" for line in _LISTED), f"    domain: {labels}"]


def _unlisted_lines() -> list[str]:
    return [f"    {_NOT_LISTED}"]


def _numeric_lines(column: Looked) -> list[str]:
    edges = _round_edges(column.low, column.high)
    spread = quantile_edges(column.numbers, _BINS) if _concentrated(column.numbers, edges) else ()
    if len(spread) > _FEW_EDGES:
        return _quantile_lines(spread)
    return [
        f"    {_STEPS}",
        f"    bins: {json.dumps(edges)}",
        *_promise_lines(len(edges) - 1, ordered=True, step=edges[1] - edges[0]),
    ]


def _concentrated(numbers: Floats, edges: list[float]) -> bool:
    """Whether bins of one width would hold almost everybody in a few of them."""
    return bool(np.histogram(numbers, edges)[0].max(initial=0) > _CLIQUE * len(numbers))


def _quantile_lines(edges: Sequence[float]) -> list[str]:
    """Quantile bins: for skewed numbers, bins of equal width would show little."""
    inner = ", ".join(str(int(edge)) if edge == int(edge) else f"{edge:.12g}" for edge in edges[1:-1])
    return [
        *(f"    {line}" for line in _QUANTILES),
        f"    bins: [-.inf, {inner}, .inf]",
        *_promise_lines(len(edges) - 1, ordered=True),
    ]


def _round_edges(low: float, high: float, wanted: int = _BINS) -> list[float]:
    """Round edges that cover a range in about `wanted` steps."""
    raw = (high - low) / wanted or 1.0
    scale = 10.0 ** np.floor(np.log10(raw))
    step = float(min((mark * scale for mark in (1, 2, 2.5, 5, 10)), key=lambda mark: abs(mark - raw)))
    first, last = np.floor(low / step), np.floor(high / step) + 1
    edges = [float(f"{index * step:.12g}") for index in np.arange(first, last + 1)]
    return [int(edge) if edge == int(edge) else edge for edge in edges]


# -- promises ------------------------------------------------------------------------------------------------------


def _taxonomy_lines(known: Recognized, values: list[Label], tried: Tried) -> list[str]:
    """The strictest promise with a taxonomy distance that these values allow; or nothing."""
    levels, shape = load_taxonomy(known.name).levels, _shape(known.name, values)
    for l in (3, 2):
        for d in range(len(levels) - 1, 1, -1):
            lines = [
                f"    distance: {{taxonomy: {known.name}}}   # it knows every value: {', '.join(levels)}",
                f"    protect: {{semantic-diversity: {{l: {l}, d: {d}}}}}   # {_apart(l, d, levels)}",
            ]
            setting = (known.name, l, d, shape)
            if setting not in tried:
                tried[setting] = _works(values, lines)
            if tried[setting]:
                return lines
    return []


def _shape(name: str, values: Sequence[Label]) -> tuple[tuple[int, ...], ...]:
    """The tree of some values without its names: the number of their category at each level."""
    paths = [load_taxonomy(name).find(written(value).strip()) or () for value in values]
    numbers: dict[tuple[str, ...], int] = {}
    return tuple(tuple(numbers.setdefault(path[level:], len(numbers)) for level in range(len(path))) for path in paths)


def _works(values: list[Label], lines: list[str]) -> bool:
    """Whether a promise can be kept on these values, and its sets be counted afterwards."""
    text = "\n".join(["attributes:", "  drafted:", "    role: sensitive", *_domain_lines(values), *lines])
    try:
        resolved = resolve(Policy.loads(text))
        made = method_named("decoys").plan(resolved, None)
    except InvalidInput:
        return False
    return all(item.feasible and item.identifiable for item in made.attributes)


def _why_not(known: Recognized) -> str:
    coverage = known.coverage
    lacking = numbered(len(coverage.unknown), "values are unknown to it") if coverage.unknown else "some mean the same"
    return (
        f"    # Almost all values are known to the taxonomy {known.name}, but {lacking}: correct them "
        f"(polyseme taxonomy check) to use it as the distance."
    )


def _promise_lines(size: int, ordered: bool, step: float = 1) -> list[str]:
    """A promise that the domain can carry: feasible, and estimable afterwards."""
    if size < 2:
        return [
            f"    {_SINGLE}",
            "    protect: {diversity: {l: 1}}",
        ]
    if size < 4:
        return ["    protect: {ldp: {epsilon: 1.0, size: 1}}   # too few values for sets: randomized response"]
    if not ordered or size < 8:
        return [
            f"    protect: {{diversity: {{l: {min(3, size - 1)}}}}}   # add a distance to keep candidates far apart"
        ]
    distance = "value" if step != 1 else "rank"
    d = step * 2
    return [
        f"    distance: {{line: {distance}}}",
        f"    protect: {{semantic-diversity: {{l: 3, d: {d:.12g}}}}}   # {_apart(3, d)}",
    ]


def _apart(l: int, d: float, levels: Sequence[str] = ()) -> str:
    """What a promise of distant candidates means."""
    if levels:
        return f"{l} candidates, no two of the same {levels[int(d) - 1]}"
    return f"{l} candidates, at least {d:.12g} apart"


def promise_remark(entry: Mapping[str, Any]) -> str | None:
    """What a draft says beside a promise; None where that repeats no number."""
    distance, protect = entry.get("distance"), entry.get("protect")
    asked = protect.get("semantic-diversity") if isinstance(protect, Mapping) else None
    if not isinstance(asked, Mapping) or not isinstance(distance, Mapping):
        return None
    l, d = asked.get("l"), asked.get("d")
    if not isinstance(l, int) or isinstance(d, bool) or not isinstance(d, int | float):
        return None
    name = distance.get("taxonomy")
    if "line" in distance or name not in taxonomy_names():
        return _apart(l, d) if "line" in distance else None
    levels = load_taxonomy(str(name)).levels
    return _apart(l, d, levels) if d == int(d) and 1 <= d <= len(levels) else None
