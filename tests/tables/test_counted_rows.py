"""Distinct rows with counts, as another engine hands them over, tell exactly what all the rows tell."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.inference.sets.estimate import Estimate
from polyseme.models import Verdict
from polyseme.policy.resolution import resolve
from polyseme.publishing.review import Exposure
from polyseme.release import Release
from polyseme.scrutiny.verification.verdicts import verify_release
from polyseme.tables.io.columnar import CountedFrame, FrameSource
from polyseme.tables.io.source import Source
from polyseme.testing.workers import Compressed
from polyseme.verbs.prior import prior_from_table

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")

SETS = """
attributes:
  sex: {role: quasi-identifier}
  town: {role: quasi-identifier}
  ill:
    role: sensitive
    domain: [a, b, c, d, e, f]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
  pay:
    role: sensitive
    domain: [1, 2, 3, 4, 5]
    protect: {diversity: {l: 2}}
  weight: {role: insensitive}
"""
STRATA = SETS + "impossible: [{when: {sex: M}, attribute: ill, values: [a]}]\n"
WEIGHTED = SETS.replace("role: insensitive", "role: weight")
GENERALIZED = """
attributes:
  sex: {role: quasi-identifier}
  pay: {role: quasi-identifier, domain: [1, 2, 3, 4, 5], hierarchy: {intervals: [2, 4]}}
  ill: {role: sensitive, domain: [a, b, c, d, e, f]}
models: [{k-anonymity: {k: 4}}, {closeness: {t: 0.9, attribute: ill}}, {entropy-diversity: {l: 1.2}}]
method: {mondrian: {}}
"""
ANATOMY = """
attributes:
  sex: {role: quasi-identifier}
  town: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d, e, f]}
models: [{distinct-diversity: {l: 2}}]
method: {anatomy: {l: 2}}
"""
ANY_TABLE = """
attributes:
  sex: {role: quasi-identifier}
  town: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d, e, f], distance: {line: rank}}
  pay: {role: sensitive, bins: {method: quantile, count: 3}, distance: {line: rank}}
models:
  - {k-anonymity: {k: 3}}
  - {alpha-k-anonymity: {alpha: 0.5, k: 2}}
  - {distinct-diversity: {l: 2}}
  - {frequency-diversity: {l: 2}}
  - {entropy-diversity: {l: 2}}
  - {recursive-diversity: {c: 2, l: 2}}
  - {closeness: {t: 0.2, ground: ordered, attribute: ill}}
  - {closeness: {t: 0.2}}
  - {beta-likeness: {beta: 1, attribute: ill}}
  - {delta-disclosure: {delta: 1, attribute: ill}}
  - {le-diversity: {l: 2, e: 1, attribute: ill}}
  - {semantic-diversity: {l: 2, d: 2, reading: frequency, attribute: ill}}
  - {semantic-rules: {rules: [{never: {ill: a, sex: M}}, {if: {ill: b}, then: {sex: F}}, {never-all: {ill: [a, b]}}]}}
