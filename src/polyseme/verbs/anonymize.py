"""`anonymize`: a table becomes a release."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.engines import Engine, engine_given
from polyseme.engines.batch import Job
from polyseme.engines.checks import absent_values
from polyseme.engines.local import shuffling_memory
from polyseme.engines.run import Run
from polyseme.kernel.errors import (
    PolicyWarning,
    PolysemeWarning,
    PrivacyWarning,
    Problem,
    QuestionError,
    RiskError,
    nearest,
)
from polyseme.kernel.errors import warn as python_warning
from polyseme.kernel.work import Cancellation, current_cancellation, verb
from polyseme.policy import Policy
from polyseme.policy.foreign import population_frame
from polyseme.publishing.cautions import (
    changed_sets,
    differing_groups,
    left_out_cautions,
    repeated_records,
    ungeneralized,
    warnings,
)
from polyseme.publishing.inputs import policy_given, release_given, source_given, with_population
from polyseme.publishing.prospect import LOOKED_AT, Prospect, prospect
from polyseme.publishing.publication import Drawing, Place, Prepared, Treat, prepare, publish, treated_here
from polyseme.publishing.review import Review, singled_out
from polyseme.release import COMBINED, Manifest, Release
from polyseme.release.writer import require_rows_per_file
from polyseme.results.explanation import Explanation
from polyseme.schema import Resolved, Role
from polyseme.tables.derived import with_joined
from polyseme.tables.io.output import FORMATS
from polyseme.tables.io.shuffle import MEMORY_BYTES
from polyseme.tables.io.source import Monitored, Source

if TYPE_CHECKING:
    from polyseme.grouping.columns import Treated
    from polyseme.grouping.groups import Assigned
    from polyseme.verbs.ledger import LedgerCheck

__all__ = ["anonymize"]

Progress = Callable[[int], None]
Warn = Callable[[str], None]
Explain = Callable[[Explanation], None]
Speak = Callable[[type[PolysemeWarning], Iterable[str]], None]
FORMS = ("set", "long")
_LOOKED = 200_000
"""Records that are looked at to see how protected attributes go together: the first ones of the table."""
_log = logging.getLogger(__name__)


@verb(read=1, levels=2, classes=2, mechanisms=1, combined=4, draw=4, write=3)
def anonymize(
    data: Any,
    policy: Policy | str | Path,
    out: str | Path | None = None,
    *,
    form: str = "set",
    file_format: str = "parquet",
    engine: str | Engine = "local",
    seed: int | None = None,
    key_file: str | Path | None = None,
    earlier: Release | str | Path | None = None,
    records_per_person: float | None = None,
    allow_changed_strata: bool = False,
    ledger: str | Path | None = None,
    people: str | None = None,
    accept_risk: bool = False,
    apply: Release | str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = lambda rows: None,
    warn: Warn | None = None,
    cancellation: Cancellation | None = None,
    explain: Explain | None = None,
    rows_per_file: int | None = None,
    memory: str | int | None = None,
    population: Any = None,
) -> Release:
    """Publish a table: a release in the folder `out`, or in memory when there is none.

    form         "set" (a list of candidates for each record) or "long" (a row for each candidate, as the papers do)
    file_format  "parquet" or "csv"
    engine       where the work is done: "local", on this machine; "spark", by the running Spark session (see
                 `polyseme.spark`, which takes more); or an engine
    seed         repeatable random numbers for experiments; the release then says that it is not for publication
    key_file     a secret key for sticky decoys; the policy must name the record key
    earlier      a release of the same people, to hear what changed since and can be intersected
    ledger       a file that keeps what was published about the same people: consulted before, updated afterwards
    people       whom the release is about; may be left out where the ledger knows one group of people
    accept_risk  publish also where models of the policy do not hold, which the manifest then says; where sets can
                 be intersected with those of earlier releases in the ledger; where the sets of several attributes
                 together break a promise about learners; where an insensitive column identifies nearly every record;
                 and where more than 1% of the groups that share a set have members that differ
    apply        an earlier release whose levels of generalization are used again; records that would break a promise
                 are suppressed, and more than the policy allows are refused
    progress     called with how many more rows were read
    warn         called with what the data holder should know before publishing; by default a Python warning
    cancellation stops the work from another thread: it then raises `Cancelled`, and nothing is left behind
    explain      called with why the method rules did what it did, class by class; not for publication
    rows_per_file  rows that a data file has at the most; there are as many files as that takes, or one when None
    memory       what the local engine may take while rows are drawn and put in order, such as "2GB"; about half a
                 gigabyte when None. A method that puts records into classes holds the table in memory besides
    population   people with the same quasi-identifiers as a table, for k-map; in the place of its `reference`

    With sticky decoys a record key that names too few people is refused, unless `records_per_person` says how many
    records they have on average; and so are sets of one person that can be intersected inside the release because what
    is impossible changes from record to record, unless `allow_changed_strata`. Where a model of the policy does not
    hold on the rows that would be published, or fresh sets could be intersected with those that the ledger knows of,
    `RiskError` is raised and nothing is written.
    """
    from polyseme.verbs.prior import with_earlier_releases

    run = engine_given(engine)
    _check_options(form, file_format, records_per_person, run.formats)
    ledger_check = _ledger(ledger, people, seed)
    _check_local(engine, out, rows_per_file, memory)
    cancellation = current_cancellation()
    rules = with_earlier_releases(with_population(policy_given(policy), population))
    source = Monitored(source_given(data, rules), cancellation)
    previous = release_given(earlier).manifest if earlier is not None else None
    drawing = Drawing(form, seed, key_file, records_per_person, allow_changed_strata, accept_risk)
    made = prepare(rules, source, drawing, _treating(run, rules, seed, cancellation, apply))
    speak = partial(_tell, warn)
    _note(made.job, engine)
    seen = _look(made, run, previous, accept_risk)
    _tell_before(speak, made, seen)
    with ledger_check.turn() if ledger_check is not None else nullcontext():
        if ledger_check is not None:
            speak(PrivacyWarning, ledger_check.warnings(made.job.columns, made.sticky, accept_risk, made.key_check))
        work = Run(made.job, made.source, progress, cancellation, memory=_memory(memory))
        review = _review(made, seen, accept_risk, partial(_tell_afterwards, speak, work))
        release = publish(work, made, run, review, Place(out, file_format, overwrite, rows_per_file))
        if ledger_check is not None:
            ledger_check.record(release)
    if explain is not None and made.decided is not None and made.decided.explanation is not None:
        explain(made.decided.explanation)
    return replace(release, frames="pandas") if type(data).__module__.startswith("pandas") else release


def _treating(
    engine: Engine, policy: Policy, seed: int | None, cancellation: Cancellation, apply: Release | str | Path | None
) -> Treat:
    """How an engine puts records into classes or groups.

    engine  says whether no single machine may have to hold all records (`scaled`), whether it deals them to groups, and
            who works where the rows are (`workers`)
    apply   a release whose levels are taken over
    """
    if apply is not None and policy.grouping is None:
        raise QuestionError(Problem("apply", "the policy names no method that generalizes", "method: full-domain"))
    pattern = release_given(apply).manifest if apply is not None else None
    if engine.scaled:
        return partial(_treated_by, engine, seed=seed, cancellation=cancellation, pattern=pattern)
    return partial(treated_here, seed=seed, cancellation=cancellation, earlier=pattern)


def _treated_by(
    engine: Engine,
    policy: Policy,
    resolved: Resolved,
    source: Source,
    seed: int | None,
    cancellation: Cancellation,
    pattern: Manifest | None,
) -> Treated | Assigned:
    """Records put into classes or groups from what an engine counts."""
    from polyseme.grouping.division import require_treated, treat_counted

    hire = partial(engine.workers, source, cancellation)
    made = treat_counted(policy, resolved, source, cancellation, pattern, hire, seed)
    return made if engine.deals or policy.grouping is None else require_treated(made, policy.grouping)


def _note(job: Job, engine: str | Engine) -> None:
    where = engine if isinstance(engine, str) else type(engine).__name__
    columns, sets = len(job.columns), len(job.sets)
    _log.info("anonymize: %d columns, %d of them protected, as %s, engine %s", columns, sets, job.form, where)


# -- before anything is drawn --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """What was found before anything is drawn.

    prospect  what rows will show, and whose they are, where people are counted
    warnings  what the data holder should know of the data
    accepted  what does not hold, and is published all the same
    """

    prospect: Prospect | None
    warnings: Sequence[str]
    accepted: tuple[str, ...] = ()


def _look(made: Prepared, engine: Engine, previous: Manifest | None, accept_risk: bool) -> _Seen:
    """What the data holder should hear of the data; refuses what is not accepted."""
    from polyseme.scrutiny.attacks.agreement import giveaways, shared_values
    from polyseme.scrutiny.attacks.republication import changed_since, changing_strata, require_same_key

    job, source, words = made.job, made.source, made.policy.table.missing_values
    if previous is not None and not accept_risk:
        require_same_key(job.columns, made.key_check, previous)
    seen = _prospect(made)
    warnings = [
        *giveaways(job.columns, source, words),
        *shared_values([item.attribute for item in job.columns], source, words, _drawn_by(job)),
        *(changing_strata(job.columns) if made.sticky else ()),
        *(changed_since(job.columns, made.sticky, previous, made.key_check) if previous is not None else ()),
    ]
    warnings += singled_out(job.columns, source, words).require_accepted(accept_risk)
    shared, accepted = _shared(made, engine, accept_risk, warnings)
    return _Seen(seen, [*warnings, *shared], accepted)


def _prospect(made: Prepared) -> Prospect | None:
    """What rows will show, and their people where the policy names a person column.

    Survey weights split the classes that a method has formed: they are then counted here too. Without a model to check
    nothing is held of a long table: records that are alone are then counted, not people.
    """
    policy, decided, rows = made.policy, made.decided, made.source.rows
    split = decided is not None and any(item.role is Role.WEIGHT for item in policy.attributes)
    if (policy.record_key is None and not split) or (decided is not None and not decided.checked):
        return None
    if not made.models and (rows is None or rows > LOOKED_AT):
        return None
    found = prospect(made.job, made.source, made.models, partial(population_frame, policy))
    # Nothing is claimed of people where nothing is promised.
    return found if made.models else replace(found, people=None)


def _shared(
    made: Prepared, engine: Engine, accept_risk: bool, said: Sequence[str]
) -> tuple[list[str], tuple[str, ...]]:
    """Warnings on attributes whose sets give each other away, and which of them are accepted.

    Refuses where that breaks a promise and the data holder has not accepted it.
    """
    sets = {item.name: item for item in made.job.sets}
    if len(sets) < 2:
        return [], ()
    from polyseme.scrutiny.combined import Reader, broken_promises, shared_warnings
    from polyseme.scrutiny.knowledge import look, some_records

    policy, schema = made.policy, made.resolved.schema
    records = some_records(made.shown, _LOOKED, whole=not engine.scaled)
    source = with_joined(records, schema.attributes, policy.table.missing_values, hidden=True)
    looked = look(policy, schema, {name: item.strata for name, item in sets.items()}, source)
    shared = Reader(looked, sets, exact=True).shared()
    broken = broken_promises(shared, sets)
    if broken and not accept_risk:
        raise RiskError(broken)
    accepted = [f"{one.where}: {one.what}. It is published all the same, as --accept-risk says." for one in broken]
    return [*accepted, *shared_warnings(shared, sets, said)], (COMBINED,) if broken else ()


def _tell_before(speak: Speak, made: Prepared, seen: _Seen) -> None:
    """What the data holder should hear before anything is drawn."""
    policy, decided, drawing = made.policy, made.decided, made.drawing
    keyed, seeded = drawing.key_file is not None, drawing.seed is not None
    speak(PrivacyWarning, warnings(policy, made.plan.from_data, keyed, seeded, bool(made.job.sets)))
    speak(PolicyWarning, [*ungeneralized(policy), *made.plan.warnings()])
    speak(PrivacyWarning, [*seen.warnings, *(() if decided is None else left_out_cautions(decided.left_out))])


# -- when all rows are drawn ---------------------------------------------------------------------------------------


def _review(made: Prepared, seen: _Seen, accept_risk: bool, tell: Callable[[Sequence[str]], None]) -> Review:
    """What is looked at before the release appears."""
    return Review(
        made.job.columns,
        made.policy.table.missing_values,
        grouped=made.decided is not None,
        checked=made.decided is None or made.decided.checked,
        rows_per_record=made.job.rows_per_record,
        accept_risk=accept_risk,
        accepted=seen.accepted,
        prospect=seen.prospect,
        tell=tell,
        population=partial(population_frame, made.policy),
    )


def _tell_afterwards(speak: Speak, work: Run, seen: Sequence[str]) -> None:
    """What is known when all rows are drawn; what the rows themselves give away comes last."""
    job, outcome = work.job, work.outcome
    _log.info("anonymize: %d records, %d rows, %d dropped", outcome.records, outcome.rows, outcome.dropped)
    speak(PrivacyWarning, [*repeated_records(job, outcome), *changed_sets(outcome), *differing_groups(job, outcome)])
    speak(PolicyWarning, absent_values((item.attribute for item in job.sets), outcome.fulfilled))
    speak(PrivacyWarning, seen)


def _drawn_by(job: Job) -> str | None:
    """The column whose records have one set for one value, whatever groups share."""
    return job.record_key if job.key is not None else None


def _ledger(path: str | Path | None, people: str | None, seed: int | None) -> LedgerCheck | None:
    """The ledger to consult; what does not go with it, or needs it, is refused."""
    if path is None:
        if people is not None:
            raise QuestionError(Problem("people", "it is used only with a ledger", "add --ledger FILE"))
        return None
    if seed is not None:
        raise QuestionError("a seed and a ledger exclude each other: such a release is not for publication")
    from polyseme.verbs.ledger import LedgerCheck

    return LedgerCheck.open(path, people)


def _tell(warn: Warn | None, category: type[PolysemeWarning], texts: Iterable[str]) -> None:
    for text in texts:
        if warn is None:
            python_warning(text, category)
        else:
            warn(text)


def _check_options(
    form: str, file_format: str, records_per_person: float | None = None, written: Sequence[str] = FORMATS
) -> None:
    """Raise for unknown options; `written` are the formats that the engine writes."""
    options = (("form", form, FORMS), ("file_format", file_format, FORMATS))
    problems = [
        Problem(name, f"unknown word '{given}'", nearest(str(given), known))
        for name, given, known in options
        if given not in known
    ]
    if file_format in FORMATS and file_format not in written:
        what = f"this engine does not write '{file_format}'"
        problems.append(Problem("file_format", what, f"file_format='{written[0]}', or engine='local'"))
    if records_per_person is not None and not 1 <= records_per_person < math.inf:
        problems.append(Problem("records_per_person", "expected a number of at least 1"))
    if problems:
        raise QuestionError(problems)


def _check_local(engine: Any, out: Any, rows_per_file: int | None, memory: str | int | None) -> None:
    """Raise for options that the local engine does not know or another engine ignores."""
    require_rows_per_file(rows_per_file)
    problems = []
    if rows_per_file is not None and out is None:
        problems.append(Problem("rows_per_file", "a release in memory has no files", "say where to: out=FOLDER"))
    if engine == "local":
        if memory is not None:
            shuffling_memory(memory)
    else:
        given = {"rows_per_file": rows_per_file, "memory": memory}
        hint = "Spark's own settings say how much memory workers have, and files= of spark.anonymize how many files"
        problems += [Problem(name, "for the local engine only", hint) for name, value in given.items() if value]
    if problems:
        raise QuestionError(problems)


def _memory(given: str | int | None) -> int:
    """Bytes that the local engine may take while rows are put in order."""
    return MEMORY_BYTES if given is None else shuffling_memory(given)
