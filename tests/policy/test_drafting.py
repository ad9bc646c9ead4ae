from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.policy import Policy
from polyseme.policy.drafting import draft, protection
from polyseme.policy.drafting.observation import look
from polyseme.schema import Role
from polyseme.tables.io.readers import open_table
from polyseme.verbs.anonymize import anonymize
from polyseme.verbs.verify import verify


def drafted(table: pl.DataFrame, folder: Path) -> Policy:
    """The draft for a table as text, which publishes it without a change."""
    path = folder / "table.csv"
    table.write_csv(path)
    policy = Policy.loads(draft(open_table(path)))
    anonymize(path, policy)
    return policy


DISEASES = ["flu", "cold", "ulcer", "angina"]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["60", "71", "80", "95"], "integer"),
        (["60.5", "71", "80.25", "95"], None),
        (["007", "8", "9", "10"], None),
        (["1" + "0" * 20, "2", "3", "4"], None),
    ],
)
def test_a_column_is_of_integers_when_every_value_is(tmp_path: Path, texts: list[str], kind: str | None):
    policy = drafted(pl.DataFrame({"weight": texts * 5, "disease": DISEASES * 5}), tmp_path)
    assert policy.by_name["weight"].type == kind


def test_decimals_do_not_number_the_rows(tmp_path: Path):
    steps = [str(number) if number != 15 else "15.5" for number in range(30)]
    policy = drafted(pl.DataFrame({"step": steps, "disease": (DISEASES * 8)[:30]}), tmp_path)
    assert policy.by_name["step"].role is Role.QUASI_IDENTIFIER


def test_numbers_written_as_text_are_ordered_by_size(tmp_path: Path):
    policy = drafted(pl.DataFrame({"income": [str(number) for number in range(12)] * 3}), tmp_path)
    assert policy.by_name["income"].values == tuple(map(str, range(12)))


def test_numbers_too_close_together_for_round_bins_are_labels(tmp_path: Path):
    numbers = [str(10**20 + number) for number in range(100)]
    policy = drafted(pl.DataFrame({"income": numbers}), tmp_path)
    assert policy.by_name["income"].values == tuple(numbers)


@pytest.mark.parametrize("others", [4, 100])
def test_infinite_values_are_not_listed(others: int):
    table = pl.DataFrame({"income": [float("inf"), *map(float, range(others))]})
    policy = Policy.loads(draft(open_table(table)))
    assert policy.by_name["income"].values is None
    with pytest.warns(UserWarning, match="taken from the table"):
        anonymize(table, policy)


@pytest.mark.parametrize("column", [[[1, 2], [3]], [{"a": 1}, {"a": 2}], [b"a", b"b"]])
@pytest.mark.parametrize("name", ["x", "income"])
def test_what_a_policy_cannot_speak_of_is_dropped(column: list[object], name: str):
    policy = Policy.loads(draft(open_table(pl.DataFrame({name: column, "age": [1, 2]}))))
    assert policy.by_name[name].role is Role.IDENTIFIER
    assert policy.by_name["age"].role is Role.QUASI_IDENTIFIER


# -- roles -----------------------------------------------------------------------------------------------------------

PEOPLE = 60