table: {wildcard: %s}
"""


def people(seed: int, records: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], records)
    return pl.DataFrame(
        {
            "sex": sex,
            "town": pl.Series(rng.choice(["x", "y", ""], records)).replace("", None),
            "ill": [rng.choice(list("bcdef" if one == "M" else "abcdef")) for one in sex],
            "pay": rng.integers(1, 6, records),
            "weight": rng.choice([0.1, 1.7, 2.3], records),
        }
    )


def made(text: str, seed: int, records: int, **options: Any) -> Release:
    columns = [name for name in people(0, 1).columns if f"  {name}:" in text]
    return ps.anonymize(people(seed, records).select(columns), ps.Policy.loads(text), seed=seed, **options)


def compressed(release: Release, seed: int) -> Release:
    """A release of which no single row can be read."""
    return replace(release, reader=Compressed(release.source, seed))


ORDER = ("blocks_p_value", "neighbors_p_value")
"""What is known of the order of rows only."""


def without_rows(verdict: Verdict) -> Verdict:
    """Rows that were only counted have no number and no order: all but the places of single records is the same."""
    single = verdict.model in ("believable", "semantic-rules")
    places = () if single else tuple(replace(place, row=None) for place in verdict.worst_classes)
    parameters = {name: value for name, value in verdict.parameters.items() if name not in ORDER}
    note = verdict.note.replace("; another engine counted the rows: their order was not tested", "")
    return replace(verdict, worst_classes=places, parameters=parameters, note=note)


def same_estimates(found: Estimate, expected: Estimate) -> None:
    """To the last bit: every number, every interval and everything that is said."""
    for name in ("estimator", "by", "labels", "notes"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("values", "stderr", "low", "high", "totals"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def same_verdicts(found: tuple[Verdict, ...], expected: tuple[Verdict, ...]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert without_rows(mine) == without_rows(theirs)


SEEDS, RECORDS = st.integers(0, 10_000), st.integers(40, 90)


@pytest.mark.parametrize(
    ("text", "options", "questions"),
    [
        (SETS, {}, [(["ill"], ["sex", "town"], []), (["ill"], [], ["town", "pay"])]),
        (SETS, {"form": "long"}, [(["pay"], ["sex"], [])]),
        (STRATA, {}, [(["ill"], ["town"], [])]),
        (WEIGHTED, {}, [(["ill"], ["sex"], [])]),
        (GENERALIZED, {}, [(["ill"], ["sex"], []), (["ill"], ["pay"], [])]),
        (ANATOMY, {}, [(["ill"], ["sex"], []), (["ill"], [], [])]),
    ],
    ids=["sets", "long", "strata", "weights", "classes", "groups"],
)
@given(seed=SEEDS, records=RECORDS)
@settings(max_examples=2, phases=[Phase.generate])
def test_a_release_says_the_same(
    text: str, options: Mapping[str, Any], questions: list[Any], seed: int, records: int
) -> None:
    release = made(text, seed, records, **options)
    counted = compressed(release, seed)
    for of, by, using in questions:
        same_estimates(ps.estimate(counted, of, by, using), ps.estimate(release, of, by, using))
    same_verdicts(verify_release(counted).verdicts, verify_release(release).verdicts)


@pytest.mark.parametrize("seed", [1, 2])
def test_generalized_columns(tmp_path: Path, seed: int) -> None:
    """Of values that labels stand for."""
    (tmp_path / "pay.csv").write_text("p1,low,*\np2,low,*\np3,high,*\np4,high,*\np5,high,*\n")
    text = GENERALIZED.replace("domain: [1, 2, 3, 4, 5], hierarchy: {intervals: [2, 4]}", "hierarchy: pay.csv")
    text = text.replace("k: 4", "k: 12")
    table = people(seed, 80).select("sex", "ill", pay=pl.format("p{}", "pay"))
    release = ps.anonymize(table, ps.Policy.from_dict(yaml.safe_load(text), tmp_path), seed=seed)
    assert release.manifest["pay"].attribute.name == "pay"
    for of, by in ((["pay"], ["sex"]), (["pay", "ill"], [])):
        same_estimates(ps.estimate(compressed(release, seed), of, by), ps.estimate(release, of, by))


def test_two_attributes_at_once() -> None:
    release = made(SETS, 3, 60)
    options: Mapping[str, Any] = {"of": ["ill", "pay"], "by": ["sex"], "estimator": "inverse"}
    same_estimates(ps.estimate(compressed(release, 3), **options), ps.estimate(release, **options))


def damaged(release: Release, columns: Mapping[str, pl.Series]) -> Release:
    table = pl.DataFrame(release.source.schema.empty_table()).clear()
    frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(list(release.source.batches()))))
    assert table.columns == frame.columns
    return replace(release, table=frame.with_columns(**columns).to_arrow())


@pytest.mark.parametrize("wrong", [["a", "b"], ["a", "a"], ["zz", "f"], [], None, ["a", "c", "f"]])
def test_what_is_wrong_with_a_release_is_found_in_its_counts(wrong: list[str] | None) -> None:
    release = made(STRATA, 5, 60)
    sets = release.to_polars()["ill"].to_list()
    sets[3:9] = [wrong] * 6
    worse = damaged(release, {"ill": pl.Series(sets, dtype=pl.List(pl.String))})
    expected = verify_release(worse)
    assert not expected.holds
    same_verdicts(verify_release(compressed(worse, 1)).verdicts, expected.verdicts)


def test_broken_groups_and_lost_records_are_found_in_counts() -> None:
    release = made(ANATOMY, 5, 60)
    fewer = replace(release, table=release.source.table.slice(0, 55))  # type: ignore[attr-defined]
    expected = verify_release(fewer)
    assert {verdict.model for verdict in expected.verdicts if not verdict.holds} >= {"groups", "record-count"}
    same_verdicts(verify_release(compressed(fewer, 2)).verdicts, expected.verdicts)


def messy(seed: int, records: int) -> Source:
    """A table as others make it: `*` for what they suppressed, missing values, words among numbers."""
    rng = np.random.default_rng(seed)
    frame = people(seed, records).with_columns(
        sex=pl.when(pl.Series(rng.random(records) < 0.2)).then(pl.lit("*")).otherwise("sex"),
        town=pl.when(pl.Series(rng.random(records) < 0.2)).then(pl.lit("*")).otherwise("town"),
    )
    return FrameSource(frame.to_arrow())


@pytest.mark.parametrize("wildcard", ["true", "false"])
@given(seed=SEEDS, records=st.integers(20, 60))
@settings(max_examples=5, phases=[Phase.generate])
def test_models_and_risks_of_any_table(wildcard: str, seed: int, records: int) -> None:
    source, policy = messy(seed, records), ps.Policy.loads(ANY_TABLE % wildcard)
    counted = Compressed(source, seed)
    plain = [
        replace(verdict, note=verdict.note.split("a record of each")[0].removesuffix("; "))
        for verdict in ps.verify(source, policy).verdicts
    ]
    same_verdicts(ps.verify(counted, policy).verdicts, tuple(plain))
    options: Mapping[str, Any] = {"qi": ["sex", "town"], "sensitive": ["ill", "pay", "town"]}
    assert ps.risk(counted, **options) == ps.risk(source, **options)


@given(seed=SEEDS)
@settings(max_examples=3, phases=[Phase.generate])
def test_what_is_read_before_drawing(seed: int) -> None:
    source = FrameSource(people(seed, 80).to_arrow())
    counted = Compressed(source, seed)
    text = SETS.replace("    domain: [a, b, c, d, e, f]\n", "    reference: data\n").replace(
        "domain: [1, 2, 3, 4, 5]", "bins: {method: quantile, count: 2}"
    )
    policy = ps.Policy.loads(text)
    found, expected = resolve(policy, counted), resolve(policy, source)
    assert found.schema["pay"].domain == expected.schema["pay"].domain
    assert found.schema["ill"].domain == expected.schema["ill"].domain
    np.testing.assert_array_equal(
        found.schema["ill"].distributions.reference, expected.schema["ill"].distributions.reference
    )
    one, other = (prior_from_table(each, "ill", ["sex"], publish_exact=True) for each in (counted, source))
    assert list(one.rows()) == list(other.rows())


def test_exposure_of_counted_rows() -> None:
    rows = people(1, 300).select("sex", "town", "pay").to_arrow()
    one, other = (Exposure(("sex", "town", "pay"), held=held) for held in (4_000, 4_000))
    one.add(rows)
    for batch, counts in Compressed(FrameSource(rows)).counted():
        other.add(pa.Table.from_batches([batch]), counts)
    assert other.rows == 300
    assert [one.records_in_classes_below(n) for n in (2, 5, 20)] == [
        other.records_in_classes_below(n) for n in (2, 5, 20)
    ]


def test_a_thousand_million_records_are_their_counts() -> None:
    """Six thousand million, so that products of counts do not fit 64 bits."""
    release = made(STRATA + "models: [{k-anonymity: {k: 5}}]\n", 1, 3_000, accept_risk=True)
    table = release.source.table  # type: ignore[attr-defined]
    times = 2_000_000
    manifest = replace(release.manifest, records=3_000 * times, rows=3_000 * times, models=())
    many = replace(
        release,
        manifest=manifest,
        reader=CountedFrame(table, np.full(3_000, times, dtype=np.int64)),
        table=None,
    )
    started = time.perf_counter()
    verdicts = {verdict.model: verdict for verdict in verify_release(many).verdicts}
    assert verdicts["record-count"].holds
    assert verdicts["candidates"].holds
    assert verdicts["believable"].checked == 6_000_000_000
    estimated, few = (ps.estimate(one, ["ill"], ["sex"], estimator="inverse") for one in (many, release))
    np.testing.assert_allclose(estimated.values, few.values * times, rtol=1e-9)
    source = CountedFrame(people(1, 3_000).to_arrow(), np.full(3_000, times, dtype=np.int64))
    risks, fewer = (ps.risk(one, qi=["sex", "town"], sensitive=["ill"]) for one in (source, people(1, 3_000)))
    assert (risks.records, risks.k) == (6_000_000_000, fewer.k * times)
    assert risks.sensitive[0].t == pytest.approx(fewer.sensitive[0].t, rel=1e-12)
    assert risks.columns[0].separation == pytest.approx(fewer.columns[0].separation, abs=1e-3)
    policy = ps.Policy.loads(ANY_TABLE % "false")
    plain = [verdict.worst for verdict in ps.verify(people(1, 3_000), policy).verdicts]
    counted = [verdict.worst for verdict in ps.verify(source, policy).verdicts]
    for one, other in zip(counted, plain, strict=True):
        assert one == pytest.approx(other) or one == pytest.approx((other or 0.0) * times)
    assert time.perf_counter() - started < 60.0
