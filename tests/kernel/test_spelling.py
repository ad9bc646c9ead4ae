"""One rule says which ways of writing are the same value, and every place that asks goes by it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ways_of_writing import SAME, TEXTS, VALUES

import polyseme as ps
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import PolicyError
from polyseme.kernel.spelling import names_of, spelled, spelled_key, spelling, spellings
from polyseme.models import semantic_rules
from polyseme.release.writer import in_memory
from polyseme.schema import Condition, Constraint, Domain
from polyseme.semantics.distances import LineDistance
from polyseme.strata import Strata, Stratum
from polyseme.tables.codes import encode
from polyseme.tables.readings import alike, key_texts, plain_text

# -- the rule --------------------------------------------------------------------------------------------------------


def test_ways_of_writing_are_one_value_exactly_where_the_table_says_so() -> None:
    names = [set(spellings(row)) for row in VALUES]
    assert all(len(row) == 1 for row in names)
    assert len(set.union(*names)) == len(VALUES)


@pytest.mark.parametrize(
    ("series", "texts"),
    [
        (pl.Series([30.0, 7.5, None]), ["30", "7.5", None]),
        (pl.Series([30.0, -0.0, 2.0**52]), ["30", "0", str(2**52)]),
        (pl.Series([0.1, 1e-7], dtype=pl.Float32), ["0.1", "0.0000001"]),
        (pl.Series([1e16, 1e300, -0.0]), [str(10**16), str(10**300), "0"]),
        (pl.Series([2**64 - 1], dtype=pl.UInt64), [str(2**64 - 1)]),
        (pl.Series([True, None]), ["true", None]),
        (pl.Series(["30.00"]).cast(pl.Decimal(9, 2)), ["30"]),
        (pl.Series([date(2024, 1, 31)]), ["2024-01-31"]),
        (pl.Series([datetime(2024, 1, 31), None], dtype=pl.Datetime("ns")), ["2024-01-31", None]),
        (pl.Series([datetime(2024, 1, 31, 10, 30)], dtype=pl.Datetime("ms")), ["2024-01-31 10:30:00"]),
        (pl.Series(["True", "b"], dtype=pl.Categorical), ["true", "b"]),
        (pl.Series([None, None]), [None, None]),
        (pl.Series([], dtype=pl.Float64), []),
        (pl.Series([["a"], None]), ["['a']", None]),
    ],
)
def test_the_spelling_does_not_depend_on_the_type(series: pl.Series, texts: list[str | None]) -> None:
    assert spelled(series).to_list() == texts
    assert spelled(pl.Series(texts, dtype=pl.String)).to_list() == texts


def expected(text: str) -> str:
    """The rule, written down once more in another way."""
    text = text.lstrip(" \u00a0\u3000")
    text = text[: len(text.rstrip())]
    if text in ("True", "TRUE", "False", "FALSE"):
        return text.lower()
    shape = re.fullmatch(r"[+-]?((?:0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text)
    if not shape or (shape[3] and "." not in shape[1] and shape[3][1] not in "+-"):
        return text
    number = Decimal(text)
    digits = format(number, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if number == 0 else digits


numeric = st.text(st.sampled_from("0123456789.+-eE "), max_size=9)
some = st.one_of(numeric, st.sampled_from(TEXTS[:40]), st.floats(allow_nan=False).map(str), st.integers().map(str))


@given(st.lists(st.one_of(some, st.none()), max_size=30), st.integers(1, 12))
@example(["-0e+3", "+1.50e+2"], 1)
def test_a_column_is_spelled_as_its_values_are(texts: list[str | None], times: int) -> None:
    column = pl.Series("c", texts * times, dtype=pl.String)
    found = spelled(column)
    assert found.name == "c"
    assert found.to_list() == [None if text is None else spelling(text) for text in texts] * times
    assert spelled(found).equals(found), "a spelling is its own spelling"
    dated = re.compile(r"\d{4}-\d\d-\d\d")
    for text, name in zip(texts, found):
        if text is not None and not dated.match(text) and text.isascii():
            assert name == expected(text)


@given(st.lists(st.one_of(st.floats(allow_nan=False), st.integers(-(10**6), 10**6).map(float)), min_size=1))
def test_a_float_is_the_text_that_python_writes(numbers: list[float]) -> None:
    assert spelled(pl.Series(numbers)).to_list() == spellings(numbers) == spellings([str(number) for number in numbers])


def test_values_of_old_releases_keep_their_names_apart() -> None:
    assert names_of(["1", "1.0", 2.0, "True"]) == ["1", "1.0", "2", "true"]


# -- everybody who asks ----------------------------------------------------------------------------------------------


def conditions(declared: str) -> list[bool]:
    free = Mechanism(make_design("balanced", LineDistance.ranks(3).structure(1), 2))
    constraint = Constraint(Condition({"c": tuple(spellings([declared]))}), (0,))
    strata = Strata((constraint,), (Stratum((), 4, free), Stratum((0,), 4, free)))
    return [place == 1 for place in strata.places({"c": pa.array(TEXTS)}, len(TEXTS))]


def labels(declared: str) -> list[bool]:
    return [code == 1 for code in encode(pl.Series(TEXTS), Domain(("another", declared))).codes]


def comparison(declared: str) -> list[bool]:
    return (plain_text(pl.Series(TEXTS)) == plain_text(pl.Series([declared]))[0]).to_list()


@pytest.mark.parametrize("place", [conditions, labels, comparison])
def test_every_place_goes_by_the_rule(place: Callable[[str], list[bool]]) -> None:
    for row in VALUES:
        for declared in row[:3]:
            found = {text for text, alike in zip(TEXTS, place(declared)) if alike}
            assert found == set(row), declared


def test_semantic_rules_go_by_the_rule() -> None:
    for row in VALUES:
        for declared in row[:3]:
            never = semantic_rules.read_rules([{"never": {"c": declared}}])
            tables = (pl.DataFrame({"c": texts}) for texts in (row, [text for text in TEXTS if text not in row]))
            broken = [semantic_rules.check(table, [], never)[0].violations for table in tables]
            assert broken == [len(row), 0], declared


def test_a_domain_lists_no_value_in_two_spellings() -> None:
    entry = {"role": "sensitive", "protect": {"diversity": {"l": 2}}}
    ps.Policy.from_dict({"attributes": {"c": {**entry, "domain": [row[-1] for row in VALUES]}}})
    for row in SAME:
        problem = f"{len(row) - 1} of the {len(row) + 1} values"
        with pytest.raises(PolicyError, match=problem):
            ps.Policy.from_dict({"attributes": {"c": {**entry, "domain": [*row, "another"]}}})


def test_record_keys_go_by_the_rule_and_have_no_leading_zeros() -> None:
    keys = [set(key_texts(pl.Series(row)).to_list()) for row in SAME]
    assert all(len(row) == 1 for row in keys)
    assert len(set.union(*keys)) == len(SAME)
    assert set(spelled_key(pl.Series(["7", "007", "07", "+07", "007.0", " 7.0"]))) == {"7"}
    assert key_texts(pl.Series([7, 8])).to_list() == key_texts(pl.Series([7.0, 8.0])).to_list() == ["7", "8"]
    assert key_texts(pl.Series(["0e12", "0e34", "A007"])).to_list() == ["0e12", "0e34", "A007"]
    moments = pl.Series([datetime(2024, 1, 31)])
    assert key_texts(moments).to_list() == key_texts(moments.dt.date()).to_list() == ["2024-01-31"]


def test_a_domain_of_numbers_reads_texts_as_numbers() -> None:
    assert encode(pl.Series(["007", "1e3", "7.0", "x"]), Domain((7, 1000))).codes.tolist() == [0, 1, 0, -2]


@pytest.mark.parametrize("row", SAME, ids=lambda row: row[0])
def test_the_original_is_found_in_its_release_however_it_is_written(row: list[str]) -> None:
    original, shown = alike(pl.Series([*row, "other"]), pl.Series([row[0], "unknown"]))
    assert original[: len(row)].unique().to_list() == [shown[0]]


# -- from end to end -------------------------------------------------------------------------------------------------

POLICY = """
attributes:
  pregnant: {role: quasi-identifier}
  ill: {role: sensitive, domain: [flu, gout, cold, birth, 5, 6], protect: {diversity: {l: 2}}}
