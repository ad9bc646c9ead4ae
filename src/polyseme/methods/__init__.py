"""Methods: how a table is made publishable, as `method:` in a policy names it.

There are two kinds, and one of each can be combined:

decoys                  draws a set of candidates in the place of each protected value. It says before any record is
                        touched what the policy comes to (`plan`), and how each column will be published (`columns`);
                        what happens to a batch follows from the columns
full-domain, mondrian,  look at the whole table first, and decide which records share a class and what each class
anatomy, buckets, rules shows (`group`); the rows are recoded before they are published

A method is imported when it is used, so that their names cost nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from polyseme.kernel.parameters import MOST, Parameter

if TYPE_CHECKING:
    from polyseme.methods.goal import GroupingMethod
    from polyseme.release import Column
    from polyseme.results.plan import Plan
    from polyseme.schema import Resolved

__all__ = ["DECOYS", "GROUPING", "LOSSES", "METHODS", "Method", "Registered", "grouping_named", "method_named"]


class Method(Protocol):
    """How a table is made publishable, record by record."""

    @property
    def name(self) -> str:
        """The policy's and the manifest's word for it."""

    def plan(self, resolved: Resolved, records: int | None = None) -> Plan:
        """What the policy means; a promise that cannot be kept is part of it.

        An invalid promise is an error.
        """

    def columns(self, resolved: Resolved, plan: Plan) -> tuple[Column, ...]:
        """How every column will be published; refuses a plan with a promise that cannot be kept."""


@dataclass(frozen=True)
class Registered:
    """A method's module, which has it as `METHOD`, and what a policy can say of it."""

    module: str
    parameters: tuple[Parameter, ...] = ()


DECOYS = "decoys"
LOSSES = ("entropy", "loss", "precision", "discernibility", "average-class-size")
"""What a search can minimize, by the policy's words."""
_L = Parameter("l", "whole", low=2, high=MOST, example=3)
_LEFT_OUT = Parameter("left-out", low=0, high=1, above=True, default=1.0, required=False, example=0.8)
_ATTRIBUTE = Parameter("attribute", "text", required=False, example="disease")

METHODS: Mapping[str, Registered] = {
    DECOYS: Registered("polyseme.methods.decoys"),
    "full-domain": Registered(
        "polyseme.methods.full_domain.optimum",
        (
            Parameter("loss", "choice", choices=LOSSES, default="entropy", required=False),
            Parameter("suppression", low=0, high=1, default=0.0, required=False, example=0.04),
            Parameter("weights", "mapping", required=False),
            Parameter("local-recoding", "switch", default=False, required=False),
            Parameter("time-limit", low=0, above=True, required=False, example=60),
            Parameter("checks", "whole", low=1, required=False, example=100_000),
            Parameter("levels", "mapping", required=False),
        ),
    ),
    "mondrian": Registered(
        "polyseme.methods.mondrian.partition",
        (Parameter("mode", "choice", choices=("strict", "relaxed"), default="strict", required=False),),
    ),
    "anatomy": Registered("polyseme.methods.anatomy", (_L, _ATTRIBUTE, _LEFT_OUT)),
    "buckets": Registered(
        "polyseme.methods.buckets",
        (
            _L,
            Parameter("e", low=0, required=False, example=1),
            Parameter("d", low=0, required=False, example=2),
            _ATTRIBUTE,
            Parameter("algorithm", "choice", choices=("exact", "mbf"), default="exact", required=False),
            _LEFT_OUT,
        ),
    ),
    "rules": Registered(
        "polyseme.methods.rules",
        (
            Parameter("start", "mapping", required=False),
            Parameter("actions", "list", required=False),
            Parameter("change-values", "mapping", required=False),
        ),
    ),
}
GROUPING: tuple[str, ...] = tuple(name for name in METHODS if name != DECOYS)
"""The methods that look at the whole table."""


def method_named(name: str) -> Method:
    """The method of that name that works record by record."""
    return cast("Method", importlib.import_module(METHODS[name].module).METHOD)


def grouping_named(name: str) -> GroupingMethod:
    """The method of that name that looks at the whole table."""
    return cast("GroupingMethod", importlib.import_module(METHODS[name].module).METHOD)
