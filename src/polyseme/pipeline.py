"""The verbs, one short function each: what the command line, the notebooks and the collection service all call."""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.adoption import adopt_table
from polyseme.distances.line import LineDistance
from polyseme.engines.local import Outcome
from polyseme.errors import PolicyError, Problem, QuestionError, nearest
from polyseme.estimators.estimate import Estimate
from polyseme.facts import Setting, thresholds
from polyseme.facts import frontier as settings_grid
from polyseme.giveaways import giveaways
from polyseme.metrics import Preserved, as_grid, compare, learning, query_error
from polyseme.planning import Plan, make_plan, mechanism_at
from polyseme.policy import Policy
from polyseme.policy.drafting import draft
from polyseme.policy.resolving import resolve
from polyseme.publishing import (
    changed_sets,
    few_people,
    idle_conditions,
    make_job,
    publish_in_folder,
    publish_in_memory,
    repeated_records,
    require_protection,
    save_release,
)
from polyseme.questions import ask, true_table
from polyseme.release import Release
from polyseme.republishing import changed_since, changing_strata
from polyseme.tables.source import Source, open_table
from polyseme.tables.writing import FORMATS
from polyseme.verification import Verification, verify_release, verify_table

if TYPE_CHECKING:
    from polyseme.attacks.base import Finding

__all__ = [
    "Evaluation",
    "adopt",
    "anonymize",
    "attack",
    "estimate",
    "evaluate",
    "frontier",
    "init",
    "plan",
    "report",
    "save",
    "verify",
    "warnings",
]

Progress = Callable[[int], None]
FORMS = ("set", "long")


def init(data: Any, separator: str | None = None, encoding: str = "utf-8") -> str:
    """A commented first policy for a table, as YAML text."""
    return draft(open_table(data, separator, encoding))


def plan(policy: Policy | str | Path, records: int | None = None, data: Any = None) -> Plan:
    """What a policy comes to before any record is touched: possible? estimable? how risky? how precise?

    records  the number of records to expect, for the expected error
    data     a table, for domains that the policy leaves open (and for the number of records)
    """
    policy = _policy(policy)
    if not (records is None or _is_count(records)):
        raise QuestionError(Problem("records", "expected a whole number above 0"))
    source = _source(data, policy) if data is not None else None
    if records is None and source is not None:
        records = source.count()
    resolved = resolve(policy, source)
    require_protection(resolved, policy.protect_all_but is not None)
    made = make_plan(resolved, records)
    return replace(made, remarks=(*made.remarks, *few_people(source, policy))) if source is not None else made


def _is_count(number: object) -> bool:
    return isinstance(number, Integral) and int(number) > 0


def anonymize(
    data: Any,
    policy: Policy | str | Path,
    out: str | Path | None = None,
    *,
    form: str = "set",
    file_format: str = "parquet",
    seed: int | None = None,
    key_file: str | Path | None = None,
    earlier: Release | str | Path | None = None,
    records_per_person: float | None = None,
    allow_changed_strata: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda rows: None,
    warn: Callable[[str], None] = python_warnings.warn,
) -> Release:
    """Publish a table: a release in the folder `out`, or in memory when there is none.

    form         "set" (a list of candidates for each record) or "long" (a row for each candidate, as the papers do)
    file_format  "parquet" or "csv"
    seed         repeatable random numbers for experiments; the release then says that it is not for publication
    key_file     a secret key for sticky decoys; the policy must name the record key
    earlier      a release of the same people, to hear what changed since and can be intersected
    progress     told how many more rows were read
    warn         told what the data holder should hear before publishing

    With sticky decoys a record key that names too few people is refused, unless `records_per_person` says how many
    records they have on average; and so are sets of one person that can be intersected inside the release because what
    is impossible changes from record to record, unless `allow_changed_strata`.
    """
    policy = _policy(policy)
    _check_options(form, file_format, records_per_person)
    source = _source(data, policy)
    previous = _release(earlier).manifest if earlier is not None else None
    job, made = make_job(source, policy, form, seed, key_file, records_per_person, allow_changed_strata)
    before = [
        *warnings(policy, made.from_data, key_file is not None, seed is not None),
        *made.warnings(),
        *giveaways(job.attributes, source, policy.table.missing_values),
        *(changing_strata(job.published) if job.key is not None else ()),
        *(changed_since(job.published, job.key is not None, previous) if previous is not None else ()),
    ]
    for warning in before:
        warn(warning)
    outcome = Outcome()
    if out is None:
        release = publish_in_memory(job, policy, outcome, progress)
    else:
        release = publish_in_folder(job, policy, Path(out), file_format, overwrite, outcome, progress)
    for warning in [*repeated_records(job, outcome), *changed_sets(outcome), *idle_conditions(job, outcome)]:
        warn(warning)
    return release


