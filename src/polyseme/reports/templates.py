"""How pages are filled in, and the kinds of pictures, without the libraries that draw them.

Templates escape every value, and a value that is missing is an error.
"""

from __future__ import annotations

from pathlib import Path

import jinja2

from polyseme.kernel.errors import QuestionError

__all__ = ["environment_of", "picture_kind"]


_PICTURE_KINDS = (".png", ".svg", ".pdf")


def picture_kind(path: Path) -> str:
    """The suffix of a picture; raises unless it is one that can be drawn.

    >>> picture_kind(Path("income.PDF"))
    '.pdf'
    """
    suffix = path.suffix.lower()
    if suffix not in _PICTURE_KINDS:
        what = f"'{suffix}'" if suffix else "a file without a suffix"
        raise QuestionError(f"{path.name}: a chart is saved as .png, .svg or .pdf, not as {what}")
    return suffix


def environment_of(package: str, folder: str) -> jinja2.Environment:
    """An environment for the templates in a folder of a package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
