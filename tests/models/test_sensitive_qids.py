"""The sensitive quasi-identifier paper: its tables, its theorems, and its definitions against a naive reading."""

import math
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.errors import PolicyError, QuestionError, TableError
from polyseme.models import sensitive_qids as sq
from polyseme.models.sensitive_qids import Public, classes_for, expand
from polyseme.privacy.analysis.closeness import subsets
from polyseme.privacy.calibration import choose
from polyseme.privacy.promises import read_promises
from polyseme.semantics.distances.ground import Equal, Ordered
from polyseme.tables import expansion

AGE = [41, 41, 51, 51, 51, 51, 51, 51]
DISEASE = ["Fever", "Obesity", "Fever", "Obesity", "HIV", "HIV", "Fever", "Obesity"]
JOB = ["*", "*", *["Lawyer"] * 6]

TABLE_1 = pl.DataFrame(
    {
        "age": AGE,
        "address": [13021, 17025, 13021, 14053, 14003, 16005, 14003, 16005],
        "job": ["Artist", "Writer", *["Lawyer"] * 6],
        "disease": DISEASE,
    }
)
TABLE_2A = pl.DataFrame(
    {"age": AGE, "address": ["13*-17*"] * 2 + ["13*-14*"] * 2 + ["14*-16*"] * 4, "job": JOB, "disease": DISEASE}
)
TABLE_2B = pl.DataFrame(
    {
        "age": AGE,
        "address": ["13*-17*"] * 2 + ["13*-14*"] * 2 + ["14003", "16005", "14003", "16005"],
        "job": JOB,
        "disease": DISEASE,
    }
)
TABLE_2C = pl.DataFrame({"age": AGE, "address": ["13*-17*"] * 2 + ["13*-16*"] * 6, "job": JOB, "disease": DISEASE})
TABLE_3C = pl.DataFrame({"age": [[33, 41]], "address": [[10105, 32515]], "disease": [["Cold", "HIV"]]})
TABLE_4 = pl.DataFrame(
    {
        "age": [[41, 23], [79, 41], [42, 51], [51, 33], [15, 51], [51, 69], [51, 39], [51, 60]],
        "address": [
            [12255, 13021],
            [14000, 17025],
            [13021, 13997],
            [18002, 14053],
            [14003, 15500],
            [16005, 12332],
            [14005, 14003],
            [16005, 12001],
        ],
        "job": [
            ["Artist", "Programmer"],
            ["Lawyer", "Writer"],
            ["Writer", "Lawyer"],
            ["Driver", "Lawyer"],
            ["Lawyer", "Teacher"],
            ["Researcher", "Lawyer"],
            ["Lawyer", "Programmer"],
            ["Lawyer", "Writer"],
        ],
        "disease": [
            ["Fever", "Flu", "Chill"],
            ["Cold", "Obesity", "Pus"],
            ["Cancer", "Fever", "Sty"],
            ["Cold", "Flu", "Obesity"],
            ["Cold", "HIV", "Sty"],
            ["HIV", "Fever", "Sty"],
            ["Flu", "Cold", "Fever"],
            ["Obesity", "HIV", "Pus"],
        ],
    }
)


def diversity(table, attribute, l, **more):
    return sq.diversity(classes_for(table, attribute, **more), l)


# The paper's tables ---------------------------------------------------------------------------------------------------


def test_table_2a_is_2_anonymous():
    assert sq.anonymity(classes_for(TABLE_2A, "disease"), 2).holds
    assert not sq.anonymity(classes_for(TABLE_2A, "disease"), 3).holds


def test_example_2_with_its_erratum():
    assert [classes_for(TABLE_2B, name).count for name in TABLE_2B.columns] == [8, 5, 8, 4]


def test_example_3():
    """Table II(b) satisfies (1, 1, 1, 2)-diversity, and no coordinate can be larger."""
    for name, l in zip(TABLE_2B.columns, (1, 1, 1, 2), strict=True):
        assert diversity(TABLE_2B, name, l).holds
        assert not diversity(TABLE_2B, name, l + 1).holds
    verdict = diversity(TABLE_2B, "disease", 2)
    assert (verdict.worst, verdict.bound, verdict.checked) == (0.5, 0.5, 4)


def test_table_2c_is_exactly_a_quarter_close():
    classes = classes_for(TABLE_2C, "disease")
    verdict = sq.closeness(classes, 0.25)
    assert verdict.holds
    assert verdict.worst == 0.25
    assert not sq.closeness(classes, 0.2499).holds
    assert not sq.closeness(classes_for(TABLE_2B, "disease"), 0.25).holds


