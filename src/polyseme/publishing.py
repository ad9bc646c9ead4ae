"""From a table to a release: the job, the manifest, and a folder that appears only when it is whole."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from polyseme.engines.local import Job, Outcome, published_tables
from polyseme.engines.people import CHANGED, people_of, too_few_people
from polyseme.errors import PolicyError, Problem, ReleaseError, TableError
from polyseme.planning import Plan, make_plan, published_attributes
from polyseme.policy import PROTECT_HINT, Policy
from polyseme.policy.resolving import Resolved, match_columns, resolve
from polyseme.randomness import read_key
from polyseme.release import MANIFEST, Manifest, Release, file_digest
from polyseme.tables.source import Source
from polyseme.tables.spreadsheets import GUARD
from polyseme.tables.writing import TableWriter, whole_folder

__all__ = [
    "changed_sets",
    "few_people",
    "idle_conditions",
    "make_job",
    "publish_in_folder",
    "publish_in_memory",
    "repeated_records",
    "require_protection",
    "save_release",
]

Progress = Callable[[int], None]


def require_protection(resolved: Resolved, unnamed: bool = False) -> None:
    """Refuse what would publish a sensitive attribute as it is; a policy that only verifies may have such ones."""
    bare = [
        Problem(f"$.attributes.{item.name}", f"{item.role.value}, but nothing protects it", PROTECT_HINT)
        for item in resolved.schema.attributes
        if item.role.is_secret and item.protection is None
    ]
    if bare:
        raise PolicyError(bare)
    if not resolved.schema.protected:
        raise PolicyError(
            "the policy protects no attribute that it names" if unnamed else "the policy protects no attribute",
            "the rest is known from the table: give it with --data"
            if unnamed
            else "give a sensitive attribute a promise: protect: {diversity: {l: 3}}",
        )


def make_job(
    source: Source,
    policy: Policy,
    form: str,
    seed: int | None,
    key_file: str | Path | None,
    records_per_person: float | None = None,
    allow_changed_strata: bool = False,
) -> tuple[Job, Plan]:
    """What is to be done, and the plan behind it."""
    if key_file is not None and policy.record_key is None:
        raise PolicyError(
            "a key was given, but the policy names no record key",
            "add record-key: COLUMN, the column that names a person",
        )
    if key_file is not None and seed is not None:
        raise PolicyError("a key and a seed exclude each other", "leave the seed out")
    resolved = resolve(policy, source)
    require_protection(resolved)
    matched = match_columns(policy, source)
    types = {item.name: item.type for item in matched.attributes if item.type and not item.protect}
    made = make_plan(resolved, source.rows)
    job = Job(
        source=source,
        attributes=published_attributes(resolved, made),
        types=types,
        missing_values=policy.table.missing_values,
        form=form,
        seed=seed,
        key=read_key(Path(key_file)) if key_file is not None else None,
        record_key=policy.record_key,
        records_per_person=records_per_person,
        allow_changed_strata=allow_changed_strata,
    )
    return job, made


def _manifest(job: Job, policy: Policy, outcome: Outcome, data: dict[str, Any]) -> Manifest:
    if not outcome.records:
        raise TableError(
            f"{job.source.name}: no records to publish"
            + (f" ({outcome.dropped:,} dropped for missing values)" if outcome.dropped else "")
        )
    return Manifest(
        attributes=tuple(replace(item, repeats=_repeats(item.name, outcome)) for item in job.published),
        records=outcome.records,
        rows=outcome.rows,
        form=job.form,
        dropped=outcome.dropped,
        seeded=job.seed is not None,
        sticky=job.key is not None,
        models=tuple({model.name: dict(model.parameters)} for model in policy.models),
        missing_values=policy.table.missing_values,
        data=data,
    )


def _repeats(name: str, outcome: Outcome) -> float:
    """Records to a draw, rounded up to two digits: the exact figure could tell of single people."""
    if name not in outcome.draws:
        return 1.0
    drawn = outcome.draws[name]
    tenths = -(-10 * drawn.squares // drawn.total)
    step: int = 10 ** max(len(str(tenths)) - 2, 0)
    return min(-(-tenths // step) * step / 10, float(drawn.total))


def idle_conditions(job: Job, outcome: Outcome) -> list[str]:
    """Declared combinations that no record came near: a word that is written otherwise in the table, perhaps."""
    found = []
    for item in job.published:
        members = item.strata.members if item.name in outcome.strata else ()
        met = [set(members[place].excluded) for place in outcome.strata.get(item.name, ())]
        found += [
            f"{constraint.where}: no record fulfils this condition; check how its values are written in the table"
            for constraint in item.attribute.constraints
            if not any(set(constraint.excluded) <= excluded for excluded in met)
        ]
    return found


def repeated_records(job: Job, outcome: Outcome) -> list[str]:
    """People with several records, when each record has decoys of its own."""
    if not outcome.repeated or job.key is not None:
        return []
    return [
        f"{outcome.repeated:,} records have the record key of another one: whoever knows which records belong together "
        "can intersect their sets. Use --key-file, or publish one record for each person."
    ]


def few_people(source: Source, policy: Policy) -> list[str]:
    """A record key that `anonymize` would refuse with a key, looked at before."""
    if policy.record_key is None:
        return []
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        people = people_of(source, policy.record_key, policy.table.missing_values, Path(folder))
    what, hint = too_few_people(people.total, people.distinct)
    return [f"$.record-key: {people.total:,} {what}, and is refused with --key-file; {hint}."] if what else []


def changed_sets(outcome: Outcome) -> list[str]:
    """People whose sets differ from record to record, where that was accepted."""
    return [f"{name}: {count:,} {CHANGED}." for name, count in outcome.changed.items()]


def publish_in_memory(job: Job, policy: Policy, outcome: Outcome, progress: Progress) -> Release:
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        tables = list(published_tables(job, Path(folder), outcome, progress))
    manifest = _manifest(job, policy, outcome, {"file": "data.parquet", "format": "parquet", "sha256": "0" * 64})
    return Release(manifest, None, pa.concat_tables(tables))


def publish_in_folder(
    job: Job, policy: Policy, out: Path, file_format: str, overwrite: bool, outcome: Outcome, progress: Progress
) -> Release:
    with whole_folder(out, overwrite) as folder:
        path = folder / f"data.{file_format}"
        writer = None
        try:
            for table in published_tables(job, folder, outcome, progress):
                writer = writer or TableWriter(path, table.schema, file_format)
                writer.write(table)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            _manifest(job, policy, outcome, {})
        manifest = _manifest(job, policy, outcome, _data_entry(path, file_format))
        (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    return Release.open(out)


def _data_entry(path: Path, file_format: str) -> dict[str, Any]:
    """What the manifest says of the data file."""
    entry = {"file": path.name, "format": file_format, "sha256": file_digest(path)}
    return {**entry, "guard": GUARD} if file_format == "csv" else entry


def save_release(release: Release, out: Path, file_format: str, overwrite: bool) -> Release:
    """Write a release that is in memory into a folder."""
    if release.table is None:
        raise ReleaseError("this release is in a folder already")
    with whole_folder(out, overwrite) as folder:
        path = folder / f"data.{file_format}"
        writer = TableWriter(path, release.table.schema, file_format)
        writer.write(release.table)
        writer.close()
        manifest = replace(release.manifest, data=_data_entry(path, file_format))
        (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    return Release.open(out)
