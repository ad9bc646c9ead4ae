"""`polyseme verify TABLE --policy POLICY` on tables as other tools write them, against values computed by hand."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from polyseme.cli import cli, main

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data" / "adult"
needs_adult = pytest.mark.skipif(not SHARED.exists(), reason="the Adult data are not beside the project")

POLICY = """
attributes:
  age: {role: quasi-identifier}
  zip: {role: quasi-identifier}
  disease: {role: sensitive}
"""


class Desk:
    """A folder with one table and one policy, and the command that judges them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, table: str | Path, policy: str, models: str) -> tuple[int, str, str]:
        path = table if isinstance(table, Path) else self.folder / "table.csv"
        if isinstance(table, str):
            path.write_text(table, encoding="utf-8")
        (self.folder / "policy.yaml").write_text(f"{policy}\nmodels: {models}\n", encoding="utf-8")
        out, err = io.StringIO(), io.StringIO()
        arguments = ["verify", str(path), "--policy", str(self.folder / "policy.yaml"), "--json"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as leaving:
            main(arguments)
        return int(leaving.value.code or 0), out.getvalue(), err.getvalue()

    def verdicts(self, table: str | Path, policy: str, models: str) -> list[Mapping[str, Any]]:
        code, out, err = self.run(table, policy, models)
        assert code in (0, 1), err
        document = json.loads(out)
        assert code == (0 if document["holds"] else 1)
        found: list[Mapping[str, Any]] = document["verdicts"]
        return found

    def verdict(self, table: str | Path, policy: str, models: str) -> Mapping[str, Any]:
        (found,) = self.verdicts(table, policy, models)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


ARX = """age;zip;disease
[20, 30[;130**;flu
[20, 30[;130**;flu
[20, 30[;130**;cold
[30, 40[;148**;ulcer
[30, 40[;148**;cold
[30, 40[;148**;flu
*;*;*
*;*;ulcer
"""


@pytest.mark.parametrize(
    ("model", "holds", "worst"),
    [
        ("{k-anonymity: {k: 3}}", True, 3),
        ("{k-anonymity: {k: 4}}", False, 3),
        ("{distinct-diversity: {l: 2}}", True, 2),
        ("{distinct-diversity: {l: 3}}", False, 2),
        ("{frequency-diversity: {l: 1.5}}", True, 1.5),
        ("{frequency-diversity: {l: 2}}", False, 1.5),
        ("{entropy-diversity: {l: 1.88}}", True, math.exp(math.log(3) - 2 / 3 * math.log(2))),
        ("{entropy-diversity: {l: 1.89}}", False, math.exp(math.log(3) - 2 / 3 * math.log(2))),
        ("{recursive-diversity: {c: 2, l: 2}}", False, 2),
        ("{recursive-diversity: {c: 2.01, l: 2}}", True, 2),
        ("{alpha-k-anonymity: {alpha: 0.67, k: 3}}", True, 2 / 3),
        ("{alpha-k-anonymity: {alpha: 0.67, k: 4}}", False, 2 / 3),
        # Whole: cold 2/6, flu 3/6, ulcer 1/6. First class: flu 2/3, cold 1/3; second: a third each.
        ("{closeness: {t: 0.17}}", True, 1 / 6),
        ("{closeness: {t: 0.16}}", False, 1 / 6),
        # Alphabetical order: cumulated differences of the classes are (0, 1/6) and (0, -1/6), over 2 steps.
        ("{closeness: {t: 0.084, ground: ordered}}", True, 1 / 12),
        ("{closeness: {t: 0.083, ground: ordered}}", False, 1 / 12),
    ],
)
def test_a_table_as_arx_writes_it(desk: Desk, model: str, holds: bool, worst: float):
    verdict = desk.verdict(ARX, POLICY, f"[{model}]")
    assert verdict["holds"] is holds
    assert verdict["worst"] == pytest.approx(worst)
    assert verdict["checked"] == 2


def test_hierarchical_closeness_with_the_hierarchy_as_arx_writes_it(desk: Desk):
    (desk.folder / "disease.csv").write_text("flu;airways;*\ncold;airways;*\nulcer;stomach;*\n", encoding="utf-8")
    policy = POLICY.replace("role: sensitive", "role: sensitive, distance: {tree: disease.csv}")
    # Second class against the whole: flu -1/6, cold 0, ulcer +1/6; all of it moves over the root, at full cost.
    verdict = desk.verdict(ARX, policy, "[{closeness: {t: 0.2, ground: hierarchical}}]")
    assert verdict["worst"] == pytest.approx(1 / 6)
    table = ARX.replace("ulcer", "cold")
    # Now first class flu 2/3, whole flu 1/2: moving 1/6 below `airways` costs half.
    verdict = desk.verdict(table, policy, "[{closeness: {t: 0.2, ground: hierarchical}}]")
    assert verdict["worst"] == pytest.approx(1 / 6 / 2)


SALARIES = "zip;salary\n" + "".join(
    f"{place};{amount}\n" for place, amount in zip("aaabbbccc", (3, 4, 5, 6, 11, 8, 7, 9, 10))
)
BY_SALARY = "attributes: {zip: {role: quasi-identifier}, salary: {role: sensitive}}"


@pytest.mark.parametrize("extra", ["", "*;*\n", "*;\n", "*;12\n", "*;none\n"])
def test_numbers_are_ordered_by_size_whatever_suppressed_rows_say(desk: Desk, extra: str):
    verdict = desk.verdict(SALARIES + extra, BY_SALARY, "[{closeness: {t: 0.4, ground: ordered}}]")
    assert verdict["worst"] == pytest.approx(0.375)
    assert verdict["holds"]


def test_an_open_domain_does_not_take_in_the_suppressed(desk: Desk):
    policy = BY_SALARY.replace("role: sensitive", "role: sensitive, distance: {line: rank}")
    table = SALARIES + "*;*\n"
    strict, ordered = desk.verdicts(
        table, policy, "[{semantic-diversity: {l: 3, d: 1}}, {closeness: {t: 0.4, ground: ordered}}]"
    )
    assert strict["holds"]
    assert ordered["worst"] == pytest.approx(0.375)
    values = policy.replace("line: rank", "line: values")
    assert desk.verdict(table, values, "[{semantic-diversity: {l: 3, d: 1}}]")["holds"]
    assert not desk.verdict(table, values, "[{semantic-diversity: {l: 3, d: 2}}]")["holds"]


@pytest.mark.parametrize("role", ["sensitive", "sensitive-qid"])
def test_an_open_domain_has_no_values_of_suppressed_rows(desk: Desk, role: str):
    """Values that no record of a class has would stretch the order, and make every class look close."""
    policy = BY_SALARY.replace("role: sensitive", f"role: {role}, distance: {{line: values}}")
    table = SALARIES + "".join(f"*;{amount}\n" for amount in range(100, 140))
    verdict = desk.verdict(table, policy, "[{closeness: {t: 0.3, ground: ordered, attribute: salary}}]")
    assert (verdict["worst"], verdict["holds"]) == (pytest.approx(0.375), False)
    all_suppressed = "zip;salary\n*;1\n*;2\n"
    assert desk.verdict(all_suppressed, policy, "[{closeness: {t: 0, ground: ordered, attribute: salary}}]")["holds"]


def test_rows_that_would_be_dropped_are_still_rows_of_this_table(desk: Desk):
    policy = (
        "attributes: {zip: {role: quasi-identifier}, salary: {role: sensitive, distance: {line: values}}, "
        "job: {role: sensitive, missing: drop, protect: {diversity: {l: 2}}}}"
    )
    table = "zip;salary;job\na;1;x\na;7;\nb;1;y\nb;1;z\n"
    verdict = desk.verdict(table, policy, "[{closeness: {t: 1, ground: ordered, attribute: salary}}]")
    assert (verdict["holds"], verdict["note"]) == (True, "")


def test_codes_of_digits_are_not_numbers(desk: Desk):
    """Classes 0130 and 130 are two; as numbers they would be one class of two."""
    table = "zip;disease\n0130;flu\n130;flu\n"
    policy = "attributes: {zip: {role: quasi-identifier}, disease: {role: sensitive}}"
    assert desk.verdict(table, policy, "[{k-anonymity: {k: 2}}]")["worst"] == 1
    as_both = policy.replace("quasi-identifier", "sensitive-qid")
    assert desk.verdict(table, as_both, "[{k-anonymity: {k: 2}}]")["worst"] == 1
    # A sensitive 1 and 1.0 are the same amount, and do not make a class diverse.
    amounts = "zip;salary\na;1\na;1.0\n"
    assert desk.verdict(amounts, BY_SALARY, "[{distinct-diversity: {l: 2}}]")["worst"] == 1


def test_a_missing_quasi_identifier_is_a_value_of_its_own(desk: Desk):
    table = "age,zip,disease\n20,1,flu\n20,1,cold\n20,,flu\n20,,cold\n20,,ulcer\n"
    verdict = desk.verdict(table, POLICY, "[{k-anonymity: {k: 3}}]")
    assert (verdict["worst"], verdict["checked"]) == (2, 2)
    alone = table + "20,?,flu\n"
    assert desk.verdict(alone, POLICY, "[{k-anonymity: {k: 2}}]")["worst"] == 1
    declared = POLICY + "table: {missing-values: ['', '?']}\n"
    assert desk.verdict(alone, declared, "[{k-anonymity: {k: 2}}]")["holds"]


def test_declared_missing_words_count_in_typed_tables_too(desk: Desk):
    path = desk.folder / "table.parquet"
    pl.DataFrame({"age": [1, 1], "zip": ["x", "x"], "disease": ["flu", "?"]}).write_parquet(path)
    declared = POLICY + "table: {missing-values: ['?']}\n"
    verdict = desk.verdict(path, declared, "[{distinct-diversity: {l: 2}}]")
    assert not verdict["holds"]
    assert "no value" in verdict["note"]


def test_a_missing_sensitive_value_fails_closed_unless_it_is_declared_a_category(desk: Desk):
    table = "age,zip,disease\n20,1,flu\n20,1,\n"
    verdict = desk.verdict(table, POLICY, "[{distinct-diversity: {l: 2}}]")
    assert not verdict["holds"]
    assert "1 record has no value" in verdict["note"]
    category = POLICY.replace("role: sensitive", "role: sensitive, missing: category")
    assert desk.verdict(table, category, "[{distinct-diversity: {l: 2}}]")["holds"]
    listed = POLICY.replace("role: sensitive", "role: sensitive, domain: [flu, cold], missing: category")
    assert desk.verdict(table, listed, "[{distinct-diversity: {l: 2}}]")["holds"]


@pytest.mark.parametrize("word", ["nan", "NaN"])
def test_a_number_that_is_none_fails_closed(desk: Desk, word: str):
    verdict = desk.verdict(f"zip;salary\na;1\na;{word}\n", BY_SALARY, "[{distinct-diversity: {l: 2}}]")
    assert not verdict["holds"]


def test_one_row_and_no_rows(desk: Desk):
    one = "age,zip,disease\n20,1,flu\n"
    assert desk.verdict(one, POLICY, "[{k-anonymity: {k: 1}}]")["holds"]
    assert not desk.verdict(one, POLICY, "[{k-anonymity: {k: 2}}]")["holds"]
    assert desk.verdict(one, POLICY, "[{closeness: {t: 0}}]")["holds"]
    assert desk.verdict(one, POLICY, "[{closeness: {t: 0, ground: ordered}}]")["holds"]
    every = (
        "[{k-anonymity: {k: 1}}, {distinct-diversity: {l: 1}}, {entropy-diversity: {l: 1}}, "
        "{recursive-diversity: {c: 1, l: 1}}, {closeness: {t: 1}}, {semantic-rules: {rules: [{never: {zip: x}}]}}]"
    )
    for verdict in desk.verdicts("age,zip,disease\n", POLICY, every):
        assert not verdict["holds"]
        assert "no rows" in verdict["note"]


def test_only_suppressed_rows_are_one_class(desk: Desk):
    table = "age,zip,disease\n*,*,flu\n*,*,cold\n"
    assert desk.verdict(table, POLICY, "[{k-anonymity: {k: 2}}]")["holds"]
    assert desk.verdict(table, POLICY, "[{distinct-diversity: {l: 2}}]")["holds"]


@pytest.mark.parametrize("column", ["age", "disease"])
def test_a_column_that_is_not_there_does_not_hold(desk: Desk, column: str):
    table = "age,zip,disease\n20,1,flu\n20,1,cold\n".replace(column, "other")
    for verdict in desk.verdicts(table, POLICY, "[{distinct-diversity: {l: 1}}]"):
        assert not verdict["holds"]
        assert f"no column '{column}'" in verdict["note"]


def test_several_sensitive_attributes_each_get_a_verdict(desk: Desk):
    table = "zip,disease,salary\n1,flu,10\n1,cold,10\n2,flu,20\n2,cold,30\n"
    policy = "attributes: {zip: {role: quasi-identifier}, disease: {role: sensitive}, salary: {role: sensitive}}"
    disease, salary = desk.verdicts(table, policy, "[{distinct-diversity: {l: 2}}]")
    assert (disease["attribute"], disease["holds"]) == ("disease", True)
    assert (salary["attribute"], salary["holds"], salary["worst"]) == ("salary", False, 1)
    assert salary["worst_classes"][0]["row"] == 0
    named = desk.verdict(table, policy, "[{distinct-diversity: {l: 2, attribute: disease}}]")
    assert named["holds"]


def test_columns_beyond_the_policy_and_unnamed_row_numbers_do_not_matter(desk: Desk):
    table = ",age,zip,disease,extra\n7,20,1,flu,a\n3,20,1,cold,b\n"
    assert desk.verdict(table, POLICY, "[{k-anonymity: {k: 2}}]")["holds"]


def test_binned_and_boolean_domains(desk: Desk):
    policy = BY_SALARY.replace("role: sensitive", "role: sensitive, bins: [0, 10, 20, 30]")
    table = "zip;salary\na;3\na;4\nb;15\nb;25\n"
    first = desk.verdict(table, policy, "[{distinct-diversity: {l: 2}}]")
    assert (first["worst"], first["holds"]) == (1, False)
    assert desk.verdict(table.replace("a;4", "a;14"), policy, "[{distinct-diversity: {l: 2}}]")["holds"]
    published = 'zip;salary\na;"[0, 10)"\na;"[10, 20)"\n'
    assert desk.verdict(published, policy, "[{distinct-diversity: {l: 2}}]")["holds"]
    answers = BY_SALARY.replace("role: sensitive", "role: sensitive, domain: [true, false]")
    assert desk.verdict("zip;salary\na;true\na;false\n", answers, "[{distinct-diversity: {l: 2}}]")["holds"]


def test_missing_quasi_identifiers_as_wildcards(desk: Desk):
    table = "age,zip,disease\n20,1,flu\n20,1,cold\n20,,flu\n30,*,flu\n30,2,cold\n"
    assert desk.verdict(table, POLICY, "[{k-anonymity: {k: 2}}]")["worst"] == 1
    wild = POLICY + "table: {wildcard: true}\n"
    # 20,1 matches three rows, so does 20,anything; 30,2 matches two, so does 30,anything.
    verdict = desk.verdict(table, wild, "[{k-anonymity: {k: 2}}]")
    assert (verdict["holds"], verdict["worst"], verdict["checked"]) == (True, 2, 4)


def test_k_map_against_a_file_of_the_population(desk: Desk):
    population = "age;zip\n" + "20;0130\n" * 4 + "20;130\n" * 3 + "30;0130\n" * 2
    (desk.folder / "population.csv").write_text(population, encoding="utf-8")
    table = "age;zip;disease\n20;0130;flu\n20;130;flu\n*;0130;cold\n"
    verdict = desk.verdict(table, POLICY, "[{k-map: {k: 3, reference: population.csv}}]")
    assert (verdict["holds"], verdict["worst"]) == (True, 3)
    assert not desk.verdict(table, POLICY, "[{k-map: {k: 4, reference: population.csv}}]")["holds"]
    assert "no reference" in desk.verdict(table, POLICY, "[{k-map: {k: 1}}]")["note"]
    code, _, err = desk.run(table, POLICY, "[{k-map: {k: 3, reference: nowhere.csv}}]")
    assert code == 2
    assert "no file 'nowhere.csv' beside the policy" in err
    (desk.folder / "population.csv").write_text("age;city\n20;x\n", encoding="utf-8")
    verdict = desk.verdict(table, POLICY, "[{k-map: {k: 1, reference: population.csv}}]")
    assert "no column 'zip'" in verdict["note"]


def test_k_map_of_a_typed_table_against_text(desk: Desk):
    (desk.folder / "population.csv").write_text("age;zip\n20;1\n20;1\nold;1\n;1\n", encoding="utf-8")
    path = desk.folder / "table.parquet"
    pl.DataFrame({"age": [20, None], "zip": ["1", "1"], "disease": ["flu", "flu"]}).write_parquet(path)
    verdict = desk.verdict(path, POLICY, "[{k-map: {k: 1, reference: population.csv}}]")
    assert (verdict["worst"], verdict["holds"]) == (1, True)
    assert not desk.verdict(path, POLICY, "[{k-map: {k: 2, reference: population.csv}}]")["holds"]


def test_an_undeclared_order_is_said_to_be_the_alphabet(desk: Desk):
    model = "[{closeness: {t: 1, ground: ordered}}]"
    assert "alphabet" in desk.verdict(ARX, POLICY, model)["note"]
    assert not desk.verdict(SALARIES, BY_SALARY, model)["note"]
    declared = POLICY.replace("role: sensitive", "role: sensitive, domain: [flu, ulcer, cold]")
    verdict = desk.verdict(ARX, declared, model)
    # Differences of the first class in this order: flu 1/6, ulcer -1/6, cold 0.
    assert (verdict["note"], verdict["worst"]) == ("", pytest.approx(1 / 12))


def test_without_quasi_identifiers_the_table_is_one_class(desk: Desk):
    (desk.folder / "population.csv").write_text("age\n1\n2\n3\n", encoding="utf-8")
    policy = "attributes: {disease: {role: sensitive}}"
    models = "[{k-anonymity: {k: 2}}, {k-map: {k: 3, reference: population.csv}}, {distinct-diversity: {l: 2}}]"
    found = desk.verdicts("disease,age\nflu,1\ncold,2\n", policy, models)
    assert [(verdict["holds"], verdict["worst"]) for verdict in found] == [(True, 2), (True, 3), (True, 2)]


def test_mistakes_in_the_question_are_reported_with_their_places(desk: Desk):
    models = "[{distinct-diversity: {l: 2, attribute: [disease]}}, {k-map: {k: 2, reference: 5}}]"
    code, _, err = desk.run(ARX, POLICY, models)
    assert code == 2
    assert "models[0].distinct-diversity.attribute" in err
    assert "models[1].k-map.reference" in err


def test_a_short_line_is_named(desk: Desk):
    code, _, err = desk.run("age,zip,disease\n1,2,flu\n\n1,SECRET\n", POLICY, "[{k-anonymity: {k: 2}}]")
    assert code == 2
    assert "line 4: expected 3 fields, found 2" in err
    assert "SECRET" not in err


def test_a_bound_that_cannot_be_met_fails(desk: Desk):
    huge = "[{k-anonymity: {k: 1000000}}, {distinct-diversity: {l: 50}}, {recursive-diversity: {c: 3, l: 9}}]"
    assert not any(verdict["holds"] for verdict in desk.verdicts(ARX, POLICY, huge))
    code, _, err = desk.run(ARX, POLICY, "[{closeness: {t: -0.1}}, {k-anonymity: {k: 0}}, {k-anonimity: {k: 2}}]")
    assert code == 2
    assert "did you mean 'k-anonymity'" in err
    assert err.count("models[") == 3


def test_a_bound_beyond_whole_numbers_is_refused(desk: Desk):
    """Multiplied with the size of a class it would run over and seem to hold."""
    code, _, err = desk.run(
        ARX, POLICY, f"[{{frequency-diversity: {{l: {2**58}}}}}, {{recursive-diversity: {{c: 1e30, l: 2}}}}]"
    )
    assert code == 2
    assert err.count("up to 1e+09") == 2


NINE = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]


