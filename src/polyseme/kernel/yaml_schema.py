"""YAML as people mean it: a word is text, a number is decimal, and a key is given once.

YAML 1.1 reads `no` as false, `010` as 8, `12:30` as 750 and `2024-13-45` as a date that does not exist. In a policy
these are answers, codes and times of a table. So plain scalars follow the newer core schema here; dates, codes with
leading zeros and numbers of more than a hundred digits stay text.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

__all__ = ["NotYaml", "compose", "line_of", "load", "reference_line"]

MOST_REPEATED = 1_000_000
"""Nodes that aliases may add: far more than a person writes, and still read in a second or two."""


class NotYaml(ValueError):
    """Why a text is no YAML. The problem may quote the text.

    The line and the column, from 1, do not.
    """

    def __init__(self, problem: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


def load(text: str) -> Any:
    """The objects of a YAML text; raises `NotYaml` and nothing else."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else ()
        raise NotYaml(error.problem or "", *place) from None
    except RecursionError:
        raise NotYaml("nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError):
        raise NotYaml from None


def compose(text: str) -> yaml.Node | None:
    """The nodes of a YAML text, with their places; raises `NotYaml` and nothing else."""
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise NotYaml(error.problem or "", *((mark.line + 1, mark.column + 1) if mark else ())) from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise NotYaml from None
    return node


def reference_line(text: str) -> int | None:
    """The first line, from 1, with an anchor, an alias or a merged key; None without."""
    for token in yaml.scan(text, Loader=_Loader):
        merged = isinstance(token, yaml.ScalarToken) and token.plain and token.value == "<<"
        if merged or isinstance(token, yaml.AnchorToken | yaml.AliasToken):
            return int(token.start_mark.line) + 1
    return None


def line_of(text: str, place: str) -> int | None:
    r"""The line, from 1, of a place such as `$.attributes.age`.

    Of the nearest one around it where it is not there.

    >>> line_of("attributes:\n  age:\n    role: none\n", "$.attributes.age.role")
    3
    """
    try:
        node = compose(text)
    except NotYaml:
        return None
    line, rest = (node.start_mark.line if node is not None else None), place.removeprefix("$")
    while rest and node is not None:
        node, found, rest = _inside(node, rest)
        line = line if found is None else found
    return None if line is None else line + 1


def _inside(node: yaml.Node, rest: str) -> tuple[yaml.Node | None, int | None, str]:
    """The node that a place begins with, its line, and the rest of the place."""
    steps: list[tuple[str, yaml.Node, int]] = []
    if isinstance(node, yaml.MappingNode):
        steps = [(f".{key.value}", value, key.start_mark.line) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        steps = [(f"[{index}]", value, value.start_mark.line) for index, value in enumerate(node.value)]
    # The name of a column may hold a dot: the longest that fits is meant.
    for name, value, line in sorted(steps, key=lambda step: -len(step[0])):
        if rest.startswith(name) and rest[len(name) :][:1] in ("", ".", "["):
            return value, line, rest[len(name) :]
    return None, None, rest


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a key that is given twice is an error, not a silent overwrite."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class has it as a plain attribute
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag.removeprefix("tag:yaml.org,2002:") not in ("bool", "int", "float", "timestamp")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        sizes: dict[int, float] = {}
        if node is not None and _size(node, sizes) > len(sizes) + MOST_REPEATED:
            raise yaml.composer.ComposerError(None, None, "its aliases refer to themselves", node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        node.value = [(self._distinguished(key_node), value_node) for key_node, value_node in node.value]
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict):
                raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key_node.start_mark)
            # 2024 and "2024" name the same column.
            if str(key) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' is given more than once", key_node.start_mark
                )
            seen.add(str(key))
        return super().construct_mapping(node, deep=deep)

    def _distinguished(self, key_node: yaml.Node) -> yaml.Node:
        """A key as text where Python would take it for another one: true is 1 there, and 30.0 is 30."""
        key = self.construct_object(key_node, deep=True)
        if not isinstance(key, bool | float):
            return key_node
        text = key_node.value if isinstance(key, bool) else str(key)
        return yaml.ScalarNode("tag:yaml.org,2002:str", text, key_node.start_mark, key_node.end_mark)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]{0,99})$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:0|[1-9][0-9]{0,99})(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$"
        r"|^\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


def _size(node: yaml.Node, sizes: dict[int, float]) -> float:
    """How many nodes there are with aliases expanded; infinite where a node contains itself."""
    if id(node) not in sizes:
        sizes[id(node)] = math.inf  # until it is known: coming back here means that the node is inside of itself
        children = node.value if isinstance(node, yaml.CollectionNode) else ()
        inner = (item for child in children for item in (child if isinstance(child, tuple) else (child,)))
        sizes[id(node)] = 1 + sum(_size(item, sizes) for item in inner)
    return sizes[id(node)]
