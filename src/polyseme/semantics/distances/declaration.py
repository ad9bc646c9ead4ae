"""Distances as a policy declares them: the words after `distance:`.

    {line: rank}                   {line: [0.5, 1.5, 3]}           {line: value}
    {circle: rank}                 {circle: {length: 24}}          {circle: {length: 24, positions: [0, 6, 12]}}
    {tree: file.csv}               {tree: {file: tree.yaml, measure: path}}
    {tree: {lung: [flu, asthma]}}  {tree: {nested: {...}, measure: path}}
    {tree: {prefixes: [1, 3]}}     {tree: {separator: "."}}
    {lattice: {node: [parents]}}   {lattice: file.yaml}
    {matrix: [[0, 1], [1, 0]]}     {matrix: file.csv}
    {taxonomy: icd10}              {taxonomy: {name: icd10, measure: path}}

Files are looked up in the policy's own folder, and never quoted. Problems say where they are within the declaration,
such as `tree.file`.

Some distances bring values along: the leaves of a tree, the header of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from polyseme.kernel.delimited import Row, read_rows
from polyseme.kernel.documents import Folder, as_folder, is_document, read_document
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, nearest
from polyseme.kernel.spelling import Label, different, spellings, written
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.lattice import LatticeDistance
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.matrix import MatrixDistance
from polyseme.semantics.distances.taxonomy import taxonomy_distance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.semantics.taxonomies import Places, cut_paths, named, nested_places, row_places, split_paths, value_paths

__all__ = ["DECLARED", "Values", "policy_file", "policy_values"]

Values: TypeAlias = Sequence[Label]

_Paths: TypeAlias = tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]]
"""The path of each value of the domain, and the paths of the whole tree where it is written out."""

TREE_SOURCES = ("file", "nested", "prefixes", "separator")


def _under(kind: str, problem: Problem) -> Problem:
    return Problem(".".join(filter(None, (kind, problem.where))), problem.what, problem.hint)


def _line(argument: Any, values: Values, _: Folder) -> Distance:
    if argument == "rank":
        return LineDistance.ranks(len(values))
    if argument == "value":
        return LineDistance(_numbers_of(values))
    if isinstance(argument, list | tuple):
        return LineDistance(argument)
    raise PolicyError(
        f"a line is 'rank', 'value' or a list of {len(values):,} numbers", "one representative number for each value"
    )


def _circle(argument: Any, values: Values, _: Folder) -> Distance:
    if argument == "rank":
        return CircleDistance.ranks(len(values))
    options = _options(argument, ("length", "positions"), "a circle is 'rank' or {length: ..., positions: [...]}")
    length = options.get("length")
    if isinstance(length, bool) or not isinstance(length, int | float):
        raise PolicyError(Problem("length", "a circle needs a number for its length", "24 for hours, 360 for degrees"))
    if "positions" in options:
        return CircleDistance(options["positions"], length)
    # Numbers stand at their own place; anything else is spread evenly in its order.
    if all(_is_number(value) for value in values):
        return CircleDistance(_numbers_of(values), length)
    return CircleDistance.equally_spaced(len(values), length)


def _tree(argument: Any, values: Values, folder: Folder) -> Distance:
    if isinstance(argument, str):
        argument = {"file": argument}
    declared = isinstance(argument, Mapping) and set(argument) <= {*TREE_SOURCES, "measure"} and len(argument) > 0
    if not declared:
        argument = {"nested": argument}
    sources = [source for source in TREE_SOURCES if source in argument]
    if len(sources) != 1:
        raise PolicyError(f"a tree comes from exactly one of {', '.join(TREE_SOURCES)}; here are {len(sources)}")
    measure = argument.get("measure", "ancestor")
    try:
        paths, beyond = _TREES[sources[0]](argument[sources[0]], values, folder)
    except InvalidInput as error:
        raise type(error)([_under(sources[0] if declared else "", problem) for problem in error.problems]) from error
    return TreeDistance.from_paths(paths, measure, beyond)


def _file_paths(name: Any, values: Values, folder: Folder) -> _Paths:
    file = folder.file(name)
    if is_document(file):
        return _placed(nested_places(read_document(file)), values, file.name)
    rows = read_rows(file)
    lines: dict[str, list[int]] = {}
    firsts = spellings(next(cell.strip() for cell in cells if cell.strip()) for _, cells in rows)
    for (line, _), name in zip(rows, firsts):
        lines.setdefault(name, []).append(line)
    return _placed(row_places(cells for _, cells in rows), values, file.name, lines)


def _nested_paths(tree: Any, values: Values, _: Folder) -> _Paths:
    if not isinstance(tree, Mapping | list):
        raise PolicyError("a tree is a file name, a nested mapping, or one of " + ", ".join(TREE_SOURCES))
    return _placed(nested_places(tree), values)


def _placed(places: Places, values: Values, file: str = "", lines: Mapping[str, Sequence[int]] | None = None) -> _Paths:
    """The paths of the values in a tree that is written out, and all paths that it has."""
    return value_paths(places, values, file, lines), list(chain.from_iterable(places.values()))


def _prefix_paths(lengths: Any, values: Values, _: Folder) -> _Paths:
    whole = isinstance(lengths, list) and all(type(length) is int and length > 0 for length in lengths)
    if not whole or not lengths or len(set(lengths)) != len(lengths):
        raise PolicyError("prefixes are different positive numbers of characters", "for instance [1, 3]")
    return cut_paths(values, lengths), ()


def _separator_paths(separator: Any, values: Values, _: Folder) -> _Paths:
    if not isinstance(separator, str) or not separator:
        raise PolicyError("a separator is a piece of text", 'for instance "."')
    return split_paths(values, separator), ()


def _lattice(argument: Any, values: Values, folder: Folder) -> Distance:
    file = folder.file(argument) if isinstance(argument, str) else None
    parents = read_document(file) if file is not None else argument
    if not isinstance(parents, Mapping):
        raise PolicyError("a lattice is a mapping of each node to its parents, or a YAML or JSON file with one")
    return LatticeDistance.from_parents(parents, values, file.name if file is not None else "")


def _matrix(argument: Any, values: Values, folder: Folder) -> Distance:
    if isinstance(argument, str):
        file = folder.file(argument)
        return _matrix_from_rows(read_rows(file), values, file.name)
    if not isinstance(argument, list):
        raise PolicyError("a matrix is a list of rows of numbers, or a CSV file whose header names the values")
    return MatrixDistance(argument)


def _matrix_from_rows(rows: list[Row], values: Values, file: str) -> Distance:
    """A header of labels, then one row per label in any order, with or without the label."""
    labels = spellings(values)
    header, body = spellings(cell.strip() for cell in rows[0][1]) if rows else [], rows[1:]
    if body and len(header) == len(body) + 1:
        header = header[1:]
    place = {label: index for index, label in enumerate(header)}
    missing = [written(value) for value, label in zip(values, labels) if label not in place]
    if missing:
        what = f"{len(missing)} of {len(labels)} values are not in the header of the matrix {file}: {named(missing)}"
        raise PolicyError(what)
    if len(place) != len(header) or len(body) != len(header):
        raise PolicyError(
            f"the matrix {file} has {len(body)} rows under {len(header)} columns with {len(place)} different labels",
            f"one row and one column for each value{_twice(header)}",
        )
    if all(len(cells) == len(header) + 1 for _, cells in body):
        names = spellings(cells[0].strip() for _, cells in body)
        rows_by_label = {name: (line, cells[1:]) for name, (line, cells) in zip(names, body)}
        unnamed = [label for label in header if label not in rows_by_label]
        if unnamed:
            raise PolicyError(f"{len(unnamed)} columns of the matrix {file} have no row of that name")
        body = [rows_by_label[label] for label in header]
    for line, cells in body:
        if len(cells) != len(header):
            raise PolicyError(f"{file}, line {line}: expected {len(header)} numbers, found {len(cells)} fields")
    chosen = [place[label] for label in labels]
    return MatrixDistance([[_cell(*body[row], column, file) for column in chosen] for row in chosen])


def _twice(header: Sequence[str]) -> str:
    """Where the first label is that is there before; a file is not quoted."""
    first = [header.index(label) for label in header]
    again = next((place for place, before in enumerate(first) if before < place), None)
    return "" if again is None else f"; columns {first[again] + 1} and {again + 1} are one value"


def _cell(line: int, cells: Sequence[str], column: int, file: str) -> float:
    try:
        return float(cells[column])
    except ValueError:
        raise PolicyError(
            f"{file}, line {line}: a field is not a number",
            "a distance matrix holds one number for each pair of values",
        ) from None


def _taxonomy(argument: Any, values: Values, _: Folder) -> Distance:
    if isinstance(argument, str):
        return taxonomy_distance(argument, values)
    options = _options(argument, ("name", "measure"), "a taxonomy is a name, or {name: ..., measure: ...}")
    return taxonomy_distance(str(options.get("name")), values, options.get("measure", "ancestor"))


DECLARED: Mapping[str, Callable[[Any, Values, Folder], Distance]] = {
    "line": _line,
    "circle": _circle,
    "tree": _tree,
    "lattice": _lattice,
    "matrix": _matrix,
    "taxonomy": _taxonomy,
}
"""Each word of the package that a policy may use, with what builds it."""

_TREES: Mapping[str, Callable[[Any, Values, Folder], _Paths]] = {
    "file": _file_paths,
    "nested": _nested_paths,
    "prefixes": _prefix_paths,
    "separator": _separator_paths,
}


def _options(argument: Any, known: Sequence[str], expected: str) -> Mapping[str, Any]:
    if not isinstance(argument, Mapping):
        raise PolicyError(expected)
    unknown = [str(key) for key in argument if key not in known]
    if unknown:
        raise PolicyError([Problem(key, "unknown key", nearest(key, known)) for key in unknown])
    return argument


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers_of(values: Values) -> list[float]:
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != len(values):
        raise PolicyError(
            f"{len(values) - len(numbers)} of {len(values)} values of the domain are not numbers",
            "give their positions as a list, or use 'rank'",
        )
    return numbers


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
    """The name of the file that a policy's distance, and with it a domain, comes from.

    None when it is in the policy.

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
