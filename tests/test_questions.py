from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.errors import TableError

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