def role_of(name: str, values: list[Any]) -> tuple[Role, str]:
    """The role of a column, and its line in the draft."""
    text = draft(open_table(pl.DataFrame({name: values, "age": [row % 50 for row in range(len(values))]})))
    (line,) = [line for line in text.split("\n") if line.startswith("    role:")][:1]
    return Policy.loads(text).by_name[name].role, line


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("x", [f"a{row}@b.example" for row in range(PEOPLE)], "e-mail"),
        ("x", [f"+49 89 {row:07d}" for row in range(PEOPLE)], "telephone"),
        ("x", [f"(089) {row:03d}-4567" for row in range(PEOPLE)], "telephone"),
        ("x", [f"{row + 100}-45-{row + 6000}" for row in range(PEOPLE)], "social security"),
        ("x", [f"DE44 5001 0517 5407 {row:04d} 31" for row in range(PEOPLE)], "IBAN"),
        ("x", [f"10.0.{row}.7" for row in range(PEOPLE)], "computers"),
        ("x", [f"{row:08x}-0000-4000-8000-000000000000" for row in range(PEOPLE)], "UUID"),
        ("x", [f"was seen by us on day {row} and went home" for row in range(PEOPLE)], "free text"),
        ("x", [f"Anna {chr(65 + row % 26)}{chr(97 + row // 26)}" for row in range(PEOPLE)], "value of its own"),
        ("x", [str(100_000_000 + 7 * row) for row in range(PEOPLE)], "number of its own"),
        ("x", list(range(PEOPLE)), "numbers the rows"),
        ("lastName", ["Adler", "Becker"] * 30, "by its name"),
        ("drug_id", [f"d{row}x" for row in range(PEOPLE)], "by its name"),
    ],
)
def test_identifiers_are_dropped_by_name_and_by_content(name: str, values: list[Any], reason: str) -> None:
    role, line = role_of(name, values)
    assert role is Role.IDENTIFIER
    assert reason in line


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", [f"{row % 28 + 1:02d}.{row % 12 + 1:02d}.{1950 + row}" for row in range(PEOPLE)]),
        ("x", [f"{1950 + row}-{row % 12 + 1:02d}-01" for row in range(PEOPLE)]),
        ("x", [f"2024-01-{row % 28 + 1:02d} 10:{row % 60:02d}:00" for row in range(PEOPLE)]),
        ("x", [round(1000 + 17.37 * row, 2) for row in range(PEOPLE)]),
        ("city_name", ["Ulm", "Bonn", "Kiel"] * 20),
        ("code", [f"{row % 9}{row % 7}{row % 5}" for row in range(PEOPLE)]),
        ("flag", [True, False] * 30),
    ],
)
def test_what_is_no_identifier_is_generalized(name: str, values: list[Any], tmp_path: Path) -> None:
    table = pl.DataFrame({name: values})
    assert role_of(name, values)[0] is Role.QUASI_IDENTIFIER
    policy = drafted(table, tmp_path)
    assert policy.by_name[name].hierarchy is not None
    assert policy.grouping is not None


@pytest.mark.parametrize(
    ("name", "values", "distance"),
    [
        ("x", ["J45.0", "I10", "K02", "E11.9", "C50.9", "N39.0", "F32.1", "S72.0"], "icd10"),
        ("disease", ["J45.0", "I10", "K02", "E11.9", "C50.9", "N39.0", "F32.1", "S72.0"], "icd10"),
        ("job_isco", ["2211", "5120", "9412", "7231", "3115", "1120", "4110", "6111"], "occupation"),
        ("political_country", ["DE", "FR", "PE", "JP", "NG", "AU", "CN", "BR"], "countries"),
    ],
)
def test_a_classification_is_the_distance(name: str, values: list[str], distance: str, tmp_path: Path) -> None:
    policy = drafted(pl.DataFrame({name: values * 10, "age": [20, 30, 40, 50] * 20}), tmp_path)
    item = policy.by_name[name]
    assert item.role is Role.SENSITIVE
    assert item.distance is not None
    assert distance in repr(item.distance)
    assert [promise.name for promise in item.protect] == ["semantic-diversity"]


def test_a_classification_that_lacks_values_is_no_distance(tmp_path: Path) -> None:
    codes = ["J45.0", "I10", "K02", "E11.9", "C50.9", "N39.0", "F32.1", "S72.0", "nothing found"]
    table = pl.DataFrame({"disease": codes * 10, "age": [20, 30, 40] * 30})
    item = drafted(table, tmp_path).by_name["disease"]
    assert item.distance is None
    assert "1 value is unknown to it" in draft(open_table(table))


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ([f"k000{number}" for number in range(11, 23)], False),
        ([f"K000{number}" for number in range(11, 23)], False),
        (["J450", "E119", "K021", "C509", "F320"], False),  # by their shape alone, without the point
        ([f"W{number:02}" for number in range(12)], False),  # all of one chapter
        (["J45", "I10", "K02", "E11", "C50"], True),
        (["J45.0", "J45.1", "J45.8", "J45.9"], True),
    ],
)
def test_codes_are_diseases_only_where_they_exist(values: list[str], known: bool) -> None:
    assert (role_of("x", values * 8)[0] is Role.SENSITIVE) is known
    assert role_of("diagnosis", values * 8)[0] is Role.SENSITIVE


