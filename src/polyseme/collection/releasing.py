"""From the reports of a closed campaign to an ordinary release.

Rows are shuffled. Too few reports are refused: a set in a small crowd says too much about whose it is. The promise for
the values themselves does not depend on any crowd.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from polyseme.arrays import Bools, Ints, arrow
from polyseme.campaigns import manifest_of
from polyseme.collection.store import State, Store
from polyseme.collection.survey import Survey
from polyseme.errors import CollectionError, Problem, RiskError
from polyseme.randomness import StreamKey
from polyseme.release import AsIs, Release
from polyseme.release.writer import ReleaseWriter
from polyseme.tables.coding.codes import code_array, label_array, set_array
from polyseme.tables.io.shuffle import Shuffler

__all__ = ["release_campaign", "write_release"]

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
    """A crowd that is too small is not released; how small it is is for those who run the campaign."""
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
                yield _labelled(survey, codes.to_numpy().reshape(-1, survey.width).astype(np.int64))


def _labelled(survey: Survey, codes: Ints) -> pa.Table:
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
