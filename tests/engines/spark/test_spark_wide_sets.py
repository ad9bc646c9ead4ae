"""Sets whose codes take several numbers on their way, or whose labels travel: every one is right when it arrives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from comparing import rows_of

import polyseme as ps
from polyseme import spark as on_spark
from polyseme.engines.spark.columns import FEW, Packing
from polyseme.kernel.randomness import new_key

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")

ROWS = 400
MANY = [f"code {number}, 'x'" for number in range(70_000)]
PAY = list(range(0, 4_000, 100))
ILL = ["flu", "rash", "burn", "ulcer"]
L = {"many": 4, "pay": 25}
ROLES = {"id": {"role": "identifier"}, "town": {"role": "quasi-identifier"}, "row": {"role": "insensitive"}}
SETS = {
    name: {"role": "sensitive", "domain": domain, "protect": {"diversity": {"l": L[name]}}}
    for name, domain in (("many", MANY), ("pay", PAY))
}
POLICY = ps.Policy.from_dict({"attributes": ROLES | SETS, "record-key": "id"})


def people() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    ends = [0, 1, 2**16 - 1, 2**16, len(MANY) - 1]
    return pl.DataFrame(
        {
            "id": np.arange(ROWS),
            "town": rng.choice(["Ulm", "Köln", None], ROWS).tolist(),
            "row": np.arange(ROWS),
            "many": [MANY[code] for code in [*ends, *rng.integers(0, len(MANY), ROWS - len(ends))]],
            "pay": rng.choice(PAY, ROWS),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for number, part in enumerate(people().iter_slices(250)):
        part.write_parquet(tmp_path / "data" / f"{number}.parquet", row_group_size=100)
    return tmp_path


def test_these_sets_travel_in_both_ways() -> None:
    assert len(PAY) <= FEW < len(MANY)
    assert Packing(len(PAY), L["pay"]).columns == 3


def test_labels_of_files_and_of_frames_are_those_of_one_machine(sail_or_classic: Any, folder: Path) -> None:
    """A key makes sets a function of the person: what is staged, too, must be what one machine draws."""
    new_key(folder / "key")
    more: dict[str, Any] = {"key_file": folder / "key"}
    local = rows_of(ps.anonymize(folder / "data", POLICY, **more, accept_risk=True))
    files = on_spark.anonymize(
        folder / "data", POLICY, folder / "files", spark=sail_or_classic, files=2, **more, accept_risk=True
    )
    assert rows_of(files).equals(local)
    read = sail_or_classic.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    frame = on_spark.anonymize(read, POLICY, folder / "frame", spark=sail_or_classic, files=2, **more, accept_risk=True)
    assert rows_of(frame).equals(local)


def test_labels_in_the_long_form_are_those_of_one_machine(sail_or_classic: Any, folder: Path) -> None:
    """A row has one candidate of each set: a hundred rows a person."""
    options: dict[str, Any] = {"seed": 3, "form": "long"}
    local = ps.anonymize(folder / "data", POLICY, **options, accept_risk=True)
    other = on_spark.anonymize(
        folder / "data", POLICY, folder / "out", spark=sail_or_classic, **options, accept_risk=True
    )
    assert other.manifest.rows == ROWS * L["many"] * L["pay"]
    assert rows_of(other).equals(rows_of(local))


@pytest.mark.parametrize(
    ("staged", "illnesses", "form"),
    [(False, MANY, "set"), (True, MANY, "long"), (True, ILL, "set"), (False, ILL, "long")],
    ids=["many-in-files", "many-in-a-frame-long", "few-in-a-frame", "few-in-files-long"],
)
def test_labels_of_groups_that_are_dealt_and_beside_them(
    sail: Any, folder: Path, staged: bool, illnesses: list[str], form: str
) -> None:
    """Who is in a group is drawn; but every set has `l` candidates, and the value of the person is one of them."""
    attributes = {**ROLES, "ill": {"role": "sensitive", "domain": illnesses}, **SETS}
    policy = ps.Policy.from_dict({"attributes": attributes, "method": {"anatomy": {"l": 3, "attribute": "ill"}}})
    ill = pl.Series("ill", [illnesses[code] for code in (0, 1, 10 % len(illnesses), -1)] * (ROWS // 4))
    for path, part in zip(sorted((folder / "data").iterdir()), people().with_columns(ill).iter_slices(250)):
        part.write_parquet(path, row_group_size=100)
    read = sail.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    release = on_spark.anonymize(
        read if staged else folder / "data", policy, folder / "out", spark=sail, form=form, accept_risk=True
    )
    frame = release.to_polars().with_columns(pl.col("many").cast(pl.List(pl.String) if form == "set" else pl.String))
    if form == "long":
        frame = frame.group_by("row").agg(pl.col("many", "pay").unique(), pl.col("ill").first())
    true = frame.join(people().with_columns(ill).select("row", *L, "ill"), on="row", suffix=" true")
    assert true.height == ROWS
    for name, l in L.items():
        assert (true[name].list.n_unique() == l).all()
        assert true.select(pl.col(name).list.contains(pl.col(f"{name} true")).all()).item(), name
    members = true.with_columns(pl.col("ill").cast(pl.List(pl.String)))
    assert members.select(pl.col("ill").list.contains(pl.col("ill true")).all()).item()
    order = {label: code for code, label in enumerate(illnesses)}
    assert all(values == sorted(values, key=order.__getitem__) for values in members["ill"].to_list())
