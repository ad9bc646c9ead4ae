"""What owners hear of people who stand out is the same from every engine: what is one value here is one value there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import polyseme as ps
from polyseme import spark as on_spark

DAY, NOON = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 12)
NAN = float("nan")
CASES: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "whole": (pa.int64(), [[1, 1], [2], [None, -9]]),
    "small": (pa.uint8(), [[1, 1], [255]]),
    "real": (pa.float64(), [[0.0, -0.0], [NAN, None, -9.0], [1.5, 1.5], [0.1], [1e16], [float("inf")]]),
    "short": (pa.float32(), [[0.1, 0.1], [-0.0, 0.0, 0.0], [NAN, None]]),
    "day": (pa.date32(), [[DAY, DAY], [dt.date(1900, 1, 1)], [None]]),
    "moment": (pa.timestamp("us"), [[NOON, NOON], [dt.datetime(2024, 1, 31)], [None]]),
    "truth": (pa.bool_(), [[True, True, True], [False], [None]]),
    "amount": (pa.decimal128(9, 2), [[Decimal("1.50"), Decimal("1.5")], [Decimal(-9), None]]),
    "word": (
        pa.string(),
        [
            ["Ulm", "Ulm ", " Ulm", "Ulm\r"],
            ["ulm"],
            ["ULM"],
            ["30", "30.0", "+30"],
            ["030"],
            ["true", "True"],
            ["\u00e9", "e\u0301"],
            ["2024-01-31", "2024-01-31T00:00:00"],
            [None, "", "NA", "?", "-9", "-9.0", "NA "],
            ["na"],
        ],
    ),
    "sort": (pa.dictionary(pa.int32(), pa.string()), [["a", "a "], ["A"], [None, "?"]]),
    "several": (pa.list_(pa.int64()), [[[1, 2], [1, 2]], [[2, 1]], [None]]),
}
"""Values by the type of their column; those in one list are one value, those in different lists are not."""
MISSING = ["", "NA", "?", "-9"]


def table() -> tuple[pa.Table, list[int]]:
    """Each case in rows of its own, all other columns empty; and how many rows share each value, in all cases."""
    rows = [(name, value) for name, (_, lists) in CASES.items() for alike in lists for value in alike]
    columns = {"case": pa.array([name for name, _ in rows])}
    for name, (kind, _) in CASES.items():
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        plain = pa.array([value if case == name else None for case, value in rows], inner)
        columns[name] = plain.dictionary_encode() if inner != kind else plain
    columns["ill"] = pa.array(["a", "b", "c"] * (len(rows) // 3) + ["a"] * (len(rows) % 3))
    return pa.table(columns), [len(alike) for _, lists in CASES.values() for alike in lists]


def policy(names: Sequence[str]) -> ps.Policy:
    quasi = {name: {"role": "quasi-identifier"} for name in names}
    ill = {"role": "sensitive", "domain": ["a", "b", "c", "d"], "protect": {"diversity": {"l": 2}}}
    return ps.Policy.from_dict({"attributes": {**quasi, "ill": ill}, "table": {"missing-values": MISSING}})


def heard(publish: Any, *arguments: Any, **more: Any) -> list[str]:
    texts: list[str] = []
    publish(*arguments, warn=texts.append, **more)
    return texts


@pytest.mark.parametrize("form", ["set", "long"])
def test_people_who_stand_out_are_counted_alike(sail_or_classic: Any, tmp_path: Path, form: str) -> None:
    found, sizes = table()
    pa.parquet.write_table(found, tmp_path / "t.parquet", row_group_size=20)
    arguments = (tmp_path / "t.parquet", policy(["case", *CASES]))
    more: dict[str, Any] = {"form": form, "seed": 1}
    local = heard(ps.anonymize, *arguments, tmp_path / "local", **more)
    other = heard(on_spark.anonymize, *arguments, tmp_path / "spark", spark=sail_or_classic, files=2, **more)
    assert other == local
    alone, few = sizes.count(1), sum(size for size in sizes if size < 5)
    said = f": {alone} of {sum(sizes)} records ({alone / sum(sizes):.1%}) are unique in these values, and {few} in"
    assert said in local[-1]


@pytest.mark.parametrize("staged", [False, True], ids=["files", "frame"])
def test_one_value_in_five_records_is_enough(sail: Any, tmp_path: Path, staged: bool) -> None:
    words = ["Ulm", "Ulm ", " Ulm", "Ulm", "Ulm\t", None, "", "NA", "?", "-9"] * 3
    pa.parquet.write_table(pa.table({"town": words, "ill": ["a", "b", "c"] * 10}), tmp_path / "t.parquet")
    read = sail.read.parquet((tmp_path / "t.parquet").as_uri()) if staged else tmp_path / "t.parquet"
    local = heard(ps.anonymize, tmp_path / "t.parquet", policy(["town"]), tmp_path / "local")
    other = heard(on_spark.anonymize, read, policy(["town"]), tmp_path / "spark", spark=sail)
    assert other == local
    assert "every combination of values is shared by at least 5 records" in other[-1]