def test_each_shape_of_a_tree_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    works = protection._works

    def counted(values: Any, lines: list[str]) -> bool:
        asked.append(len(values))
        return works(values, lines)

    monkeypatch.setattr(protection, "_works", counted)
    codes = {
        "one": ["J45.0", "I10", "K02", "E11.9", "C50.9", "N39.0"],
        "two": ["A01.0", "D50", "F20.1", "G30.9", "H40.0", "L20.0"],
        "other": ["J45.0", "J45.1", "J44.9", "K02", "E11.9", "E11.8"],
    }
    texts = []
    numbers = []
    for names in (["one"], ["two"], ["one", "two"], ["other"], ["one", "other"]):
        asked.clear()
        table = pl.DataFrame({name: codes[name] * 10 for name in names})
        texts.append([line for line in draft(open_table(table)).splitlines() if "protect:" in line])
        numbers.append(len(asked))
    one, two, both, other, different = numbers
    assert (both, different) == (one, one + other)
    assert one == two >= 1
    assert texts[2] == [*texts[0], *texts[1]]


def test_numbers_of_four_digits_are_no_occupations() -> None:
    assert role_of("price", [2211, 5120, 9412, 7231, 3115, 1120] * 10)[0] is Role.QUASI_IDENTIFIER


# -- hierarchies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "hierarchy"),
    [
        ("age", list(range(18, 78)), "{intervals: [5, 10, 20]}"),
        ("nights", [row % 12 for row in range(PEOPLE)], "{intervals: [2, 4, 8]}"),
        ("ratio", [row / 100 for row in range(PEOPLE)], "{intervals: [0.05, 0.1, 0.2]}"),
        ("pay", [1000.0 * row for row in range(PEOPLE)], "{intervals: [5000, 10000, 20000]}"),
        # One value far away does not decide how wide the others are cut.
        ("pay", [*map(float, range(100)), 1e9], "{intervals: [10, 20, 40]}"),
        ("pay", [*map(float, range(100)), 1e40], "suppress"),
        ("pay", [*map(float, range(100)), float("inf")], "suppress"),
        ("pay", [*map(float, range(100)), float("nan")], "{intervals: [10, 20, 40]}"),
        ("grade", [1, 2, 3] * 20, "suppress"),
        ("zip", [f"{row:05d}" for row in range(PEOPLE)], "{prefix: 5}"),
        ("zip", [80_000 + row for row in range(PEOPLE)], "{prefix: 5}"),
        ("postcode", [f"AB{row} 1CD" for row in range(PEOPLE)], "{prefix: [6, 4, 2]}"),
        ("lot", [f"K{row % 8}{row % 4}{row % 8}T001" for row in range(PEOPLE)], "{prefix: [6, 4, 2]}"),
        ("seen", [date(2020, 1, 1) + timedelta(days=row) for row in range(PEOPLE)], "{dates: [month, year]}"),
        ("seen", [f"{row % 28 + 1:02d}.02.2020" for row in range(PEOPLE)], "suppress"),
        ("country", ["DE", "FR", "PE", "JP"] * 15, "{taxonomy: countries}"),
        ("country", ["DE", "FR", "PE", "JP", "Atlantis"] * 12, "{taxonomy: countries, unknown: other}"),
        ("state", ["CA", "TX", "NY", "AL", "WA"] * 12, "suppress"),
    ],
)
def test_a_hierarchy_has_a_place_for_every_value(name: str, values: list[Any], hierarchy: str) -> None:
    table = pl.DataFrame({name: values})
    text = draft(open_table(table))
    (line,) = [line for line in text.split("\n") if "    hierarchy:" in line]
    assert line.split("   # ")[0] == f"    hierarchy: {hierarchy}"
    # Whatever it is, the draft publishes the table.
    assert verify(anonymize(table, Policy.loads(text))).holds


def test_different_values_are_counted_closely() -> None:
    found = look(open_table(pl.DataFrame({"few": [row % 3000 for row in range(60_000)], "all": range(60_000)})), ("",))
    assert found[0].distinct == 3000
    assert found[1].distinct == pytest.approx(60_000, rel=0.05)


def test_many_missing_values_are_a_category_not_a_loss(tmp_path: Path) -> None:
    table = pl.DataFrame({"disease": ["flu", "cold", "gout", "unknown", None] * 20, "age": [20, 30, 40, 50] * 25})
    path = tmp_path / "table.parquet"
    table.write_parquet(path)
    release = anonymize(path, Policy.loads(draft(open_table(path))))
    assert release.manifest.records == 100
    assert "missing" in release.manifest["disease"].domain.values