def _check_options(form: str, file_format: str, records_per_person: float | None = None) -> None:
    asked = (("form", form, FORMS), ("file_format", file_format, FORMATS))
    problems = [
        Problem(name, f"unknown word '{given}'", nearest(str(given), known))
        for name, given, known in asked
        if given not in known
    ]
    if records_per_person is not None and not 1 <= records_per_person < math.inf:
        problems.append(Problem("records_per_person", "expected a number from 1 on"))
    if problems:
        raise QuestionError(problems)


def warnings(policy: Policy, from_data: Sequence[str], keyed: bool, seeded: bool) -> list[str]:
    """What the data holder should hear before publishing.

    from_data  the attributes whose values, or bins, were looked up in the table
    """
    found = []
    if from_data:
        names = f"{', '.join(from_data[:6])}{' ..' if len(from_data) > 6 else ''}"
        found.append(
            f"the values or bins of {names} are taken from the table, and published: that a rare value occurs is then "
            "known, whatever is promised. Declare them with domain: [..] or bins: [..]."
        )
        if keyed:
            found.append(f"when the values of {names} change, sticky decoys change with them.")
    if policy.record_key is not None and not keyed:
        found.append(
            f"the policy names the record-key '{policy.record_key}', but no key was given: several records of one "
            "person get sets of their own, which can be intersected. Use --key-file."
        )
    if policy.repeats and not keyed:
        found.append(
            "the policy says that releases repeat; without a key, two releases of the same people can be intersected. "
            "Make a key (polyseme key new FILE), name the record-key in the policy, and use --key-file."
        )
    if seeded:
        found.append(
            "with a seed anyone who guesses it can tell decoys from truth: this release is not for publication."
        )
    return found


