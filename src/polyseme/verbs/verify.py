"""`verify`: the promises of a release, or the models a policy lists for any table."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from polyseme.kernel.errors import PolicyError, Problem
from polyseme.kernel.work import verb
from polyseme.policy import Policy
from polyseme.publishing.inputs import (
    compared_with,
    policy_given,
    release_given,
    source_given,
    table_given,
    with_population,
)
from polyseme.release import Release
from polyseme.release.data import MANIFEST
from polyseme.results.verification import Verification
from polyseme.scrutiny.knowledge import from_release, looks_at_all
from polyseme.scrutiny.learners import with_learners
from polyseme.scrutiny.verification.claims import compared
from polyseme.scrutiny.verification.verdicts import verify_release, verify_table
from polyseme.tables.io.locations import is_address, is_pattern

__all__ = ["verify"]

_log = logging.getLogger(__name__)


@verb(read=1, promises=1, adversaries=4, guesses=8)
def verify(
    subject: Release | str | Path | Any,
    policy: Policy | str | Path | None = None,
    *,
    original: Any = None,
    person: str | None = None,
    population: Any = None,
) -> Verification:
    """Check every promise of a release, or the models that a policy lists on any table.

    original  the table that a release was made of: with it the people are counted whom the release claims to hide
    person    the column of the original that says whose each record is; may be left out where only one can
    population  people with the same quasi-identifiers as a table, for k-map
    """
    if policy is not None:
        _require_table(subject)
        _require_no_original(original)
        rules = with_population(policy_given(policy), population)
        return _counted(verify_table(source_given(subject, rules), rules))
    if hasattr(subject, "columns") or (isinstance(subject, str | Path) and _names_files(subject)):
        name = f"{subject}: " if isinstance(subject, str | Path) else ""
        raise PolicyError(
            f"{name}a table needs a policy that lists the models to check", "polyseme verify TABLE --policy POLICY"
        )
    release = release_given(subject)
    found = verify_release(release, population=None if population is None else _people(release, population))
    whole = tuple(release.source.schema.names) == release.manifest.names
    if whole and original is not None:
        people = compared(release, compared_with(original, release), person)
        found = replace(found, verdicts=(*(item for item in found.verdicts if item.model != "people"), *people))
    if whole:
        found = _read_as_learners(release, found)
    return _counted(found)


def _read_as_learners(release: Release, found: Verification) -> Verification:
    """What readers learn from a release, and remarks on its sets where these can be read.

    Attackers who learn use the first records. Where these are all, every other attack uses them in the same reading.
    """
    if not found.holds or release.manifest.form != "set":
        return with_learners(found, release)
    # A hundred modules that are not needed to check a table.
    from polyseme.publishing.review import singled_out
    from polyseme.scrutiny.attacks.audit.seen import Memory
    from polyseme.scrutiny.attacks.audit.shared_values import shared_remarks

    memory = Memory(release) if looks_at_all(release) else None
    looked = from_release(release, None if memory is None else memory.add)
    whole = memory is not None and all(item.name in looked.values for item in release.manifest.sets)
    drawn = (lambda item, rows: looked.values[item.name][rows]) if whole else None
    alone = singled_out(release.manifest.columns, release.source, release.manifest.missing_values)
    refused = (problem.what for problem in alone.refused)
    remarks = (*shared_remarks(release, None, memory, drawn), *refused, *alone.warnings)
    return replace(with_learners(found, release, looked), remarks=remarks)


def _people(release: Release, population: Any) -> pl.DataFrame:
    # Attackers cost a second to import: only those who bring a population pay.
    from polyseme.scrutiny.attacks.audit.records import population_of_release

    return population_of_release(release, table_given(population))


def _require_no_original(original: Any) -> None:
    if original is not None:
        what = "a table is checked by its policy, whose record-key says whose the records are"
        raise PolicyError(Problem("original", what, "leave --original out"))


def _names_files(subject: str | Path) -> bool:
    if isinstance(subject, str) and is_address(subject):
        return True
    path = Path(subject)
    return path.is_file() or (not path.exists() and is_pattern(str(path)))


def _require_table(subject: Any) -> None:
    """Raise for a release: `verify` checks it by its manifest, and a policy is for other tables."""
    folder = subject.folder if isinstance(subject, Release) else subject
    if isinstance(subject, Release) or (isinstance(subject, str | Path) and (Path(subject) / MANIFEST).is_file()):
        raise PolicyError(
            f"{folder or 'this'}: a release, which is checked for its own promises; --policy is for a table",
            "polyseme verify RELEASE, or polyseme verify TABLE --policy POLICY",
        )


def _counted(verification: Verification) -> Verification:
    broken = sum(not verdict.holds for verdict in verification.verdicts)
    _log.info("verify: %d checks, %d of them fail", len(verification.verdicts), broken)
    return verification
