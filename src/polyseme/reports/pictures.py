"""Which pictures of charts there are; known without the libraries that draw them."""

from __future__ import annotations

from pathlib import Path

from polyseme.errors import QuestionError

__all__ = ["picture_kind"]

_KINDS = (".png", ".svg", ".pdf")


def picture_kind(path: Path) -> str:
    """The suffix of a picture; raises unless it is one that can be drawn.

    >>> picture_kind(Path("income.PDF"))
    '.pdf'
    """
    suffix = path.suffix.lower()
    if suffix not in _KINDS:
        what = f"'{suffix}'" if suffix else "a file without a suffix"
        raise QuestionError(f"{path.name}: a chart is saved as .png, .svg or .pdf, not as {what}")
    return suffix
