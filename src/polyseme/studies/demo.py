"""The whole way on generated income data, with a line for each step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from polyseme.cancellation import Cancellation
from polyseme.files.whole import whole_folder
from polyseme.policy import Policy
from polyseme.results.guessers import Guesser
from polyseme.results.views.formats import percent
from polyseme.studies.income import INCOME_POLICY, income_table
from polyseme.verbs.anonymize import anonymize
from polyseme.verbs.attack import attack
from polyseme.verbs.estimate import estimate
from polyseme.verbs.evaluate import evaluate
from polyseme.verbs.plan import plan
from polyseme.verbs.report import report
from polyseme.verbs.verify import verify

__all__ = ["run_demo"]


def _guesses(one: Guesser) -> str:
    return f"{percent(one.after)} of cases, without the release {percent(one.before)} (floor {percent(one.floor)})"


def run_demo(
    out: Path, records: int = 100_000, overwrite: bool = False, cancellation: Cancellation | None = None
) -> Iterator[str]:
    """Leave people.parquet, policy.yaml, release/ and report.html in `out`; say what happens."""
    contents = ("people.parquet", "policy.yaml", "release", "report.html")
    with whole_folder(out, overwrite, contents, cancellation) as folder:
        people = income_table(records)
        people.write_parquet(folder / "people.parquet")
        (folder / "policy.yaml").write_text(INCOME_POLICY, encoding="utf-8")
        yield f"People      {records:,} invented records: age, sex and income in 14 classes"
        policy = Policy.load(folder / "policy.yaml")
        made = plan(policy, data=folder / "people.parquet")["income"]
        choice, told = made.choice, made.learner
        if told is None or told.learnt is None:
            raise ValueError(made.obstacle)
        yield f"Plan        {choice.l} candidates, at least {choice.d:g} classes apart; balanced design"
        known = f" given {' and '.join(told.by)}" if told.by else ""
        yield f"            who knows the method and expects all incomes alike is right in {_guesses(told.reference)}"
        yield f"            who knows how incomes are distributed{known}, in {_guesses(told.learnt)}"
        release = anonymize(folder / "people.parquet", policy, folder / "release", cancellation=cancellation)
        yield f"Anonymize   {release.manifest.records:,} records, shuffled, identifiers dropped"
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
