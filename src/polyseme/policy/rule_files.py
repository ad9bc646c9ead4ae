"""Semantic rules of a policy: written out, in a file, from a tree's branches, built in.

All become rules that are written out, so that readers of a release's manifest need nothing else:

    semantic-rules:
      rules: [{never-all: {salary: {below: 20}}}]       or  rules: FILE.yaml
      branches: {attribute: occupation, level: 1}       of its distance; or beside it  tree: FILE,  taxonomy: NAME
      repository: {disease: illness-words}              rules that come with the package, for an attribute
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polyseme.kernel.documents import Folder, Reader, read_document
from polyseme.kernel.errors import InvalidInput, PolicyError, nearest
from polyseme.models.repository import load_kind
from polyseme.models.semantic_rules import read_rules
from polyseme.policy.attributes import AttributePolicy
from polyseme.semantics.distances import TreeDistance, distance_from_policy
from polyseme.semantics.distances.declaration import policy_values

__all__ = ["branch_rules", "read_sources"]

_KEYS = ("rules", "branches", "repository")
_BRANCH_KEYS = ("attribute", "level", "depth", "tree", "taxonomy")
_BRANCHES = "branches: {attribute: occupation, level: 1}"

Written = dict[str, Any]


def read_sources(reader: Reader, attributes: Sequence[AttributePolicy], folder: Folder) -> Mapping[str, Any]:
    """The parameters of semantic rules with every rule written out; problems go to the reader."""
    given = reader.mapping(_KEYS)
    if not given:
        reader.problem("no rules", "rules: [{never-all: {...}}], rules: FILE.yaml, or " + _BRANCHES)
    rules: list[Any] = []
    if "rules" in given:
        rules += _written(reader.at("rules", given["rules"]), folder)
    if "branches" in given:
        rules += _branches(reader.at("branches", given["branches"]), attributes, folder)
    if "repository" in given:
        rules += _repository(reader.at("repository", given["repository"]))
    return {"rules": rules}


def _written(reader: Reader, folder: Folder) -> list[Any]:
    document = reader.value
    try:
        if isinstance(document, str):
            document = read_document(folder.file(document))
            document = document.get("rules") if isinstance(document, Mapping) else document
        read_rules(document, "")
    except InvalidInput as error:
        _adopt(reader, error)
        return []
    return list(document)


def _adopt(reader: Reader, error: InvalidInput) -> None:
    """The problems of an error; one of a list's element has its number for a place."""
    for found in error.problems:
        Reader(None, f"{reader.where}{found.where}", reader.problems).problem(found.what, found.hint)


def _repository(reader: Reader) -> Iterator[Written]:
    for attribute, inner in reader.items():
        names = inner.value if isinstance(inner.value, list) else [inner.value]
        for name in names:
            try:
                yield from load_kind(str(name)).rules(attribute)
            except PolicyError as error:
                inner.adopt(error)


# -- branches ------------------------------------------------------------------------------------------------------


def _branches(reader: Reader, attributes: Sequence[AttributePolicy], folder: Folder) -> Iterator[Written]:
    for inner in reader.elements() if isinstance(reader.value, list) else [reader]:
        given = inner.mapping(_BRANCH_KEYS)
        steps = {key: given[key] for key in ("level", "depth") if key in given}
        fits = len(steps) == 1 and all(type(step) is int and step > 0 for step in steps.values())
        if not fits or not isinstance(given.get("attribute"), str):
            inner.problem("expected an attribute, and a level or a depth of at least 1", _BRANCHES)
            continue
        try:
            name, values, tree = _tree(given, attributes, folder)
            yield from branch_rules(name, values, tree, **steps)
        except InvalidInput as error:
            inner.adopt(error)


def _tree(
    given: Mapping[str, Any], attributes: Sequence[AttributePolicy], folder: Folder
) -> tuple[str, Sequence[Any], TreeDistance]:
    """The attribute, its values, and the tree above them."""
    named = {item.name: item for item in attributes}
    name = given["attribute"]
    if name not in named:
        raise PolicyError(f"no attribute '{name}'", nearest(name, named))
    declared = {key: given[key] for key in ("tree", "taxonomy") if key in given} or named[name].distance or {}
    if len(declared) != 1 or next(iter(declared)) not in ("tree", "taxonomy"):
        raise PolicyError(f"'{name}' has no tree and no taxonomy", f"distance: {{tree: FILE.csv}} for '{name}'")
    values = named[name].values or policy_values(declared, folder)
    if not values:
        raise PolicyError(f"which values '{name}' has is not known without a table", "domain: [...]")
    found = distance_from_policy(declared, values, folder)
    if not isinstance(found, TreeDistance):
        raise PolicyError(f"the distance of '{name}' is no tree")
    return name, values, found


def branch_rules(
    attribute: str, values: Sequence[Any], tree: TreeDistance, level: int | None = None, depth: int | None = None
) -> list[Written]:
    """One rule for each branch: no class lies in it.

    level  how many steps above its values a branch begins: at 1 the categories right above them
    depth  how many steps below the root it begins: at 1 the main branches

    >>> tree = TreeDistance.from_paths([("flu", "lung", "*"), ("asthma", "lung", "*"), ("ulcer", "stomach", "*")])
    >>> branch_rules("ill", ["flu", "asthma", "ulcer"], tree, level=1)[0]
    {'never-all': {'ill': ['flu', 'asthma']}, 'name': 'ill: lung'}
    """
    branches: dict[tuple[int, int], list[Any]] = {}
    for code, value in enumerate(values):
        line = _line(tree, code)
        step = len(line) - level if level is not None else depth or 0
        # A value that is no deeper is a branch by itself.
        key = (line[step], -1) if step < len(line) else (-1, code)
        if step < 1:
            raise PolicyError("there the tree has no branches, only its root", f"highest level: {len(line) - 1}")
        branches.setdefault(key, []).append(value)
    if len(branches) < 2:
        raise PolicyError("all values are in one branch there, so every class is", "choose a lower level")
    return [
        {"never-all": {attribute: held}, "name": f"{attribute}: {tree.names[node] if node >= 0 else held[0]}"}
        for (node, _), held in branches.items()
    ]


def _line(tree: TreeDistance, code: int) -> list[int]:
    """The nodes from the root down to the one that a value hangs under."""
    line = [int(tree.values[code])]
    while line[-1] not in (tree.root, 0):
        line.append(int(tree.parents[line[-1]]))
    return line[::-1]
