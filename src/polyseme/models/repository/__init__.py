"""Rules about common kinds of values that come with the package, one file a kind.

Each says what a value may give away; a policy says which of its attributes holds such values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from polyseme.kernel.documents import parse
from polyseme.kernel.errors import PolicyError, nearest

__all__ = ["Kind", "kind_names", "load_kind"]


@dataclass(frozen=True)
class Kind:
    """Rules about one kind of values.

    tests  what no class may consist of, by the name of the rule
    """

    name: str
    title: str
    tests: Mapping[str, Any]

    def rules(self, attribute: str) -> list[dict[str, Any]]:
        """As a policy writes them, for an attribute that holds such values.

        >>> load_kind("age").rules("years")[0]
        {'never-all': {'years': {'below': 18}}, 'name': 'years: child'}
        """
        return [{"never-all": {attribute: test}, "name": f"{attribute}: {name}"} for name, test in self.tests.items()]


def kind_names() -> tuple[str, ...]:
    """What there is."""
    found = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


@cache
def load_kind(name: str) -> Kind:
    """The rules of that name."""
    if name not in kind_names():
        raise PolicyError(f"no rules for '{name}' come with the package", nearest(name, kind_names()))
    document = parse(files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    return Kind(name, document["title"], {rule["name"]: rule["test"] for rule in document["rules"]})
