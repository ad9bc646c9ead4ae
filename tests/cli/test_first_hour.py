"""The first hour of a new user: an unprepared table goes through `init` and `anonymize` untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hospital import patients

import polyseme as ps
from polyseme.schema import Role

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
ADULT = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    "capital-loss,hours-per-week,native-country,income"
)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hospital") / "patients.csv"
    patients().write_csv(path)
    return path


@pytest.fixture(scope="module")
def raw_adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """UCI Adult as it is published, blanks and question marks and all, below a header."""
    raw = SHARED / "adult" / "adult.data"
    if not raw.exists():
        pytest.skip("the reference data (../shared/data/adult) is not on this machine")
    path = tmp_path_factory.mktemp("adult") / "adult.csv"
    path.write_text(ADULT + "\n" + raw.read_text())
    return path


def published(table: Path, folder: Path) -> tuple[ps.Policy, ps.Release]:
    """What `init` and `anonymize` make of a table."""
    (folder / "policy.yaml").write_text(ps.init(table), encoding="utf-8")
    policy = ps.Policy.load(folder / "policy.yaml")
    verification = ps.verify(ps.anonymize(table, policy, folder / "release"))
    assert verification.holds
    assert "k-anonymity" in [verdict.model for verdict in verification.verdicts]
    return policy, ps.Release.open(folder / "release")


def names(policy: ps.Policy, role: Role) -> list[str]:
    return [item.name for item in policy.attributes if item.role is role]


def require_promised_linkage(policy: ps.Policy, release: ps.Release, original: Path) -> None:
    """An attacker who knows all quasi-identifiers of a person finds five records or more; other columns add nothing."""
    frame = pl.read_parquet(release.folder / "data.parquet")
    keys = names(policy, Role.QUASI_IDENTIFIER)
    assert frame.group_by(keys).len()["len"].min() >= 5
    assert {*frame.columns} == {*keys, *names(policy, Role.SENSITIVE)}
    assert all(frame.schema[name] == pl.List(pl.String) for name in names(policy, Role.SENSITIVE))
    found = {finding.attack: finding for finding in ps.attack(release, original) if "linkage" in finding.attack}
    assert found["linkage-prosecutor"].success <= 1 / 5
    assert found["linkage-prosecutor"].bound == pytest.approx(1 / 5)
    assert not any(finding.exceeded for finding in found.values())


def test_a_hospital_goes_through_untouched(hospital: Path, tmp_path: Path) -> None:
    policy, release = published(hospital, tmp_path)
    require_promised_linkage(policy, release, hospital)
    assert names(policy, Role.IDENTIFIER) == ["PatientID", "patient_name", "contact", "reach", "insured", "letter"]
    assert {"main_diagnosis", "second", "procedure", "charges"} <= {*names(policy, Role.SENSITIVE)}
    for name in ("main_diagnosis", "second"):
        promises = {promise.name: promise.given() for promise in policy.by_name[name].protect}
        assert promises == {"semantic-diversity": {"l": 3, "d": 3}}
    # Nothing of what was dropped, and no value of a column that is generalized, is in the draft.
    text, table = (tmp_path / "policy.yaml").read_text(), pl.read_csv(hospital, infer_schema=False)
    for name in ("PatientID", "contact", "reach", "insured", "zip", "birth_date", "marital_status", "ward"):
        assert not [value for value in table[name].drop_nulls().unique() if value in text], name


@pytest.mark.slow
def test_raw_adult_goes_through_untouched(raw_adult: Path, tmp_path: Path) -> None:
    policy, release = published(raw_adult, tmp_path)
    require_promised_linkage(policy, release, raw_adult)
    assert release.manifest.records == 32_561
    assert names(policy, Role.SENSITIVE) == ["occupation", "income"]
    text = (tmp_path / "policy.yaml").read_text()
    assert "{taxonomy: education}" in text
    assert "{taxonomy: countries, unknown: other}" in text


def test_a_table_with_few_columns_is_shown_at_single_levels(tmp_path: Path) -> None:
    table = patients().select("age", "zip", "sex", "main_diagnosis")
    text = ps.init(table)
    assert "models: [{k-anonymity: {k: 5}}]" in text
    assert "method: {full-domain: {loss: loss, suppression: 0.05}}" in text
    release = ps.anonymize(table, ps.Policy.loads(text))
    assert ps.verify(release).holds
    frame: Any = pl.from_arrow(release.table)
    assert frame.group_by("age", "zip", "sex").len()["len"].min() >= 5
    assert release.manifest.applied.suppressed <= 0.05 * len(table)


def test_where_single_levels_would_hide_everything_classes_differ() -> None:
    rows = 40
    table = pl.DataFrame({f"x{place}": [(row * (7 + place)) % 37 for row in range(rows)] for place in range(8)})
    text = ps.init(table)
    assert "method: {mondrian: {}}" in text
    release = ps.anonymize(table, ps.Policy.loads(text))
    assert ps.verify(release).holds


def test_too_few_records_are_said_and_not_published() -> None:
    table = pl.DataFrame({"age": [31, 32, 33], "disease": ["flu", "cold", "gout"]})
    text = ps.init(table)
    assert "fewer than 5 records" in text
    with pytest.raises(ps.ImpossibleError):
        ps.anonymize(table, ps.Policy.loads(text))
