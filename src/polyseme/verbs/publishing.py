"""From a job to a release: the rows, the manifest, and a folder that appears only when it is whole."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from polyseme.engines import Engine
from polyseme.engines.run import Outcome, Run
from polyseme.errors import TableError
from polyseme.policy import Policy
from polyseme.release import Manifest, Release, Sets
from polyseme.release.writer import ReleaseWriter, in_memory

__all__ = ["publish_in_folder", "publish_in_memory"]

_log = logging.getLogger(__name__)


def _tables(run: Run, folder: Path, engine: Engine) -> Iterator[pa.Table]:
    """The published rows, as long as nobody wants us to stop."""
    for table in engine(run, folder):
        run.cancellation.check()
        _log.debug("publishes %d rows", table.num_rows)
        yield table


def publish_in_memory(run: Run, policy: Policy, engine: Engine) -> Release:
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        tables = list(_tables(run, Path(folder), engine))
    return in_memory(_manifest(run, policy), pa.concat_tables(tables))


def publish_in_folder(
    run: Run, policy: Policy, engine: Engine, out: Path, file_format: str, overwrite: bool
) -> Release:
    with ReleaseWriter.open(out, file_format, overwrite, run.cancellation) as writer:
        for table in _tables(run, writer.folder, engine):
            writer.write(table)
        writer.finish(_manifest(run, policy))
    return writer.release


def _manifest(run: Run, policy: Policy) -> Manifest:
    job, outcome = run.job, run.outcome
    if not outcome.records:
        raise TableError(
            f"{run.source.name}: no records to publish"
            + (f" ({outcome.dropped:,} dropped for missing values)" if outcome.dropped else "")
        )
    return Manifest(
        columns=tuple(
            replace(item, repeats=_repeats(item.name, outcome)) if isinstance(item, Sets) else item
            for item in job.columns
        ),
        records=outcome.records,
        rows=outcome.rows,
        form=job.form,
        method=policy.method.name,
        dropped=outcome.dropped,
        seeded=job.seed is not None,
        sticky=job.key is not None,
        models=tuple({model.name: dict(model.parameters)} for model in policy.models),
        missing_values=policy.table.missing_values,
    )


def _repeats(name: str, outcome: Outcome) -> float:
    """Records to a draw, rounded up to two digits: the exact figure could tell of single people."""
    if name not in outcome.draws:
        return 1.0
    drawn = outcome.draws[name]
    tenths = -(-10 * drawn.squares // drawn.total)
    step: int = 10 ** max(len(str(tenths)) - 2, 0)
    return min(-(-tenths // step) * step / 10, float(drawn.total))