def test_table_3_expansion():
    rows = expand(TABLE_3C).rows()
    assert rows == list(product([33, 41], [10105, 32515], ["Cold", "HIV"]))
    assert rows[5] == (41, 10105, "HIV")
    for name in TABLE_3C.columns:
        assert classes_for(TABLE_3C, name).count == 4
        assert diversity(TABLE_3C, name, 2).holds
        assert diversity(TABLE_3C, name, 2).worst == 0.5


def test_table_4_holds_the_originals_and_2_2_2_3_diversity():
    for name in TABLE_1.columns:
        assert all(value in cell for value, cell in zip(TABLE_1[name], TABLE_4[name].to_list(), strict=True))
    promises = {name: {"diversity": {"l": l}} for name, l in zip(TABLE_4.columns, (2, 2, 2, 3), strict=True)}
    verdicts = sq.check(TABLE_4, promises)
    assert [verdict.attribute for verdict in verdicts] == list(TABLE_4.columns)
    assert all(verdict.holds for verdict in verdicts)
    assert not diversity(TABLE_4, "disease", 4).holds
    # Frequency diversity implies as many rows in each class.
    assert sq.anonymity(classes_for(TABLE_4, "disease"), 3).holds


def test_table_4_what_ewens_acquaintances_learn():
    """Who knows that Ewen has HIV is left with four ages and five addresses."""
    with_hiv = TABLE_4.filter(pl.col("disease").list.contains("HIV"))
    assert set(with_hiv["age"].explode()) == {15, 51, 60, 69}
    assert set(with_hiv["address"].explode()) == {12001, 12332, 14003, 15500, 16005}


def test_table_5_whole_domains_teach_nothing():
    """p = 1 and sets of the whole domain are 0-close with inference from the whole database."""
    table = pl.DataFrame({"age": [list(range(9))] * 2, "disease": [list(range(5))] * 2})
    public = Public(5, np.array([0.4, 0.3, 0.1, 0.1, 0.1]))
    verdict = sq.closeness(classes_for(table, "disease", domain=5), 0.0, public)
    assert verdict.holds
    assert verdict.worst == pytest.approx(0.0, abs=1e-15)


# The definitions, read naively ----------------------------------------------------------------------------------------


def naive_classes(table, attribute):
    """Definition 10 on the expansion written out; each row remembers its record."""
    place = list(table).index(attribute)
    classes = defaultdict(list)
    for record, cells in enumerate(zip(*table.values(), strict=True)):
        for row in product(*cells):
            classes[row[:place] + row[place + 1 :]].append((record, row[place]))
    return classes


def naive_closeness(table, attribute, prior, p, ground):
    size, place = len(prior), list(table).index(attribute)
    worst = 0.0
    for rows in naive_classes(table, attribute).values():
        inferred = []
        for record in {record for record, _ in rows}:
            members = list(table.values())[place][record]
            eta = len(members)
            kept = p + (1 - p) * eta / size
            inside = kept / math.comb(size - 1, eta - 1)
            outside = (1 - kept) / math.comb(size - 1, eta) if eta < size else 0.0
            joint = np.array([prior[v] * (inside if v in members else outside) for v in range(size)])
            inferred.append(joint / joint.sum())
        worst = max(worst, float(ground.work(np.mean(inferred, axis=0) - prior)))
    return worst


