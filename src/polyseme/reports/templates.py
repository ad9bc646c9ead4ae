"""How the templates of pages are filled in: every value is escaped, and one that is not there is an error."""

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
