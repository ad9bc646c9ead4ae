"""`anonymize`: a table becomes a release."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from polyseme.attacks.agreement import shared_values
from polyseme.attacks.giveaways import giveaways
from polyseme.attacks.republishing import changed_since, changing_strata, require_same_key
from polyseme.engines import Engine, engine_given
from polyseme.engines.batch import Job
from polyseme.engines.conditions import absent_values
from polyseme.engines.memory import shuffling_memory
from polyseme.engines.run import Run
from polyseme.errors import (
    PolicyError,
    PolicyWarning,
    PolysemeWarning,
    PrivacyWarning,
    Problem,
    QuestionError,
    RiskError,
    nearest,
)
from polyseme.errors import warn as python_warning
from polyseme.kernel.work import Cancellation, current_cancellation, verb
from polyseme.methods import method_named
from polyseme.policy import Policy
from polyseme.policy.reference import population_frame
from polyseme.policy.resolving import match_columns, resolve
from polyseme.randomness import StreamKey, key_check, read_key
from polyseme.release import Release
from polyseme.release.writer import require_rows_per_file
from polyseme.results.explanation import Explanation
from polyseme.results.plan import Plan
from polyseme.schema import Resolved, Role
from polyseme.tables.io.source import Source, Watched
from polyseme.tables.io.writing import FORMATS
from polyseme.tables.joined import with_joined
from polyseme.verbs.cautions import (
    changed_sets,
    differing_groups,
    left_out_cautions,
    repeated_records,
    require_protection,
    ungeneralized,
    warnings,
)
from polyseme.verbs.combined import Reader, broken_promises, shared_warnings
from polyseme.verbs.inputs import policy_given, release_given, source_given, with_population
from polyseme.verbs.knowledge import look, some_records
from polyseme.verbs.ledger import Asked
from polyseme.verbs.prior import with_earlier_releases
from polyseme.verbs.prospect import LOOKED_AT, Prospect, prospect
from polyseme.verbs.publishing import models_of, publish_in_folder, publish_in_memory
from polyseme.verbs.reviewing import Review
from polyseme.verbs.singled_out import singled_out

if TYPE_CHECKING:
    from polyseme.verbs.dealing import Dealt
    from polyseme.verbs.treating import Decided, Treated

__all__ = ["anonymize", "make_job", "resolved_for"]

Progress = Callable[[int], None]
Warn = Callable[[str], None]
Explain = Callable[[Explanation], None]
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
    ledger       a file that keeps what was published about the same people: asked before, told afterwards
    people       whom the release is about; may be left out where the ledger knows one group of people
    accept_risk  publish also where models of the policy do not hold, which the manifest then says; where sets can
                 be intersected with those of earlier releases in the ledger; where the sets of several attributes
                 together break a promise about learners; where an insensitive column identifies nearly every record;
                 and where more than 1% of the groups that share a set have members that differ
    apply        an earlier release whose levels of generalization are used again; records that would break a promise
                 are suppressed, and more than the policy allows are refused
    progress     told how many more rows were read
    warn         told what the data holder should hear before publishing; by default a Python warning of that category
    cancellation stops the work from another thread: it then raises `Cancelled`, and nothing is left behind
    explain      told why the method rules did what it did, class by class; not for publication
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
    policy = with_population(policy_given(policy), population)
    run = engine_given(engine)
    _check_options(form, file_format, records_per_person, run.formats)
    asked = _ledger(ledger, people, seed)
    _check_local(engine, out, rows_per_file, memory)
    cancellation = current_cancellation()
    source: Source = Watched(source_given(data, policy), cancellation)
    previous = release_given(earlier).manifest if earlier is not None else None
    resolved = resolved_for(policy, source)
    if apply is not None and policy.grouping is None:
        raise QuestionError(Problem("apply", "the policy names no method that generalizes", "method: full-domain"))
    treated = _treated(policy, resolved, source, seed, cancellation, apply, run)
    job, made = make_job(
        source, policy, form, seed, key_file, records_per_person, allow_changed_strata, resolved, treated, accept_risk
    )
    published = _published(source, treated)
    source = source if treated is None else treated.source
    source = with_joined(source, (item.attribute for item in job.columns), policy.table.missing_values)
    check = "" if job.key is None else key_check(job.key)
    if previous is not None and not accept_risk:
        require_same_key(job.columns, check, previous)
    seen_before = _prospect(job, policy, source, treated)
    treated = treated if treated is None or seen_before is None else seen_before.counted(treated)
    where = engine if isinstance(engine, str) else type(engine).__name__
    columns, sets = len(job.columns), len(job.sets)
    _log.info("anonymize: %d columns, %d of them protected, as %s, engine %s", columns, sets, form, where)
    shown = [item.attribute for item in job.columns]
    seen = [
        *giveaways(job.columns, source, policy.table.missing_values),
        *shared_values(shown, source, policy.table.missing_values, _drawn_by(job)),
        *(changing_strata(job.columns) if job.key is not None else ()),
        *(changed_since(job.columns, job.key is not None, previous, check) if previous is not None else ()),
    ]
    seen += singled_out(job.columns, source, policy.table.missing_values).require_accepted(accept_risk)
    seen += _shared(policy, resolved, job, published, run, accept_risk, seen)
    _tell(
        warn, PrivacyWarning, warnings(policy, made.from_data, key_file is not None, seed is not None, bool(job.sets))
    )
    _tell(warn, PolicyWarning, [*ungeneralized(policy), *made.warnings()])
    _tell(warn, PrivacyWarning, [*seen, *(() if treated is None else left_out_cautions(treated.left_out))])
    with asked.turn() if asked is not None else nullcontext():
        if asked is not None:
            _tell(warn, PrivacyWarning, asked.warnings(job.columns, job.key is not None, accept_risk, check))
        work = Run(job, source, progress, cancellation)
        work = work if memory is None else replace(work, memory=shuffling_memory(memory))
        review = Review(
            job.columns,
            policy.table.missing_values,
            grouped=treated is not None,
            checked=treated is None or treated.checked,
            rows_per_record=job.rows_per_record,
            accept_risk=accept_risk,
            prospect=seen_before,
            tell=partial(_tell_afterwards, warn, work),
            population=partial(population_frame, policy),
        )
        if out is None:
            release = publish_in_memory(work, policy, run, review, treated)
        else:
            place = Path(out)
            release = publish_in_folder(
                work, policy, run, review, place, file_format, overwrite, treated, rows_per_file
            )
        outcome = work.outcome
        _log.info("anonymize: %d records, %d rows, %d dropped", outcome.records, outcome.rows, outcome.dropped)
        if asked is not None:
            asked.record(release)
    explanation = getattr(treated, "explanation", None)
    if explain is not None and explanation is not None:
        explain(explanation)
    return replace(release, frames="pandas") if type(data).__module__.startswith("pandas") else release


def _prospect(job: Job, policy: Policy, source: Source, treated: Decided | None) -> Prospect | None:
    """What rows will show, and whose they are, where the policy says by which column people are known.

    Survey weights split the classes that a method has formed: they are then counted here too. Without a model to check
    nothing is held of a long table: it is then told by records how many are alone.
    """
    split = treated is not None and any(item.role is Role.WEIGHT for item in policy.attributes)
    if (policy.record_key is None and not split) or (treated is not None and not treated.checked):
        return None
    models = treated.models if treated is not None else models_of(policy)
    if not models and (source.rows is None or source.rows > LOOKED_AT):
        return None
    found = prospect(job, source, models, partial(population_frame, policy))
    # Nothing is claimed of people where nothing is promised.
    return found if models else replace(found, people=None)


def _treated(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    seed: int | None,
    cancellation: Cancellation,
    apply: Release | str | Path | None,
    engine: Engine,
) -> Treated | Dealt | None:
    """The table after its grouping method; None where the policy names none.

    engine  says whether no single machine may have to hold all records (`scaled`), whether it deals them to groups, and
            who works where the rows are (`workers`)
    """
    if policy.grouping is None:
        return None
    # A hundred modules that are not needed to draw decoys.
    from polyseme.verbs.recoding import treat
    from polyseme.verbs.scaled import require_treated, treat_counted

    pattern = release_given(apply).manifest if apply is not None else None
    if engine.scaled:
        hire = partial(engine.workers, source, cancellation)
        made = treat_counted(policy, resolved, source, cancellation, pattern, hire, seed)
        return made if engine.deals else require_treated(made, policy.grouping)
    return treat(policy, resolved, source, seed, cancellation, pattern)


def _published(source: Source, treated: Decided | None) -> Source:
    """The table as others will see it; where columns are new, groups of records, the others are as they were."""
    made = source if treated is None else getattr(treated, "source", source)
    return made if made.schema.names == source.schema.names else source


def _shared(
    policy: Policy,
    resolved: Resolved,
    job: Job,
    published: Source,
    engine: Engine,
    accept_risk: bool,
    said: Sequence[str],
) -> list[str]:
    """What is told of attributes whose sets give each other away; refuses where that breaks a promise."""
    sets = {item.name: item for item in job.sets}
    if len(sets) < 2:
        return []
    records = some_records(published, _LOOKED, whole=not engine.scaled)
    source = with_joined(records, resolved.schema.attributes, policy.table.missing_values, hidden=True)
    looked = look(policy, resolved.schema, {name: item.strata for name, item in sets.items()}, source)
    shared = Reader(looked, sets, exact=True).shared()
    broken = broken_promises(shared, sets)
    if broken and not accept_risk:
        raise RiskError(broken)
    accepted = [f"{one.where}: {one.what}. It is published all the same, as --accept-risk says." for one in broken]
    return [*accepted, *shared_warnings(shared, sets, said)]


def _tell_afterwards(warn: Warn | None, work: Run, seen: Sequence[str]) -> None:
    """What is known when all rows are drawn; what the rows themselves give away comes last."""
    job, outcome = work.job, work.outcome
    _tell(
        warn, PrivacyWarning, [*repeated_records(job, outcome), *changed_sets(outcome), *differing_groups(job, outcome)]
    )
    _tell(warn, PolicyWarning, absent_values((item.attribute for item in job.sets), outcome.fulfilled))
    _tell(warn, PrivacyWarning, seen)


def _drawn_by(job: Job) -> str | None:
    """The column whose records have one set for one value, whatever groups share."""
    return job.record_key if job.key is not None else None


def _ledger(path: str | Path | None, people: str | None, seed: int | None) -> Asked | None:
    """The ledger that is asked; what does not go with it, or needs it, is refused."""
    if path is None:
        if people is not None:
            raise QuestionError(Problem("people", "it is used only with a ledger", "add --ledger FILE"))
        return None
    if seed is not None:
        raise QuestionError("a seed and a ledger exclude each other: such a release is not for publication")
    return Asked.open(path, people)


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
    asked = (("form", form, FORMS), ("file_format", file_format, FORMATS))
    problems = [
        Problem(name, f"unknown word '{given}'", nearest(str(given), known))
        for name, given, known in asked
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
    """Raise for options that the local engine does not understand, or that another one has no use for."""
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


def make_job(
    source: Source,
    policy: Policy,
    form: str,
    seed: int | None,
    key_file: str | Path | None,
    records_per_person: float | None = None,
    allow_changed_strata: bool = False,
    resolved: Resolved | None = None,
    treated: Decided | None = None,
    accept_risk: bool = False,
) -> tuple[Job, Plan]:
    """What is to be done, and the plan behind it.

    resolved  the policy's schema; made here where it is not given
    treated   the table after its records were put into classes or groups, where the policy says so
    """
    if key_file is not None and policy.record_key is None and not all(item.shared_by for item in policy.protected):
        raise PolicyError(
            "a key was given, but the policy names no record key",
            "add record-key: COLUMN, the column that names a person",
        )
    if key_file is not None and seed is not None:
        raise PolicyError("a key and a seed cannot be combined", "omit the seed")
    resolved = resolved or resolved_for(policy, source)
    matched = match_columns(policy, source)
    recoded = treated.recoded if treated is not None else frozenset()
    types = {
        item.name: item.type
        for item in matched.attributes
        if item.type and not item.protect and item.name not in recoded
    }
    method = method_named(policy.method.name)
    made = method.plan(resolved, source.rows)
    columns = method.columns(resolved, made)
    categories = frozenset(item.name for item in source.schema if pa.types.is_dictionary(item.type))
    key = read_key(Path(key_file)) if key_file is not None else None
    _require_told_groups(resolved, recoded)
    job = Job(
        columns=columns if treated is None else treated.arranged(columns),
        types=types,
        categories=categories - types.keys() - recoded,
        missing_values=policy.table.missing_values,
        form=form,
        seed=seed,
        key=key,
        record_key=policy.record_key,
        records_per_person=records_per_person,
        allow_changed_strata=allow_changed_strata,
        group_key=_group_key(resolved, key, seed),
        accept_differing=accept_risk,
    )
    return job, made


def _group_key(resolved: Resolved, key: bytes | None, seed: int | None) -> bytes | None:
    """The key for sets that groups share: that of sticky decoys, or one that is thrown away after this run."""
    if not any(item.shared_by for item in resolved.schema.protected):
        return None
    if key is not None:
        return key
    return (StreamKey.fresh() if seed is None else StreamKey.seeded(f"{seed} groups")).key


def _require_told_groups(resolved: Resolved, recoded: Collection[str]) -> None:
    """Refuse groups by a column that the method changes: its labels no longer tell who belongs together."""
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


def resolved_for(policy: Policy, source: Source) -> Resolved:
    """The schema of a policy for a table that is to be published."""
    resolved = resolve(with_earlier_releases(policy), source)
    require_protection(resolved, policy.grouping is not None)
    return resolved
