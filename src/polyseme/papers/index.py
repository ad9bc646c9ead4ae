"""Every numbered item, claim and erratum of the five papers: its place, and what judges it.

`data/index.csv` lists them: definitions, theorems, algorithms, equations, examples, tables, figures, and claims by
their sections. A line names the code, and the study and claims that judge it, or says why none does. A test compares
it with a list typed from the papers and imports every name, so that nothing is left out without a reason.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from polyseme.papers.study import Finding

__all__ = ["ERRATA", "ITEMS", "PAPERS", "Erratum", "Item", "located", "place_of"]

PAPERS = JOURNAL, CONFERENCE, QIDS, LE, RULES = "journal", "conference", "sensitive QIDs", "(l, e)", "rules"


@dataclass(frozen=True)
class Item:
    """Something that a paper numbers, or that it claims.

    kind     definition, theorem, lemma, algorithm, equation, example, table, figure or claim
    number   as the paper counts, of a claim its section
    says     what it is about
    code     where the product has it: modules and names, `polyseme.models.closeness:check`
    study    the study that judges it; empty where none does
    claims   the places of the claims of that study that do
    reason   why none does
    """

    paper: str
    kind: str
    number: str
    says: str
    code: tuple[str, ...]
    study: str
    claims: tuple[str, ...]
    reason: str

    @property
    def label(self) -> str:
        """What pages call it."""
        return f"{self.paper}, {self.kind} {self.number}"

    def verdicts(self, findings: Mapping[str, Sequence[Finding]]) -> list[str]:
        """What a run made of it; nothing where its study was not run."""
        return [one.verdict.value for one in findings.get(self.study, ()) if one.claim.where in self.claims]


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("; ") if part)


def _read() -> tuple[Item, ...]:
    text = files("polyseme.papers").joinpath("data", "index.csv").read_text(encoding="utf-8")
    return tuple(_item(line) for line in csv.DictReader(text.splitlines()))


def _item(line: Mapping[str, str]) -> Item:
    code, claims = _listed(line["code"]), _listed(line["claims"])
    return Item(line["paper"], line["kind"], line["number"], line["says"], code, line["study"], claims, line["reason"])


ITEMS: tuple[Item, ...] = _read()


def place_of(where: str) -> tuple[str, str]:
    """The paper of a claim and its place there.

    >>> place_of("(l, e), Eq. 7"), place_of("ours")
    (('(l, e)', 'Eq. 7'), ('ours', ''))
    """
    paper = next((name for name in PAPERS if where.startswith(name)), where)
    return paper, where[len(paper) :].removeprefix(",").strip()


def located(name: str) -> object:
    """What a line of the index names; an error where the product has no such thing."""
    module, _, inside = name.partition(":")
    found: object = importlib.import_module(module)
    for part in inside.split("."):
        found = getattr(found, part) if part else found
    return found


@dataclass(frozen=True)
class Erratum:
    """What a paper has wrong.

    says, right  the text, and what is right
    study        the one that shows it; empty where no number can
    where        the claim of that study that does
    """

    paper: str
    says: str
    right: str
    study: str = ""
    where: str = ""


_EXAMPLES = "printed-examples"
_NO_NUMBER = "a slip of notation that no number shows"

ERRATA: tuple[Erratum, ...] = (
    Erratum(JOURNAL, "2d + 1 elements are excluded", "2d - 1", "worked-example", "journal, 5.3"),
    Erratum(JOURNAL, "l d >= F", "l d <= F: the sign", "violation-theory", "journal, Theorem 5.1"),
    Erratum(
        JOURNAL,
        "Algorithm 3 moves its window to larger values, Figure 4(c) to smaller ones",
        "either way as many candidates are left",
        _EXAMPLES,
        "journal, Fig. 4 and Algorithm 3",
    ),
    Erratum(JOURNAL, "Equation 9 sums from 1 where values are numbered from 0", _NO_NUMBER),
    Erratum(
        JOURNAL,
        "Equation 17 without a binomial symbol; m in Equation 11",
        "with it; m is F",
        "violation-theory",
        "journal, Theorem 5.2, Eq. 11-17",
    ),
    Erratum(JOURNAL, "Algorithm 2 writes dist(d, v) for extract(S, {v}, d), and k != j for k != i", _NO_NUMBER),
    Erratum(JOURNAL, "section 5.2 has x and omega the wrong way round in its first sentence", _NO_NUMBER),
    Erratum(JOURNAL, "Equation 19 divides by 25", "by 20", "worked-example", "journal, Eq. 19"),
    Erratum(JOURNAL, "(3, 7) on 14 ranks", "in million yen", "histograms", "journal, 7.1"),
    Erratum(JOURNAL, "Equation 2 for any l", "exact at l = 2 and at d = 1 only", "posterior", "journal, Eq. 2 and 5.3"),
    Erratum(JOURNAL, "one of l values cannot be told", "1/l breaks", "posterior", "journal, 5.1"),
    Erratum(
        JOURNAL,
        "Example 1: 40K is in 30K-40K at e = 3",
        "in 30K-50K, as in the example's own list",
        _EXAMPLES,
        "journal, Example 1 and Fig. 2",
    ),
    Erratum(
        JOURNAL,
        "Example 3: 30K-40K and 70K-80K are at distance three",
        "four, by the depths of Example 1",
        _EXAMPLES,
        "journal, Example 3 and Fig. 2",
    ),
    Erratum(LE, "the signs of Equation 7", "as in Definition 2", _EXAMPLES, "(l, e), Eq. 7"),
    Erratum(LE, "IL(t1) = 0.44", "0.667 by Equation 5", _EXAMPLES, "(l, e), Eq. 5"),
    Erratum(LE, "two rows of Table IV", "as in Table I", _EXAMPLES, "(l, e), Table IV"),
    Erratum(LE, "similar values form buckets", "where leaves are equally deep", _EXAMPLES, "(l, e), III"),
    Erratum(LE, "74 ages in Table VI", "73 in its 32,561 records", _EXAMPLES, "(l, e), Table VI"),
    Erratum(QIDS, "Example 2: four classes each", "8, 5, 8 and 4", _EXAMPLES, "sensitive QIDs, Example 2"),
    Erratum(
        QIDS,
        "Algorithm 1 keeps a p for every single set (line 10) and takes the best of all (line 13)",
        "the least p over all sets of a size",
        _EXAMPLES,
        "sensitive QIDs, Algorithm 1",
    ),
    Erratum(RULES, "the last two rows of Table 5", "10 more", _EXAMPLES, "rules, Tables 4-5"),
    Erratum(RULES, "Table 3 is entropy 3-diverse", "3 different values", _EXAMPLES, "rules, Table 3"),
    Erratum(RULES, "three groups of equal size", "4, 3 and 7 values", _EXAMPLES, "rules, Table 7"),
)
