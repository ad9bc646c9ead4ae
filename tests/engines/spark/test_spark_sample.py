"""Attacks on a random sample of a release that Spark reads."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme import spark as attacking
from polyseme import spark as on_spark

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")
ROWS = 4_000
POLICY = """
attributes:
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 2}}}
"""
COUNTED = ("linkage-prosecutor", "linkage-marketer")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Classes of 1 to 5 records that a sample of a quarter would tear apart."""
    rng = np.random.default_rng(3)
    people = pl.DataFrame(
        {
            "age": rng.integers(0, 900, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "ill": rng.choice(list("abcdef"), ROWS),
        }
    )
    folder = tmp_path_factory.mktemp("attacked") / "release"
    ps.anonymize(people, POLICY, folder, rows_per_file=1_500, seed=1)
    return folder


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(11)
    monkeypatch.setattr(attacking.secrets, "randbits", lambda bits: next(numbers))


def by_name(findings: ps.Findings) -> dict[tuple[str, str | None], Any]:
    return {(one.attack, one.attribute): one for one in findings}


def test_a_sample_says_of_how_many_records_it_is(sail: Any, release: Path, seeded: None) -> None:
    here, there = ps.attack(release), on_spark.attack(release, sample=1_000, spark=sail)
    assert list(by_name(here)) == list(by_name(there))
    for finding in there:
        if finding.attack in (*COUNTED, "seed"):
            # Who is alike is counted in all records: in a quarter of them almost everybody would be alone.
            assert finding == by_name(here)[finding.attack, finding.attribute]
            continue
        looked = finding.detail["sampled"]
        assert 840 < looked < 1_160  # five standard deviations
        assert finding.detail["records"] == ROWS
        assert finding.knows.endswith(f"; shown for a random sample of {looked:,.0f} of {ROWS:,} records")
    for name in ("homogeneity", "bayes", "transparency", "background-knowledge"):
        assert by_name(there)[name, "ill"].success == pytest.approx(by_name(here)[name, "ill"].success, abs=1e-9)


def test_a_sample_that_is_everybody_finds_what_all_records_show(sail: Any, release: Path) -> None:
    here, there = by_name(ps.attack(release)), by_name(on_spark.attack(release, sample=ROWS, spark=sail))
    assert here.keys() == there.keys()
    for name, finding in here.items():
        # Those who learn break ties by the order of rows.
        room = 0.02 if name[0] in ("published-estimate", "definetti") else 1e-9
        assert there[name].success == pytest.approx(finding.success, abs=room), name


def test_a_sample_agrees_with_the_whole_within_its_errors(sail: Any, tmp_path: Path, seeded: None) -> None:
    """Illnesses that go with age and sex: there is something to learn."""
    rng = np.random.default_rng(8)
    age, sex = rng.integers(0, 4, 12_000), rng.integers(0, 2, 12_000)
    ill = np.where(rng.random(12_000) < 0.6, (age + sex) % 6, rng.integers(0, 6, 12_000))
    people = pl.DataFrame({"age": age, "sex": np.array(["f", "m"])[sex], "ill": np.array(list("abcdef"))[ill]})
    ps.anonymize(people, POLICY, tmp_path / "release", seed=2)
    here = by_name(ps.attack(tmp_path / "release"))
    there = by_name(on_spark.attack(tmp_path / "release", sample=4_000, spark=sail))
    assert here.keys() == there.keys()
    for name, finding in there.items():
        if name[0] in ("published-estimate", "definetti"):
            assert 0.005 < finding.detail["error"] < 0.02
            assert finding.success == pytest.approx(here[name].success, abs=3 * finding.detail["error"]), name
            assert finding.success > 0.6, "half would be right without"
        else:
            assert finding.success == pytest.approx(here[name].success, abs=1e-9), name
        assert not finding.exceeded


def test_the_sample_is_made_of_rows_of_the_release(sail: Any, release: Path, seeded: None) -> None:
    opened = on_spark.open_release(release, spark=sail)
    some, others = (attacking.sampled(opened, 1_000) for _ in range(2))
    everyone, drawn, again = (Counter(map(repr, one.to_polars().iter_rows())) for one in (opened, some, others))
    assert drawn <= everyone
    assert some.manifest.records == some.manifest.rows == drawn.total()
    assert drawn != again


def test_what_a_sample_would_tear_apart_is_refused(sail: Any, tmp_path: Path) -> None:
    people = pl.DataFrame({"age": [1, 2, 3, 4] * 50, "ill": ["a", "b", "c", "d"] * 50})
    grouped = """
attributes: {age: {role: quasi-identifier}, ill: {role: sensitive, domain: [a, b, c, d]}}
method: {anatomy: {l: 2}}
"""
    ps.anonymize(people, grouped, tmp_path / "grouped")
    with pytest.raises(ps.QuestionError, match=r"(?s)column 'ill': protected by its class or group.*without --engine"):
        on_spark.attack(tmp_path / "grouped", spark=sail)


def test_what_cannot_be_attacked_is_refused(sail: Any, release: Path) -> None:
    with pytest.raises(ps.QuestionError, match="a number of records, 1 or more"):
        on_spark.attack(release, sample=0, spark=sail)