def frontier(made: Plan, largest: int = 6, steps: int = 16) -> dict[str, list[Setting]]:
    """Risk against expected error over (l, d), for each attribute of a plan that has a distance.

    largest  the most candidates to look at
    steps    how many of the distances that occur to look at
    """
    grids = {}
    for item in made.attributes:
        distance, domain = item.attribute.distance, item.attribute.domain
        if distance is None or domain is None:
            continue
        occurring = thresholds(distance)
        asked = sorted({*occurring[:: -(-len(occurring) // steps)], item.choice.d})
        sizes = range(2, min(largest, domain.size) + 1)
        grids[item.name] = settings_grid(partial(mechanism_at, item), sizes, asked, made.records, domain.prior)
    return grids


def verify(subject: Release | str | Path | Any, policy: Policy | str | Path | None = None) -> Verification:
    """Check every promise of a release, or the models that a policy lists on any table."""
    if policy is not None:
        rules = _policy(policy)
        return verify_table(_source(subject, rules), rules)
    if isinstance(subject, str | Path) and Path(subject).is_file():
        raise PolicyError(
            "a table needs a policy that lists the models to check", "polyseme verify TABLE --policy POLICY"
        )
    return verify_release(_release(subject))


def estimate(
    release: Release | str | Path,
    of: Sequence[str],
    by: Sequence[str] = (),
    using: Sequence[str] = (),
    **options: Any,
) -> Estimate:
    """The cross-tabulation of true values, with intervals.

    of         protected attributes to recover
    by         untouched attributes to break them down by
    using      other attributes that help: the table does not hold them, but what they have to do with those of `of`
               makes it more exact
    options    estimator, level, population, nonnegative: see `polyseme.estimators`
    """
    return ask(_release(release), _names(of), _names(by), _names(using), **options)


@dataclass(frozen=True)
class Evaluation:
    """How far estimates are from the truth: the metrics of each table that was compared.

    learning  what predictors trained on each table are worth, where that was asked for
    """

    tables: Mapping[str, Mapping[str, float]]
    learning: Mapping[str, Mapping[str, Preserved]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The metrics by name; for several tables, by table first. What is infinite or undefined becomes None."""
        documents: dict[str, dict[str, Any]] = {
            name: {metric: value if math.isfinite(value) else None for metric, value in metrics.items()}
            for name, metrics in self.tables.items()
        }
        for name, scores in self.learning.items():
            documents[name]["learning"] = {score: found.to_dict() for score, found in scores.items()}
        return next(iter(documents.values())) if len(documents) == 1 else dict(documents)


def evaluate(
    release: Release | str | Path,
    original: Any,
    of: Sequence[str] = (),
    by: Sequence[str] = (),
    using: Sequence[str] = (),
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    learn: bool = False,
    **options: Any,
) -> Evaluation:
    """Compare what is estimated from a release with the original table; separator and encoding as for `init`.

    learn    also train predictors of the attribute from those of `by`, on both tables (needs scikit-learn)
    options  as for `estimate`
    """
    opened = _release(release)
    source = open_table(original, separator, encoding)
    questions = [_names(of)] if of else [(item.name,) for item in opened.manifest.protected]
    tables, learned = {}, {}
    for names in questions:
        estimated = ask(opened, names, _names(by), _names(using), **options)
        truth = true_table(opened, source, names, estimated.by)
        title = _title(names, _names(by))
        tables[title] = compare(truth, estimated.values, opened.manifest.records)
        boxes, guesses = as_grid(truth, estimated.by), as_grid(estimated.values, estimated.by)
        if boxes is not None and guesses is not None:
            tables[title]["query_error"] = query_error(boxes, guesses).mean
        if learn:
            distance = opened.manifest[names[0]].attribute.distance
            positions = distance.positions if isinstance(distance, LineDistance) else None
            learned[title] = learning(truth, estimated.values, estimated.by, positions)
    return Evaluation(tables, learned)


def attack(
    release: Release | str | Path,
    original: Any = None,
    other: Release | str | Path | None = None,
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[Finding, ...]:
    """Run the adversaries against a release; `other` is a second release of the same people."""
    # Charts and adversaries cost a second to import: only those who ask for them pay.
    from polyseme.auditing import attack_release

    source = _original(original, separator, encoding)
    return attack_release(_release(release), source, _release(other) if other is not None else None)


def report(
    release: Release | str | Path,
    original: Any = None,
    by: str | None = None,
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> str:
    """One self-contained HTML page about a release."""
    from polyseme.auditing import attack_release
    from polyseme.reporting import make_page
    from polyseme.reports.page import render_page

    opened = _release(release)
    source = _original(original, separator, encoding)
    findings = attack_release(opened, source) if opened.manifest.form == "set" else None
    return render_page(make_page(opened, verify_release(opened), source, by, findings))


def _original(original: Any, separator: str | None, encoding: str) -> Source | None:
    return open_table(original, separator, encoding) if original is not None else None


def _title(of: Sequence[str], by: Sequence[str]) -> str:
    return " x ".join(of) + (f" by {', '.join(by)}" if by else "")


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _release(release: Release | str | Path | Any) -> Release:
    return release if isinstance(release, Release) else Release.open(release)


def adopt(data: Any, policy: Policy | str | Path, form: str = "set") -> Release:
    """A table that somebody else published as candidates, as a release; the policy says how it was made.

    form  "set" (list columns of candidates) or "long" (a row for each candidate)
    """
    rules = _policy(policy)
    return adopt_table(_source(data, rules), rules, form)


def save(release: Release, out: str | Path, file_format: str = "parquet", overwrite: bool = False) -> Release:
    """Write a release that is in memory into a folder."""
    return save_release(release, Path(out), file_format, overwrite)


def _policy(policy: Policy | str | Path) -> Policy:
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def _source(data: Any, policy: Policy) -> Source:
    return open_table(data, policy.table.separator, policy.table.encoding)
