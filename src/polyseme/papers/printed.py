"""Every worked example and small table that the papers print, recomputed."""

from __future__ import annotations

from polyseme.papers import le_diversity, rule_paper
from polyseme.papers.journal import worked_example as journal
from polyseme.papers.sensitive_qids import census as sensitive_qids
from polyseme.papers.study import Exhibit, Finding, Point, Results, Row, Sources, Study

__all__ = ["STUDY"]

EXAMPLES = (*journal.EXAMPLES, *sensitive_qids.EXAMPLES, *le_diversity.EXAMPLES, *rule_paper.EXAMPLES)


def grid(_: bool, sources: Sources) -> list[Point]:
    return [Point.of(tables="the papers", data="Adult" if sources.adult else "none", seconds=0.5)]


def measure(_: Point, __: int, sources: Sources) -> list[Row]:
    return [row for example in EXAMPLES for row in example.rows(sources)]


def judge(results: Results) -> list[Finding]:
    return [example.judge(results) for example in EXAMPLES]


def exhibits(_: Results) -> list[Exhibit]:
    return [
        Exhibit(
            "Numbers that need no chart",
            "Small tables explain what each model asks for, and equations are tried on them.",
            "Each is counted again, see the claims above. Most are right; slips of the print are named with what is "
            "right.",
            (),
        )
    ]


STUDY = Study(
    name="printed-examples",
    title="The examples and small tables that the papers print",
    source="All papers but the conference's: their small tables and examples",
    did=("The papers explain their models with tables of a few people, and try their equations on them.",),
    ran=("The tables are counted again and the equations evaluated on them. All numbers are exact.",),
    grid=grid,
    measure=measure,
    claims=tuple(example.claim for example in EXAMPLES),
    judge=judge,
    exhibits=exhibits,
    adult="some",
)
