"""What a policy asks of the method: where to start, which actions may be taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyseme.errors import PolicyError, Problem, nearest
from polyseme.methods import METHODS
from polyseme.parameters import validated

__all__ = ["ACTIONS", "CHANGE", "STARTS", "Asked", "Change"]

ACTIONS = ("merge", "generalize", "suppress-values", "suppress-records")
"""What may be done about a class on which a rule is effective, unless the policy allows less."""
CHANGE = "change-values"
STARTS = ("full-domain", "mondrian")
"""Methods that make the classes to start from."""
_WHERE = "$.method.rules"


@dataclass(frozen=True)
class Change:
    """Falsifying: a constant is added to the values of a sensitive attribute."""

    attribute: str
    by: float


@dataclass(frozen=True)
class Asked:
    """The method's parameters, checked.

    start     the method that makes the classes, with its parameters; None for the table as it is
    actions   what may be done
    change    whether, and by how much, values may be changed
    searched  how full-domain search generalizes, where that is one of the actions
    """

    start: tuple[str, Mapping[str, Any]] | None = None
    actions: tuple[str, ...] = ACTIONS
    change: Change | None = None
    searched: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Asked:
        """From the policy's words; every problem at once."""
        problems: list[Problem] = []
        start = _start(parameters.get("start"), problems)
        actions = parameters.get("actions")
        problems += _action_problems(actions)
        change = _change(parameters.get(CHANGE), problems)
        if problems:
            raise PolicyError(problems)
        searched = start[1] if start is not None and start[0] == "full-domain" else _defaults("full-domain")
        return cls(start, ACTIONS if actions is None else tuple(dict.fromkeys(actions)), change, searched)


def _defaults(name: str) -> Mapping[str, Any]:
    return validated("", METHODS[name].parameters, {})


def _start(given: Any, problems: list[Problem]) -> tuple[str, Mapping[str, Any]] | None:
    if given is None:
        return None
    where = f"{_WHERE}.start"
    if len(given) != 1 or next(iter(given)) not in STARTS:
        hint = f"start: {{{STARTS[0]}: {{}}}}, or leave it out for a table that has its classes already"
        problems.append(Problem(where, f"expected one of {', '.join(STARTS)}", hint))
        return None
    ((name, parameters),) = given.items()
    if not isinstance(parameters, Mapping | None):
        problems.append(Problem(f"{where}.{name}", "expected a mapping"))
        return None
    try:
        return name, validated(f"{where}.{name}", METHODS[name].parameters, parameters or {})
    except PolicyError as error:
        problems += error.problems
        return None


def _action_problems(actions: Any) -> Iterator[Problem]:
    where = f"{_WHERE}.actions"
    if actions is None:
        return
    for number, action in enumerate(actions):
        if action == CHANGE:
            hint = f"{CHANGE}: {{attribute: salary, by: 10}}, beside actions"
            yield Problem(f"{where}[{number}]", "it needs an attribute and a number", hint)
        elif action not in ACTIONS:
            yield Problem(f"{where}[{number}]", "unknown action", nearest(str(action), ACTIONS))


def _change(given: Any, problems: list[Problem]) -> Change | None:
    if given is None:
        return None
    where = f"{_WHERE}.{CHANGE}"
    by, attribute = given.get("by"), given.get("attribute")
    fits = isinstance(by, int | float) and not isinstance(by, bool) and abs(by) < 1e300 and by != 0
    if set(given) != {"attribute", "by"} or not isinstance(attribute, str) or not fits:
        hint = f"{CHANGE}: {{attribute: salary, by: 10}}"
        problems.append(Problem(where, "expected an attribute and a number other than 0", hint))
        return None
    return Change(attribute, by)