@st.composite
def set_tables(draw):
    """Small tables of sets of codes, with ties and overlaps."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    records = draw(st.integers(1, 7))
    cell = [st.sets(st.integers(0, size - 1), min_size=1, max_size=size).map(sorted) for size in sizes]
    table = {f"s{j}": [draw(cell[j]) for _ in range(records)] for j in range(len(sizes))}
    return sizes, table


@given(set_tables(), st.integers(1, 4), st.floats(1.0, 4.0))
@settings(max_examples=150, deadline=None)
def test_definitions_10_to_14_and_17(drawn, l, entropy_l):
    sizes, table = drawn
    frame = pl.DataFrame(table)
    for name, size in zip(table, sizes, strict=True):
        naive = naive_classes(table, name)
        classes = classes_for(frame, name, domain=size)
        counts = [Counter(value for _, value in rows) for rows in naive.values()]
        share = max(max(count.values()) / count.total() for count in counts)
        entropy = min(-sum(n / c.total() * math.log(n / c.total()) for n in c.values()) for c in counts)
        assert classes.count == len(naive)
        verdict = sq.diversity(classes, l)
        assert verdict.worst == pytest.approx(share)
        assert verdict.holds == all(max(c.values()) * l <= c.total() for c in counts)
        verdict = sq.entropy_diversity(classes, entropy_l)
        assert verdict.worst == pytest.approx(math.exp(entropy))
        assert verdict.holds == (entropy >= math.log(entropy_l) - 1e-12)
        verdict = sq.anonymity(classes, l)
        assert verdict.worst == min(c.total() for c in counts)
        assert verdict.holds == (verdict.worst >= l)


@given(set_tables(), st.floats(0.0, 1.0), st.integers(0, 1_000), st.sampled_from([Equal(), Ordered()]))
@settings(max_examples=150, deadline=None)
def test_definition_15(drawn, p, seed, ground):
    sizes, table = drawn
    frame = pl.DataFrame(table)
    for name, size in zip(table, sizes, strict=True):
        prior = np.random.default_rng(seed).dirichlet(np.ones(size)) * 0.99 + 0.01 / size
        expected = naive_closeness(table, name, prior, p, ground)
        public = Public(size, prior, p, ground=ground)
        classes = classes_for(frame, name, domain=size)
        assert sq.closeness(classes, 0.5, public).worst == pytest.approx(expected, abs=1e-9)
        assert sq.closeness(classes, expected + 1e-9, public).holds
        assert expected < 1e-6 or not sq.closeness(classes, expected * 0.98, public).holds


@given(set_tables(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_record_by_record_is_never_kinder(drawn, l):
    """Where combinations are too many, each record alone: a bound on every class."""
    sizes, table = drawn
    frame = pl.DataFrame(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansion, "EXPANSION_LIMIT", 0)
        alone = [classes_for(frame, name, domain=size) for name, size in zip(table, sizes, strict=True)]
    for name, size, records in zip(table, sizes, alone, strict=True):
        exact = classes_for(frame, name, domain=size)
        public = Public(size, np.full(size, 1 / size), 0.7)
        assert not records.listed
        assert sq.diversity(records, l).worst >= sq.diversity(exact, l).worst - 1e-12
        assert sq.entropy_diversity(records, l).worst <= sq.entropy_diversity(exact, l).worst + 1e-9
        assert sq.anonymity(records, l).worst <= sq.anonymity(exact, l).worst
        assert sq.closeness(records, 0.1, public).worst >= sq.closeness(exact, 0.1, public).worst - 1e-12
        assert "class of its own" in sq.diversity(records, l).note


# Theorems 2, 3 and 4 --------------------------------------------------------------------------------------------------


def draw_sets(rng, codes, size, eta, p):
    order = rng.random((len(codes), size))
    truthful = rng.random(len(codes)) < p
    order[np.flatnonzero(truthful), codes[truthful]] = -1.0
    return np.sort(np.argpartition(order, eta - 1, axis=1)[:, :eta], axis=1)


@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.integers(1, 12), st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_theorems_2_and_3(sizes, records, seed):
    """With p = 1 and eta = l, frequency and entropy diversity always hold."""
    rng = np.random.default_rng(seed)
    table, promises = {}, {}
    for j, size in enumerate(sizes):
        l = int(rng.integers(1, size))
        choice = choose(size, None, read_promises({"diversity": {"l": l}, "entropy-diversity": {"l": l}}))
        codes = rng.integers(0, size, records) ** 2 // size
        table[f"s{j}"] = draw_sets(rng, codes, size, choice.l, choice.p).tolist()
        promises[f"s{j}"] = {"diversity": {"l": l}, "entropy-diversity": {"l": l}, "k-anonymity": {"k": l}}
    verdicts = sq.check(pl.DataFrame(table), promises)
    assert len(verdicts) == 3 * len(sizes)
    assert all(verdict.holds for verdict in verdicts)


@given(
    st.integers(2, 8),
    st.floats(0.02, 0.9),
    st.sampled_from(["equal", "ordered"]),
    st.booleans(),
    st.integers(0, 10_000),
)
@settings(max_examples=100, deadline=None)
def test_theorem_4(size, t, ground, referenced, seed):
    """Closeness holds for every set that can be published, whatever the distribution; so it does for every union."""
    prior = np.random.default_rng(seed).dirichlet(np.ones(size))
    promises = {"closeness": {"t": t, "ground": ground}}
    choice = choose(size, None, read_promises(promises), reference=prior if referenced else None)
    every = pl.DataFrame({"who": list(range(math.comb(size, choice.l))), "s": subsets(size, choice.l).tolist()})
    public = Public(size, prior, choice.p, ground=Equal() if ground == "equal" else Ordered())
    verdict = sq.closeness(classes_for(every, "s", domain=size), t, public)
    assert verdict.holds
    if referenced:
        assert verdict.worst == pytest.approx(choice.t, abs=1e-9)
    merged = sq.closeness(classes_for(every, "s", ["s"], domain=size), t, public)
    assert merged.worst <= verdict.worst + 1e-12


# Odd tables -----------------------------------------------------------------------------------------------------------


def test_many_attributes_are_checked_record_by_record():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({f"s{j}": draw_sets(rng, rng.integers(0, 5, 200), 5, 3, 1.0).tolist() for j in range(68)})
    verdict = diversity(table, "s7", 3)
    assert verdict.holds
    assert verdict.checked == 200
    assert verdict.note
    assert not diversity(table, "s7", 4).holds


def test_repeats_in_a_set_do_not_count():
    table = pl.DataFrame({"a": [[1, 1, 1]], "b": [[1, 2]]})
    assert diversity(table, "a", 1).worst == 1.0


@pytest.mark.parametrize(
    ("column", "domain", "flaw"),
    [
        ([[0, 1], []], 2, "1 records have no candidates"),
        ([[0, 1], None], 2, "1 records have no candidates"),
        ([[0, 1], [0, 7]], 2, "1 candidates are missing or outside the domain"),
    ],
)
def test_what_cannot_be_checked_does_not_hold(column, domain, flaw):
    table = pl.DataFrame({"a": pl.Series(column, dtype=pl.List(pl.Int64)), "b": [1, 2]})
    classes = classes_for(table, "a", domain=domain)
    for verdict in (sq.diversity(classes, 1), sq.entropy_diversity(classes, 1), sq.anonymity(classes, 1)):
        assert not verdict.holds
        assert flaw in verdict.note
    assert flaw in sq.closeness(classes, 1.0, Public(domain, np.full(domain, 1 / domain))).note


def test_no_rows():
    empty = pl.DataFrame({"a": pl.Series([], dtype=pl.List(pl.Int64)), "b": pl.Series([], dtype=pl.Int64)})
    assert not diversity(empty, "a", 1).holds


def test_closeness_of_sets_needs_a_reference():
    verdict = sq.closeness(classes_for(TABLE_3C, "disease"), 0.5)
    assert not verdict.holds
    assert "reference" in verdict.note
    with pytest.raises(PolicyError, match="2 values"):
        sq.closeness(classes_for(TABLE_3C, "disease"), 0.5, Public(reference=np.ones(3)))


def test_a_set_that_the_reference_rules_out():
    table = pl.DataFrame({"a": [[0, 1], [2, 3]]})
    public = Public(4, np.array([0.5, 0.5, 0.0, 0.0]))
    assert not sq.closeness(classes_for(table, "a", domain=4), 0.99, public).holds


def test_labels_meet_their_domain():
    table = pl.DataFrame({"a": [["x", "y"], ["z", "y"]]})
    assert classes_for(table, "a", domain=["x", "y", "z"]).value.tolist() == [0, 1, 2, 1]
    assert classes_for(pl.DataFrame({"a": [[1.0, 2.0]]}), "a", domain=[1, 2]).value.tolist() == [0, 1]
    assert classes_for(pl.DataFrame({"a": [1, 2, 1]}), "a").labels == (1, 2)


def test_wrong_questions():
    with pytest.raises(TableError, match="did you mean 'disease'"):
        classes_for(TABLE_1, "disease", ["age", "desease", "disease"])
    with pytest.raises(QuestionError, match="not among"):
        classes_for(TABLE_1, "desease")
    with pytest.raises(PolicyError, match="did you mean 'diversity'"):
        sq.check(TABLE_1, {"age": {"divresity": {"l": 2}}})
    with pytest.raises(PolicyError) as caught:
        sq.check(TABLE_1, {"age": {"diversity": {"l": 0}}, "job": {"closeness": {}, "k-anonymity": {"k": "two"}}})
    assert [problem.where for problem in caught.value.problems] == [
        "age.diversity.l",
        "job.closeness.t",
        "job.k-anonymity.k",
    ]
    wide = pl.DataFrame({f"s{j}": [[0, 1, 2]] for j in range(20)})
    with pytest.raises(TableError, match="3,486,784,401 rows"):
        expand(wide)