def test_skewed_numbers_get_edges_that_follow_the_rows() -> None:
    rng = np.random.default_rng(12)
    income = np.exp(10.0 + 1.2 * rng.standard_normal(4_000)).round(2)
    frame = pl.DataFrame({"income": income})
    policy = ps.Policy.loads(ps.init(frame))
    edges = policy.by_name["income"].edges
    assert edges is not None
    held = np.histogram(income, edges)[0]
    assert len(held) >= 10
    assert held.min() >= 5
    assert held.max() < 0.2 * len(income)
    # Open at both ends, and no person's number: three digits say all of an edge.
    assert (edges[0], edges[-1]) == (-np.inf, np.inf)
    assert all(edge == float(f"{edge:.3g}") for edge in edges[1:-1])
    assert not {*edges} & {*income.tolist()}
    assert ps.plan(policy).usable


def test_even_numbers_keep_bins_of_one_width_and_lumps_do_too() -> None:
    rng = np.random.default_rng(13)
    even = pl.DataFrame({"income": rng.normal(50_000, 9_000, 2_000).round()})
    edges = ps.Policy.loads(ps.init(even)).by_name["income"].edges
    assert edges is not None
    assert len({*np.diff(edges)}) == 1
    lumps = np.where(rng.random(2_000) < 0.94, 0.0, rng.uniform(1, 90_000, 2_000)).round()
    edges = ps.Policy.loads(ps.init(pl.DataFrame({"income": lumps}))).by_name["income"].edges
    assert edges is not None
    assert np.isfinite(edges).all()


# -- what a draft knows beside its text ------------------------------------------------------------------------------


def test_a_draft_says_guess_reason_and_alternatives_for_each_column(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = range(60)
    ills = ["flu", "hiv", "gout", "acne", "cold"]
    frame = {
        "name": [f"p{row}" for row in rows],
        "age": [row % 30 for row in rows],
        "disease": [ills[row % 5] for row in rows],
    }
    pl.DataFrame(frame).write_csv(path)
    made = ps.init(path)
    assert isinstance(made, str)
    assert [(item.name, item.role, item.kind, item.distinct, item.missing) for item in made.columns] == [
        ("name", "identifier", "text", 60, 0),
        ("age", "quasi-identifier", "number", 30, 0),
        ("disease", "sensitive", "text", 5, 0),
    ]
    assert made.columns[2].alternatives == ("sensitive-qid", "quasi-identifier", "identifier", "insensitive")
    assert made.columns[1].alternatives[-1] == "weight"
    for item in made.columns:
        assert "\n".join(made.lines(item.name, item.role)) in made
        assert f"role: {item.role}   # {item.reason}" in made
    assert made.lines("disease", "identifier")[1:] == (
        "    role: identifier   # your choice; the draft said sensitive",
    )
    assert made.examples("age") == ("0", "1", "2")
    document = made.to_dict()
    assert (document["policy"], document["records"], len(document["columns"])) == (str(made), 60, 3)
    page = made._repr_html_()
    assert "your guess" not in page
    assert "by its name; 30 different values" in page
    with pytest.raises(ps.TableError, match="no column 'ages'"):
        made.lines("ages", "sensitive")


@pytest.mark.slow
def test_a_draft_keeps_the_columns_of_eu_silc() -> None:
    """By `entropy`, household size and region were hidden for everybody to keep single years of age."""
    found = [folder / "shared/data/real/eusilc.csv" for folder in Path(__file__).resolve().parents]
    path = next((file for file in found if file.is_file()), None)
    if path is None:
        pytest.skip("the data of EU-SILC is not here")
    columns = ["age", "rb090", "pb220a", "hsize", "db040", "eqIncome"]
    frame = pl.read_csv(path, infer_schema_length=None).select(columns)
    policy = Policy.loads(ps.init(frame))
    made = ps.plan(policy, data=frame).grouping
    assert made is not None
    assert made.applied is not None
    highest = {"age": 4, "rb090": 1, "pb220a": 1, "hsize": 2, "db040": 1}
    assert [name for name, level in made.applied.levels.items() if level == highest[name]] == []
    assert made.applied.suppressed == 654
