"""What a grouping method does to a table, and what absence from a release reveals.

The former is part of a plan, and reported after publishing. The latter is for the data holder, never for publication.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import InvalidInput, numbered, people_words
from polyseme.release import Applied

__all__ = ["Alternative", "GroupingPlan", "LeftOut", "applied_lines", "left_out_lines"]

_MORE_CHECKS = 200_000
"""Nodes to look at in a search that goes on: ten times as many as without any limit given."""


@dataclass(frozen=True)
class LeftOut:
    """The suppressed records of a table, for an attacker who knows that a person is in it.

    attribute  the sensitive attribute that the attacker wants to know
    records    how many are left out
    values     how many different values they have; for buckets, values that mean the same count once
    success    the share of the most frequent one: how often the attacker is right who does not find the person
    baseline   its largest share in the whole table: how often an attacker is right without the release
    bound      what groups promise: 1/l; None where only models say something
    extra      how many are left out only so that what is left out has several values
    """

    attribute: str
    records: int
    values: int
    success: float
    baseline: float
    bound: float | None = None
    extra: int = 0

    @classmethod
    def of(cls, attribute: str, left: Ints, whole: Ints, bound: float | None = None, extra: int = 0) -> Self:
        """From how many records of each kind are left out, and how many there are."""
        records = int(left.sum())
        success, baseline = (float(counts.max() / counts.sum()) for counts in (left, whole))
        return cls(attribute, records, int(np.count_nonzero(left)), success, baseline, bound, extra)

    @property
    def exceeded(self) -> bool:
        """Whether being left out tells more than groups promise, and more than the table as a whole."""
        return self.bound is not None and self.success > max(self.bound, self.baseline)

    @property
    def in_words(self) -> str:
        """What an attacker learns."""
        kinds = "1 value" if self.values == 1 else f"{self.values:,} values"
        guess = f"{self.success:.1%} of these people ({self.baseline:.1%} without the release)"
        return (
            f"{numbered(self.records, 'records are left out')}, with {kinds} of {self.attribute}: an attacker who "
            f"knows that a person is in the table, and finds no record, guesses {self.attribute} right for {guess}"
        )

    @property
    def remedy(self) -> str:
        """What was done about it, and what else could be."""
        done = f"{numbered(self.extra, 'records are left out')} only to mix the values. " if self.extra else ""
        alone = "No records could be added to mix the values. " if self.values == 1 and self.bound is not None else ""
        return (
            f"{done}{alone}No choice of suppressed records brings this down to {self.bound:.1%}; a smaller share costs "
            f"more records: left-out: {self.advised:.2f} in the policy, or a smaller l, or broader values"
        )

    @property
    def advised(self) -> float:
        """A share between what the table has anyway and what was left out."""
        return (self.success + self.baseline) / 2.0

    def to_dict(self) -> dict[str, Any]:
        """An entry under `method.left_out` of `plan --json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(**document)


_OWN = ("feasible", "obstacle", "records", "finer", "left_out", "counts", "all_people")
"""What a plan says beside what the method does."""


@dataclass(frozen=True)
class GroupingPlan:
    """What a method would do to a table.

    applied   what it does; None where there was no table to look at, or the goal cannot be reached
    obstacle  why it cannot be
    finer     for each generalized quasi-identifier, how many records, or people where these are counted, would violate
              if it were one level finer
    people    whose records they are; None where records are counted
    left_out  what it says about a person to be left out, for each sensitive attribute
    """

    name: str
    records: int | None = None
    applied: Applied | None = None
    obstacle: str = ""
    finer: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    people: int | None = None

    @classmethod
    def impossible(cls, name: str, error: InvalidInput) -> Self:
        return cls(name, obstacle=str(error))

    @property
    def feasible(self) -> bool:
        """False only where it is known that the goal cannot be reached."""
        return not self.obstacle

    def to_dict(self) -> dict[str, Any]:
        """The entry `method` of `plan --json`."""
        done = {} if self.applied is None else self.applied.to_dict()
        return {
            "name": self.name,
            "feasible": self.feasible,
            "obstacle": self.obstacle,
            "finer": dict(self.finer),
            "records": self.records,
            "left_out": [item.to_dict() for item in self.left_out],
            **({} if self.people is None else {"counts": "people", "all_people": self.people}),
            **done,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        rest = {key: value for key, value in document.items() if key not in _OWN}
        applied = Applied.from_dict(rest) if "classes" in rest else None
        left = tuple(LeftOut.from_dict(entry) for entry in document.get("left_out", ()))
        people = document.get("all_people")
        fields = (document["name"], document["records"], applied, document["obstacle"], document["finer"])
        return cls(*fields, left_out=left, people=people)

    def lines(self) -> list[str]:
        """What is to be said of it, a sentence a line."""
        if self.obstacle:
            return [f"{self.name}: not possible. {self.obstacle}"]
        if self.applied is None:
            return [f"{self.name}: what it comes to depends on the records; give the table with --data"]
        return [*applied_lines(self.applied, self.records or 0), *left_out_lines(self.left_out), *self._finer()]

    def _finer(self) -> list[str]:
        """Why nothing could be shown in more detail."""
        if not self.finer or not self.records:
            return []
        whole, units = (self.records, "records") if self.people is None else (self.people, "people")
        shares = ", ".join(f"{name} {count / whole:.1%}" for name, count in self.finer.items())
        return [f"{units} in classes that violate a model if one column were one level finer: {shares}"]


@dataclass(frozen=True)
class Alternative:
    """Other levels of full-domain generalization that keep the same models.

    more    the quasi-identifiers that are shown in more detail than now, and `less`, in less
    levels  of all quasi-identifiers
    cut     what the policy says to get it: `method: {full-domain: {levels: ...}}`
    heights the highest level of each quasi-identifier, at which it is hidden
    share   of the records that is suppressed
    kept    1 - loss, for a loss that is a share of all detail; None for others
    """

    more: tuple[str, ...]
    less: tuple[str, ...]
    levels: Mapping[str, int]
    loss: float
    suppressed: int
    classes: int
    gap: float
    cut: Mapping[str, Any]
    heights: Mapping[str, int]
    share: float
    kept: float | None

    @classmethod
    def of(
        cls, now: Applied, other: Applied, cut: Mapping[str, Any], heights: Mapping[str, int], records: int
    ) -> Alternative:
        """What becomes of the columns with other levels."""
        of_detail = other.loss is not None and other.parameters.get("loss") in ("loss", "precision")
        moved = {name: level - now.levels[name] for name, level in other.levels.items()}
        return cls(
            tuple(name for name, step in moved.items() if step < 0),
            tuple(name for name, step in moved.items() if step > 0),
            dict(other.levels),
            float("nan") if other.loss is None else other.loss,
            other.suppressed,
            other.classes,
            other.gap or 0.0,
            dict(cut),
            dict(heights),
            other.suppressed / max(records, 1),
            1.0 - other.loss if of_detail and other.loss is not None else None,
        )

    @property
    def label(self) -> str:
        """What it shows more of, in words."""
        names = " and ".join(filter(None, [", ".join(self.more[:-1]), *self.more[-1:]]))
        return f"More of {names}" if names else "Other levels"

    @property
    def words(self) -> dict[str, str]:
        """How each column is shown; one that all records have as `*` is hidden."""
        return {name: _step_words(level, self.heights[name]) for name, level in self.levels.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything it says, ready for JSON."""
        stated = asdict(self) | {"more": list(self.more), "less": list(self.less)}
        share = stated.pop("share")
        return {**stated, "label": self.label, "words": self.words, "suppressed_share": share}


def _step_words(level: int, height: int) -> str:
    if level == 0:
        return "as it is"
    return "hidden (*)" if level == height else f"step {level} of {height - 1}"


def left_out_lines(left_out: Iterable[LeftOut]) -> list[str]:
    """What being left out says about a person, and what can be done about it."""
    lines = []
    for item in left_out:
        lines += [item.in_words, *([item.remedy] if item.exceeded else [])]
    return lines


def applied_lines(applied: Applied, records: int) -> list[str]:
    """What a method did to so many records, a sentence a line.

    >>> applied_lines(Applied("mondrian", {}, classes=12), 60)
    ['mondrian: 12 classes, with 5 records each on average']
    """
    grouped = records - applied.suppressed
    kind = "groups" if applied.name in ("anatomy", "buckets") else "classes"
    mean = f"{grouped / applied.classes:,.3g}" if applied.classes else "0"
    lines = [f"{applied.name}: {numbered(applied.classes, kind)}, with {mean} records each on average"]
    if applied.levels:
        shown = ", ".join(f"{name} {level}" for name, level in applied.levels.items())
        lines.append(f"levels of generalization (0 is the value itself): {shown}")
    if applied.suppressed:
        share = applied.suppressed / max(records, 1)
        are = "is" if applied.suppressed == 1 else "are"
        how = "left out" if applied.withheld else "published with * in every quasi-identifier"
        whose = "" if applied.people is None else f", of {people_words(applied.people)}"
        lines.append(f"{applied.suppressed:,} of {records:,} records ({share:.2%}) {are} suppressed{whose}: {how}")
    if applied.actions:
        done = ", ".join(f"{action} {count:,}" for action, count in applied.actions.items())
        lines.append(f"classes on which a rule was effective, by what was done about them: {done}")
    if "change-values" in applied.actions:
        lines.append("sensitive values were changed, as asked: these are not the values of the records")
    if applied.loss is not None and "loss" in applied.parameters:
        lines.append(f"{applied.parameters['loss']} loss {applied.loss:,.6g}, {_proved(applied)}")
    elif kind == "groups" and applied.suppressed and applied.gap is not None:
        most = (
            f"at most {applied.gap:,.0f} fewer could be" if applied.gap else "no grouping as asked for suppresses fewer"
        )
        lines.append(f"suppressed records: {most}")
    return lines


def _proved(applied: Applied) -> str:
    if applied.gap is None:
        return "without a proof that it is the least"
    if applied.gap == 0:
        return "proved to be the least"
    share = f" ({applied.gap / applied.loss:.1%})" if applied.loss else ""
    return f"at most {applied.gap:,.4g}{share} above the least; to search further: full-domain: {{{_further(applied)}}}"


def _further(applied: Applied) -> str:
    """The limits of the search, larger ones."""
    limits = {name: applied.parameters.get(name) for name in ("checks", "time-limit")}
    given = [f"{name}: {10 * limit}" for name, limit in limits.items() if limit]
    return ", ".join(given) or f"checks: {_MORE_CHECKS}"
