"""The one reader of promises: from the names and parameters of a policy or a manifest to typed promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.errors import PolicyError, Problem, nearest
from polyseme.parameters import read_parameters
from polyseme.promises.base import Promise
from polyseme.promises.collection import Promises, Unreadable
from polyseme.promises.registry import PROMISES

__all__ = ["read_promises", "stored_promises"]


def read_promises(given: Mapping[str, Any]) -> Promises:
    """The promises of one attribute; raises `PolicyError` with every problem, places relative to `protect`.

    Nothing is known of the domain yet: see `Promises.for_domain`.

    >>> read_promises({"ldp": {"epsilon": 2}}).items
    (Ldp(size=None, epsilon=2),)
    """
    promises, problems = _read(given)
    if not given:
        problems.append(Problem("", "nothing is promised", f"one of: {', '.join(PROMISES)}"))
    if problems:
        raise PolicyError(problems)
    return promises


def stored_promises(given: Mapping[str, Any]) -> Promises:
    """The promises of a manifest. What cannot be read is kept as it is, for the verifier to say so."""
    return _read(given)[0]


def _read(given: Mapping[str, Any]) -> tuple[Promises, list[Problem]]:
    items: list[Promise] = []
    unreadable: list[Unreadable] = []
    unknown: list[Problem] = []
    for name, values in given.items():
        if name not in PROMISES:
            unknown.append(Problem(str(name), "unknown promise", nearest(str(name), PROMISES)))
            unreadable.append(Unreadable(str(name), values if isinstance(values, Mapping) else {}))
            continue
        found, problems = _one(PROMISES[name], values)
        if found is not None:
            items.append(found)
        else:
            unreadable.append(Unreadable(name, values if isinstance(values, Mapping) else {}, tuple(problems)))
    promises = Promises(tuple(items), tuple(unreadable))
    faulty = [problem for item in unreadable for problem in item.problems]
    return promises, [*unknown, *faulty, *promises.conflicts(None)]


def _one(promise: type[Promise], values: object) -> tuple[Promise | None, list[Problem]]:
    if not isinstance(values, Mapping):
        example = ", ".join(item.shown() for item in promise.parameters if item.required)
        hint = f"for example {promise.name}: {{{example}}}"
        return None, [Problem(promise.name, "expected a mapping of parameters", hint)]
    fitting, problems = read_parameters(promise.name, promise.parameters, values)
    return (None, problems) if problems else (promise(**fitting), [])
