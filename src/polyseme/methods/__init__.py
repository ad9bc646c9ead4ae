"""Methods: how a table is made publishable, as `method:` in a policy names it.

A method says before any record is touched what the policy comes to (`plan`), and how each column will be published
(`columns`). What happens to a batch follows from the columns, so engines need not know which method made them; the
manifest has the method's name, and an entry for each of its columns. A method is imported when it is asked for, so that
their names cost nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from polyseme.parameters import Parameter

if TYPE_CHECKING:
    from polyseme.release import Column
    from polyseme.results.plan import Plan
    from polyseme.schema import Resolved

__all__ = ["METHODS", "Method", "Registered", "method_named"]


class Method(Protocol):
    """How a table is made publishable."""

    @property
    def name(self) -> str:
        """The policy's and the manifest's word for it."""

    def plan(self, resolved: Resolved, records: int | None = None) -> Plan:
        """What the policy comes to; a promise that cannot be kept is part of it, an invalid one is an error."""

    def columns(self, resolved: Resolved, plan: Plan) -> tuple[Column, ...]:
        """How every column will be published; refuses a plan with a promise that cannot be kept."""


@dataclass(frozen=True)
class Registered:
    """A method's module, which has it as `METHOD`, and what a policy can say of it."""

    module: str
    parameters: tuple[Parameter, ...] = ()


METHODS: Mapping[str, Registered] = {"decoys": Registered("polyseme.methods.decoys")}


def method_named(name: str) -> Method:
    """The method of that name."""
    return cast("Method", importlib.import_module(METHODS[name].module).METHOD)
