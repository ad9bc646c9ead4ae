from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from draws import replications

import polyseme as ps
from polyseme.kernel.errors import QuestionError, TableError

ROWS = 300


def table(values: list[str]) -> pl.DataFrame:
    generator = np.random.default_rng(5)
    return pl.DataFrame({"of": generator.choice(list("abcd"), ROWS), "by": generator.choice(values, ROWS)})


def policy(kind: str = "") -> ps.Policy:
    return ps.Policy.loads(
        "table: {missing-values: ['', '?']}\n"
        "attributes:\n  of: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}\n"
        f"  by: {{role: quasi-identifier{kind}}}\n"
    )


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["30", "31", "31.5"], ", type: number"),
        (["30", "31", "?"], ", type: integer"),
        (["Yes", "no"], ", type: boolean"),
        (["2024-02-29T10:00", "?"], ", type: datetime"),
        (["x", "?"], ", type: text"),
        (["007", "7", "?"], ""),
    ],
)
def test_the_original_fits_its_release_whatever_types_were_declared(
    tmp_path: Path, values: list[str], kind: str, file_format: str
) -> None:
    table(values).write_csv(tmp_path / "t.csv")
    release = ps.anonymize(tmp_path / "t.csv", policy(kind), tmp_path / "r", file_format=file_format)
    assert ps.evaluate(release, tmp_path / "t.csv", of=["of"], by=["by"]).to_dict()["l1"] < ROWS


def test_another_table_does_not_fit() -> None:
    release = ps.anonymize(table(["30", "31"]), policy(", type: number"))
    with pytest.raises(TableError, match="is this the table that was released"):
        ps.evaluate(release, table(["30", "32"]), of=["of"], by=["by"])


# -- columns that help -----------------------------------------------------------------------------------------------

HELPED = """
attributes:
  job: {role: sensitive-qid, domain: [a, b, c, d, e], protect: {diversity: {l: 2}}}
  grade: {role: sensitive-qid, domain: [1, 2, 3, 4], protect: {diversity: {l: 2}}}
  skill: {role: sensitive-qid, domain: [p, q, r, s, t, u], protect: {diversity: {l: 2}}}
  town: {role: quasi-identifier}
  pay: {role: quasi-identifier}
  sex: {role: quasi-identifier}
"""


def workers(rows: int = 6_000, seed: int = 1) -> pl.DataFrame:
    """Town and skill go with the job, pay with the grade; sex with nothing."""
    rng = np.random.default_rng(seed)
    job, grade = rng.choice(5, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05]), rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    own = rng.random(rows) < 0.8
    return pl.DataFrame(
        {
            "job": np.array(list("abcde"))[job],
            "grade": grade + 1,
            "skill": np.array(list("pqrstu"))[np.where(own, job, rng.integers(0, 6, rows))],
            "town": np.array([f"town {number}" for number in range(8)])[np.where(own, job, rng.integers(0, 8, rows))],
            "pay": np.round(1000.0 * grade + rng.normal(size=rows) * 400, 2),
            "sex": rng.choice(["f", "m"], rows),
        }
    )


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ps.Release]:
    folder = tmp_path_factory.mktemp("helped")
    return {
        file_format: ps.anonymize(
            workers(), ps.Policy.loads(HELPED), folder / file_format, file_format=file_format, seed=1
        )
        for file_format in ("parquet", "csv")
    }


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("using", [("town",), ("pay",), ("skill",), ("town", "pay", "skill")])
def test_columns_of_a_release_help(helped: dict[str, ps.Release], using: tuple[str, ...], file_format: str) -> None:
    release, names = helped[file_format], ("job", "grade")
    table = ps.estimate(release, names, using=using, estimator="smooth")
    assert any(note.startswith(f"smoothed with the help of {', '.join(using)}:") for note in table.notes)
    assert table.by == {}
    assert table.values.sum() == pytest.approx(6_000)
    assert (table.low <= table.values).all()
    assert (table.values <= table.high).all()


def test_a_column_that_tells_nothing_changes_nothing(helped: dict[str, ps.Release]) -> None:
    with_sex, without = (ps.estimate(helped["parquet"], ["job"], using=using) for using in (["sex"], []))
    assert "without the help of sex: it adds too little" in with_sex.notes
    np.testing.assert_array_equal(with_sex.values, without.values)


def test_columns_help_within_groups(helped: dict[str, ps.Release]) -> None:
    table = ps.estimate(helped["parquet"], ["job"], by=["sex"], using=["town", "pay"])
    original = workers()
    for place, sex in enumerate(table.by["sex"]):
        assert table.values[place].sum() == pytest.approx(original.filter(pl.col("sex") == sex).height)
    assert any("help of town" in note for note in table.notes)
    # Sums of cells, means and tests are made from the same fit.
    assert table.margin(of=["job"], by=[]).values.sum() == pytest.approx(6_000)
    assert table.independence("job").p_value >= 0.0


@pytest.mark.slow
def test_columns_lower_the_error_over_many_releases() -> None:
    original, errors = workers(), []
    for seed in replications(3):
        release = ps.anonymize(original, ps.Policy.loads(HELPED), seed=seed)
        errors.append(
            [
                ps.evaluate(release, original, of=["job", "grade"], using=using).to_dict()["l2"] ** 2
                for using in ((), ("town", "pay"))
            ]
        )
    without, using = np.mean(errors, axis=0)
    assert using < 0.8 * without


def test_what_is_wrong_with_helping_columns_is_said_at_once(helped: dict[str, ps.Release]) -> None:
    with pytest.raises(QuestionError) as caught:
        ps.estimate(helped["parquet"], ["job"], by=["sex"], using=["job", "sex", "twon", "pay", "pay"])
    text = str(caught.value)
    assert "using: 'job' is already in the question" in text
    assert "using: 'sex' is already in the question" in text
    assert "did you mean 'town'" in text
    assert "the same attribute is asked for more than once" in text
    with pytest.raises(QuestionError, match=r"(?s)ml uses the published sets only.*smooth"):
        ps.estimate(helped["parquet"], ["job"], using=["town"], estimator="ml")


def test_the_long_form_cannot_be_helped(tmp_path: Path) -> None:
    release = ps.anonymize(workers(200), ps.Policy.loads(HELPED), tmp_path / "long", form="long")
    with pytest.raises(QuestionError, match="in the long form no column can help"):
        ps.estimate(release, ["job"], using=["town"])


@pytest.mark.slow
def test_columns_help_records_of_different_strata() -> None:
    text = HELPED + "impossible:\n  - {when: {sex: m}, attribute: job, values: [e]}\n"
    original = workers(2_000).filter((pl.col("sex") == "f") | (pl.col("job") != "e"))
    release = ps.anonymize(original, ps.Policy.loads(text), seed=1)
    table = ps.estimate(release, ["job", "grade"], using=["town", "pay"])
    assert table.values.sum() == pytest.approx(original.height)
    assert any("help of town, pay" in note for note in table.notes)
    assert ps.evaluate(release, original, of=["job", "grade"], using=["town", "pay"]).to_dict()["l1"] < original.height
