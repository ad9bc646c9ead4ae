"""How pages are filled in.

Templates escape every value, and a value that is missing is an error.
"""

from __future__ import annotations

import jinja2

__all__ = ["environment_of"]


def environment_of(package: str, folder: str) -> jinja2.Environment:
    """An environment for the templates in a folder of a package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
