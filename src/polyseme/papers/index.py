"""Every figure, table and erratum of the five papers: the study that shows it, or why none.

The index lists them, and a test holds the list to the numbers that each paper counts up to, so that nothing is left
out without a reason.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ERRATA", "SHOWN", "Erratum", "Shown", "label"]

JOURNAL, CONFERENCE, QIDS, LE, RULES = "journal", "conference", "sensitive QIDs", "(l, e)", "rules"


@dataclass(frozen=True)
class Shown:
    """A figure or a table.

    number  as the paper counts
    study   the one that reproduces it; empty where none does
    about   what it shows, or why no study has it
    """

    paper: str
    kind: str
    number: int
    about: str
    study: str = ""


def label(shown: Shown) -> str:
    """What the index calls it.

    >>> label(Shown("journal", "Figure", 6, "", ""))
    'journal, Figure 6'
    """
    return f"{shown.paper}, {shown.kind} {shown.number}"


def _shown(paper: str, kind: str, listed: dict[int, tuple[str, str]]) -> tuple[Shown, ...]:
    return tuple(Shown(paper, kind, number, about, study) for number, (about, study) in listed.items())


_DRAWING = "a drawing, it holds no data"
_EXAMPLES = "printed-examples"

SHOWN: tuple[Shown, ...] = (
    *_shown(
        JOURNAL,
        "Figure",
        {
            1: (_DRAWING, ""),
            2: ("a tree of incomes, to explain distances; " + _DRAWING, ""),
            3: ("a semilattice of incomes, to explain distances; " + _DRAWING, ""),
            4: ("values left for the second decoy", _EXAMPLES),
            5: (_DRAWING, ""),
            6: ("violation probability over F, l and d", "violation-theory"),
            7: ("the tree of education, given as a data file", "histograms"),
            8: ("histograms of income", "histograms"),
            9: ("histograms of Adult education", "histograms"),
            10: ("histograms of Adult fnlwgt", "histograms"),
            11: ("errors on income", "mse"),
            12: ("errors on Adult education", "mse"),
            13: ("errors on Adult fnlwgt", "mse"),
            14: ("measured violations over l", "violation-measured"),
            15: ("measured violations over d", "violation-measured"),
        },
    ),
    *_shown(
        JOURNAL,
        "Table",
        {
            1: ("seven patients", _EXAMPLES),
            2: ("they, 2-anonymous", _EXAMPLES),
            3: ("they, 2-diverse", _EXAMPLES),
            4: ("they, by Anatomy", _EXAMPLES),
            5: ("they, by Anatomy", _EXAMPLES),
            6: ("symbols, no data", ""),
            7: ("they, (2, 4)-semantically diverse", _EXAMPLES),
            8: ("1,000 people by obesity", "worked-example"),
            9: ("what they report", "worked-example"),
            10: ("what is estimated", "worked-example"),
            11: ("sizes of the data sets", _EXAMPLES),
            12: ("pairs of algorithms", "mse"),
        },
    ),
    *_shown(
        CONFERENCE,
        "Figure",
        {
            1: ("not in the text at hand, before the experiments", ""),
            2: ("not in the text at hand, before the experiments", ""),
            3: ("histograms of generated diseases", "mondrian"),
            4: ("histograms of generated incomes", "mondrian"),
            5: ("errors on generated diseases", "mondrian"),
            6: ("errors on generated incomes", "mondrian"),
            7: ("Adult at (2, 4), beside Mondrian", "mondrian"),
        },
    ),
    *_shown(
        QIDS,
        "Figure",
        {
            1: ("distances over l on Adult", "sensitive-qids-l"),
            2: ("distances over l on the US Census", "sensitive-qids-l"),
            3: ("distances over t on Adult", "sensitive-qids-t"),
            4: ("distances over t on the US Census", "sensitive-qids-t"),
            5: ("time to anonymize", "sensitive-qids-time"),
            6: ("time to reconstruct", "sensitive-qids-time"),
            7: ("age and occupation at l = 5", "sensitive-qids-table"),
        },
    ),
    *_shown(
        QIDS,
        "Table",
        {
            1: ("eight patients", _EXAMPLES),
            2: ("they, anonymized in three ways", _EXAMPLES),
            3: ("one record with its decoys", _EXAMPLES),
            4: ("the eight patients with decoys", _EXAMPLES),
            5: ("sets of all values, to make a point about closeness; it holds no data", ""),
        },
    ),
    *_shown(
        LE,
        "Figure",
        {
            1: ("the tree of diseases", _EXAMPLES),
            2: ("information loss over n", "le"),
            3: ("information loss over l", "le"),
            4: ("diversity degree over n", "le"),
            5: ("diversity degree over l", "le"),
            6: ("time over n", "le"),
            7: ("time over l", "le"),
        },
    ),
    *_shown(
        LE,
        "Table",
        {
            1: ("nine patients", _EXAMPLES),
            2: ("they, 3-diverse", _EXAMPLES),
            3: ("they, 3-diverse", _EXAMPLES),
            4: ("they, (3, 1)-diverse", _EXAMPLES),
            5: ("they, (3, 1)-diverse", _EXAMPLES),
            6: ("attributes of Adult", _EXAMPLES),
        },
    ),
    *_shown(
        RULES,
        "Figure",
        {
            1: ("an algorithm, no data", ""),
            2: ("average class size over L", "rules"),
            3: ("discernibility over L", "rules"),
        },
    ),
    *_shown(
        RULES,
        "Table",
        {
            1: ("nine patients", _EXAMPLES),
            2: ("they, 3-diverse", _EXAMPLES),
            3: ("a 3-diverse table", _EXAMPLES),
            4: ("rules and actions on it", _EXAMPLES),
            5: ("what the actions make of it", _EXAMPLES),
            6: ("attributes of Adult", _EXAMPLES),
            7: ("groups of occupations", _EXAMPLES),
        },
    ),
)


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


_NO_NUMBER = "a slip of notation that no number shows"

ERRATA: tuple[Erratum, ...] = (
    Erratum(JOURNAL, "2d + 1 elements are excluded", "2d - 1", "worked-example", "journal, 5.3"),
    Erratum(JOURNAL, "l d >= F", "l d <= F, for balanced designs", "violation-theory", "journal, Theorem 5.1"),
    Erratum(
        JOURNAL,
        "Algorithm 3 moves its window to larger values, Figure 4(c) to smaller ones",
        "either way as many candidates are left",
        _EXAMPLES,
        "journal, Fig. 4 and Algorithm 3",
    ),
    Erratum(JOURNAL, "Equation 9 sums from 1", "from 0", _EXAMPLES, "journal, Eq. 5-10"),
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
    Erratum(JOURNAL, "Equation 2 for any l", "exact at l = 2 only", "posterior", "journal, Eq. 2 and 5.3"),
    Erratum(JOURNAL, "one of l values cannot be told", "1/l breaks", "posterior", "journal, 5.1"),
    Erratum(CONFERENCE, "education at (2, 4)", "cannot be estimated", "mondrian", "conference, 7"),
    Erratum(LE, "the signs of Equation 7", "as in Definition 2", _EXAMPLES, "(l, e), Eq. 7"),
    Erratum(LE, "IL(t1) = 0.44", "0.667 by Equation 5", _EXAMPLES, "(l, e), Eq. 5"),
    Erratum(LE, "two rows of Table IV", "as in Table I", _EXAMPLES, "(l, e), Table IV"),
    Erratum(LE, "similar values form buckets", "where leaves are equally deep", _EXAMPLES, "(l, e), III"),
    Erratum(LE, "74 ages in Table VI", "73 in its 32,561 records", _EXAMPLES, "(l, e), Table VI"),
    Erratum(QIDS, "Example 2: four classes each", "8, 5, 8 and 4", _EXAMPLES, "sensitive QIDs, Example 2"),
    Erratum(RULES, "the last two rows of Table 5", "10 more", _EXAMPLES, "rules, Tables 4-5"),
    Erratum(RULES, "Table 3 is entropy 3-diverse", "3 different values", _EXAMPLES, "rules, Table 3"),
    Erratum(RULES, "three groups of equal size", "4, 3 and 7 values", _EXAMPLES, "rules, Table 7"),
)
