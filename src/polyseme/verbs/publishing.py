"""From a job to a release: the rows, the manifest, and a folder that appears only when it is whole."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from polyseme.engines import Engine
from polyseme.engines.run import Outcome, Run
from polyseme.errors import Problem, QuestionError, TableError
from polyseme.policy import Policy
from polyseme.randomness import key_check
from polyseme.release import About, Manifest, Release, Sets
from polyseme.release.writer import ReleaseWriter, in_memory
from polyseme.verbs.reviewing import Review

if TYPE_CHECKING:
    from polyseme.verbs.treating import Decided

__all__ = ["models_of", "publish_in_folder", "publish_in_memory"]


def publish_in_memory(
    run: Run, policy: Policy, engine: Engine, review: Review, treated: Decided | None = None
) -> Release:
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        held = _Held(Path(folder))
        engine(run, held, review)
    manifest = _manifest(run, policy, treated)
    table = pa.concat_tables(held.tables)
    return in_memory(review.passed(in_memory(manifest, table)), table)


@dataclass
class _Held:
    """Published rows that are kept in memory."""

    folder: Path
    tables: list[pa.Table] = field(default_factory=list)

    def write(self, table: pa.Table) -> None:
        self.tables.append(table)

    def adopt_files(self, paths: list[Path]) -> None:
        raise QuestionError(Problem("out", "this engine writes its releases", "say where to: out=FOLDER"))


def publish_in_folder(
    run: Run,
    policy: Policy,
    engine: Engine,
    review: Review,
    out: Path,
    file_format: str,
    overwrite: bool,
    treated: Decided | None = None,
    rows_per_file: int | None = None,
) -> Release:
    with ReleaseWriter.open(out, file_format, overwrite, run.cancellation, rows_per_file) as writer:
        read = engine(run, writer, review)
        # The folder takes its place when this block ends: what is refused here was never published.
        writer.finish(review.passed(read(writer.written(_manifest(run, policy, treated)))))
    return writer.release


def _manifest(run: Run, policy: Policy, treated: Decided | None) -> Manifest:
    job, outcome = run.job, run.outcome
    if not outcome.records:
        raise TableError(
            f"{run.source.name}: no records to publish"
            + (f" ({outcome.dropped:,} dropped for missing values)" if outcome.dropped else ""),
            "missing: {category: LABEL} keeps such records" if outcome.dropped else "",
        )
    return Manifest(
        columns=tuple(
            replace(item, repeats=_repeats(item.name, outcome), differing=_differing(item.name, outcome))
            if isinstance(item, Sets)
            else item
            for item in job.columns
        ),
        records=outcome.records,
        rows=outcome.rows,
        form=job.form,
        method=policy.method.name,
        dropped=outcome.dropped + (treated.dropped if treated is not None else 0),
        seeded=job.seed is not None,
        sticky=job.key is not None,
        key_check="" if job.key is None else key_check(job.key),
        models=models_of(policy) if treated is None else treated.models,
        missing_values=policy.table.missing_values,
        applied=None if treated is None else treated.applied,
        about=_dated(policy.about),
    )


def _dated(about: About) -> About:
    """What the policy says of the table, with the day of the run unless it states another; nothing of nothing."""
    return replace(about, date=about.date or date.today().isoformat()) if about else about


def models_of(policy: Policy) -> tuple[Mapping[str, Any], ...]:
    """The models that a release promises; without the place of the population."""
    return tuple(
        {model.name: {name: value for name, value in model.parameters.items() if name != "reference"}}
        for model in policy.models
    )


def _differing(name: str, outcome: Outcome) -> float:
    """The share of groups whose members differ, rounded up to a tenth of a percent: it must not tell of single ones."""
    found = outcome.shared.get(name)
    return 0.0 if found is None or not found.heads else -(-1_000 * found.several // found.heads) / 1_000


def _repeats(name: str, outcome: Outcome) -> float:
    """Records to a draw, rounded up to two digits: the exact figure could tell of single people."""
    if name not in outcome.draws:
        return 1.0
    drawn = outcome.draws[name]
    tenths = -(-10 * drawn.squares // drawn.total)
    step: int = 10 ** max(len(str(tenths)) - 2, 0)
    return min(-(-tenths // step) * step / 10, float(drawn.total))
