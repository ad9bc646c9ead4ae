"""What a view needs to know of what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Estimated", "KnownFacts", "Planned", "Reached", "Scored", "Setting", "Tried"]


class Planned(Protocol):
    """A plan; its tables show what `plan --json` says."""

    def to_dict(self) -> Mapping[str, Any]: ...


class Estimated(Protocol):
    """An estimated table, one row a cell."""

    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def estimator(self) -> object: ...
    @property
    def weight(self) -> str | None: ...
    @property
    def target(self) -> str: ...
    @property
    def left_out(self) -> int: ...
    @property
    def level(self) -> float: ...
    def to_polars(self) -> pl.DataFrame: ...


class Scored(Protocol):
    """A score of two predictors and of the best constant."""

    @property
    def original(self) -> float: ...
    @property
    def estimate(self) -> float: ...
    @property
    def difference(self) -> float: ...
    @property
    def constant(self) -> float: ...


class KnownFacts(Protocol):
    """What is known about a mechanism before it is used; None where it is not."""

    @property
    def worst_posterior(self) -> float | None: ...
    @property
    def epsilon(self) -> float | None: ...
    @property
    def identifiable(self) -> bool | None: ...
    @property
    def expected_mse(self) -> float | None: ...


class Setting(Protocol):
    """One pair (l, d) of a grid: "feasible", "unestimable" or "infeasible", and its facts when it can be had."""

    @property
    def l(self) -> int: ...  # noqa: E743 - the field's own letter
    @property
    def d(self) -> float: ...
    @property
    def status(self) -> str: ...
    @property
    def facts(self) -> KnownFacts | None: ...


class Tried(Protocol):
    """A setting with what a learner reaches and what it costs."""

    def to_dict(self) -> Mapping[str, Any]: ...


class Reached(Protocol):
    """What an attack reached."""

    @property
    def attack(self) -> str: ...
    @property
    def attribute(self) -> str | None: ...
    @property
    def success(self) -> float: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def baseline(self) -> float: ...
    @property
    def exceeded(self) -> bool: ...
    @property
    def knows(self) -> str: ...
    @property
    def gains(self) -> str: ...
    @property
    def helps(self) -> str: ...
