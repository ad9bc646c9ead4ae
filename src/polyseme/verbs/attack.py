"""`attack`: the attacks on a release."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Unpack

from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.work import verb
from polyseme.publishing.inputs import original_given, release_given, table_given
from polyseme.release import Release
from polyseme.results.attackers import Findings
from polyseme.tables.io.source import TableOptions

__all__ = ["attack"]

_log = logging.getLogger(__name__)


@verb(read=1, attributes=8)
def attack(
    release: Release | str | Path,
    original: Any = None,
    other: Release | str | Path | None = None,
    *,
    seed: int | None = None,
    population: Any = None,
    **written: Unpack[TableOptions],
) -> Findings:
    """Run the attacks on a release.

    original  the table, to say how often they are right; where its people cannot be found in the release, fresh sets
              are drawn for them
    other     a second release of the same people
    seed      of these fresh sets: the same findings in every run, for experiments
    population  people with the same quasi-identifiers as a table: the journalist looks for their records, and the
                marketer for those of all people; as they are, or generalized like the release
    """
    # Charts and attacks cost a second to import: only calls that need them pay.
    from polyseme.scrutiny.attacks.audit import attack_release

    opened = release_given(release)
    source = original_given(original, opened, **written)
    against = release_given(other) if other is not None else None
    if against is not None and against.holds_the_same_as(opened):
        raise QuestionError(Problem("other", "this is the same release", "give a second release of the same people"))
    people = None if population is None else table_given(population, **written)
    findings = Findings(attack_release(opened, source, against, seed, people))
    _log.info("attack: %d findings, %d above their bound", len(findings), len(findings.exceeded))
    return findings
