"""What an analyst sees of a campaign: the error to expect while it runs, and the estimates when it is closed.

Estimates come from a release, by the estimator that everybody uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.arrays import Floats
from polyseme.campaigns import summary
from polyseme.collection.survey import Survey
from polyseme.device.campaign import Campaign
from polyseme.errors import Problem, QuestionError, nearest
from polyseme.estimators.estimate import Estimate
from polyseme.release import Release
from polyseme.verbs.estimate import estimate

__all__ = ["Expected", "expected_errors", "question_of", "require_columns", "shares"]


@dataclass(frozen=True)
class Expected:
    """How exact one protected column will be.

    l         candidates to a set
    promised  the posterior that no set exceeds; None where none is promised
    worst     the same as computed from the document
    error     expected error of a share, as root mean square, of one report; None where it is not known
    """

    name: str
    question: str
    values: int
    l: int
    promised: float | None
    worst: float
    error: float | None

    def at(self, reports: int) -> float | None:
        """The expected error of a share after so many reports: errors shrink with the root of the number."""
        return None if self.error is None or reports < 1 else float(self.error / np.sqrt(reports))

    def to_dict(self, reports: int, planned: int) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "question": self.question,
            "values": self.values,
            "l": self.l,
            "promised": self.promised,
            "worst": self.worst,
            "now": self.at(reports),
            "planned": self.at(planned),
        }


def expected_errors(survey: Survey) -> tuple[Expected, ...]:
    """What can be expected of each protected column."""
    return tuple(
        Expected(
            name=item.name,
            question=question_of(survey, item.name),
            values=item.size,
            l=item.l,
            promised=item.promised,
            worst=item.worst,
            error=item.error,
        )
        for item in summary(survey.campaign, records=1).columns
    )


def require_columns(survey: Survey, of: str, by: str | None) -> None:
    """Raise unless shares of one column can be asked for within groups of the other."""
    _require_column("of", of, [column.name for column in survey.sets])
    if by is not None:
        _require_column("by", by, [column.name for column in survey.open])


def _require_column(word: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise QuestionError(Problem(word, "the campaign has no such column", nearest(name, names)))


def shares(survey: Survey, release: Release, of: str, by: str | None = None) -> dict[str, Any]:
    """The shares of a protected column with their intervals, by group where an open column is named."""
    campaign, table = survey.campaign, estimate(release, [of], [] if by is None else [by])
    return {
        "of": of,
        "by": by,
        "question": question_of(survey, of),
        "labels": _texts(campaign, of, table.labels[0]),
        "ordered": _ordered(campaign, of),
        "groups": _groups(campaign, table, by),
        "level": table.level,
        "records": table.records,
        "estimator": table.estimator,
        "notes": list(table.notes),
    }


def _groups(campaign: Campaign, table: Estimate, by: str | None) -> list[dict[str, Any]]:
    """The shares of each group, with the number of its records."""
    names = [""] if by is None else _texts(campaign, by, table.by[by])
    found = table.proportions()
    return [
        {
            "name": name,
            "records": round(float(table.totals[place])),
            "share": _numbers(found.values[place]),
            "low": _numbers(found.low[place]),
            "high": _numbers(found.high[place]),
        }
        for place, name in enumerate(names)
    ]


def _ordered(campaign: Campaign, name: str) -> bool:
    """Whether the values have an order of their own."""
    column = next(item for item in campaign.protected if item.name == name)
    return column.strata[0].sampling.document["kind"] in ("line", "circle")


def _numbers(row: Floats) -> list[float | None]:
    return [float(number) if np.isfinite(number) else None for number in row]


def question_of(survey: Survey, name: str) -> str:
    """What people are asked for a column, in the campaign's first language."""
    campaign = survey.campaign
    return str(campaign.document["questions"][name]["text"][campaign.languages[0]])


def _texts(campaign: Campaign, name: str, values: tuple[Any, ...]) -> list[str]:
    """Values as the campaign's first language has them."""
    domains = {item.name: item.labels for item in campaign.open} | {
        item.name: item.labels for item in campaign.protected
    }
    texts = campaign.document["questions"][name].get("labels", {}).get(campaign.languages[0])
    spoken = dict(zip(map(str, domains[name]), texts)) if texts else {}
    return [spoken.get(str(value), str(value)) for value in values]
