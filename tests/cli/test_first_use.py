"""What a demanding first user tries: odd tables, odd settings, odd moments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.cli.console import names, print_json
from polyseme.policy import ModelSpec
from polyseme.policy.resolution import resolve
from polyseme.publishing.cautions import warnings
from polyseme.release import Manifest, file_digest
from polyseme.release.data import checksum
from polyseme.results.views.plan_tables import plan_remarks
from polyseme.schema import Role
from polyseme.tables.io.columnar import FrameSource

LETTERS = list("abcdefgh")


def people(rows: int = 600) -> pl.DataFrame:
    generator = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "sex": generator.choice(["f", "m"], rows),
            "letter": generator.choice(LETTERS, rows),
            "day": [date(2020, 1, 1) + timedelta(days=int(step)) for step in generator.integers(0, 6, rows)],
            "number": generator.integers(0, 5, rows),
        }
    )


def policy(name: str, body: str) -> ps.Policy:
    others = "".join(f"  {column}: {{role: insensitive}}\n" for column in people(1).columns if column != name)
    return ps.Policy.loads(f"attributes:\n{others}  {name}:\n    role: sensitive\n" + body)


@pytest.mark.parametrize("ground", ["equal", "ordered"])
@pytest.mark.parametrize(
    "design", ["", "semantic-diversity: {l: 3, d: 2}, ", "semantic-diversity: {l: 2, d: 2, mechanism: simple}, "]
)
def test_closeness_to_a_reference_is_verified_against_that_reference(ground: str, design: str) -> None:
    rules = policy(
        "letter",
        "    domain: [a, b, c, d, e, f, g, h]\n    distance: {line: rank}\n    reference: [8, 7, 6, 5, 4, 3, 2, 1]\n"
        f"    protect: {{{design}closeness: {{t: 0.2, ground: {ground}}}}}\n",
    )
    release = ps.anonymize(people(), rules)
    verdict = next(item for item in ps.verify(release).verdicts if item.model == "closeness")
    assert verdict.holds
    assert verdict.worst == pytest.approx(0.2, abs=0.01)
    again = Manifest.from_dict(json.loads(release.manifest.to_json()))
    assert again["letter"].strata.members[0].reference == pytest.approx(np.arange(8, 0, -1) / 36)


def test_a_reference_changed_afterwards_breaks_closeness() -> None:
    rules = policy(
        "letter",
        "    domain: [a, b, c, d, e, f, g, h]\n    reference: [8, 7, 6, 5, 4, 3, 2, 1]\n"
        "    protect: {closeness: {t: 0.2, ground: ordered}}\n",
    )
    document = json.loads(ps.anonymize(people(), rules).manifest.to_json())
    assert document["attributes"][1]["mechanism"]["p"] > 0.4
    release = ps.anonymize(people(), rules)
    expected = release.manifest["letter"].strata.members[0].distributions
    object.__setattr__(expected, "reference", np.array([1, 0, 0, 0, 0, 0, 0, 1]) / 2)
    assert not ps.verify(release).holds


def test_attackers_share_the_declared_prior() -> None:
    rules = policy(
        "letter",
        "    domain: [a, b, c, d, e, f, g, h]\n    prior: [1, 1, 1, 1, 1, 1, 1, 2]\n    protect: {diversity: {l: 3}}\n",
    )
    found = {finding.attack: finding for finding in ps.attack(ps.anonymize(people(), rules))}
    assert found["bayes"].success == pytest.approx(1 / 3)
    assert not any(finding.exceeded for finding in found.values())


def test_obstacles_name_values_by_their_labels_but_never_values_found_in_the_table() -> None:
    body = "    distance: {line: rank}\n    protect: {semantic-diversity: {l: 3, d: 4}}\n"
    declared = ps.plan(policy("letter", "    domain: [a, b, c, d, e, f, g, h]\n" + body))["letter"]
    assert "a, b, c, d" in declared.obstacle
    found = ps.plan(policy("letter", body), data=people())["letter"]
    assert "a, b, c, d" not in found.obstacle


def test_models_do_not_let_a_sensitive_column_through() -> None:
    rules = policy("letter", "    domain: [a, b, c, d, e, f, g, h]\n    protect: {diversity: {l: 2}}\n")
    careless = replace(rules, attributes=tuple(replace(item, role=Role.SENSITIVE) for item in rules.attributes))
    for models in ((), (ModelSpec("k-anonymity", {"k": 2}),)):
        with pytest.raises(ps.PolicyError, match="nothing protects it") as caught:
            ps.anonymize(people(), replace(careless, models=models))
        assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    reference: data\n    protect: {closeness: {t: 1}}\n", "published as it is"),
        ("    protect: {ldp: {epsilon: 1000}}\n", "published as it is"),
        ("    protect: {closeness: {t: 0}}\n", "nothing can be learned"),
        ("    protect: {diversity: {l: 9, adapt: true}}\n", "was adapted to 7"),
    ],
)
def test_who_publishes_hears_what_the_plan_says(body: str, said: str) -> None:
    heard: list[str] = []
    ps.anonymize(people(), policy("letter", "    domain: [a, b, c, d, e, f, g, h]\n" + body), warn=heard.append)
    assert any(warning.startswith("letter: ") and said in warning for warning in heard)


def test_a_prior_with_zeros_is_a_problem_of_the_prior() -> None:
    body = "    domain: [a, b, c, d, e, f, g, h]\n    prior: {a: 1, b: 1}\n    protect: {diversity: {l: 2}}\n"
    with pytest.raises(ps.PolicyError, match=r"\$\.attributes\.letter\.prior"):
        ps.plan(policy("letter", body))


@pytest.mark.parametrize("column", ["day", "number", "letter"])
def test_domains_found_in_columns_of_any_type(column: str) -> None:
    release = ps.anonymize(people(), policy(column, "    protect: {diversity: {l: 2}}\n"))
    assert ps.verify(release).holds
    assert ps.evaluate(release, people(), of=[column]).to_dict()["l1"] < 600


def test_found_domains_do_not_depend_on_the_order_of_hashing() -> None:
    labels = ["1", "1.0", "01", "nan", "inf", "2", "x", "10", "3.0", "3.00"]
    rules = ps.Policy.loads("attributes: {v: {role: sensitive, protect: {diversity: {l: 2}}}}")
    for start in range(len(labels)):
        table = pl.DataFrame({"v": labels[start:] + labels[:start]})
        domain = resolve(rules, FrameSource(table.to_arrow())).schema["v"].domain
        assert domain is not None
        # One value in two spellings is one value, by the spelling that needs no change or else the first.
        assert domain.values == ("01", "1", "2", "3.0", "10", "inf", "nan", "x")


def test_periods_of_a_column_without_dates() -> None:
    with pytest.raises(ps.PolicyError, match="cannot be read as dates"):
        ps.anonymize(people(), policy("number", "    periods: month\n    protect: {diversity: {l: 2}}\n"))
    fixed = "    periods: {every: month, from: 2020-01, to: 2020-12}\n    protect: {diversity: {l: 2}}\n"
    with pytest.raises(ps.TableError, match="600 values are not a possible date"):
        ps.anonymize(people(), policy("number", fixed))


@pytest.mark.parametrize("domain", ["[1, '1', 2]", "[1, 1.0, 2]", "[true, 'true', 2]"])
def test_values_that_a_table_cannot_tell_apart(domain: str) -> None:
    with pytest.raises(ps.PolicyError, match="listed more than once"):
        policy("number", f"    domain: {domain}\n    protect: {{diversity: {{l: 2}}}}\n")


def test_the_label_for_missing_values_must_be_a_new_one() -> None:
    body = "    domain: [a, b, c, d, e, f, g, h]\n    missing: {category: a}\n    protect: {diversity: {l: 2}}\n"
    with pytest.raises(ps.PolicyError, match="already"):
        ps.anonymize(people(), policy("letter", body))


def test_quantile_bins_of_a_column_that_is_nearly_constant() -> None:
    frame = pl.DataFrame({"v": [0.0] * 999 + [5.0]})
    rules = ps.Policy.loads(
        "attributes: {v: {role: sensitive, bins: {count: 4, method: quantile}, protect: {diversity: {l: 1}}}}"
    )
    domain = resolve(rules, FrameSource(frame.to_arrow())).schema["v"].domain
    assert domain is not None
    assert domain.values == ("[-inf, inf]",)


def test_init_refuses_a_table_without_a_header(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("39,private,M\n" + "39,private,M\n40,state,F\n" * 5)
    with pytest.raises(ps.TableError, match="looks like a record"):
        ps.init(table)


def test_init_finds_words_for_missing_as_they_are_written(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("age, job\n" + ("39, clerk\n40, nurse\n41, cook\n42, judge\n" * 10) + "40, ?\n")
    text = ps.init(table)
    assert '" ?"' in text
    release = ps.anonymize(table, ps.Policy.loads(text))
    assert release.manifest.dropped == 1


def test_init_says_when_nothing_looks_sensitive(tmp_path: Path) -> None:
    assert "No column looks sensitive" in ps.init(pl.DataFrame({"shoe": [1, 2]}))
    assert "No column looks sensitive" not in ps.init(pl.DataFrame({"income": [1, 2]}))


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": float("inf"), "b": [float("nan"), {"c": (1.5, "x")}]})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, {"c": [1.5, "x"]}]}


def test_names_with_commas_stand_in_quotes() -> None:
    assert names(None, None, ('a, b,"c, d"',)) == ("a", "b", "c, d")  # type: ignore[arg-type]
    assert names(None, None, ('" led by a blank"',)) == (" led by a blank",)  # type: ignore[arg-type]


def test_an_option_given_again_adds_names() -> None:
    assert names(None, None, ("a", "b,c")) == ("a", "b", "c")  # type: ignore[arg-type]
    assert names(None, None, ()) == ()  # type: ignore[arg-type]


def _run(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "polyseme", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_place_that_cannot_be_written_is_not_our_fault(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "t.csv")
    (tmp_path / "file").write_text("")
    process = _run("init", tmp_path / "t.csv", "--out", tmp_path / "file" / "inside" / "policy.yaml")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Internal" not in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_being_stopped_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    generator = np.random.default_rng(1)
    pl.DataFrame({"v": generator.integers(0, 8, 3_000_000)}).write_csv(tmp_path / "t.csv")
    (tmp_path / "p.yaml").write_text(
        "attributes: {v: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7], protect: {diversity: {l: 3}}}}"
    )
    before = sorted(tmp_path.iterdir())
    process = _run("anonymize", tmp_path / "p.yaml", tmp_path / "t.csv", "--out", tmp_path / "out")
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode in (130, 143)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("keep", [True, False], ids=["--keep-best", "without it"])
def test_ctrl_c_keeps_the_best_levels_on_request(tmp_path: Path, keep: bool) -> None:
    """Nine quasi-identifiers that depend on nothing: no proof within any reasonable time."""
    names, generator = [f"q{place}" for place in range(9)], np.random.default_rng(1)
    pl.DataFrame({name: generator.integers(0, 16, 2_000) for name in names}).write_csv(tmp_path / "t.csv")
    entries = ", ".join(f"{name}: {{role: quasi-identifier, hierarchy: {{intervals: [2, 4, 8]}}}}" for name in names)
    (tmp_path / "p.yaml").write_text(
        f"attributes: {{{entries}}}\nmodels: [{{k-anonymity: {{k: 5}}}}]\n"
        "method: {full-domain: {suppression: 0.05, checks: 100000000}}\n"
    )
    options = ["--keep-best"] if keep else []
    process = _run(
        "--progress", "json", "anonymize", tmp_path / "p.yaml", tmp_path / "t.csv", "--out", tmp_path / "out", *options
    )
    assert process.stderr is not None
    lines = map(json.loads, process.stderr)
    assert any(line["stage"] == "levels" and line["gap"] for line in lines)
    process.send_signal(signal.SIGINT)
    stated, errors = process.communicate(timeout=60)
    assert process.returncode == (0 if keep else 130)
    assert (tmp_path / "out").exists() is keep
    if keep:
        assert "best levels found so far" in errors
        assert "to search further: full-domain: {checks: 1000000000}" in " ".join(stated.split())
        release = ps.Release.open(tmp_path / "out")
        assert release.manifest.applied is not None
        assert release.manifest.applied.gap
        assert ps.verify(release).holds


def test_categories_tell_neither_the_order_of_rows_nor_who_was_left_out(tmp_path: Path) -> None:
    rows = 500
    cities = [f"city{number % 20:02d}" for number in range(rows)]
    cities[7] = "LEFTOUT"
    frame = pl.DataFrame(
        {
            "city": pl.Series(cities, dtype=pl.Categorical),
            "size": pl.Series(["small", "large"] * (rows // 2), dtype=pl.Enum(["small", "large"])),
            "nested": [{"text": city} for city in cities],
            "letter": [None if number == 7 else LETTERS[number % 8] for number in range(rows)],
        }
    )
    rules = ps.Policy.loads(
        "attributes:\n  city: {role: insensitive}\n  size: {role: insensitive}\n  nested: {role: identifier}\n"
        "  letter: {role: sensitive, domain: [a, b, c, d, e, f, g, h], missing: drop, protect: {diversity: {l: 2}}}\n"
    )
    frame.write_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        table = ps.anonymize(source, rules).table
        assert table is not None
        column = table.column("city").combine_chunks()
        assert "LEFTOUT" not in column.dictionary.to_pylist()
        assert column.dictionary.to_pylist() != sorted(set(cities) - {"LEFTOUT"})
        assert sorted(column.to_pylist()) == sorted(city for city in cities if city != "LEFTOUT")
        assert table.column("size").combine_chunks().dictionary.to_pylist() == ["small", "large"]


def test_a_pandas_column_of_mixed_types_does_not_show_its_values() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ps.TableError) as caught:
        ps.init(pandas.DataFrame({"income": [1, "MARKED"]}))
    assert "MARKED" not in str(caught.value)


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_labels_of_every_kind_come_back_from_every_file(tmp_path: Path, form: str, file_format: str) -> None:
    rows = 400
    generator = np.random.default_rng(8)
    words = ["a,b", 'q"u"o', "[x]", "{y}", "日本", "new\nline", " lead", "null", "NA", "0"]
    columns = {
        "word": generator.choice(words, rows),
        "whole": generator.integers(0, 5, rows),
        "half": generator.choice([0.5, 1.0, 1.5, 2.25], rows),
        "flag": generator.random(rows) < 0.4,
    }
    frame = pl.DataFrame(columns)
    rules = ps.Policy.loads(
        "attributes:\n"
        + "".join(
            f"  {name}: {{role: sensitive, protect: {{diversity: {{l: 2}}}}}}\n" for name in columns if name != "flag"
        )
        + "  flag: {role: sensitive, protect: {ldp: {epsilon: 1, size: 1}}}\n"
    )
    ps.anonymize(frame, rules, tmp_path / "r", form=form, file_format=file_format)
    assert ps.verify(tmp_path / "r").holds
    for name, column in columns.items():
        table = ps.estimate(tmp_path / "r", of=[name]).to_polars()
        assert table["estimate"].sum() == pytest.approx(rows)
        assert set(table[name].to_list()) == set(column.tolist())


def test_numbers_in_text_tables_are_compared_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("v\n" + "1\n1.0\n2\n 3\n4.50\n" * 4)
    rules = ps.Policy.loads(
        "attributes: {v: {role: sensitive, domain: [1.0, 2, 3, 4.5], protect: {diversity: {l: 2}}}}"
    )
    assert ps.anonymize(tmp_path / "t.csv", rules).manifest.records == 20
    (tmp_path / "t.csv").write_text("v\n1\nx\n")
    with pytest.raises(ps.TableError, match="1 value is not in the declared domain"):
        ps.anonymize(tmp_path / "t.csv", rules)


def _tampered(
    folder: Path,
    edit: Callable[[pl.DataFrame, dict[str, Any]], pl.DataFrame],
    promise: str = "diversity: {l: 2}",
    **how: Any,
) -> Path:
    """A release changed by an attacker who knows how to repair every checksum."""
    body = f"    domain: [a, b, c, d, e, f, g, h]\n    distance: {{line: rank}}\n    protect: {{{promise}}}\n"
    ps.anonymize(people(), policy("letter", body), folder / "r", **how)
    document = json.loads((folder / "r" / "manifest.json").read_text())
    data = folder / "r" / "data.parquet"
    edit(pl.read_parquet(data), document).write_parquet(data)
    document["data"]["sha256"] = file_digest(data)
    del document["checksum"]
    (folder / "r" / "manifest.json").write_text(json.dumps({**document, "checksum": checksum(document)}))
    return folder / "r"


def _set(frame: pl.DataFrame, value: list[str] | None) -> pl.DataFrame:
    sets = [value, *frame["letter"].to_list()[1:]]
    return frame.with_columns(pl.Series("letter", sets, dtype=pl.List(pl.String)))


@pytest.mark.parametrize(
    ("edit", "model"),
    [
        (lambda frame, _: _set(frame, ["a", "b", "c"]), "candidates"),
        (lambda frame, _: _set(frame, ["a"]), "diversity"),
        (lambda frame, _: _set(frame, ["a", "a"]), "diversity"),
        (lambda frame, _: _set(frame, ["a", "stranger"]), "diversity"),
        (lambda frame, _: _set(frame, None), "diversity"),
        (lambda frame, _: frame.head(599), "record-count"),
        (lambda frame, _: frame.with_columns(name=pl.lit("Jane")), "columns"),
        (lambda frame, _: frame.drop("sex"), "columns"),
        (lambda frame, _: frame.drop("letter"), "columns"),
        (lambda frame, document: (document.update(records=5), frame)[1], "record-count"),
        (lambda frame, document: (document["attributes"][1].update(promises={"diversity": {}}), frame)[1], "diversity"),
    ],
)
def test_tampering_is_found(tmp_path: Path, edit: Any, model: str) -> None:
    found = ps.verify(_tampered(tmp_path, edit))
    assert not found.holds
    assert model in [verdict.model for verdict in found.verdicts if not verdict.holds]


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("diversity", {"l": 5}),
        ("diversity", {"l": True}),
        ("entropy-diversity", {"l": 2.5}),
        ("semantic-diversity", {"l": 3, "d": 2}),
        ("semantic-diversity", {"l": 2, "d": 3}),
        ("semantic-diversity", {"l": 2}),
        ("closeness", {"t": 0.01}),
        ("ldp", {"epsilon": 0.1}),
        ("beauty", {"l": 2}),
    ],
)
def test_promises_that_were_never_kept_are_found(tmp_path: Path, form: str, name: str, promise: Any) -> None:
    def promising(frame: pl.DataFrame, document: dict[str, Any]) -> pl.DataFrame:
        document["attributes"][1]["promises"][name] = promise
        return frame

    found = ps.verify(_tampered(tmp_path, promising, "semantic-diversity: {l: 2, d: 2}", form=form))
    assert [verdict.model for verdict in found.verdicts if not verdict.holds] == [name]


@pytest.mark.parametrize("form", ["set", "long"])
def test_every_promise_has_a_verdict_with_its_own_numbers(form: str) -> None:
    promises = {"diversity": {"l": 2}, "entropy-diversity": {"l": 1.5}, "semantic-diversity": {"l": 3, "d": 2}}
    body = f"    domain: [a, b, c, d, e, f, g, h]\n    distance: {{line: rank}}\n    protect: {json.dumps(promises)}\n"
    found = ps.verify(ps.anonymize(people(), policy("letter", body), form=form))
    assert found.holds
    by_model = {verdict.model: verdict.parameters for verdict in found.verdicts}
    assert {name: {key: by_model[name][key] for key in promises[name]} for name in promises} == promises


def test_a_sensitive_column_as_it_is_makes_no_release(tmp_path: Path) -> None:
    def laid_bare(frame: pl.DataFrame, document: dict[str, Any]) -> pl.DataFrame:
        document["attributes"][1] = {"name": "letter", "role": "sensitive", "published": "as-is"}
        return frame

    with pytest.raises(ps.ReleaseError, match="'letter': sensitive, but published as it is"):
        ps.verify(_tampered(tmp_path, laid_bare))


def test_a_release_that_promises_nothing_keeps_no_promise(tmp_path: Path) -> None:
    def silent(frame: pl.DataFrame, document: dict[str, Any]) -> pl.DataFrame:
        document["attributes"][1] = {"name": "letter", "role": "insensitive", "published": "as-is"}
        return frame

    assert not ps.verify(_tampered(tmp_path, silent)).holds


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document["attributes"][1].update(promises={}),
        lambda document: document["attributes"][1]["domain"]["values"].__setitem__(0, "b"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path: Path, edit: Any) -> None:
    with pytest.raises(ps.ReleaseError, match="manifest"):
        ps.verify(_tampered(tmp_path, lambda frame, document: (edit(document), frame)[1]))


def test_the_plan_names_the_values_that_cannot_be_distinguished() -> None:
    ranks = ", ".join(f"r{number}" for number in range(1, 15))
    body = f"    domain: [{ranks}]\n    distance: {{line: rank}}\n    protect: {{semantic-diversity: {{l: 2, d: 7}}}}\n"
    made = ps.plan(policy("letter", body))
    assert "r1, r8; r2, r9; " in plan_remarks(made)[0]


def test_values_from_the_table_are_warned_of() -> None:
    rules = policy("letter", "    protect: {diversity: {l: 2}}\n")
    assert not warnings(rules, (), keyed=True, seeded=False)
    (published,) = warnings(rules, ["letter"], keyed=False, seeded=False)
    assert "the values or bins of letter are taken from the table, and published" in published
    assert "sticky" in warnings(rules, ["letter"], keyed=True, seeded=False)[1]


def test_a_record_key_without_a_key_is_warned_of() -> None:
    rules = replace(policy("letter", "    protect: {diversity: {l: 2}}\n"), record_key="number")
    assert "several records of one person" in warnings(rules, (), keyed=False, seeded=False)[0]
    assert not warnings(rules, (), keyed=True, seeded=False)


@pytest.mark.parametrize("promise", ["ldp: {epsilon: 0.5}", "closeness: {t: 0.1}"])
def test_a_constant_column_is_not_published_under_a_promise(promise: str) -> None:
    table = people().with_columns(letter=pl.lit("a"))
    with pytest.raises(ps.PolicyError, match="all records have the same value"):
        ps.anonymize(table, policy("letter", f"    protect: {{{promise}}}\n"))
    declared = policy("letter", f"    domain: [a]\n    protect: {{{promise}}}\n")
    assert ps.anonymize(table, declared).manifest.records == 600


def test_dropped_records_and_extremes_do_not_speak() -> None:
    table = people().with_columns(
        letter=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("rare")).otherwise("letter"),
        day=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise(pl.col("day").cast(pl.String)),
        number=pl.when(pl.int_range(pl.len()) == 8).then(987_654.321).otherwise("number"),
    )
    rules = ps.Policy.loads("""
