"""Tables whose first header is empty, as pandas and R write them; and counts in a draft."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.kernel.documents import parse


def written_with_index(path: Path, rows: int = 300) -> Path:
    """A table as `frame.to_csv(path)` of pandas writes what is left of a larger one."""
    rng = np.random.default_rng(0)
    numbers = np.sort(rng.choice(3 * rows, rows, replace=False))
    disease = rng.choice(list("abcdef"), rows)
    frame = pl.DataFrame({"": numbers, "age": rng.integers(18, 90, rows), "sex": "m", "disease": disease})
    frame.write_csv(path)
    return path


@pytest.mark.parametrize("rows", [12, 300])
def test_a_draft_of_a_table_with_an_empty_header_works(tmp_path: Path, rows: int) -> None:
    """It was an internal error: the column lost its name on the way."""
    table = written_with_index(tmp_path / "people.csv", rows)
    text = ps.init(table)
    assert ps.Policy.loads(text).by_name[""].role.value == ("identifier" if rows > 20 else "quasi-identifier")
    release = ps.anonymize(table, ps.Policy.loads(text), accept_risk=True, warn=lambda text: None)
    assert ps.verify(release) is not None


def test_advice_names_the_column_without_a_name(tmp_path: Path) -> None:
    table = written_with_index(tmp_path / "people.csv")
    shown = polyseme("risk", table).stdout
    few = polyseme("risk", written_with_index(tmp_path / "few.csv", 12)).stdout
    assert "Generalize  first" not in shown + few
    assert "the column without a name" in few


def test_different_values_are_counted_or_called_about(tmp_path: Path) -> None:
    """A draft said 14,511 different values of 14,827."""
    exact = pl.DataFrame({"amount": np.arange(14_827) * 1.5, "v": "x"})
    assert "14,827 different values" in ps.init(exact)
    many = pl.DataFrame({"amount": np.repeat(np.arange(90_000) * 1.5, 2), "v": "x"})
    assert " 90,000 different values" in ps.init(many)
    beyond = pl.DataFrame({"amount": np.repeat(np.arange(1_100_000) * 1.5, 2), "v": "x"})
    line = next(line for line in ps.init(beyond).splitlines() if "different values" in line)
    about = int(line.partition("about ")[2].split()[0].replace(",", ""))
    assert abs(about - 1_100_000) < 0.01 * 1_100_000


def test_a_unique_person_number_is_no_quasi_identifier() -> None:
    """Numbers of people inside households, such as 101, 102, 201: not consecutive, not equally long."""
    household = np.repeat(np.arange(1, 401), 3)
    person = 100 * household + np.tile([1, 2, 3], 400)
    drafted = parse(ps.init(pl.DataFrame({"rb030": person, "db030": household, "age": np.arange(1_200) % 90})))
    assert drafted["attributes"]["rb030"]["role"] == "identifier"
    assert drafted["attributes"]["age"]["role"] == "quasi-identifier"


def test_evaluate_says_that_nothing_is_estimated(tmp_path: Path) -> None:
    """It printed nothing, and ended with 0."""
    frame = pl.DataFrame({"age": np.arange(60) % 30, "note": "x"})
    frame.write_csv(tmp_path / "people.csv")
    policy = """
        attributes: {age: {role: quasi-identifier, hierarchy: {intervals: [10, 30]}}, note: {role: insensitive}}
        models: [{k-anonymity: {k: 5}}]
        method: {full-domain: {}}
    """
    ps.anonymize(frame, ps.Policy.loads(policy), tmp_path / "release", warn=lambda text: None)
    answer = polyseme("evaluate", tmp_path / "release", "--original", tmp_path / "people.csv")
    assert answer.returncode == 2
    assert "nothing in this release is estimated" in answer.stderr
