"""YAML as people mean it: a word is text, a number is decimal, and a key stands once.

YAML 1.1 reads `no` as false, `010` as 8, `12:30` as 750 and `2024-13-45` as a date that does not exist. In a policy
these are answers, codes and times of a table. So plain scalars follow the newer core schema here; dates, codes with
leading zeros and numbers of more than a hundred digits stay text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from polyseme.errors import PolicyError, Problem

__all__ = ["parse"]


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a key that stands twice is an error, not a silent overwrite."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class has it as a plain attribute
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag.removeprefix("tag:yaml.org,2002:") not in ("bool", "int", "float", "timestamp")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict):
                raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key_node.start_mark)
            # 2024 and "2024" name the same column.
            if str(key) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", key_node.start_mark
                )
            seen.add(str(key))
        return super().construct_mapping(node, deep=deep)


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


def parse(text: str) -> Any:
    """The objects of a YAML text; `PolicyError` with the place where it is none."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "$"
        raise PolicyError(Problem(place, f"not valid YAML: {error.problem}")) from None
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError):
        raise PolicyError(
            "not valid YAML", "control characters and tags such as !!int have no place in a policy"
        ) from None
    except RecursionError:
        raise PolicyError("not valid YAML: nested too deeply") from None
