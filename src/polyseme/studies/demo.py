"""The whole way on generated income data, with a line for each step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from polyseme.files.whole import whole_folder
from polyseme.kernel.work import Cancellation
from polyseme.policy import Policy
from polyseme.results.plan import AttributePlan
from polyseme.results.views.formats import percent
from polyseme.studies.income import DEMO_POLICY, income_statistics, income_table, with_age_bands
from polyseme.verbs.anonymize import anonymize
from polyseme.verbs.attack import attack
from polyseme.verbs.estimate import estimate
from polyseme.verbs.evaluate import evaluate
from polyseme.verbs.plan import plan
from polyseme.verbs.report import report
from polyseme.verbs.verify import verify

__all__ = ["run_demo"]


def _planned(made: AttributePlan) -> Iterator[str]:
    """The setting and the two numbers: who shares the prior of the decoys, and who knows the statistics."""
    choice, told = made.choice, made.learner
    if told is None or told.learnt is None or told.promised is None or told.learner is None:
        raise ValueError(made.obstacle)
    known = told.learnt
    yield f"Plan        {choice.l} candidates, at least {choice.d:g} classes apart; a balanced design by sex and age"
    yield f"            who expects incomes as decoys are drawn is right with at most 1/{choice.l}, whatever the set"
    yield (
        f"            who knows the statistics is right in {percent(known.after)} of cases (promised: at most "
        f"{percent(told.learner)}), without the release in {percent(known.before)}"
    )


def run_demo(
    out: Path, records: int = 100_000, overwrite: bool = False, cancellation: Cancellation | None = None
) -> Iterator[str]:
    """Leave people.parquet, statistics.csv, policy.yaml, release/ and report.html in `out`; say what happens."""
    contents = ("people.parquet", "statistics.csv", "policy.yaml", "release", "report.html")
    with whole_folder(out, overwrite, contents, cancellation) as folder:
        with_age_bands(income_table(records)).write_parquet(folder / "people.parquet")
        (folder / "statistics.csv").write_text(income_statistics(), encoding="utf-8")
        (folder / "policy.yaml").write_text(DEMO_POLICY, encoding="utf-8")
        yield f"People      {records:,} invented records: age in bands of ten years, sex and income in 14 classes"
        yield "            and public statistics of incomes by sex and age, which are not made from these records"
        policy = Policy.load(folder / "policy.yaml")
        yield from _planned(plan(policy, records)["income"])
        heard: list[str] = []
        release = anonymize(
            folder / "people.parquet", policy, folder / "release", warn=heard.append, cancellation=cancellation
        )
        yield f"Anonymize   {release.manifest.records:,} records, shuffled, identifiers dropped"
        yield from (f"Warning     {text.partition(' To generalize them')[0]}" for text in heard)
        verified = verify(release)
        outcome = "all hold" if verified.holds else "VIOLATED"
        yield f"Verify      {len(verified.verdicts)} checks from the definitions: {outcome}"
        table = estimate(release, of=["income"], by=["sex"])
        yield f"Estimate    income by sex, {table.values.size} cells with intervals ({table.estimator})"
        metrics = evaluate(release, folder / "people.parquet", of=["income"], by=["sex"]).to_dict()
        error = math.sqrt(metrics["mse"]) * records
        yield f"Evaluate    typical error of a cell: {error:,.0f} people of {records:,}"
        findings = attack(release, folder / "people.parquet")
        guess, learnt = (
            max(finding.success for finding in findings if finding.attack == name)
            for name in ("bayes", "published-estimate")
        )
        broken = ", ".join(finding.attack for finding in findings if finding.exceeded) or "none"
        yield f"Attack      who knows the method is right in {guess:.1%} of cases; above their bound: {broken}"
        yield f"            who also estimates from the release how incomes go with age and sex, in {learnt:.1%}"
        (folder / "report.html").write_text(report(release, folder / "people.parquet", by="sex"), encoding="utf-8")
    yield f"Report      {out / 'report.html'}"