def generalized(levels: list[int]) -> pl.DataFrame:
    """Adult with each column of NINE at a level of its hierarchy."""
    table = pl.read_csv(SHARED / "adult-arx.csv", separator=";", infer_schema=False)
    columns = []
    for name, level in zip(NINE, levels, strict=True):
        lines = (SHARED / "hierarchies" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        paths = [line.split(";") for line in lines]
        columns.append(table[name].replace_strict({path[0]: path[level] for path in paths}).alias(name))
    return pl.DataFrame(columns)


@needs_adult
@pytest.mark.parametrize(
    ("levels", "sensitive", "model", "stricter"),
    [
        ([1, 2, 1, 1, 3, 2, 2, 1, 1], False, "{k-anonymity: {k: 5}}", "k"),
        ([1, 1, 1, 1, 3, 2, 2, 0, 1], True, "{entropy-diversity: {l: 5}}", "l"),
        ([0, 4, 1, 1, 3, 2, 2, 0, 1], True, "{closeness: {t: 0.2, ground: hierarchical}}", "t"),
    ],
)
def test_the_reference_optima_on_adult(desk: Desk, levels: list[int], sensitive: bool, model: str, stricter: str):
    roles = dict.fromkeys(NINE, "role: quasi-identifier")
    if sensitive:
        (desk.folder / "tree.csv").write_bytes((SHARED / "hierarchies" / "occupation.csv").read_bytes())
        roles["occupation"] = "role: sensitive, distance: {tree: tree.csv}"
    policy = "attributes:\n" + "".join(f"  {name}: {{{role}}}\n" for name, role in roles.items())
    path = desk.folder / "adult.csv"
    generalized(levels).write_csv(path, separator=";")
    verdict = desk.verdict(path, policy, f"[{model}]")
    assert verdict["holds"]
    # The worst class says which bound is the last to hold, and the next one fails.
    worst = verdict["worst"]
    tighter = {"k": worst + 1, "l": worst + 1e-6, "t": worst - 1e-6}[stricter]
    bound = verdict["parameters"][stricter]
    old, new = f"{stricter}: {bound}", f"{stricter}: {int(tighter) if stricter == 'k' else f'{tighter:.9f}'}"
    assert not desk.verdict(path, policy, f"[{model.replace(old, new)}]")["holds"]
    # One step less of the age is too little.
    less = [*levels[:1], levels[1] - 1, *levels[2:]]
    generalized(less).write_csv(path, separator=";")
    assert not desk.verdict(path, policy, f"[{model}]")["holds"]


@pytest.mark.parametrize(
    "tree",
    [
        "{A: [a], B: [b]}",
        "{root: {A: [a], B: [b]}}",
        "{root: [a, b]}",
        "{x: {root: {A: [a], B: [b]}}}",
        "[a, b]",
    ],
)
def test_closeness_does_not_depend_on_how_the_root_of_a_tree_is_written(desk: Desk, tree: str) -> None:
    """Two values that meet only at the root are 1 apart: classes of one value are 0.5 from the whole."""
    policy = f"attributes:\n  q: {{role: quasi-identifier}}\n  s: {{role: sensitive, distance: {{tree: {tree}}}}}"
    verdict = desk.verdict(
        "q,s\n1,a\n1,a\n2,b\n2,b\n", policy, "[{closeness: {t: 0.4, ground: hierarchical, attribute: s}}]"
    )
    assert (verdict["worst"], verdict["holds"]) == (0.5, False)


@pytest.mark.parametrize(
    ("model", "side"),
    [
        ("{le-diversity: {l: 2, e: 1, attribute: disease}}", "> 1"),
        ("{le-diversity: {l: 3, e: 0, attribute: disease}}", "≥ 3"),
        ("{recursive-diversity: {c: 1, l: 2, attribute: disease}}", "< 1"),
        ("{delta-disclosure: {delta: 0.1, attribute: disease}}", "< 0.1"),
        ("{k-anonymity: {k: 3}}", "≥ 3"),
    ],
)
def test_a_value_that_is_not_allowed_is_not_said_to_be(tmp_path: Path, model: str, side: str) -> None:
    """Found 1, allowed at least 1, and yet it does not hold: the bound is beyond 1."""
    (tmp_path / "t.csv").write_text("age,zip,disease\n1,1,flu\n1,1,cold\n2,2,flu\n", encoding="utf-8")
    tree = "disease: {role: sensitive, distance: {tree: {lung: [flu, cold], skin: [rash]}}}"
    policy = POLICY.replace("disease: {role: sensitive}", tree) + f"models: [{model}]\n"
    (tmp_path / "p.yaml").write_text(policy, encoding="utf-8")
    result = CliRunner().invoke(cli, ["verify", str(tmp_path / "t.csv"), "--policy", str(tmp_path / "p.yaml")])
    assert result.exit_code == 1
    assert side in result.output
