"""The command line in this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

from polyseme.cli import main

__all__ = ["Result", "polyseme"]


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


def polyseme(*arguments: object, cwd: Path | None = None) -> Result:
    """The command line in this process: the same way in and out as from a shell, without starting Python each time."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd or Path.cwd()), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            return Result(int(leaving.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("the command line always leaves with an exit code")
