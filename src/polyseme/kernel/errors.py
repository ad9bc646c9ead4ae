"""Every exception and warning of the package.

    PolysemeError
    ├── InvalidInput            what came in cannot be used (exit code 2)
    │   ├── PolicyError         the policy file or object
    │   ├── TableError          a table, a column or a value in it
    │   ├── ReleaseError        a release folder or its manifest
    │   ├── QuestionError       what was asked of a release (unknown attribute, estimator ...)
    │   ├── CampaignError       a campaign document, an answer to it or what became of sending one
    │   ├── PluginError         a plugin that cannot be loaded, or claims a name that is taken
    │   ├── CollectionError     a campaign, a report store or a token that cannot be used like this
    │   │   └── StoreUnavailable    the store does not answer now; asking again is safe
    │   ├── ChannelError        what came through the anonymous channel, or a token, that cannot be used
    │   ├── RiskError           what must not be published: a model does not hold, or the ledger says so (exit code 1)
    │   └── ImpossibleError     no mechanism can keep the promise that was asked for
    ├── Cancelled               a caller stopped the work (see `cancellation`)
    └── InternalError           our own fault (exit code 3)

    PolysemeWarning             what the data holder should hear
    ├── PrivacyWarning          what others may learn from the release
    └── PolicyWarning           what the policy comes to, perhaps other than it was meant

A broken privacy model is not an exception: it is a verdict.

An `InvalidInput` carries every problem that was found, not only the first. A problem never holds a value of
the original table in its text: places, names, counts and declared domains only.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

from polyseme.kernel.sightings import Numbering, Sightings

__all__ = [
    "CampaignError",
    "Cancelled",
    "ChannelError",
    "CollectionError",
    "ImpossibleError",
    "InternalError",
    "InvalidInput",
    "PluginError",
    "PolicyError",
    "PolicyWarning",
    "PolysemeError",
    "PolysemeWarning",
    "PrivacyWarning",
    "Problem",
    "QuestionError",
    "ReleaseError",
    "RiskError",
    "StoreUnavailable",
    "TableError",
    "nearest",
    "numbered",
    "warn",
]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what, and what would help.

    seen  the records that it is about, where there are some; their values are for `--show-values` only
    """

    where: str
    what: str
    hint: str = ""
    seen: Sightings | None = field(default=None, repr=False, compare=False)

    @classmethod
    def in_rows(cls, where: str, what: str, hint: str, seen: Sightings | None, numbering: Numbering) -> Problem:
        """A problem with some records of a table: what it says ends with where they are."""
        if seen is None:
            return cls(where, what, hint)
        seen = seen.numbered(numbering)
        return cls(where, f"{what}, {seen.words()}" if seen.rows else what, hint, seen)

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
    """A question that the release cannot answer."""


class CampaignError(InvalidInput):
    """A campaign document, an answer to it or a report cannot be used."""


class PluginError(InvalidInput):
    """A plugin that another package brings cannot be used."""


class CollectionError(InvalidInput):
    """A campaign, a store or a token cannot be used like this."""


class StoreUnavailable(CollectionError):
    """The store does not answer now. The request may or may not have taken effect.

    Repeating it is safe.
    """


class ChannelError(InvalidInput):
    """A message, a key or a token of the anonymous channel cannot be used.

    Nothing is sent another way instead.
    """


class RiskError(InvalidInput):
    """A release would tell more than it may, by itself or with what was published before."""

    exit_code = 1


class ImpossibleError(InvalidInput):
    """No mechanism can keep this promise on this domain."""


class Cancelled(PolysemeError):
    """A caller stopped the work; nothing was published."""

    exit_code = 130


class InternalError(PolysemeError):
    """A fault of the program itself."""


class PolysemeWarning(UserWarning):
    """Root of the warnings; like a problem, none holds a value of the original table."""


class PrivacyWarning(PolysemeWarning):
    """Something that others may learn from the release."""


class PolicyWarning(PolysemeWarning):
    """Something that the policy comes to, perhaps other than it was meant."""


def warn(text: str, category: type[PolysemeWarning]) -> None:
    """Warn the caller of the library: shown is the first line outside of this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "polyseme":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def people_words(number: int) -> str:
    """So many people.

    >>> people_words(1), people_words(1_200)
    ('1 person', '1,200 people')
    """
    return "1 person" if number == 1 else f"{number:,} people"


def numbered(count: int, things: str) -> str:
    """How many of something there are, and what is said of them; `things` is in the plural.

    >>> numbered(1, "records have no value"), numbered(1200, "records have no value"), numbered(1, "classes")
    ('1 record has no value', '1,200 records have no value', '1 class')
    """
    if count != 1:
        return f"{count:,} {things}"
    noun, *rest = things.split(" ")
    verb = [_SINGULAR.get(rest[0], rest[0])] if rest else []
    return " ".join(["1", noun.removesuffix("es" if noun.endswith("sses") else "s"), *verb, *rest[1:]])


_SINGULAR = {"are": "is", "fall": "falls", "have": "has", "share": "shares", "fit": "fits"}


def _distinguished(option: str) -> str:
    """An option in a list; one with a comma, or blanks at its ends, is in double quotes."""
    return f'"{option}"' if "," in option or option != option.strip() else option


def nearest(word: str, choices: Iterable[str]) -> str:
    """A hint that names the closest valid choice, or lists them all.

    >>> nearest("senstive", ["sensitive", "identifier"])
    "did you mean 'sensitive'?"
    """
    options = [str(choice) for choice in choices]
    close = difflib.get_close_matches(str(word), options, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    shown = ", ".join(map(_distinguished, options[:12])) + (", ..." if len(options) > 12 else "")
    return f"one of: {shown}"
