"""A policy's declaration of a hierarchy: checked without files, then opened as a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from polyseme.kernel.documents import Folder
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, nearest
from polyseme.semantics.hierarchies.builders import (
    Dates,
    Intervals,
    Prefixes,
    Rule,
    Suppression,
    TaxonomyRule,
    from_tree,
    read_listed,
)
from polyseme.semantics.hierarchies.hierarchy import MissingAs

__all__ = ["DeclaredHierarchy", "read_hierarchy"]

_HINT = "hierarchy: FILE.csv, suppress, {intervals: [5, 10, 20]}, {dates: [month, year]} or {prefix: 5}"
_UNKNOWN_HINT = "{taxonomy: countries, unknown: other}"


@dataclass(frozen=True)
class DeclaredHierarchy:
    """How a column is to be generalized.

    rule     what needs no file
    file     the file that lists the hierarchy
    missing  what a missing value is
    """

    rule: Rule | None = None
    file: str = ""
    missing: MissingAs = "leaf"

    def open(self, folder: Folder) -> Rule:
        """The rule; a file is read now."""
        return self.rule if self.rule is not None else read_listed(folder.file(self.file))


def read_hierarchy(given: Any) -> DeclaredHierarchy:
    """From what stands under `hierarchy` in a policy; every problem at once.

    >>> read_hierarchy({"intervals": [5, 10], "missing": "wildcard"})
    DeclaredHierarchy(rule=Intervals(widths=(5, 10)), file='', missing='wildcard')
    """
    if isinstance(given, str):
        given = {"suppress": True} if given == "suppress" else {"file": given}
    if not isinstance(given, Mapping):
        raise PolicyError("expected the name of a file or a mapping", _HINT)
    given = {str(key): value for key, value in given.items()}
    known = [*_KINDS, "missing", "unknown"]
    problems = [Problem(key, "unknown key", nearest(key, known)) for key in given if key not in known]
    kinds = [kind for kind in _KINDS if kind in given]
    if len(kinds) != 1 and not problems:
        problems.append(Problem("", f"expected one of {', '.join(_KINDS)}, found {len(kinds)}", _HINT))
    missing = given.get("missing", "leaf")
    if missing not in get_args(MissingAs):
        problems.append(Problem("missing", "expected leaf or wildcard"))
    unknown = given.get("unknown")
    if unknown is not None and (not isinstance(unknown, str) or not unknown or "taxonomy" not in given):
        problems.append(Problem("unknown", "expected a name for what a taxonomy does not know", _UNKNOWN_HINT))
    declared = DeclaredHierarchy()
    for kind in kinds:
        try:
            declared = _KINDS[kind](given[kind])
            if isinstance(declared.rule, TaxonomyRule) and isinstance(unknown, str):
                declared = DeclaredHierarchy(TaxonomyRule(declared.rule.name, unknown))
        except InvalidInput as error:
            problems += [_under(kind, problem) for problem in error.problems]
    if problems:
        raise PolicyError(problems)
    return DeclaredHierarchy(declared.rule, declared.file, cast("MissingAs", missing))


def _under(kind: str, problem: Problem) -> Problem:
    joint = "" if not problem.where or problem.where.startswith("[") else "."
    return Problem(f"{kind}{joint}{problem.where}", problem.what, problem.hint)


def _file(given: Any) -> DeclaredHierarchy:
    if not isinstance(given, str) or not given:
        raise PolicyError("expected the name of a file")
    return DeclaredHierarchy(file=given)


def _tree(given: Any) -> DeclaredHierarchy:
    return _file(given) if isinstance(given, str) else DeclaredHierarchy(from_tree(given))


def _taxonomy(given: Any) -> DeclaredHierarchy:
    if not isinstance(given, str):
        raise PolicyError("expected the name of a taxonomy", "see: polyseme taxonomy list")
    return DeclaredHierarchy(TaxonomyRule(given))


def _intervals(given: Any) -> DeclaredHierarchy:
    widths = given if isinstance(given, list) else [given]
    if not all(isinstance(width, int | float) and not isinstance(width, bool) for width in widths):
        raise PolicyError("expected widths, as numbers", "intervals: [5, 10, 20]")
    return DeclaredHierarchy(Intervals(tuple(widths)))


def _dates(given: Any) -> DeclaredHierarchy:
    return DeclaredHierarchy(Dates(tuple(given) if isinstance(given, list) else (given,)))


def _prefix(given: Any) -> DeclaredHierarchy:
    return DeclaredHierarchy(Prefixes(tuple(given)) if isinstance(given, list) and given else Prefixes.masking(given))


def _suppress(given: Any) -> DeclaredHierarchy:
    if given is not True and given is not None:
        raise PolicyError("expected nothing, or true", "hierarchy: suppress")
    return DeclaredHierarchy(Suppression())


_KINDS: Mapping[str, Callable[[Any], DeclaredHierarchy]] = {
    "file": _file,
    "tree": _tree,
    "taxonomy": _taxonomy,
    "intervals": _intervals,
    "dates": _dates,
    "prefix": _prefix,
    "suppress": _suppress,
}
"""Each word for a source of a hierarchy, with what reads it."""
