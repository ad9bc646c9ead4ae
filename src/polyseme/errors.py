"""Every exception of the package.

    PolysemeError
    ├── InvalidInput            what came in cannot be used (exit code 2)
    │   ├── PolicyError         the policy file or object
    │   ├── TableError          a table, a column or a value in it
    │   ├── ReleaseError        a release folder or its manifest
    │   ├── QuestionError       what was asked of a release (unknown attribute, estimator ..)
    │   └── ImpossibleError     no mechanism can keep the promise that was asked for
    └── InternalError           our own fault (exit code 3)

A broken privacy model is not an exception: it is a verdict.

An `InvalidInput` carries every problem that was found, not only the first. A problem never holds a value of
the original table: places, names, counts and declared domains only.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "ImpossibleError",
    "InternalError",
    "InvalidInput",
    "PolicyError",
    "PolysemeError",
    "Problem",
    "QuestionError",
    "ReleaseError",
    "TableError",
    "nearest",
]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what, and what would help."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class PolysemeError(Exception):
    """Root of the tree."""

    exit_code = 3


class InvalidInput(PolysemeError):
    """Input that cannot be used, with all its problems."""

    exit_code = 2

    def __init__(self, problems: str | Problem | Iterable[Problem], hint: str = "") -> None:
        if isinstance(problems, str):
            problems = Problem("", problems, hint)
        if isinstance(problems, Problem):
            problems = (problems,)
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class PolicyError(InvalidInput):
    """The policy is wrong."""


class TableError(InvalidInput):
    """The table does not fit."""


class ReleaseError(InvalidInput):
    """The release is missing, damaged, newer than this program, or in the way."""


class QuestionError(InvalidInput):
    """The question cannot be asked of this release."""


class ImpossibleError(InvalidInput):
    """No mechanism can keep this promise on this domain."""


class InternalError(PolysemeError):
    """A fault of the program itself."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """A hint that names the closest valid choice, or lists them all.

    >>> nearest("senstive", ["sensitive", "identifier"])
    "did you mean 'sensitive'?"
    """
    options = [str(choice) for choice in choices]
    close = difflib.get_close_matches(str(word), options, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    shown = ", ".join(options[:12]) + (", .." if len(options) > 12 else "")
    return f"one of: {shown}"
