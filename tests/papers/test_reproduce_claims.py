"""What the studies claim and how they judge: rules declared in advance, nothing of the papers left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.kernel.errors import InvalidInput
from polyseme.papers import printed as examples
from polyseme.papers.index import ERRATA
from polyseme.papers.printed_example import Example
from polyseme.papers.runner import STUDIES
from polyseme.papers.sensitive_qids import census as counted
from polyseme.papers.sensitive_qids.census import grouped
from polyseme.papers.study import (
    BY_SETTING,
    Results,
    Row,
    Sources,
    Tally,
    Verdict,
    at_most,
    away,
    below,
    in_part,
    mean_row,
    put_right,
    ratio_row,
    rising,
    smaller,
    smallest,
    within,
)

TO_JUDGE = {
    "N-Proposal has a small error in all cases": "mse",
    "Ex-Proposal worsens with l or d": "mse",
    "LE has a smaller error than Ex-Proposal at d = 2 over l": "mse",
    "Equation 11 is a lower bound of the measured violation rate": "violation-measured",
    "The Proposal has smaller L1, L2 and Hellinger distances than ValueAdding and Rating for every l": (
        "sensitive-qids-l"
    ),
    "ValueAdding and Rating have about half of Random's L1 and L2 when l is small": "sensitive-qids-l",
    "ValueAdding has about half of Random's L1 and L2 when t is large": "sensitive-qids-t",
    "Anonymizing 2 million records with 68 attributes takes several tens of seconds": "sensitive-qids-time",
    "Reconstruction takes less than 10 minutes on average, also at q' = 4": "sensitive-qids-time",
    "(l, e)-diversity has a higher information loss than l-diversity": "le",
    "(l, e)-diversity has a higher diversity degree than l-diversity": "le",
    "Maximal-bucket-first is slower for (l, e)-diversity than for l-diversity": "le",
    "Semantic anonymization has the largest classes when L is large": "rules",
    "Algorithm 1 achieves (l, d) if and only if l d >= F": "violation-theory",
}
"""The claims that the studies are made for."""


def row(value: float, half: float = 0.0, x: float = 1) -> Row:
    return Row("p", "m", "s", x, value, value - half, value + half, 5 if half else 0)


def test_every_erratum_is_shown_by_a_claim_or_cannot_be() -> None:
    for one in ERRATA:
        if one.study:
            assert one.where in {claim.where for claim in STUDIES[one.study].claims}, one.says
        else:
            assert "no number" in one.right


@pytest.mark.parametrize(("says", "name"), TO_JUDGE.items())
def test_every_claim_that_was_asked_for_is_judged(says: str, name: str) -> None:
    assert says in {claim.says for claim in STUDIES[name].claims}


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_claim_declares_its_rule(name: str) -> None:
    claims = STUDIES[name].claims
    assert claims
    assert len({(claim.where, claim.says) for claim in claims}) == len(claims)
    for claim in claims:
        assert "eproduced" in claim.rule or BY_SETTING in claim.rule
        assert claim.rule.endswith(".")


def test_other_claims_than_those_declared_are_refused() -> None:
    study = STUDIES["printed-examples"]
    findings = study.findings(Results(study.run(study.points(True, Sources())[0], Sources())))
    assert [finding.claim for finding in findings] == list(study.claims)
    broken = type(study)(**{**study.__dict__, "claims": study.claims[1:]})
    with pytest.raises(ValueError, match="other claims"):
        broken.findings(Results(study.run(study.points(True, Sources())[0], Sources())))


def test_differences_count_beyond_wider_intervals_only() -> None:
    assert below(row(1.0, 0.1), row(2.0, 0.5))
    assert not below(row(1.0, 0.3), row(2.0, 0.4))  # 1.45 and 1.4
    assert below(row(1.0, 0.3), 1.46)
    assert not below(row(1.0, 0.3), 1.44)
    assert within(row(1.0, 0.2), 0.4, 0.71)
    assert not within(row(1.0, 0.2), 0.4, 0.6)
    assert away(row(1.0, 0.2), 1.31)
    assert not away(row(1.0, 0.2), 0.71)
    assert at_most([row(1.3, 0.1), row(1.3, 0.05)], 1.2) == [True, False]
    assert at_most([row(3.0)], 1.2, [2.5]) == [True]


def test_a_tally_decides() -> None:
    assert smaller([(row(1.0), row(2.0)), (row(1.0, 1.0), row(2.0)), (row(3.0), 2.0)]) == Tally(1, 1, 1)
    verdicts = {
        (0, 0, 0): Verdict.NOT_RUN,
        (0, 3, 0): Verdict.UNDECIDED,
        (1, 11, 0): Verdict.UNDECIDED,
        (2, 2, 0): Verdict.UNDECIDED,
        (3, 2, 0): Verdict.REPRODUCED,
        (2, 0, 1): Verdict.IN_PART,
        (1, 0, 3): Verdict.IN_PART,
        (0, 4, 1): Verdict.NOT_REPRODUCED,
    }
    assert {numbers: Tally(*numbers).verdict for numbers in verdicts} == verdicts
    assert rising([[row(1.0), row(2.0)], [row(2.0), row(1.0)], [row(1.0)]]) == Tally(1, 0, 1)
    assert [put_right(True, False), put_right(False, True), put_right(False, False)] == [
        Verdict.REPRODUCED,
        Verdict.CORRECTED,
        Verdict.NOT_REPRODUCED,
    ]


def test_all_comparisons_of_a_claim_together_err_in_a_twentieth_of_runs_at_most() -> None:
    """Forty settings in which nothing differs, five runs each: how often some setting seems to tell."""
    generator, seen = np.random.default_rng(8), 0
    for _ in range(400):
        rows = [mean_row("", "", "", 1, generator.normal(5.0, 1.0, 5)) for _ in range(40)]
        tally = smaller((row, 5.0) for row in rows)
        seen += bool(tally.clear or tally.against)
    assert seen / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert seen > 0, "not so wide that nothing could be seen"


def test_the_smallest_of_a_setting_is_beyond_all_others() -> None:
    near, far = [row(2.0), row(1.05, 0.1)], [row(2.0), row(1.5, 0.1)]
    assert smallest([(row(1.0), far), (row(1.0), near), (row(2.5), far)]) == Tally(1, 1, 1)
    assert in_part([]) is Verdict.NOT_RUN
    assert [in_part(holds) for holds in ([True, True], [True, False], [False])] == [
        Verdict.REPRODUCED,
        Verdict.IN_PART,
        Verdict.NOT_REPRODUCED,
    ]


def test_a_number_put_right_needs_a_second_computation_that_agrees() -> None:
    def example(found: float, again: float) -> Verdict:
        one = Example("p", "s", {"n": 4.0}, lambda _: {"n": found}, again=lambda _: {"n": again}, how="h")
        return one.judge(Results(one.rows(Sources()))).verdict

    assert example(4.0, 5.0) is Verdict.REPRODUCED
    assert example(5.0, 5.0) is Verdict.CORRECTED
    assert example(5.0, 5.1) is Verdict.NOT_REPRODUCED


def test_ratios_of_the_same_runs_have_intervals_that_hold() -> None:
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(1_000):
        others = generator.uniform(0.5, 3.0, 20)
        found = ratio_row("", "", "", 1, 0.6 * others + generator.normal(0.0, 0.1, 20), others)
        hits += found.low <= 0.6 <= found.high
    assert abs(hits / 1_000 - 0.95) < 0.03


def test_printed_examples_come_out_as_they_should() -> None:
    study = STUDIES["printed-examples"]
    findings = study.findings(Results(study.run(study.points(True, Sources())[0], Sources())))
    verdicts = {finding.claim.where: finding.verdict for finding in findings}
    assert Verdict.NOT_REPRODUCED not in verdicts.values()
    wrong = {one.where for one in ERRATA if one.study == study.name} - {"journal, Fig. 4 and Algorithm 3"}
    adult = {"journal, Table 11", "(l, e), Table VI", "rules, Table 6"}
    assert {where for where, verdict in verdicts.items() if verdict is Verdict.NOT_RUN} == adult
    assert {where for where, verdict in verdicts.items() if verdict is Verdict.CORRECTED} == wrong - adult


def test_printed_numbers_about_adult(adult: Path) -> None:
    study, sources = STUDIES["printed-examples"], Sources(adult.parent)
    findings = study.findings(Results(study.run(study.points(True, sources)[0], sources)))
    verdicts = {finding.claim.where: finding.verdict for finding in findings}
    assert verdicts["journal, Table 11"] is verdicts["rules, Table 6"] is Verdict.REPRODUCED
    assert verdicts["(l, e), Table VI"] is Verdict.CORRECTED
    assert len(examples.EXAMPLES) == len(verdicts)


def test_the_generated_census_has_the_shape_of_the_real_one() -> None:
    table = counted.census(None, 4_000)
    assert (len(table.sizes), min(table.sizes), max(table.sizes)) == (68, 2, 18)
    assert all(codes.max() < size for codes, size in zip(table.codes, table.sizes, strict=True))
    together = np.corrcoef(np.array([table.codes[-1], table.codes[-2], table.codes[-3]]))
    assert np.abs(together[np.triu_indices(3, 1)]).max() > 0.02, "attributes go together"


def test_a_census_file_is_checked_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "USCensus1990.data.txt"
    with pytest.raises(InvalidInput, match="no such file"):
        counted.find_census(str(file))
    file.write_text("caseid,dAge,iSex\n1,5,0\n2,7,1\n3,5,1\n4,0,0\n")
    with pytest.raises(InvalidInput, match="bytes, where 361,344,227 were published"):
        counted.find_census(str(file))
    monkeypatch.setattr(counted, "_BYTES", file.stat().st_size)
    with pytest.raises(InvalidInput, match="SHA-256"):
        counted.find_census(str(file))
    table = counted.census(file, 4)
    assert (table.sizes, [codes.tolist() for codes in table.codes]) == ((3, 2), [[1, 2, 1, 0], [0, 1, 1, 0]])
    assert counted.census_name(file) != counted.census_name(None)


def test_sets_are_counted_once() -> None:
    generator = np.random.default_rng(1)
    sets = [generator.integers(0, 12, (600, 3)), generator.integers(0, 4, (600, 1))]
    found, rows = grouped(sets), np.column_stack(sets)
    counted_rows = {
        tuple(one): int(many) for one, many in zip(*np.unique(rows, axis=0, return_counts=True), strict=True)
    }
    assert {
        (*first.tolist(), *second.tolist()): int(many)
        for first, second, many in zip(*found.sets, found.counts, strict=True)
    } == counted_rows
