"""The whole way on generated income data, with a line for each step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from polyseme import pipeline
from polyseme.policy import Policy
from polyseme.studies.income import INCOME_POLICY, income_table
from polyseme.tables.writing import whole_folder

__all__ = ["run_demo"]


def run_demo(out: Path, records: int = 100_000, overwrite: bool = False) -> Iterator[str]:
    """Leave people.parquet, policy.yaml, release/ and report.html in `out`; say what happens."""
    with whole_folder(out, overwrite, ("people.parquet", "policy.yaml", "release", "report.html")) as folder:
        people = income_table(records)
        people.write_parquet(folder / "people.parquet")
        (folder / "policy.yaml").write_text(INCOME_POLICY, encoding="utf-8")
        yield f"People      {records:,} invented records: age, sex and income in 14 classes"
        policy = Policy.load(folder / "policy.yaml")
        made = pipeline.plan(policy, records)["income"]
        choice, known = made.choice, made.facts
        if known is None:
            raise ValueError(made.obstacle)
        yield f"Plan        {choice.l} candidates, at least {choice.d:g} classes apart; balanced design"
        yield f"            an attacker who knows the method is right with probability {known.worst_posterior:.3f}"
        release = pipeline.anonymize(folder / "people.parquet", policy, folder / "release")
        yield f"Anonymize   {release.manifest.records:,} records, shuffled, identifiers dropped"
        verified = pipeline.verify(release)
        outcome = "all hold" if verified.holds else "VIOLATED"
        yield f"Verify      {len(verified.verdicts)} checks from the definitions: {outcome}"
        table = pipeline.estimate(release, of=["income"], by=["sex"])
        yield f"Estimate    income by sex, {table.values.size} cells with intervals ({table.estimator})"
        metrics = pipeline.evaluate(release, folder / "people.parquet", of=["income"], by=["sex"]).to_dict()
        error = math.sqrt(metrics["mse"]) * records
        yield f"Evaluate    typical error of a cell: {error:,.0f} people of {records:,}"
        findings = pipeline.attack(release, folder / "people.parquet")
        guess, learnt = (
            max(finding.success for finding in findings if finding.attack == name) for name in ("bayes", "definetti")
        )
        broken = ", ".join(finding.attack for finding in findings if finding.exceeded) or "none"
        yield f"Attack      who knows the method is right in {guess:.1%} of cases; exceeded: {broken}"
        yield f"            who also learns from the release how incomes go with age and sex, in {learnt:.1%}"
        (folder / "report.html").write_text(
            pipeline.report(release, folder / "people.parquet", by="sex"), encoding="utf-8"
        )
    yield f"Report      {out / 'report.html'}"