attributes:
  sex: {role: insensitive}
  letter: {role: sensitive, reference: data, protect: {closeness: {t: 0.4}}}
  day: {role: sensitive, missing: drop, protect: {diversity: {l: 2}}}
  number: {role: sensitive, bins: {count: 4, method: quantile}, protect: {diversity: {l: 2}}}
""")
    heard: list[str] = []
    manifest = ps.anonymize(table, rules, warn=heard.append).manifest
    assert manifest.dropped == 1
    assert "rare" not in manifest["letter"].domain.values
    assert manifest["number"].domain.values[-1].endswith(", inf]")
    assert any("reference distribution is that of the records" in warning for warning in heard)


def test_a_plan_for_unnamed_columns_asks_for_the_table() -> None:
    rules = ps.Policy.loads("protect-all-but: [sex]\nprotect: {diversity: {l: 2}}\n")
    with pytest.raises(ps.PolicyError, match="--data"):
        ps.plan(rules)


def test_a_record_in_place_of_the_header_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("MARKED,a\n" * 20)
    rules = policy("letter", "    domain: [a, b, c, d, e, f, g, h]\n    protect: {diversity: {l: 2}}\n")
    release = ps.anonymize(people(), rules)
    attempts: list[Callable[[], object]] = [
        lambda: ps.anonymize(tmp_path / "t.csv", rules),
        lambda: ps.evaluate(release, tmp_path / "t.csv"),
        lambda: ps.attack(release, tmp_path / "t.csv"),
    ]
    for attempt in attempts:
        with pytest.raises(ps.TableError) as caught:
            attempt()
        assert "MARKED" not in str(caught.value)


@pytest.mark.parametrize("promise", ["ldp: {epsilon: 2, size: 1}", "ldp: {epsilon: 1, size: 3}", "closeness: {t: 0.3}"])
def test_no_attacker_trusts_a_set_that_may_be_a_lie(promise: str) -> None:
    body = f"    domain: [a, b, c, d, e, f, g, h]\n    protect: {{{promise}}}\n"
    release = ps.anonymize(people(), policy("letter", body))
    assert not [finding.attack for finding in ps.attack(release) if finding.exceeded]


def test_row_numbers_and_columns_without_a_name(tmp_path: Path) -> None:
    rows = "".join(f"{number},{number % 3},{LETTERS[number % 8]}\n" for number in range(100))
    (tmp_path / "t.csv").write_text(",sex,income\n" + rows)
    text = ps.init(tmp_path / "t.csv")
    assert "numbers the rows" in text
    rules = ps.Policy.loads(text.replace("role: identifier", "role: insensitive"))
    release = ps.anonymize(tmp_path / "t.csv", rules, accept_risk=True)
    assert release.manifest.names == ("", "sex", "income")
    assert ps.verify(release).holds
    assert ps.attack(release, tmp_path / "t.csv")
    assert ps.evaluate(release, tmp_path / "t.csv", by=[""]).to_dict()["l1"] >= 0
    assert "<html" in ps.report(release, tmp_path / "t.csv")


def test_python_objects_are_not_published_as_addresses_in_memory() -> None:
    with pytest.raises(ps.TableError, match="Python objects"):
        ps.init(pl.DataFrame({"income": pl.Series([object(), object()], dtype=pl.Object)}))


def test_an_attribute_with_the_name_of_an_answer_is_not_overwritten() -> None:
    frame = people().rename({"sex": "estimate"})
    rules = ps.Policy.loads(
        "attributes:\n  estimate: {role: quasi-identifier}\n  day: {role: insensitive}\n  number: {role: insensitive}\n"
        "  letter: {role: sensitive, domain: [a, b, c, d, e, f, g, h], protect: {diversity: {l: 2}}}\n"
    )
    release = ps.anonymize(frame, rules)
    assert ps.estimate(release, of=["letter"]).to_polars()["estimate"].sum() == pytest.approx(600)
    with pytest.raises(ps.QuestionError, match="name of a result column"):
        ps.estimate(release, of=["letter"], by=["estimate"])
