"""What new users hand in by mistake, one thing after the other: each is named for what it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from command_line import polyseme

ROWS = 400
POLICY = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""


def people(rows: int = ROWS) -> pl.DataFrame:
    drawn = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "name": [f"QQMARKQQ{number}" for number in range(rows)],
            "age": drawn.permutation(rows) + 20,
            "level": drawn.choice(list("abcdefgh"), rows),
        }
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a policy and a release of it."""
    folder = tmp_path_factory.mktemp("work")
    people().write_csv(folder / "people.csv")
    (folder / "policy.yaml").write_text(POLICY)
    assert polyseme("anonymize", "policy.yaml", "people.csv", "--out", "release", cwd=folder).returncode == 0
    return folder


# -- attack ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["attack", "report", "evaluate"])
def test_an_original_with_fewer_rows_is_refused(work: Path, verb: str, tmp_path: Path) -> None:
    people().head(300).write_csv(tmp_path / "fewer.csv")
    out = ("--out", tmp_path / "page.html") if verb == "report" else ()
    result = polyseme(verb, work / "release", "--original", tmp_path / "fewer.csv", *out)
    assert result.returncode == 2
    assert "300 records fit the release, which has 400" in result.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("verb", ["attack", "report"])
def test_an_original_with_other_rows_is_refused(work: Path, verb: str, tmp_path: Path) -> None:
    others = people().with_columns(age=pl.when(pl.col("age") < 30).then(pl.col("age") + 1000).otherwise(pl.col("age")))
    others.write_csv(tmp_path / "others.csv")
    out = ("--out", tmp_path / "page.html") if verb == "report" else ()
    result = polyseme(verb, work / "release", "--original", tmp_path / "others.csv", *out)
    assert result.returncode == 2
    assert "10 of 400 records of the release are not in it, going by 'age'" in result.stderr


def test_the_other_release_is_another_one(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "release", tmp_path / "copy")
    for same in (work / "release", tmp_path / "copy"):
        result = polyseme("attack", work / "release", "--other", same)
        assert result.returncode == 2
        assert "other: this is the same release" in result.stderr
    release = ps.anonymize(people(), ps.Policy.loads(POLICY))
    with pytest.raises(ps.QuestionError, match="this is the same release"):
        ps.attack(release, other=release)
    again = ps.anonymize(people(), ps.Policy.loads(POLICY))
    assert any(found.attack == "repetition" for found in ps.attack(release, other=again))
