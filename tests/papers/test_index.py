"""The index of the papers against a list that was typed from them, page by page."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from polyseme.cli import cli
from polyseme.kernel.errors import InvalidInput
from polyseme.papers import index
from polyseme.papers.index import ITEMS, Item, located
from polyseme.papers.runner import STUDIES
from polyseme.papers.study import Results, Sources, Verdict

COUNTED = {
    "journal": {"Definition": 1, "Algorithm": 3, "Equation": 23, "Example": 3, "Table": 12, "Figure": 15},
    "conference": {"Algorithm": 2, "Equation": 2, "Figure": 7},
    "sensitive QIDs": {
        "Definition": 18,
        "Theorem": 4,
        "Lemma": 1,
        "Algorithm": 1,
        "Equation": 27,
        "Example": 4,
        "Table": 5,
        "Figure": 7,
    },
    "(l, e)": {"Definition": 7, "Algorithm": 1, "Equation": 10, "Table": 6, "Figure": 7},
    "rules": {"Definition": 1, "Table": 7, "Figure": 3},
}
"""What each paper numbers from 1 on, and up to which number."""

OTHERS = {
    "journal": {"Theorem": ["5.1", "5.2"]},
    "conference": {"Example": ["6"]},
    "(l, e)": {"Example": ["III", "IV"]},
    "rules": {"Algorithm": ["Fig. 1"], "Example": ["IV-A"]},
}
"""What is numbered otherwise, or stands in a section without a number."""

CLAIMED = {
    "journal": """
        1 candidates {HIV-2, HIV-1(M), HIV-1(N)}: the attacker can conclude that Alice has HIV
        3.1 the class of C and D has only HIV-1(M)
        3.4 a the smaller the parameter e, the better the privacy is protected
        3.4 b (l, e) considers $60K-$70K and $70K-$80K to be semantically very different
        3.4 c (l, e) only supports tree structures
        3.5 t-closeness as an extension of l-diversity, better privacy
        4.2 this relationship cannot be expressed using a tree structure
        5.1 he cannot know whether vocal fold polyps or HIV-2 is A's value
        5.2 the estimated values are close to the true values
        5.3 a excludes 2d + 1 elements
        5.3 b the same as the value calculated using Equation 2
        5.4 a always achieve (l, d)-semantic diversity
        5.4 b the baseline increases especially when d or l is large
        6.2 (l, e) cannot be used in the assumed environment
        7.1 (3,7) income, (2,3) education, (3,10) fnlwgt
        7.3 a our proposed algorithms always achieved (l, d) in the experiments
        7.3 b mathematical and simulation results are almost the same, and keep the lower boundary
        7.4 a histograms by the proposed analysis are the most similar
        7.4 b those by the simple analysis are averaged overall
        7.4 c N-Proposal has a small value in all cases; the larger l or d, the larger Ex-Proposal
        7.4 d N-Anonymity is quite different
        7.4 e in Fig. 12(b) the MSE of Ex-Proposal is larger than (l, e)
        7.4 f treating multiple sensitive attributes will be future work
        7.4 g difficult to obtain meaningful information from each record
    """,
    "conference": """
        7.1 a MSE 1.0899, 1.8748, 3.0421 and 0.7499
        7.2 a histograms keep the shape of the original
        7.2 b the proposed analysis has the smaller error
        7.2 c the existing analysis is larger than the simple one
        7.2 d Mondrian is smaller because it does not consider (l, d)
        7.2 e multiple sensitive attributes, better analysis
    """,
    "sensitive QIDs": """
        I who knows Ewen's disease knows his age and job
        III a 1.2 times, 11 times
        III b 0.846, 0.017
        VI a reduces all three distances more than ValueAdding and Rating
        VI b distances increased when l was large, decreased with increasing t
        VI c lower than Random by about 50%
        VI d only several tens of seconds
        VI e Rating needed more time to anonymize
        VI f less than 10 min on average even at q' = 4
        VI g could reconstruct the true distribution almost perfectly
        VII a protected even if all but one record are known
        VII b (l1, ..., lq)-diversity and (t1, ..., tq)-closeness at the same time
    """,
    "(l, e)": """
        abstract a higher diversity degree
        abstract b a liner-complexity algorithm
        I Tom suffers from stomach trouble
        III O(n^2 log n)
        V a information loss is higher
        V b the efficiency is lower
        VI a extending to multiple sensitive attributes
        VI b extending other anonymity models
    """,
    "rules": """
        I Bob has a low salary, stomach-related problems
        V a 10 ECs and 20 ECs can be used by the similarity attack
        V b a significant enhancement in terms of privacy
        V c the highest information loss when L is large
        VI a optimized to decrease the information loss
        VI b a dynamic version is provided
    """,
}
"""Claims in the text, by section, in the papers' words or nearly so."""


def typed() -> list[tuple[str, str, str]]:
    found = [
        (paper, kind, str(number))
        for paper, kinds in COUNTED.items()
        for kind, last in kinds.items()
        for number in range(1, last + 1)
    ]
    found += [
        (paper, kind, number)
        for paper, kinds in OTHERS.items()
        for kind, numbers in kinds.items()
        for number in numbers
    ]
    for paper, text in CLAIMED.items():
        for line in filter(None, map(str.strip, text.splitlines())):
            section, second = line.split()[:2]
            found.append((paper, "Claim", f"{section} {second}" if second in "abcdefg" else section))
    return found


