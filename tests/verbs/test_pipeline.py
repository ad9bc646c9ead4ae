"""What the verbs say before and after their work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.randomness import new_key

RULES = ps.Policy.loads("""
record-key: id
attributes:
  id: {role: identifier}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
""")


def visits(each: int) -> pl.DataFrame:
    ill = np.random.default_rng(1).choice(list("abcd"), 100)
    return pl.DataFrame({"id": np.repeat(np.arange(100), each), "ill": np.repeat(ill, each)})


def test_several_records_of_one_person_are_pointed_out(tmp_path: Path) -> None:
    heard: list[str] = []
    ps.anonymize(visits(3), RULES, warn=heard.append)
    assert "200 records share a record key with another" in heard[-1]
    ps.anonymize(visits(1), RULES, warn=heard.append)
    assert "no key was given" in heard[-1]
    new_key(tmp_path / "key")
    heard.clear()
    ps.anonymize(visits(3), RULES, key_file=tmp_path / "key", warn=heard.append)
    assert not heard


def test_options_are_checked_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ps.QuestionError) as caught:
        ps.anonymize(
            visits(1), RULES, tmp_path / "out", form="Long", file_format="xls", records_per_person=float("nan")
        )
    assert [problem.where for problem in caught.value.problems] == ["form", "file_format", "records_per_person"]
    assert not list(tmp_path.iterdir())


def test_a_column_that_tells_another_is_pointed_out() -> None:
    rng = np.random.default_rng(2)
    ill = rng.choice(list("abcd"), 3_000)
    table = pl.DataFrame(
        {
            "id": np.arange(3_000),
            "ill": ill,
            "code": [f"{'abcd'.index(value)}.50" for value in ill],
            "again": ill,
            "other": rng.choice(list("abcd"), 3_000),
            "single": np.arange(3_000),
            "constant": ["x"] * 3_000,
        }
    )
    promise = "{role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}"
    rules = ps.Policy.loads(
        "attributes:\n  id: {role: identifier}\n  code: {role: insensitive}\n  single: {role: insensitive}\n"
        "  constant: {role: insensitive}\n" + "".join(f"  {name}: {promise}\n" for name in ("ill", "again", "other"))
    )
    heard: list[str] = []
    ps.anonymize(table, rules, warn=heard.append, accept_risk=True)
    heard = [text for text in heard if "unique value in it" not in text]
    telling = sorted((warning.split("'")[1], warning.split("'")[3]) for warning in heard)
    assert telling == [("again", "ill"), ("code", "again"), ("code", "ill"), ("ill", "again")]
    assert all("100% of the records" in warning for warning in heard)
    heard.clear()
    ps.anonymize(table.head(0).vstack(table.head(1)), rules, warn=heard.append)
    assert not heard
