"""What is open: a table, a policy and its history, and what is known of them.

The policy is a file, and the file holds the truth: it is read again for every answer, so that an editor beside the page
and a second tab agree with it. An edit names the revision that it was made on, and is refused for another one. The
table is read where it is, once: its columns are held by a `Profile`, from which everything else is counted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from polyseme.kernel.documents import parse
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, TableError
from polyseme.kernel.files import whole_file
from polyseme.kernel.work import Progress, working
from polyseme.kernel.yaml_schema import line_of
from polyseme.policy import Policy
from polyseme.policy.drafting import Draft
from polyseme.policy.edit import edit, edited, removed, with_role
from polyseme.policy.resolution import column_values
from polyseme.results.plan import Plan
from polyseme.semantics.hierarchies import coverage, fit, read_hierarchy, values_of
from polyseme.tables.codes import as_series
from polyseme.tables.io.readers import open_written
from polyseme.tables.io.source import TableOptions
from polyseme.tables.profile import Profile
from polyseme.verbs.init import init
from polyseme.verbs.plan import plan
from polyseme.verbs.risk import risk
from polyseme.workbench.history import History, revision_of

__all__ = ["Conflict", "Opened", "described", "tables_below"]

KINDS = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".ods", ".dta", ".sav", ".sas7bdat")
"""Endings of the files that are offered."""
_LISTED = 500
"""Files that are offered, and values that are listed, at the most."""
_DEEP, _LOOKED_AT = 3, 20_000
"""Folders below the start folder, and files in them, that are looked at."""
_EXAMPLES = 3


class Conflict(Exception):
    """The policy on disk is not the one that an edit was made on."""


def described(problems: Iterable[Problem], text: str = "") -> list[dict[str, Any]]:
    """Problems for the page: where, what, a hint, and the line of the policy."""
    found = []
    for one in problems:
        place = one.where if one.where.startswith("$") else f"$.{one.where}"
        found.append(
            {"where": one.where, "what": one.what, "hint": one.hint, "line": line_of(text, place) if text else None}
        )
    return found


def tables_below(folder: Path) -> list[str]:
    """The tables in a folder and some folders below it, without hidden ones and releases."""
    found, looked = list[str](), 0
    for place, folders, files in os.walk(folder):
        parts = Path(place).relative_to(folder).parts
        deep = len(parts) >= _DEEP or "manifest.json" in files
        folders[:] = [] if deep else sorted(name for name in folders if not name.startswith((".", "__")))
        looked += len(files)
        if "manifest.json" not in files:
            names = sorted(name for name in files if name.lower().endswith(KINDS) and not name.startswith("."))
            found += ["/".join((*parts, name)) for name in names]
        if looked > _LOOKED_AT:
            break
    return found[:_LISTED]


@dataclass(eq=False)
class _Table:
    """A table that was looked at."""

    name: str
    source: Profile = field(repr=False)
    draft: Draft = field(repr=False)
    rows: int
    first: list[dict[str, Any]] = field(repr=False)
    unique: int | None
    known: tuple[str, ...]


@dataclass(eq=False)
class Opened:
    """The table and the policy of one workbench.

    folder         where it was started: only files below are read, unless `allow_outside`
    policy         the file
    table          its path as a person would type it from `folder`; None before one is chosen
    """

    folder: Path
    policy: Path
    allow_outside: bool = False
    table: str | None = None
    options: TableOptions = field(default_factory=lambda: cast("TableOptions", {}))
    looked: _Table | None = field(default=None, repr=False)
    share: float = 0.0
    wrong: list[dict[str, Any]] = field(default_factory=list)
    _turn: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.history = History(self.policy)

    # -- the policy ------------------------------------------------------------------------------------------------

    @property
    def policy_name(self) -> str:
        """The policy's path as a person would type it."""
        try:
            return self.policy.relative_to(self.folder).as_posix()
        except ValueError:
            return str(self.policy)

    @property
    def text(self) -> str:
        """The policy on disk; empty where there is none."""
        try:
            return self.policy.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise PolicyError(f"{self.policy.name}: not UTF-8 text", "save the policy as UTF-8") from None

    @property
    def revision(self) -> str:
        return revision_of(self.text)

    def noticed(self) -> str:
        """The policy's text, after an edit from outside was written into the history."""
        with self._turn:
            text = self.text
            if text and (self.history.now is None or self.history.now.text != text):
                self.history.add(text, "Opened" if self.history.now is None else "Changed elsewhere", outside=True)
            return text

    def loaded(self, text: str) -> Policy:
        return Policy.loads(text.removeprefix("\ufeff"), self.policy.parent, self.allow_outside)

    def problems(self, text: str) -> list[dict[str, Any]]:
        """What is wrong with a policy; nothing where it can be used."""
        if not text.strip():
            return []
        try:
            self.loaded(text)
        except InvalidInput as error:
            return described(error.problems, text)
        return []

    def change(
        self,
        revision: str,
        said: str,
        changes: Mapping[str, Any],
        roles: Mapping[str, str],
        remove: Iterable[str],
    ) -> tuple[int, ...]:
        """Edit the policy; the lines that changed."""
        with self._turn:
            self._require(revision)
            data = self.looked.source if roles and self.looked is not None else None
            made = edit(self.policy, changes, roles, data, remove=tuple(remove), allow_outside=self.allow_outside)
            self.history.add(str(made), said)
            return made.lines

    def write(self, revision: str, text: str) -> None:
        """Take a text that a person typed; an invalid one is kept too, as in any editor."""
        with self._turn:
            self._require(revision)
            parse(text)
            self._replace(text)
            self.history.add(text, "Edited as text")

    def step(self, revision: str, by: int) -> str:
        """Undo or redo; what was undone or made again, in words."""
        with self._turn:
            self._require(revision)
            taken = self.history.undo if by < 0 else self.history.redo
            self._replace(self.history.step(by).text)
            return taken.said if taken is not None else ""

    def _require(self, revision: str) -> None:
        if revision != revision_of(self.noticed()):
            raise Conflict

    def _replace(self, text: str) -> None:
        with whole_file(self.policy, overwrite=True) as partial:
            partial.write_bytes(text.encode("utf-8"))

    def supposed(self, changes: Mapping[str, Any], roles: Mapping[str, str], remove: Iterable[str]) -> str:
        """The text that the policy would have after some changes; nothing is written."""
        text = self.text
        for column, role in roles.items():
            text = with_role(text, column, role, None if self.looked is None else self.looked.draft)
        for place, value in changes.items():
            text = edited(text, place, value)
        for place in remove:
            text = removed(text, place)
        return text

    # -- the table -------------------------------------------------------------------------------------------------

    def place(self, table: str) -> Path:
        """The path of a table; refused outside of the start folder."""
        path = (self.folder / table).resolve()
        if not self.allow_outside and not path.is_relative_to(self.folder.resolve()):
            what = "the table is outside of the folder in which the workbench was started"
            raise TableError(what, "start the workbench in its folder, or with --allow-outside")
        return path

    def read(self) -> None:
        """Look at the table, and draft a policy where there is none."""
        if self.table is None:
            return
        self.wrong, self.share = [], 0.0
        with working(progress=self._reached):
            path = self.place(self.table)
            source = Profile(open_written(path, **self.options))
            draft = init(source)
            rows = source.count()
            if not self.text:
                self._replace(str(draft))
            self.noticed()
            looked = _Table(self.table, source, draft, rows, _first(source), None, ())
            looked.unique, looked.known = self._unique(source)
        self.looked, self.share = looked, 1.0

    def _reached(self, step: Progress) -> None:
        self.share = max(self.share, step.share or 0.0)

    def _unique(self, source: Profile) -> tuple[int | None, tuple[str, ...]]:
        """How many records are unique in the columns that others may know, and these columns."""
        try:
            known = [item.name for item in self.loaded(self.text).attributes if item.role.value == "quasi-identifier"]
            if not known:
                return None, ()
            return int(risk(source, qi=known).to_dict()["unique"]), tuple(known)
        except InvalidInput:
            return None, ()

    def columns(self) -> list[dict[str, Any]]:
        """What is known of each column, and what the draft would make of it."""
        if self.looked is None:
            return []
        first = self.looked.first
        found = []
        for column in self.looked.draft.columns:
            seen = dict.fromkeys(row[column.name] for row in first if row[column.name] != "")
            found.append(
                {
                    "name": column.name,
                    "kind": column.kind,
                    "different": column.distinct,
                    "counted": column.counted,
                    "missing": column.missing,
                    "examples": list(seen)[:_EXAMPLES],
                    "guess": column.role,
                    "why": column.reason,
                    "alternatives": list(column.alternatives),
                }
            )
        return found

    # -- what would come of it -------------------------------------------------------------------------------------

    def plan(self, text: str) -> Plan:
        """What a policy comes to on the table that is open."""
        if self.looked is None:
            raise TableError("no table is open", "choose one first")
        return plan(self.loaded(text), data=self.looked.source)

    def values(self, name: str, hierarchy: Any) -> dict[str, Any]:
        """The values of a column, and what each becomes at every level of a hierarchy."""
        source, missing = self._source(name), self._missing()
        seen = values_of(column_values(source, name, missing))
        counts = dict(zip((str(value) for value in seen.leaves), seen.counts.to_list(), strict=True))
        total = {"records": source.count(), "missing": seen.missing, "different": len(counts)}
        if hierarchy is None:
            rows = [{"levels": [value], "records": records} for value, records in list(counts.items())[:_LISTED]]
            return {**total, "levels": [], "values": rows}
        declared = read_hierarchy(hierarchy)
        rule = declared.open(self.loaded(self.text).files)
        found = coverage(rule, seen)
        if found.unknown_values:
            what = f"{found.unknown_values:,} values of '{name}' have no place in these groups"
            raise PolicyError(Problem("hierarchy", what, "choose another way, or hide the column"))
        made = fit(rule, seen, declared.missing)
        rows = [{"levels": path, "records": counts.get(path[0], 0)} for path in made.paths()]
        return {**total, "levels": [len(labels) for labels in made.labels], "values": rows[:_LISTED]}

    def beside(self, name: str, text: str) -> dict[str, list[str]]:
        """For each value of a secret those that may stand beside it; empty where there are many."""
        item = next((one for one in self.plan(text).attributes if one.name == name), None)
        distance = None if item is None else item.attribute.distance
        domain = None if item is None else item.attribute.domain
        if item is None or distance is None or domain is None or domain.size > _LISTED:
            return {}
        codes = np.arange(domain.size)
        far = distance.between(codes[:, None], codes[None, :]) >= item.choice.d
        labels = [str(label) for label in domain.values]
        return {labels[code]: [labels[other] for other in np.flatnonzero(far[code])] for code in codes}

    def counts(self, name: str) -> dict[str, int]:
        """How many records have each value of a column: the truth, which is not published."""
        seen = values_of(column_values(self._source(name), name, self._missing()))
        return dict(zip((str(value) for value in seen.leaves), seen.counts.to_list(), strict=True))

    def _source(self, name: str) -> Profile:
        if self.looked is None:
            raise TableError("no table is open", "choose one first")
        if name not in self.looked.source.schema.names:
            raise TableError("the table has no such column")
        return self.looked.source

    def _missing(self) -> tuple[str, ...]:
        try:
            return self.loaded(self.text).table.missing_values
        except InvalidInput:
            return ("",)


def _first(source: Profile) -> list[dict[str, Any]]:
    """The first rows, as texts."""
    batch = source.head(source.schema.names)
    if batch is None:
        return []
    rows = batch.slice(0, 50)
    columns = {name: as_series(rows.column(place)) for place, name in enumerate(rows.schema.names)}
    texts = {name: ["" if value is None else str(value) for value in column] for name, column in columns.items()}
    return [{name: texts[name][row] for name in texts} for row in range(rows.num_rows)]
