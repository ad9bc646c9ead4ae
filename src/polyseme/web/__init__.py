"""What browsers are served: ES modules, pages and styles, and a function that returns them.

The modules are plain JavaScript with types in comments. Comments are for those who read the source; they are more than
a third of it, so they are left out of what is served.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

__all__ = ["client_module", "client_modules", "without_comments"]

_COMMENT = re.compile(r"/\*\*.*?\*/|^\s*//[^\n]*$", re.S | re.M)
_BLANKS = re.compile(r"\n\s*")
_SPACES = re.compile(r"""("(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)| *([=<>&|?:,;{}()\[\]*%]) *""")
"""Texts, which stay as they are, and blanks around signs; + and - keep theirs, because two of them are another sign."""


@cache
def client_modules() -> tuple[str, ...]:
    """The names of the client's modules."""
    folder = resources.files("polyseme.web").joinpath("client")
    return tuple(sorted(item.name for item in folder.iterdir() if item.name.endswith(".js")))


@cache
def client_module(name: str) -> bytes:
    """A module of the client as it is served; `KeyError` where there is none of this name."""
    if name not in client_modules():
        raise KeyError(name)
    source = resources.files("polyseme.web").joinpath("client", name).read_text(encoding="utf-8")
    return without_comments(source).encode("utf-8")


def without_comments(source: str) -> str:
    r"""A module without comments and needless blanks.

    None of ours has texts that look like comments.

    Tests run what is left in Node and in a browser.

    >>> without_comments("/** Why. */\nexport const one =\n  /** @type {any} */ (1);\n// what\n")
    'export const one=\n(1);\n'
    >>> without_comments('const two = { a: "b = c" };\n')
    'const two={a:"b = c"};\n'
    """
    bare = _BLANKS.sub("\n", _COMMENT.sub("", source)).lstrip()
    return _SPACES.sub(lambda found: found[1] or found[2], bare)
