"""Optional packages: what an extra brings, whether it is installed, and what to say when it is not.

`pip install polyseme` leaves out what only some people need and what weighs much. Code that needs an extra calls
`require` before it imports anything of it, so that users do not wait for a result that cannot be shown.
"""

from __future__ import annotations

from importlib.util import find_spec

from polyseme.errors import QuestionError

__all__ = ["EXTRAS", "installed", "pip_line", "require"]

EXTRAS = {
    "charts": ("altair", "vl_convert"),
    "collect": ("starlette", "uvicorn", "apsw"),
    "excel": ("fastexcel",),
    "learn": ("sklearn",),
    "pandas": ("pandas",),
    "postgres": ("psycopg",),
    "spark": ("pyspark", "grpc"),
    "stats": ("pyreadstat",),
}
"""The extras of pyproject.toml and the modules that each of them brings."""


def installed(extra: str) -> bool:
    """Whether every module of an extra is there; none of them is imported."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def pip_line(extra: str) -> str:
    """What installs an extra; quoted, because brackets mean something to most shells.

    >>> pip_line("charts")
    "pip install 'polyseme[charts]'"
    """
    return f"pip install 'polyseme[{extra}]'"


def require(extra: str, purpose: str) -> None:
    """Raise unless an extra is installed; `purpose` is the subject of the sentence."""
    if not installed(extra):
        raise QuestionError(f"{purpose} needs the extra '{extra}', which is not installed", pip_line(extra))
