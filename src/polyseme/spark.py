"""Tables beyond one machine: the same verbs, with Spark doing what is done for every record.

    from polyseme import spark

    release = spark.anonymize("s3-or-shared/visits", "policy.yaml", out="release")   # a path, a frame, a table's name
    spark.verify("release")
    spark.estimate("release", of=["illness"], by=["sex"])
    spark.risk(frame, qi=["age", "sex"])
    spark.attack("release", sample=100_000)

Workers draw sets and assign records to groups, Spark shuffles, writes and counts; plans, checks and estimates are
computed here, from counts. Only what Spark Connect has is used, so that classic clusters, Connect servers and
serverless offerings run the same code. Needs `polyseme[spark]`, here and on the workers.

`attack` looks at a random sample that Spark draws. Attacks on sets work record by record, so what succeeds in a sample
succeeds in the whole release. A person at higher risk may be missing from the sample, and attackers who learn from
other columns learn from fewer records. Each row is drawn independently with the same chance: a hash of its contents
would take equal rows together or not at all. Attacks that count similar records get the counts of all records.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from polyseme.engines.spark.engine import SparkEngine
from polyseme.engines.spark.frame import CountedByWorkers, SparkSource, is_frame, read_by, through_workers
from polyseme.engines.spark.jobs import plain_errors
from polyseme.engines.spark.session import session
from polyseme.kernel.errors import PolicyError, Problem, QuestionError, ReleaseError
from polyseme.kernel.files import refuse_existing
from polyseme.kernel.work import Cancellation
from polyseme.policy import Policy
from polyseme.publishing.inputs import policy_given, release_given, source_given, table_given
from polyseme.release import AsIs, Release
from polyseme.release.writer import in_memory
from polyseme.results.attackers import Findings
from polyseme.scrutiny.attacks.audit import attack_sample, require_attackable
from polyseme.tables.io.locations import is_address
from polyseme.tables.io.source import Source
from polyseme.verbs import anonymize as local_anonymize
from polyseme.verbs import estimate as local_estimate
from polyseme.verbs import risk as local_risk
from polyseme.verbs import verify as local_verify

if TYPE_CHECKING:
    from polyseme.inference.sets.estimate import Estimate
    from polyseme.results.risk import Risk
    from polyseme.results.verification import Verification

__all__ = [
    "SparkEngine",
    "anonymize",
    "attack",
    "attack_by_sample",
    "estimate",
    "open_release",
    "open_table",
    "risk",
    "sampled",
    "verify",
]


def attack_by_sample(release: Release, sample: int) -> Findings:
    """What attacks find in about so many records of a release that Spark reads."""
    given: Any = sample
    if not isinstance(given, int) or given < 1:
        raise QuestionError(
            Problem("sample", f"expected a number of records, 1 or more, got {sample!r}", "sample=1000")
        )
    require_attackable(release)
    _refuse_classes(release)
    return Findings(attack_sample(release, sampled(release, sample)))


def _refuse_classes(release: Release) -> None:
    """Raise where other records protect the values: a sample would split classes and groups."""
    plain = [item.name for item in release.manifest.columns if item.attribute.role.is_secret and isinstance(item, AsIs)]
    names = [*plain, *(item.name for item in release.manifest.grouped)]
    if names:
        hint = "run polyseme attack without --engine spark: it reads the release once, file by file"
        raise QuestionError(
            Problem(f"column '{name}'", "protected by its class or group, which a sample would tear apart", hint)
            for name in names
        )


def sampled(release: Release, sample: int) -> Release:
    """About so many records, each with the same chance, as a release in memory.

    All where there are no more.
    """
    source = release.reader
    if not isinstance(source, SparkSource):
        raise ReleaseError("not a release that Spark reads")
    frame = source.frame
    if sample < release.manifest.records:
        frame = frame.sample(sample / release.manifest.records, secrets.randbits(62))
    numbered = frame.toDF(*(f"c{number}" for number in range(len(source.schema))))
    with plain_errors():
        table: pa.Table = numbered.toArrow().rename_columns(source.schema.names)
    rows = int(table.num_rows)
    if not rows:
        raise QuestionError(Problem("sample", "no record was drawn", "ask for more records"))
    return in_memory(replace(release.manifest, records=rows, rows=rows), table)


def anonymize(
    data: Any,
    policy: Policy | str | Path,
    out: str | Path,
    *,
    spark: Any = None,
    master: str | None = None,
    files: int | None = None,
    **options: Any,
) -> Release:
    """Publish a table with Spark: a release of several Parquet files in the folder `out`.

    data     the path of a table (a file, a folder, a glob) that the workers can read too; a Spark frame; or the name of
             a table that Spark's catalog knows, as "db.visits"
    out      a folder that the workers can write to
    spark    the session; the running one, or one for `master`, when None
    master   `local[4]`, `spark://HOST:7077`, `yarn`, `k8s://URL`, or `sc://HOST:15002` for a Spark Connect server
    files    into how many files the data goes; by its number of rows when None
    options  as for `polyseme.anonymize`
    """
    rules = policy_given(policy)
    token: Cancellation | None = options.get("cancellation")
    source = open_table(data, rules, spark=spark, master=master, cancellation=token)
    refuse_existing(Path(out), bool(options.get("overwrite")))
    engine = SparkEngine(spark, master, files)  # wrong options are reported before Spark starts
    found = session(spark, master)
    if SparkSource.beneath(source) is None:
        source = CountedByWorkers(source, found, token)
    return local_anonymize.anonymize(source, rules, out, engine=replace(engine, spark=found), **options)


def open_table(
    data: Any,
    policy: Policy | str | Path,
    *,
    spark: Any = None,
    master: str | None = None,
    cancellation: Cancellation | None = None,
) -> Source:
    """What `anonymize` reads: files that the workers open by their whole names, or a frame."""
    if isinstance(data, Source):
        return data
    if is_frame(data) or _is_name(data):
        return _framed(session(spark, master), data, cancellation)
    return source_given(_whole_name(data), policy_given(policy))


def open_release(
    release: Release | str | Path, *, spark: Any = None, master: str | None = None, data: Any = None
) -> Release:
    """A release that Spark reads; every verb takes it.

    data  a frame, or the name of a table, into which its data was copied; its checksum is then not looked at
    """
    opened = release_given(release)
    if data is None and isinstance(opened.reader, SparkSource):
        return opened
    found = session(spark, master)
    frame = _framed(found, data).frame if isinstance(data, str) else data
    return read_by(found, opened, frame)


def verify(
    subject: Any, policy: Policy | str | Path | None = None, *, spark: Any = None, master: str | None = None
) -> Verification:
    """Every promise of a release, or the models of a policy on any table, counted by Spark."""
    if policy is not None:
        source = open_table(subject, policy, spark=spark, master=master)
        counted = source if isinstance(source, SparkSource) else through_workers(session(spark, master), source)
        return local_verify.verify(counted, policy=policy)
    if is_frame(subject):
        raise PolicyError("a table needs a policy that lists the models to check", "verify(frame, policy)")
    return local_verify.verify(open_release(subject, spark=spark, master=master))


def estimate(
    release: Release | str | Path,
    of: Sequence[str],
    by: Sequence[str] = (),
    *,
    spark: Any = None,
    master: str | None = None,
    **options: Any,
) -> Estimate:
    """The cross-tabulation of true values; Spark counts the sets.

    Options as for `polyseme.estimate`.
    """
    return local_estimate.estimate(open_release(release, spark=spark, master=master), of, by, **options)


def risk(
    data: Any,
    qi: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] = (),
    person: str | None = None,
    *,
    spark: Any = None,
    master: str | None = None,
    **written: Any,
) -> Risk:
    """How exposed the records of a table are; Spark counts the classes.

    Options as for `polyseme.risk`.
    """
    if is_frame(data) or _is_name(data):
        source: Source = _framed(session(spark, master), data)
    else:
        table = table_given(_whole_name(data), **written)
        source = through_workers(session(spark, master), table)
    return local_risk.risk(source, qi, sensitive, person)


def attack(
    release: Release | str | Path, *, sample: int = 100_000, spark: Any = None, master: str | None = None
) -> Findings:
    """What attacks find in a random sample of a release; the findings state its size.

    sample  records that are brought here, about; all of them where there are no more. Who has how many others like him
            is counted by Spark, in all records
    """
    return attack_by_sample(open_release(release, spark=spark, master=master), sample)


def _whole_name(data: Any) -> Any:
    """Paths from the root on: workers have working folders of their own. An address is whole."""
    if isinstance(data, str) and is_address(data):
        return data
    return Path(data).absolute() if isinstance(data, str | Path) else data


_SUFFIXES = frozenset(
    {"csv", "tsv", "txt", "gz", "zst", "bz2", "parquet", "arrow", "feather", "ipc", "xlsx", "dta", "sav"}
)
"""Ends of the names of files: `visits.parquet` is no table `parquet` of a database `visits`."""


def _is_name(data: Any) -> bool:
    """Whether this names a table of the catalog: no such file exists, and it is no path."""
    if not isinstance(data, str) or Path(data).exists():
        return False
    parts = data.split(".")
    return all(part.isidentifier() for part in parts) and parts[-1].lower() not in _SUFFIXES


def _framed(spark: Any, data: Any, cancellation: Cancellation | None = None) -> SparkSource:
    if not isinstance(data, str):
        return SparkSource(data, cancellation=cancellation)
    from pyspark.errors import PySparkException

    try:
        frame = spark.read.table(data)
        _ = frame.columns  # a Connect server is contacted only now
    except PySparkException:
        raise QuestionError(
            f"neither a file nor a table that Spark knows is called '{data}'", "tables are named as in db.visits"
        ) from None
    return SparkSource(frame, data, cancellation=cancellation)
