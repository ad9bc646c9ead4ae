"""What a policy says of the table for people: its name, who answers for it, the version of the policy, a date."""

from __future__ import annotations

from dataclasses import fields

from polyseme.policy.reading import Reader
from polyseme.release.about import About, flaw_of

__all__ = ["read_about"]

_KEYS = tuple(field.name for field in fields(About))


def read_about(reader: Reader) -> About:
    """`about: {title: Patients of 2025, publisher: Registry, version: 3}`; whatever is left out is not said."""
    given = reader.mapping(_KEYS)
    read = {name: _fact(name, reader.at(name, given[name])) for name in _KEYS if name in given}
    return About(**read)


def _fact(name: str, reader: Reader) -> str:
    """One line of text; a version may be a number."""
    value = reader.value
    if name == "version" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    text = reader.text()
    flaw = flaw_of(name, text) if isinstance(value, str) else ""
    if flaw:
        reader.problem(flaw)
    return text
