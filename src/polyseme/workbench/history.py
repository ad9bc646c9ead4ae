"""The texts that a policy has had: undo and redo, after a restart too.

The file `.policy.yaml.history` beside the policy holds one JSON document a line. A policy may quote values of the
table, so only the owner may read the file.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from polyseme.kernel.errors import InvalidInput
from polyseme.kernel.files import whole_file

__all__ = ["Entry", "History", "revision_of"]

_MOST = 200
"""Entries that are kept."""


def revision_of(text: str) -> str:
    """The revision of a policy: a hash of its text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True)
class Entry:
    """A text of the policy.

    said     the change that made it, in words
    at       when
    outside  whether another program made it
    release  the folder of the release that was made with it; empty without one
    """

    text: str
    said: str
    at: str
    outside: bool = False
    release: str = ""

    @property
    def revision(self) -> str:
        return revision_of(self.text)

    def shown(self) -> dict[str, Any]:
        """Without the text."""
        return {key: value for key, value in asdict(self).items() if key != "text"} | {"revision": self.revision}


class History:
    """The texts of one policy, oldest first, and the one that holds now."""

    def __init__(self, policy: Path) -> None:
        self._file = policy.with_name(f".{policy.name}.history")
        self.entries, self.place = self._read()

    def _read(self) -> tuple[list[Entry], int]:
        """What was kept; nothing where the file is missing or damaged."""
        try:
            lines = [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines()]
            entries = [Entry(**line["entry"]) for line in lines]
            places = [number for number, line in enumerate(lines) if line.get("now")]
        except (OSError, ValueError, TypeError, KeyError):
            return [], -1
        return entries, places[-1] if places else len(entries) - 1

    @property
    def now(self) -> Entry | None:
        return self.entries[self.place] if 0 <= self.place < len(self.entries) else None

    @property
    def undo(self) -> Entry | None:
        """The entry that an undo takes back."""
        return self.now if self.place > 0 else None

    @property
    def redo(self) -> Entry | None:
        """The entry that a redo makes again."""
        return self.entries[self.place + 1] if self.place + 1 < len(self.entries) else None

    def add(self, text: str, said: str, outside: bool = False) -> None:
        """A new text; what was undone before it is gone."""
        if self.now is not None and self.now.text == text:
            return
        at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        kept = self.entries[: self.place + 1]
        self.entries = [*kept, Entry(text, said, at, outside)][-_MOST:]
        self.place = len(self.entries) - 1
        self._write()

    def step(self, by: int) -> Entry:
        """The entry before or after the one that holds now, which it then does."""
        if not 0 <= self.place + by < len(self.entries):
            raise InvalidInput("there is nothing to undo" if by < 0 else "there is nothing to redo")
        self.place += by
        self._write()
        return self.entries[self.place]

    def released(self, revision: str, folder: str) -> None:
        """A release was made with the policy of this revision."""
        self.entries = [
            replace(entry, release=folder) if entry.revision == revision else entry for entry in self.entries
        ]
        self._write()

    def _write(self) -> None:
        lines = (
            json.dumps({"now": place == self.place, "entry": asdict(entry)}, ensure_ascii=False)
            for place, entry in enumerate(self.entries)
        )
        with whole_file(self._file, overwrite=True, private=True) as partial:
            partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
