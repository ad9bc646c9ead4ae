"""From the reports of a closed campaign to an ordinary release, and what an analyst sees.

While a campaign runs an analyst sees the error to expect, and after it is closed the estimates. These come from a
release, by the same estimator as everywhere.

Rows of a release are shuffled. Too few reports are refused: a set in a small group says too much about whose it is. The
promise for the values themselves does not depend on the number of reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from polyseme.collection.campaigns import manifest_of, summary
from polyseme.collection.store import State, Store
from polyseme.collection.survey import Survey
from polyseme.device.campaign import Campaign
from polyseme.inference.sets.estimate import Estimate
from polyseme.kernel.arrays import Bools, Floats, Ints, arrow
from polyseme.kernel.errors import CollectionError, Problem, QuestionError, RiskError, nearest
from polyseme.kernel.randomness import StreamKey
from polyseme.release import AsIs, Release
from polyseme.release.writer import ReleaseWriter
from polyseme.tables.codes import code_array, label_array, set_array
from polyseme.tables.io.shuffle import Shuffler
from polyseme.verbs.estimate import estimate

__all__ = [
    "Expected",
    "expected_errors",
    "question_of",
    "release_campaign",
    "require_columns",
    "shares",
    "write_release",
]


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
        """The expected error of a share after so many reports; it shrinks with their root."""
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
    """Raise unless shares of one column can be estimated within groups of the other."""
    _require_column("of", of, [column.name for column in survey.sets])
    if by is not None:
        _require_column("by", by, [column.name for column in survey.open])


def _require_column(word: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise QuestionError(Problem(word, "the campaign has no such column", nearest(name, names)))


def shares(survey: Survey, release: Release, of: str, by: str | None = None) -> dict[str, Any]:
    """The shares of a protected column with their intervals, by group where one is named."""
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
    """The question for a column, in the campaign's first language."""
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


_PIECE = 1 << 17
"""Rows that are written at a time."""


def release_campaign(
    store: Store, campaign: str, out: Path, k: int | None = None, file_format: str = "parquet", overwrite: bool = False
) -> Release:
    """The release of a closed campaign, in a new folder; the campaign is then released.

    k  least number of records that share their open values; others are left out and counted as dropped
    """
    release = write_release(store, campaign, out, k, file_format, overwrite)
    if store.campaign(campaign).state is State.CLOSED:
        store.move(campaign, State.RELEASED)
    return release


def write_release(
    store: Store, campaign: str, out: Path, k: int | None = None, file_format: str = "parquet", overwrite: bool = False
) -> Release:
    """The same release, without the campaign's taking note of it: for those who only look."""
    kept = store.campaign(campaign)
    if kept.state not in (State.CLOSED, State.RELEASED):
        hint = "close it first: polyseme collect close" if kept.state is State.OPEN else ""
        raise CollectionError(Problem(f"campaign {campaign}", f"it is {kept.state.value}, not closed", hint))
    survey = Survey.read(kept.document)
    codes = [survey.matrix(payloads).astype(survey.code_type) for payloads in store.payloads(campaign)]
    matrix = np.concatenate([np.zeros((0, survey.width), dtype=survey.code_type), *codes])
    shown = _shared(matrix[:, : len(survey.open)], k)
    _require_enough(int(shown.sum()), survey, k)
    manifest = manifest_of(
        survey.campaign,
        int(shown.sum()),
        dropped=int((~shown).sum()),
        k=k if k and k > 1 and survey.open else None,
        date=date.today().isoformat(),
    )
    with ReleaseWriter.open(out, file_format, overwrite) as writer:
        for table in _tables(survey, matrix[shown], writer.folder):
            writer.write(table)
        writer.finish(manifest)
    return writer.release


def _shared(shown: Ints, k: int | None) -> Bools:
    """Which records share their open values with at least k - 1 others."""
    if k is not None and k < 1:
        raise CollectionError(Problem("k", "expected a whole number of at least 1"))
    if not k or k == 1 or not shown.shape[1]:
        return np.ones(len(shown), dtype=bool)
    _, place, counts = np.unique(shown, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[place.reshape(-1)] >= k)


def _require_enough(records: int, survey: Survey, k: int | None) -> None:
    """Raise if a campaign has too few reports; only its operators learn how many."""
    minimum = survey.settings.minimum
    if records < minimum:
        left = " that share their open values" if k and k > 1 else ""
        raise RiskError(
            Problem(
                f"campaign {survey.id}",
                f"it has {records:,} reports{left}, and promised that none is released below {minimum:,}",
                "purge it: polyseme collect purge",
            )
        )


def _tables(survey: Survey, matrix: Ints, folder: Path) -> Iterator[pa.Table]:
    """The rows in random order, with labels in place of codes."""
    with Shuffler(StreamKey.fresh().partitions(), folder, rows=len(matrix)) as shuffler:
        for start in range(0, len(matrix), _PIECE):
            piece = arrow(matrix[start : start + _PIECE].reshape(-1))
            rows = pa.FixedSizeListArray.from_arrays(piece, survey.width)
            shuffler.add(pa.record_batch([rows], names=["codes"]))
        for table in shuffler.tables():
            for start in range(0, table.num_rows, _PIECE):
                codes = table.slice(start, _PIECE).column("codes").combine_chunks().flatten()
                yield _labeled(survey, codes.to_numpy().reshape(-1, survey.width).astype(np.int64))


def _labeled(survey: Survey, codes: Ints) -> pa.Table:
    columns, places = {}, _places(survey)
    for column in survey.columns:
        domain = column.attribute.domain
        labels = label_array(domain.values if domain is not None else ())
        found = codes[:, places[column.name]]
        columns[column.name] = code_array(found[:, 0], labels) if isinstance(column, AsIs) else set_array(found, labels)
    return pa.table(columns)


def _places(survey: Survey) -> dict[str, slice]:
    """Where the codes of each column are: open columns first, then sets."""
    places, start = {}, 0
    for column in survey.open:
        places[column.name] = slice(start, start + 1)
        start += 1
    for attribute in survey.sets:
        places[attribute.name] = slice(start, start + attribute.l)
        start += attribute.l
    return places
