"""Tables beyond one machine: the same verbs, with Spark doing what is done for every record.

    from polyseme import spark

    release = spark.anonymize("s3-or-shared/visits", "policy.yaml", out="release")   # a path, a frame, a table's name
    spark.verify("release")
    spark.estimate("release", of=["illness"], by=["sex"])
    spark.risk(frame, qi=["age", "sex"])

Workers draw sets and deal records to groups, Spark shuffles, writes and counts; plans, checks and estimates are
computed here, from counts. Only what Spark Connect has is used, so that classic clusters, Connect servers and
serverless offerings run the same code. Needs `polyseme[spark]`, here and on the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import PolicyError, QuestionError
from polyseme.policy import Policy
from polyseme.policy.opening import open_for
from polyseme.release import Release
from polyseme.spark.engine import SparkEngine
from polyseme.spark.reading import read_by
from polyseme.spark.session import session
from polyseme.spark.source import CountedByWorkers, SparkSource, is_frame, through_workers
from polyseme.tables.io.source import Source
from polyseme.verbs import anonymize as local_anonymize
from polyseme.verbs import estimate as local_estimate
from polyseme.verbs import risk as local_risk
from polyseme.verbs import verify as local_verify
from polyseme.verbs.inputs import policy_given, release_given, table_given

if TYPE_CHECKING:
    from polyseme.estimators.estimate import Estimate
    from polyseme.results.risk import Risk
    from polyseme.results.verification import Verification

__all__ = ["SparkEngine", "anonymize", "estimate", "open_release", "risk", "verify"]


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
    master   `local[4]`, `spark://HOST:7077`, or `sc://HOST:15002` for a Spark Connect server
    files    into how many files the data goes; by its number of rows when None
    options  as for `polyseme.anonymize`
    """
    found = session(spark, master)
    source = _source(found, data, policy_given(policy))
    if SparkSource.beneath(source) is None:
        source = CountedByWorkers(source, found)
    return local_anonymize.anonymize(source, policy, out, engine=SparkEngine(found, files=files), **options)


def open_release(
    release: Release | str | Path, *, spark: Any = None, master: str | None = None, data: Any = None
) -> Release:
    """A release that Spark reads; every verb takes it.

    data  a frame, or the name of a table, into which its data was copied; its checksum is then not looked at
    """
    found = session(spark, master)
    frame = found.read.table(data) if isinstance(data, str) else data
    return read_by(found, release_given(release), frame)


def verify(
    subject: Any, policy: Policy | str | Path | None = None, *, spark: Any = None, master: str | None = None
) -> Verification:
    """Every promise of a release, or the models of a policy on any table, counted by Spark."""
    found = session(spark, master)
    if policy is not None:
        return local_verify.verify(_counted(found, subject, policy_given(policy)), policy=policy)
    if is_frame(subject):
        raise PolicyError("a table needs a policy that lists the models to check", "verify(frame, policy)")
    return local_verify.verify(_opened(subject, found))


def estimate(
    release: Release | str | Path,
    of: Sequence[str],
    by: Sequence[str] = (),
    *,
    spark: Any = None,
    master: str | None = None,
    **options: Any,
) -> Estimate:
    """The cross-tabulation of true values; Spark counts the sets. Options as for `polyseme.estimate`."""
    return local_estimate.estimate(_opened(release, session(spark, master)), of, by, **options)


def risk(
    data: Any,
    qi: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] = (),
    *,
    spark: Any = None,
    master: str | None = None,
    **written: Any,
) -> Risk:
    """How exposed the records of a table are; Spark counts the classes. Options as for `polyseme.risk`."""
    found = session(spark, master)
    if is_frame(data) or _is_name(data):
        source: Source = _framed(found, data)
    else:
        source = through_workers(found, table_given(data, **written))
    return local_risk.risk(source, qi, sensitive)


def _opened(release: Release | str | Path, spark: Any) -> Release:
    opened = release_given(release)
    return opened if isinstance(opened.reader, SparkSource) else read_by(spark, opened)


def _source(spark: Any, data: Any, policy: Policy) -> Source:
    """What `anonymize` reads: a frame, or files that the workers read themselves."""
    return _framed(spark, data) if is_frame(data) or _is_name(data) else open_for(data, policy)


def _counted(spark: Any, data: Any, policy: Policy) -> Source:
    """A table that is only counted."""
    source = _source(spark, data, policy)
    return source if isinstance(source, SparkSource) else through_workers(spark, source)


def _is_name(data: Any) -> bool:
    """Whether this names a table of the catalog: nothing of that name is on the disk, and it looks like no path."""
    return isinstance(data, str) and all(part.isidentifier() for part in data.split(".")) and not Path(data).exists()


def _framed(spark: Any, data: Any) -> SparkSource:
    if not isinstance(data, str):
        return SparkSource(data)
    from pyspark.errors import PySparkException

    try:
        return SparkSource(spark.read.table(data), data)
    except PySparkException:
        raise QuestionError(
            f"neither a file nor a table that Spark knows is called '{data}'", "tables are named as in db.visits"
        ) from None
