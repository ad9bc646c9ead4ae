"""Where in its file something of a policy stands: readers know `$.attributes.age`, and people look for a line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from polyseme.errors import InvalidInput, Problem, ReleaseError
from polyseme.files.core_schema import line_of

__all__ = ["in_file"]


def in_file(error: InvalidInput, file: Path) -> InvalidInput:
    """The same error, in which every place of the policy has its file and its line."""
    if isinstance(error, ReleaseError):  # those places are in a manifest
        return error
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return error
    return type(error)(_placed(problem, file, text) for problem in error.problems)


def _placed(problem: Problem, file: Path, text: str) -> Problem:
    if problem.where.startswith("line "):
        return replace(problem, where=f"{file}, {problem.where}")
    if not problem.where.startswith("$"):
        return problem
    line = line_of(text, problem.where)
    return replace(problem, where=f"{file}{f', line {line}' if line else ''}: {problem.where}")
