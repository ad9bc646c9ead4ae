"""The values that a declared distance brings along: the leaves of a tree, the header of a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyseme.distances.declared import TREE_SOURCES
from polyseme.distances.paths import row_places
from polyseme.files.delimited import read_rows
from polyseme.files.documents import is_document, read_document
from polyseme.files.folder import Folder, as_folder
from polyseme.spelling import different, written

__all__ = ["policy_file", "policy_values"]


def policy_values(spec: Mapping[str, Any] | None, folder: Folder | Path | str) -> tuple[str, ...] | None:
    """The domain that a policy's distance brings along, or None when it brings none.

    A tree brings its leaves and a matrix file its header, in their own order. Lines, circles and taxonomies do not say
    which values there are.

    >>> policy_values({"tree": {"lung": ["flu", "asthma"], "skin": ["acne"]}}, ".")
    ('flu', 'asthma', 'acne')
    """
    if not spec:
        return None
    ((kind, argument),) = spec.items()
    if kind == "tree":
        return _leaves(argument, as_folder(folder))
    if kind == "matrix" and isinstance(argument, str):
        (_, header), *body = read_rows(as_folder(folder).file(argument)) or [(0, [])]
        labels = tuple(cell.strip() for cell in header)
        return labels[1:] if len(labels) == len(body) + 1 else labels
    return None


def policy_file(spec: Mapping[str, Any] | None) -> str | None:
    """The name of the file that a policy's distance, and with it a domain, comes from; None when it is in the policy.

    >>> policy_file({"tree": {"file": "tree.csv", "measure": "path"}}), policy_file({"line": "rank"})
    ('tree.csv', None)
    """
    kind, argument = next(iter(spec.items())) if spec else ("", None)
    if kind == "tree" and isinstance(argument, Mapping) and set(argument) <= {*TREE_SOURCES, "measure"}:
        argument = argument.get("file")
    return argument if kind in ("tree", "lattice", "matrix") and isinstance(argument, str) else None


def _leaves(argument: Any, folder: Folder) -> tuple[str, ...] | None:
    if isinstance(argument, Mapping) and set(argument) <= {*TREE_SOURCES, "measure"}:
        if "file" not in argument and "nested" not in argument:
            return None
        argument = argument.get("file", argument.get("nested"))
    if isinstance(argument, str):
        file = folder.file(argument)
        if not is_document(file):
            return tuple(paths[0][0] for paths in row_places(cells for _, cells in read_rows(file)).values())
        argument = read_document(file)
    # Whether a value may be there twice is for the tree to say.
    return tuple(different(_in_order(argument)).values())


def _in_order(tree: Any) -> Iterator[str]:
    """The leaves of a nested tree, as they are written."""
    if isinstance(tree, Mapping):
        for label, below in tree.items():
            yield from _in_order(below) if below not in (None, [], {}) else (written(label),)
    elif isinstance(tree, list | tuple):
        for child in tree:
            yield from _in_order(child)
    else:
        yield written(tree)
