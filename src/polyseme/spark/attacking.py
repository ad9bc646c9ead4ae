"""Attacks on a release of which Spark brings a random sample here.

Adversaries against sets look at records one by one: whom they see through in a sample they see through in the whole.
A person at higher risk may be missing in it, and attackers who learn from other columns learn from fewer records.

Rows are drawn by Spark, each with the same chance and for itself. A hash of what stands in a row would not do: equal
rows would come together or not at all. Who is alike in a sample is not alike in the table, so attacks that count those
get the counts of all records.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

import pyarrow as pa

from polyseme.attacks.audit import attack_sample, require_attackable
from polyseme.errors import Problem, QuestionError, ReleaseError
from polyseme.release import AsIs, Release
from polyseme.release.writer import in_memory
from polyseme.results.findings import Findings
from polyseme.spark.failing import plain_errors
from polyseme.spark.source import SparkSource

__all__ = ["attack_by_sample", "sampled"]


def attack_by_sample(release: Release, sample: int) -> Findings:
    """What adversaries find in about so many records of a release that Spark reads."""
    asked: Any = sample
    if not isinstance(asked, int) or asked < 1:
        raise QuestionError(
            Problem("sample", f"expected a number of records, 1 or more, got {sample!r}", "sample=1000")
        )
    require_attackable(release)
    _refuse_classes(release)
    return Findings(attack_sample(release, sampled(release, sample)))


def _refuse_classes(release: Release) -> None:
    """Raise where values are protected by the records beside them: a sample tears classes and groups apart."""
    plain = [item.name for item in release.manifest.columns if item.attribute.role.is_secret and isinstance(item, AsIs)]
    names = [*plain, *(item.name for item in release.manifest.grouped)]
    if names:
        hint = "run polyseme attack without --engine spark: it reads the release once, file by file"
        raise QuestionError(
            Problem(f"column '{name}'", "protected by its class or group, which a sample would tear apart", hint)
            for name in names
        )


def sampled(release: Release, sample: int) -> Release:
    """About so many records, each with the same chance, as a release in memory; all where there are no more."""
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
