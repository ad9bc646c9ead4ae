"""Receipts: for every action of the page, the command and the Python that do the same.

>>> edit("policy.yaml", {"attributes.age.hierarchy": "suppress"}).command
'polyseme policy set policy.yaml attributes.age.hierarchy suppress'
>>> verb("verify", "release").python
'ps.verify("release")'
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Receipt", "edit", "program", "script", "verb"]


@dataclass(frozen=True)
class Receipt:
    """The same action, typed.

    arguments  of `polyseme`; several commands where one does not suffice
    """

    arguments: tuple[tuple[str, ...], ...]
    python: str

    @property
    def command(self) -> str:
        return "\n".join(_line(one) for one in self.arguments)

    def to_dict(self) -> dict[str, str]:
        return {"command": self.command, "python": self.python}


def _line(arguments: Sequence[str]) -> str:
    words = ["polyseme", *arguments]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def edit(
    policy: str,
    changes: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    data: str | None = None,
    remove: Iterable[str] = (),
) -> Receipt:
    """An edit of the policy."""
    changes, roles, remove = dict(changes or {}), dict(roles or {}), tuple(remove)
    table = () if data is None else ("--data", data)
    commands = [("policy", "role", policy, column, role, *table) for column, role in roles.items()]
    commands += [("policy", "set", policy, place, _yaml(value)) for place, value in changes.items()]
    commands += [("policy", "set", policy, place, "--remove") for place in remove]
    given = [_py(policy)]
    given += [repr_of(changes)] if changes else []
    given += [f"roles={repr_of(roles)}"] if roles else []
    given += [f"data={_py(data)}"] if roles and data is not None else []
    given += [f"remove={repr_of(list(remove))}"] if remove else []
    return Receipt(tuple(commands), f"ps.edit({', '.join(given)})")


def verb(name: str, *given: str, **options: Any) -> Receipt:
    """A verb with its arguments in the order of the command line, and its options."""
    kept = {key: value for key, value in options.items() if value not in (None, False, "")}
    words = [word for key, value in kept.items() for word in _option(key, value)]
    if name == "anonymize":
        policy, data = given
        out = kept.pop("out", None)
        more = {key: value for key, value in kept.items() if key != "force"}
        call = f"ps.anonymize({', '.join([_py(data), _py(policy), *_keywords({'out': out, **more})])})"
    else:
        call = f"ps.{name.replace('-', '_')}({', '.join([*map(_py, given), *_keywords(kept)])})"
    return Receipt(((name, *given, *words),), call)


def _option(key: str, value: Any) -> list[str]:
    name = f"--{key.replace('_', '-')}"
    return [name] if value is True else [name, str(value)]


def _keywords(options: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_py(value)}" for key, value in options.items() if value is not None]


def _py(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def repr_of(value: Any) -> str:
    """Python that gives this value, with texts in double quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_py(key)}: {repr_of(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(repr_of, value)) + "]"
    return _py(value)


def _yaml(value: Any) -> str:
    """A value as `policy set` reads it: YAML, which JSON is."""
    return value if isinstance(value, str) and value.isidentifier() else json.dumps(value, ensure_ascii=False)


def script(receipts: Iterable[Receipt]) -> str:
    """A shell script that does all of it."""
    lines = [_line(arguments) for receipt in receipts for arguments in receipt.arguments]
    return "\n".join(["#!/bin/sh", "set -e", *lines]) + "\n"


def program(receipts: Iterable[Receipt]) -> str:
    """The same as a Python program."""
    return "\n".join(["import polyseme as ps", "", *(receipt.python for receipt in receipts)]) + "\n"