def faults(items: tuple[Item, ...]) -> list[str]:
    """What the index lacks or names wrongly."""
    have = [(one.paper, one.kind, one.number) for one in items]
    wrong = [f"no line for {one}" for one in typed() if one not in have]
    wrong += [f"not in the papers: {one}" for one in have if one not in typed()]
    wrong += [f"twice: {one}" for one in set(have) if have.count(one) > 1]
    for one in items:
        wrong += [f"{one.label}: there is no {name}" for name in one.code if not _exists(name)]
        wheres = {claim.where for claim in STUDIES[one.study].claims} if one.study in STUDIES else set()
        wrong += [f"{one.label}: {one.study} has no claim {claim}" for claim in one.claims if claim not in wheres]
        if bool(one.study and one.claims) == bool(one.reason):
            wrong.append(f"{one.label}: name a claim, or say why there is none")
    return wrong


def _exists(name: str) -> bool:
    try:
        located(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_index_is_the_typed_list_and_names_what_exists() -> None:
    assert faults(ITEMS) == []
    assert all(one.says for one in ITEMS)
    assert all(one.code for one in ITEMS if not one.reason)


def test_an_index_that_lacks_or_invents_something_is_found_out() -> None:
    first, second = ITEMS[0], ITEMS[1]
    assert faults(ITEMS[1:]) == [f"no line for {('journal', 'Definition', '1')}"]
    assert faults((*ITEMS, replace(first, number="9")))
    assert faults((replace(first, code=("polyseme.models.semantic_diversity:chekc",)), *ITEMS[1:]))
    assert faults((replace(first, code=("polyseme.nowhere:check",)), *ITEMS[1:]))
    assert faults((first, replace(second, claims=("journal, Theorem 9",)), *ITEMS[2:]))
    assert faults((first, replace(second, study="", claims=()), *ITEMS[2:]))


def test_the_list_has_every_kind_that_the_papers_number() -> None:
    assert len(typed()) == len(ITEMS) == len(set(typed()))
    assert {one.paper for one in ITEMS} == set(index.PAPERS)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "pages"
    command = ["reproduce", "worked-example", "posterior", "violation-measured", "--quick", "--jobs", "1"]
    ran = CliRunner().invoke(cli, [*command, "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    return out


def test_claims_for_programs_have_paper_item_rule_numbers_and_verdict(pages: Path) -> None:
    text = json.loads((pages / "claims.json").read_text(encoding="utf-8"))
    assert (text["format"], text["run"]) == (1, "quick")
    claims = text["claims"]
    assert {one["study"] for one in claims} == {"worked-example", "posterior", "violation-measured"}
    assert all(one["rule"].endswith(".") and one["because"] and one["numbers"] for one in claims)
    assert {one["verdict"] for one in claims} <= {verdict.value for verdict in Verdict}
    (error,) = [one for one in claims if (one["paper"], one["item"]) == ("journal", "Eq. 19")]
    assert any(abs(number["value"] - 8.06e-6) < 1e-8 for number in error["numbers"])
    assert "mse" in text["not_run"]
    (line,) = [
        one for one in text["index"] if (one["paper"], one["kind"], one["number"]) == ("journal", "Equation", "19")
    ]
    assert line["verdicts"] == ["reproduced with a correction"]
    with (pages / "claims.csv").open(encoding="utf-8") as opened:
        assert [row["claim"] for row in csv.DictReader(opened)] == [one["claim"] for one in claims]


def test_numbers_of_a_claim_are_those_that_decide_it(pages: Path) -> None:
    """Judged again from the numbers in the file alone, each claim of a study has the same verdict."""
    text = json.loads((pages / "claims.json").read_text(encoding="utf-8"))
    study = STUDIES["worked-example"]
    rows = [row for point in study.points(True, Sources()) for row in study.run(point, Sources())]
    for one in (claim for claim in text["claims"] if claim["study"] == study.name):
        kept = {tuple(number.values()) for number in one["numbers"]}
        others = [row for row in rows if (row.panel, row.measure, row.series, row.x) not in {key[:4] for key in kept}]
        moved = [replace(row, value=row.value * 3.0, low=row.low * 3.0, high=row.high * 3.0) for row in others]
        same = [row for row in rows if row not in others]
        (again,) = [f for f in study.findings(Results([*same, *moved])) if f.claim.says == one["claim"]]
        assert again.verdict.value == one["verdict"]


def test_two_runs_write_the_same_files(pages: Path, tmp_path: Path) -> None:
    command = ["reproduce", "worked-example", "posterior", "violation-measured", "--quick", "--jobs", "2"]
    ran = CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "again")])
    assert ran.exit_code == 0, ran.output

    def files(folder: Path) -> dict[str, bytes]:
        found = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
        return {name: file.read_bytes() for name, file in found.items() if not name.startswith(("points", "times"))}

    first, second = files(pages), files(tmp_path / "again")
    assert len(first) > 10
    assert [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)] == []


def test_quick_and_full_are_never_confused(pages: Path) -> None:
    for file in pages.glob("*.html"):
        page = file.read_text(encoding="utf-8")
        assert "quick run" in page.partition("</title>")[0]
        assert re.findall(r"(quick|full) run</p>", page) == ["quick"]
    assert all("(quick run)" in file.read_text(encoding="utf-8") for file in (pages / "pictures").iterdir())
    for file in pages.glob("*.csv"):
        if file.name != "times.csv":
            with file.open(encoding="utf-8") as opened:
                assert {row["run"] for row in csv.DictReader(opened)} == {"quick"}
    ran = CliRunner().invoke(cli, ["reproduce", "posterior", "--out", str(pages)])
    assert isinstance(ran.exception, InvalidInput)
    assert "holds the pages of a quick run" in str(ran.exception)
