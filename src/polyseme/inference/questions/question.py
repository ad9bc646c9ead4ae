"""What can be asked of a release: everything that is wrong with a question is said at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from polyseme.inference.base import Estimator
from polyseme.inference.sets.registry import estimator_given
from polyseme.inference.sets.smooth import Smooth
from polyseme.kernel.errors import Problem, QuestionError, nearest
from polyseme.release import Column, Generalized, Grouped, Release, Sets
from polyseme.schema import Domain

__all__ = [
    "MOST_CELLS",
    "check_help",
    "check_size",
    "check_weighted",
    "domain_of",
    "has_domain",
    "size_note",
    "targets_of",
]

MANY_CELLS = 20_000
"""From here on it is said before the work how large a table is: about a second for the usual estimators."""
MOST_CELLS = 5_000_000
"""More cells need gigabytes and many minutes, and cannot be read."""


def targets_of(release: Release, of: Sequence[str], by: Sequence[str], using: Sequence[str] = ()) -> list[Column]:
    """The attributes asked for; all that is wrong with the question at once."""
    columns = {item.name: item for item in release.manifest.columns}
    protected = [name for name, item in columns.items() if isinstance(item, Sets | Grouped)]
    askable = [name for name, item in columns.items() if has_domain(item)]
    problems = []
    if not of:
        problems.append(Problem("of", "no attribute was asked for", f"protected attributes: {', '.join(askable)}"))
    for name in of:
        if name not in columns:
            problems.append(Problem("of", f"no attribute '{name}' in this release", _neighbour("of", name, askable)))
        elif name not in askable:
            problems.append(Problem("of", f"'{name}' is published {columns[name].in_words}", f"use it as --by {name}"))
    for name in by:
        if name in protected:
            words = "as sets" if isinstance(columns[name], Sets) else columns[name].in_words
            problems.append(Problem("by", f"'{name}' is published {words}", f"ask for it together: --of {name},..."))
        elif name in of and name in askable:
            problems.append(Problem("by", f"'{name}' is asked for already", "name it once"))
        elif name not in columns:
            untouched = [name for name in columns if name not in protected]
            problems.append(Problem("by", f"no attribute '{name}' in this release", _neighbour("by", name, untouched)))
    for name in using:
        if name in (*of, *by):
            problems.append(Problem("using", f"'{name}' is already in the question", "name it once"))
        elif name not in release.manifest.names:
            hint = _neighbour("using", name, release.manifest.names)
            problems.append(Problem("using", f"no attribute '{name}' in this release", hint))
    for place, names in (("of", of), ("by", by), ("using", using)):
        if len(set(names)) != len(names):
            problems.append(Problem(place, "the same attribute is asked for more than once"))
        problems += [
            Problem(place, f"'{name}' is also the name of a result column", "rename the attribute before publishing")
            for name in names
            if place != "using" and name in ("estimate", "stderr", "low", "high")
        ]
    targets = [columns[name] for name in of if name in askable]
    problems += _apart(targets)
    if using and not all(isinstance(item, Sets) for item in targets):
        problems.append(Problem("using", "columns can only help where sets were drawn", "use them as --by"))
    if problems:
        raise QuestionError(problems)
    return targets


def cells_of(targets: Sequence[Column]) -> int:
    """How many cells the table of some attributes has, for everybody together."""
    return math.prod(domain_of(item).size for item in targets)


def check_size(targets: Sequence[Column], groups: int = 1) -> None:
    """Raise where the requested table is too large to be of use, before memory runs out."""
    cells = cells_of(targets) * max(groups, 1)
    if cells > MOST_CELLS:
        by = f" in {groups:,} groups" if groups > 1 else ""
        raise QuestionError(
            Problem(
                "of",
                f"a table of {cells:,} cells{by}; at most {MOST_CELLS:,} are estimated",
                "ask for fewer attributes at a time, or publish coarser values",
            )
        )


def size_note(release: Release, of: Sequence[str]) -> str:
    """What to expect of a question that has very many cells, to be said before the work.

    Empty for others.
    """
    columns = {item.name: item for item in release.manifest.columns if has_domain(item)}
    cells = cells_of([columns[name] for name in of if name in columns])
    if cells <= MANY_CELLS:
        return ""
    return (
        f"{cells:,} cells for {release.manifest.records:,} records: this takes from seconds to minutes, and most cells "
        "will say little; fewer attributes at a time are answered faster and better"
    )


def _neighbour(place: str, name: str, choices: Sequence[str]) -> str:
    """What may be meant instead of a name; it may be a piece of one that holds commas."""
    whole = [choice for choice in choices if name in (part.strip() for part in choice.split(",")) and name != choice]
    if whole:
        return f"a name that holds a comma stands in double quotes: --{place} '\"{whole[0]}\"'"
    return nearest(name, choices)


def has_domain(column: Column) -> bool:
    """Whether a column can be asked for: the values that a record may have are known."""
    if isinstance(column, Generalized):
        return bool(column.stands_for)
    return isinstance(column, Sets | Grouped) or (column.attribute.role.is_secret and bool(column.attribute.domain))


def domain_of(column: Column) -> Domain:
    """The values that are asked for; of a generalized column those that its labels stand for."""
    if isinstance(column, Generalized):
        return Domain(_leaves(column))
    if column.attribute.domain is None:
        raise QuestionError(f"'{column.name}' has no domain")
    return column.attribute.domain


def _leaves(column: Generalized) -> tuple[str, ...]:
    """In the order of the label that stands for all of them; else numbers by their size, and texts as they come."""
    leaves = tuple(dict.fromkeys(leaf for texts in column.stands_for.values() for leaf in texts))
    whole = next((texts for texts in column.stands_for.values() if len(texts) == len(leaves)), None)
    if whole is not None:
        return tuple(whole)
    try:
        return tuple(sorted(leaves, key=float))
    except ValueError:
        return leaves


def _apart(targets: Sequence[Column]) -> list[Problem]:
    """Columns that cannot be asked for together: nothing is known about how one goes with the other."""
    sets = [item for item in targets if isinstance(item, Sets)]
    grouped = [item for item in targets if isinstance(item, Grouped)]
    others = [item for item in targets if not isinstance(item, Sets | Grouped)]
    coarse = [item for item in others if isinstance(item, Generalized)]
    pairs: list[tuple[Column, Column]] = [(item, other) for item in sets for other in (*grouped, *others)]
    pairs += [(item, other) for item in grouped for other in coarse]
    pairs += [(item, other) for place, item in enumerate(grouped) for other in grouped[place + 1 :]]
    return [
        Problem(
            "of",
            f"'{item.name}' ({item.in_words}) cannot be asked for together with '{other.name}' ({other.in_words})",
            "ask for one at a time" if isinstance(other, Grouped) else f"use --by {other.name}",
        )
        for item, other in pairs
    ]


def check_weighted(weight: str, targets: Sequence[Column], by: Sequence[str], using: Sequence[str]) -> None:
    """Raise unless survey weights can be summed up in this question."""
    hint = "--unweighted counts the records instead (unweighted=True)"
    problems = [
        Problem("of", f"'{item.name}' is published {item.in_words}, and only sets are weighted", hint)
        for item in targets
        if not isinstance(item, Sets)
    ]
    if using:
        problems.append(Problem("using", "no column helps with a weighted table", f"omit it, or: {hint}"))
    if weight in by:
        problems.append(Problem("by", f"'{weight}' is the survey weight itself", hint))
    if problems:
        raise QuestionError(problems)


def check_help(estimator: str | Estimator | None, long: bool) -> None:
    """Raise unless columns can help in this question."""
    chosen = estimator_given(estimator)
    problems = []
    if chosen is not None and chosen.name != Smooth.name:
        hint = f"omit --estimator, or use {Smooth.name}"
        problems.append(Problem("using", f"{chosen.name} uses the published sets only", hint))
    if long:
        problems.append(Problem("using", "in the long form no column can help", "publish the set form"))
    if problems:
        raise QuestionError(problems)
