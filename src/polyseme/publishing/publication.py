"""A publication: from a policy and a table to the rows and folder of a release.

The folder appears when it is whole.

made = prepare(policy, table, Drawing(seed=1))      # the policy resolved for the table
made.decided                                        # its records in classes or groups, where the policy says so
made.job, made.source                               # what an engine is to do, with which rows
publish(Run(made.job, made.source), made, engine, review, Place("release"))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from polyseme.engines import Engine
from polyseme.engines.batch import Job
from polyseme.engines.run import Outcome, Run
from polyseme.kernel.errors import PolicyError, Problem, QuestionError, TableError
from polyseme.kernel.randomness import StreamKey, key_check, read_key
from polyseme.kernel.work import Cancellation, current_cancellation
from polyseme.methods import method_named
from polyseme.policy import Policy
from polyseme.policy.foreign import models_of
from polyseme.policy.resolution import match_columns, resolve
from polyseme.publishing.cautions import require_protection
from polyseme.publishing.review import Review
from polyseme.release import About, Column, Manifest, Release, Sets
from polyseme.release.writer import ReleaseWriter, in_memory
from polyseme.results.plan import Plan
from polyseme.schema import Resolved
from polyseme.tables.derived import with_joined
from polyseme.tables.io.source import Source

if TYPE_CHECKING:
    from polyseme.grouping.columns import Treated
    from polyseme.grouping.groups import Assigned

__all__ = ["Drawing", "Place", "Prepared", "Treat", "planned", "prepare", "publish", "resolved_for", "treated_here"]


# -- what is to be done --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """How sets are drawn and published, beside what the policy says.

    form                 "set" or "long"
    seed                 repeatable random numbers; the release is then not for publication
    key_file             the secret key of sticky decoys
    records_per_person   most records of a person on average with sticky decoys; None for what is ordinary
    allow_changed_strata whether one person may have several sets for one value, drawn in several strata
    accept_differing     whether more than a few groups may have members that do not share a set
    """

    form: str = "set"
    seed: int | None = None
    key_file: str | Path | None = None
    records_per_person: float | None = None
    allow_changed_strata: bool = False
    accept_differing: bool = False

    def key(self, policy: Policy) -> bytes | None:
        """The key of sticky decoys, which needs a column that names people or groups."""
        if self.key_file is None:
            return None
        if policy.record_key is None and not all(item.shared_by for item in policy.protected):
            raise PolicyError(
                "a key was given, but the policy names no record key",
                "add record-key: COLUMN, the column that names a person",
            )
        if self.seed is not None:
            raise PolicyError("a key and a seed cannot be combined", "omit the seed")
        return read_key(Path(self.key_file))


Treat = Callable[[Policy, Resolved, Source], "Treated | Assigned"]
"""Puts the records of a table into classes or groups, as a policy says."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A policy for a table, ready to be run; each step is taken when it is needed, and once.

    policy    as it was given
    table     as it was given
    resolved  the schema of the policy for this table
    drawing   what the caller says beside the policy
    treat     how records are put into classes or groups
    records   the number of records for which the plan tells errors; None for those of the table, where that is known
    """

    policy: Policy
    table: Source
    resolved: Resolved
    drawing: Drawing
    treat: Treat
    records: int | None = None

    @cached_property
    def plan(self) -> Plan:
        """What the policy comes to."""
        return planned(self.policy, self.resolved, self.table.rows if self.records is None else self.records)

    @property
    def columns(self) -> tuple[Column, ...]:
        """How the columns are published, but for what a grouping method decides."""
        return method_named(self.policy.method.name).columns(self.resolved, self.plan)

    @cached_property
    def decided(self) -> Treated | Assigned | None:
        """The table after its grouping method; None where the policy names none."""
        return None if self.policy.grouping is None else self.treat(self.policy, self.resolved, self.table)

    @property
    def models(self) -> tuple[Mapping[str, Any], ...]:
        """What the release promises."""
        return models_of(self.policy) if self.decided is None else self.decided.models

    @cached_property
    def job(self) -> Job:
        """What an engine is to do."""
        policy, resolved, decided, drawing = self.policy, self.resolved, self.decided, self.drawing
        key = drawing.key(policy)
        recoded = decided.recoded if decided is not None else frozenset()
        _require_given_groups(resolved, recoded)
        types = {
            item.name: item.type
            for item in match_columns(policy, self.table).attributes
            if item.type and not item.protect and item.name not in recoded
        }
        categories = frozenset(item.name for item in self.table.schema if pa.types.is_dictionary(item.type))
        return Job(
            columns=self.columns if decided is None else decided.arranged(self.columns),
            types=types,
            categories=categories - types.keys() - recoded,
            missing_values=policy.table.missing_values,
            form=drawing.form,
            seed=drawing.seed,
            key=key,
            record_key=policy.record_key,
            records_per_person=drawing.records_per_person,
            allow_changed_strata=drawing.allow_changed_strata,
            group_key=_group_key(resolved, key, drawing.seed),
            accept_differing=drawing.accept_differing,
        )

    @property
    def sticky(self) -> bool:
        """Whether a key says which sets people have."""
        return self.job.key is not None

    @property
    def key_check(self) -> str:
        """By what the key is known again; nothing where there is none."""
        return "" if self.job.key is None else key_check(self.job.key)

    @cached_property
    def source(self) -> Source:
        """The rows that an engine reads: after the grouping method, with a column for each joint."""
        rows = self.table if self.decided is None else self.decided.source
        return with_joined(rows, (item.attribute for item in self.job.columns), self.policy.table.missing_values)

    @property
    def shown(self) -> Source:
        """The table as readers will see it; new columns are groups of records, the others unchanged."""
        made = self.table if self.decided is None else self.decided.source
        return made if made.schema.names == self.table.schema.names else self.table


def prepare(
    policy: Policy,
    table: Source,
    drawing: Drawing | None = None,
    treat: Treat | None = None,
    records: int | None = None,
    published: bool = False,
) -> Prepared:
    """A policy resolved for a table to publish; refuses to publish a secret as it is.

    policy     with what it takes from earlier releases looked up
    treat      on this machine, by the seed of the drawing, when None
    published  whether the table is published already, so that nothing is refused
    """
    drawing = drawing or Drawing()
    treat = treat or partial(treated_here, seed=drawing.seed)
    resolved = resolve(policy, table) if published else resolved_for(policy, table)
    return Prepared(policy, table, resolved, drawing, treat, records)


def resolved_for(policy: Policy, source: Source | None) -> Resolved:
    """The schema of a policy for a table to publish; None where only the policy is known."""
    resolved = resolve(policy, source)
    require_protection(resolved, policy.grouping is not None, source is None and policy.protect_all_but is not None)
    return resolved


def planned(policy: Policy, resolved: Resolved, records: int | None = None) -> Plan:
    """What a policy comes to by its method for sets."""
    return method_named(policy.method.name).plan(resolved, records)


def treated_here(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    seed: int | None = None,
    cancellation: Cancellation | None = None,
    earlier: Manifest | None = None,
    neighbors: bool = False,
) -> Treated:
    """Records put into classes or groups on this machine; see `recoding.treat`."""
    # A hundred modules that are not needed where only decoys are drawn.
    from polyseme.grouping.application import treat

    return treat(policy, resolved, source, seed, cancellation or current_cancellation(), earlier, neighbors)


def _group_key(resolved: Resolved, key: bytes | None, seed: int | None) -> bytes | None:
    """The key for sets that groups share: that of sticky decoys, or one for this run only."""
    if not any(item.shared_by for item in resolved.schema.protected):
        return None
    if key is not None:
        return key
    return (StreamKey.fresh() if seed is None else StreamKey.seeded(f"{seed} groups")).key


def _require_given_groups(resolved: Resolved, recoded: Collection[str]) -> None:
    """Refuse groups by a column that the method changes: its labels no longer show the groups."""
    problems = [
        Problem(
            f"$.attributes.{item.name}.shared-by",
            f"the method generalizes '{item.shared_by}', which would no longer tell groups",
            "drop that column (role: identifier), or name another one",
        )
        for item in resolved.schema.protected
        if item.shared_by and item.shared_by in recoded
    ]
    if problems:
        raise PolicyError(problems)


# -- how it appears ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a release goes.

    out            a folder; None for memory
    file_format    "parquet" or "csv"
    overwrite      whether a release that is there is replaced
    rows_per_file  rows that a data file has at the most; None for one file
    """

    out: str | Path | None = None
    file_format: str = "parquet"
    overwrite: bool = False
    rows_per_file: int | None = None