impossible:
  - {when: {pregnant: false}, attribute: ill, values: [birth, 5.0]}
"""
HEALTHY = ("flu", "gout", "cold", "6")


def people(words: list[str]) -> pl.DataFrame:
    pairs = itertools.product(words, [*HEALTHY] * 25)
    return pl.DataFrame(list(pairs), schema=["pregnant", "ill"], orient="row")


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize(
    "words", [["False", "True"], ["FALSE", "TRUE"], ["false", "False", "FALSE ", "true", "True"]], ids=lambda w: w[0]
)
def test_a_table_that_pandas_wrote_shows_no_impossible_decoy(words: list[str], form: str, tmp_path: Path) -> None:
    people(words).write_csv(tmp_path / "table.csv")
    release = ps.anonymize(tmp_path / "table.csv", ps.Policy.loads(POLICY), tmp_path / "out", form=form)
    shown = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(release.batches(release.manifest.names))))
    shown = shown.with_columns(
        pl.col("ill").cast(pl.List(pl.String)) if form == "set" else pl.col("ill").cast(pl.String)
    )
    shown = shown.explode("ill") if form == "set" else shown
    candidates = shown.group_by(spelled(shown["pregnant"]).alias("is")).agg(pl.col("ill").unique().sort())
    assert dict(candidates.iter_rows()) == {"false": sorted(HEALTHY), "true": sorted([*HEALTHY, "birth", "5"])}
    assert ps.verify(release).holds


def test_pandas_columns_meet_conditions_whatever_their_type() -> None:
    rules = ps.Policy.loads(POLICY)
    table = people(["False", "True"])
    for column in (table["pregnant"] == "True", table["pregnant"], table["pregnant"].cast(pl.Categorical)):
        release = ps.anonymize(table.with_columns(column.alias("pregnant")), rules)
        kept = pl.DataFrame(pl.from_arrow(release.table)).filter(
            spelled(pl.Series(release.table["pregnant"])) == "false"
        )
        assert set(kept["ill"].cast(pl.List(pl.String)).explode()) <= set(HEALTHY)


@pytest.mark.parametrize(("words", "decoy"), [(["False"], "birth"), (["false", "FALSE"], "5"), (["False"], "5.0")])
def test_an_impossible_decoy_under_another_spelling_is_found(words: list[str], decoy: str) -> None:
    release = ps.anonymize(people([*words, "true"]), ps.Policy.loads(POLICY))
    assert ps.verify(release).holds
    table = pl.DataFrame(pl.from_arrow(release.table)).with_columns(pl.col("ill").cast(pl.List(pl.String)))
    row = table["pregnant"].to_list().index(words[-1])
    sets = table["ill"].to_list()
    sets[row] = [sets[row][0], decoy]
    forged = in_memory(release.manifest, table.with_columns(ill=pl.Series(sets)).to_arrow())
    verdict = next(verdict for verdict in ps.verify(forged).verdicts if verdict.model == "believable")
    assert not verdict.holds
    assert verdict.violations == 1


def test_a_domain_from_the_table_has_each_value_once() -> None:
    text = "attributes: {n: {role: sensitive, protect: {diversity: {l: 2}}}}"
    table = pl.DataFrame({"n": ["1.0", "1", " 1", "02", "2.50", "True", "true", "9", "2.50"]})
    made = ps.plan(ps.Policy.loads(text), data=table)
    assert made["n"].attribute.domain.values == ("1", "02", "2.50", "9", "true")
    assert made.remarks == (
        "$.attributes.n: 3 of the 8 values in the table are other spellings of the rest (30 and 30.0, true and True) "
        "and count as the same value",
    )
    release = ps.anonymize(table, ps.Policy.loads(text), warn=lambda said: None)
    assert release.manifest.records == table.height


def test_a_prior_names_values_in_any_spelling() -> None:
    text = "attributes: {n: {role: sensitive, domain: [7, 2.5, true], prior: %s, protect: {diversity: {l: 2}}}}"
    made = ps.plan(ps.Policy.loads(text % "{7.0: 1, '2.50': 2, True: 1}"))
    assert made["n"].attribute.distributions.prior.tolist() == [0.25, 0.5, 0.25]
    with pytest.raises(PolicyError, match="1 of the 4 values are listed more than once"):
        ps.plan(ps.Policy.loads(text % "{7: 1, '7.0': 1, 2.5: 2, True: 1}"))
