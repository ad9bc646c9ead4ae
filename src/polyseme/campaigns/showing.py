"""What a campaign comes to, from its document alone: promises as devices check them, and the error to expect."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from polyseme.analysis import Facts, facts, worst_of
from polyseme.campaigns.columns import columns_of
from polyseme.device.campaign import Campaign
from polyseme.release.columns import Sets

__all__ = ["ColumnSummary", "Summary", "summary"]


@dataclass(frozen=True)
class ColumnSummary:
    """What is known of one protected column.

    promised      the posterior that no set exceeds; None where none is promised
    worst         the same as a device computes it
    uniform       the same for an attacker who takes all values to be equally common
    odds          the largest factor by which a set changes the odds between two of its candidates, for every prior
    mse           expected squared error of a share at the planned number of answers; None where it is not known
    identifiable  whether every value can be told from the others in the end
    """

    name: str
    kind: str
    size: int
    l: int
    p: float
    strata: int
    promised: float | None
    worst: float
    uniform: float
    odds: float
    epsilon: float | None
    mse: float | None
    identifiable: bool | None

    @property
    def error(self) -> float | None:
        """The error of a share, as its root mean square."""
        return None if self.mse is None else float(self.mse**0.5)


@dataclass(frozen=True)
class Summary:
    """A campaign in numbers."""

    id: str
    name: str
    languages: tuple[str, ...]
    bytes: int
    planned: int
    open: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `campaign show --json`."""
        columns = [{**asdict(item), "error": item.error} for item in self.columns]
        return {**asdict(self), "columns": columns}


def summary(campaign: Campaign, records: int | None = None) -> Summary:
    """A campaign in numbers; `records` instead of the planned number of answers."""
    planned = campaign.collection.planned if records is None else records
    columns = [column for column in columns_of(campaign) if isinstance(column, Sets)]
    found = tuple(_column(campaign, column, planned) for column in columns)
    opened = tuple(item.name for item in campaign.open)
    return Summary(campaign.id, campaign.name, tuple(campaign.languages), len(campaign.data), planned, opened, found)


def _column(campaign: Campaign, column: Sets, planned: int) -> ColumnSummary:
    device = next(item for item in campaign.protected if item.name == column.name)
    known = _facts(column, planned)
    return ColumnSummary(
        name=column.name,
        kind=device.strata[0].sampling.document["kind"],
        size=len(device.labels),
        l=device.l,
        p=device.strata[0].sampling.p,
        strata=len(device.strata),
        promised=device.posterior,
        worst=device.worst_posterior,
        uniform=device.uniform_posterior,
        odds=device.odds,
        epsilon=known.epsilon,
        mse=known.expected_mse,
        identifiable=known.identifiable,
    )


def _facts(column: Sets, planned: int) -> Facts:
    """Of all strata together: the worst of them, as a plan has it."""
    return worst_of([facts(member.mechanism, member.prior, planned) for member in column.strata.members])