def publish(run: Run, made: Prepared, engine: Engine, review: Review, place: Place) -> Release:
    """The release of a run; it appears only where the review lets it pass."""
    return _in_memory(run, made, engine, review) if place.out is None else _in_folder(run, made, engine, review, place)


def _in_memory(run: Run, made: Prepared, engine: Engine, review: Review) -> Release:
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        held = _Held(Path(folder))
        engine(run, held, review)
    manifest = _manifest(run, made)  # refuses an empty table
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


def _in_folder(run: Run, made: Prepared, engine: Engine, review: Review, place: Place) -> Release:
    written = ReleaseWriter.open(
        Path(str(place.out)), place.file_format, place.overwrite, run.cancellation, place.rows_per_file
    )
    with written as writer:
        read = engine(run, writer, review)
        # The folder takes its place when this block ends: what is refused here was never published.
        writer.finish(review.passed(read(writer.written(_manifest(run, made)))))
    return writer.release


def _manifest(run: Run, made: Prepared) -> Manifest:
    job, outcome, policy, decided = run.job, run.outcome, made.policy, made.decided
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
        dropped=outcome.dropped + (decided.dropped if decided is not None else 0),
        seeded=job.seed is not None,
        sticky=made.sticky,
        key_check=made.key_check,
        models=made.models,
        missing_values=policy.table.missing_values,
        applied=None if decided is None else decided.applied,
        about=_dated(policy.about),
    )


def _dated(about: About) -> About:
    """The policy's description of the table, with the day of the run unless it has another date."""
    return replace(about, date=about.date or date.today().isoformat()) if about else about


def _differing(name: str, outcome: Outcome) -> float:
    """The share of groups whose members differ, rounded up to 0.1% to hide single groups."""
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
