"""Labels of trees, lattices, matrices, taxonomies and hierarchies are found however a value is written."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from ways_of_writing import VALUES

import polyseme as ps
from polyseme.kernel.documents import parse
from polyseme.kernel.errors import PolicyError
from polyseme.kernel.spelling import Label
from polyseme.models import Background, check_models
from polyseme.policy.resolution import resolve
from polyseme.semantics.distances import (
    Distance,
    LatticeDistance,
    TreeDistance,
    distance_from_policy,
    taxonomy_distance,
)
from polyseme.semantics.distances.declaration import DECLARED, policy_values
from polyseme.semantics.distances.taxonomy import check
from polyseme.semantics.hierarchies import fit, read_hierarchy, values_of
from polyseme.semantics.hierarchies.builders import Listed, read_listed

ROWS = [row for row in VALUES if row not in ([""], ["\tx"])]
"""Those that can be a label: it is not empty, and blanks around a cell of a file are none of it."""
GROUPS = [f"group {place}" for place in range(len(ROWS))]
Texts = list[str]


def ways(turn: int) -> Texts:
    """Each value once, in one of its ways of writing."""
    return [row[turn % len(row)] for row in ROWS]


def csv_file(folder: Path, rows: Iterable[Sequence[object]]) -> str:
    with (folder / "file.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    return "file.csv"


def groups_of(distance: Distance) -> list[int]:
    """The group under which each value hangs."""
    assert isinstance(distance, TreeDistance)
    return [GROUPS.index(distance.names[node]) for node in distance.values]


def tree_file(labels: Texts, values: Texts, folder: Path) -> list[int]:
    file = csv_file(folder, ((label, group, "*") for label, group in zip(labels, GROUPS)))
    return groups_of(distance_from_policy({"tree": file}, values, folder))


def tree_inside(labels: Texts, values: Texts, folder: Path) -> list[int]:
    tree = {group: [label] for label, group in zip(labels, GROUPS)}
    return groups_of(distance_from_policy({"tree": tree}, values, folder))


def tree_of_mappings(labels: Texts, values: Texts, folder: Path) -> list[int]:
    (folder / "tree.json").write_text(json.dumps({group: {label: None} for label, group in zip(labels, GROUPS)}))
    return groups_of(distance_from_policy({"tree": "tree.json"}, values, folder))


def inner_nodes(labels: Texts, values: Texts, folder: Path) -> list[int]:
    """The groups themselves are written in two ways, in two lines of one file."""
    rows = [
        [f"{side}{place}", name, "*"]
        for side, names in (("a", labels), ("b", values))
        for place, name in enumerate(names)
    ]
    leaves = [row[0] for row in rows]
    distance = distance_from_policy({"tree": csv_file(folder, rows)}, leaves, folder)
    assert isinstance(distance, TreeDistance)
    assert sorted(distance.names) == sorted(["*", *map(str.strip, labels)]), "as in the first line"
    return [distance.values.tolist()[: len(labels)].index(node) for node in distance.values[len(labels) :]]


def lattice(labels: Texts, values: Texts, folder: Path) -> list[int]:
    distance = distance_from_policy({"lattice": dict(zip(labels, GROUPS))}, values, folder)
    assert isinstance(distance, LatticeDistance)
    return [GROUPS.index(distance.names[distance.parents[node][0]]) for node in distance.values]


def lattice_of_parents(labels: Texts, values: Texts, folder: Path) -> list[int]:
    """The parents of one value are the names of others."""
    above = {**{f"leaf {place}": label for place, label in enumerate(labels)}, **dict.fromkeys(values)}
    distance = distance_from_policy({"lattice": above}, values, folder)
    assert isinstance(distance, LatticeDistance)
    leaves = {distance.parents[node][0]: name for node, name in enumerate(distance.names) if name.startswith("leaf")}
    return [int(leaves[node].split()[1]) for node in distance.values.tolist()]


def matrix(labels: Texts, values: Texts, folder: Path) -> list[int]:
    size = len(labels)
    rows = [[label, *(abs(place - other) for other in range(size))] for place, label in enumerate(labels)]
    file = csv_file(folder, [["", *labels], *reversed(rows)])
    return distance_from_policy({"matrix": file}, values, folder).matrix()[0].astype(int).tolist()


def hierarchy_file(labels: Texts, values: Texts, folder: Path) -> list[int]:
    rule = read_listed(folder / csv_file(folder, ((label, group, "*") for label, group in zip(labels, GROUPS))))
    return [GROUPS.index(group) for group in fit(rule, values_of([pl.Series(values)])).generalize(pl.Series(values), 1)]


def hierarchy_inside(labels: Texts, values: Texts, _: Path) -> list[int]:
    rule = read_hierarchy({"tree": {group: [label] for label, group in zip(labels, GROUPS)}}).rule
    assert rule is not None
    return [GROUPS.index(group) for group in fit(rule).generalize(pl.Series(values), 1)]


def prior(labels: Texts, values: Texts, _: Path) -> list[int]:
    shares = {label: place + 1 for place, label in enumerate(labels)}
    entry = {"role": "sensitive", "domain": values, "prior": shares, "protect": {"diversity": {"l": 2}}}
    found = resolve(ps.Policy.from_dict({"attributes": {"s": entry}})).schema["s"].distributions.prior
    return np.rint(found * sum(shares.values()) - 1).astype(int).tolist()


def impossible(labels: Texts, values: Texts, _: Path) -> list[int]:
    entry = {"role": "sensitive", "domain": values, "protect": {"diversity": {"l": 2}}}
    rules = [{"when": {"c": "x"}, "attribute": "s", "values": [label]} for label in labels]
    attributes = {"c": {"role": "quasi-identifier"}, "s": entry}
    schema = resolve(ps.Policy.from_dict({"attributes": attributes, "impossible": rules})).schema
    return [constraint.excluded[0] for constraint in schema["s"].constraints]


PLACES = [
    *(tree_file, tree_inside, tree_of_mappings, inner_nodes, lattice, lattice_of_parents, matrix),
    *(hierarchy_file, hierarchy_inside, prior, impossible),
]


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_labels_are_found_however_they_are_written(
    place: Callable[[Texts, Texts, Path], list[int]], turn: int, tmp_path: Path
) -> None:
    assert place(ways(turn), ways(3 * turn + 1), tmp_path) == list(range(len(ROWS)))


def test_every_kind_of_distance_with_labels_is_among_the_places() -> None:
    # A new kind either has labels, and then a place above, or is named here because it has none.
    assert set(DECLARED) == {"tree", "lattice", "matrix"} | {"taxonomy"} | {"line", "circle"}


@pytest.mark.parametrize("spec", [{"prefixes": [1, 3]}, {"separator": "."}, {"separator": "-"}], ids=str)
def test_parts_of_codes_are_those_of_their_spelling(spec: dict[str, object]) -> None:
    first, *others = (distance_from_policy({"tree": spec}, ways(turn), ".").parameters() for turn in range(4))
    assert all(other == first for other in others)


@pytest.mark.parametrize("code", [2221, 2221.0, "2221.0", " 2221", "2.221e+3"])
def test_codes_of_a_taxonomy_are_found_however_they_are_written(code: Label) -> None:
    known = taxonomy_distance("occupation", ["2221", "2222", "0110"]).parameters()
    assert taxonomy_distance("occupation", [code, 2222, "0110"]).parameters() == known
    assert check("occupation", [code, "2221", 2222.0]).found == ("2221", "2222")
    with pytest.raises(PolicyError, match="1 of 3 values are not in the taxonomy occupation: 110"):
        taxonomy_distance("occupation", [code, 2222, 110])


def test_a_word_of_a_taxonomy_may_have_its_accents_in_two_ways() -> None:
    for name in ("C\u00f4te d'Ivoire", "Co\u0302te d'Ivoire"):
        assert check("countries", [name, "Peru"]).complete
    assert len(check("countries", ["C\u00f4te d'Ivoire", "Co\u0302te d'Ivoire "]).found) == 1


# -- a value that is there twice -------------------------------------------------------------------------------------


def test_a_value_that_is_twice_in_a_tree_is_an_error(tmp_path: Path) -> None:
    rows = [("40", "a", "*"), ("30", "a", "*"), ("30.0", "b", "*"), (" 30", "b", "*")]
    found = "1 of 2 values are in the tree file.csv more than once, the first of them in lines 2, 3, 4"
    for values in (["40", 30], policy_values({"tree": csv_file(tmp_path, rows)}, tmp_path)):
        with pytest.raises(PolicyError, match=found):
            distance_from_policy({"tree": "file.csv"}, values, tmp_path)
    with pytest.raises(PolicyError, match=r"more than once: 30 = 30\.00 \(2 times\)"):
        distance_from_policy({"tree": {"a": ["30.00"], "b": [30, 40]}}, [30, 40], ".")


def test_a_value_that_is_twice_in_a_lattice_or_matrix_is_an_error(tmp_path: Path) -> None:
    above = {"30": "a", "true": "a", 30.0: "b", "TRUE": "b", "40": "b"}
    with pytest.raises(PolicyError, match=r"2 nodes are in the lattice more than once: 30 = 30\.0, true = TRUE"):
        distance_from_policy({"lattice": above}, [30, 40], ".")
    (tmp_path / "lattice.json").write_text(json.dumps({str(node): parent for node, parent in above.items()}))
    with pytest.raises(PolicyError, match=r"2 nodes are in the lattice lattice\.json more than once\n") as error:
        distance_from_policy({"lattice": "lattice.json"}, [30, 40], tmp_path)
    assert "30" not in str(error.value)
    file = csv_file(tmp_path, [["40", "30", "30.0"], [0, 1, 2], [1, 0, 1], [2, 1, 0]])
    with pytest.raises(PolicyError, match="3 columns with 2 different labels") as error:
        distance_from_policy({"matrix": file}, [30, 40], tmp_path)
    assert "columns 2 and 3 are one value" in str(error.value)


def test_a_value_that_is_twice_in_a_hierarchy_has_one_place() -> None:
    same = Listed.of([("30", "low", "*"), ("30.0", "low", "*"), ("50", "high", "*"), ("60", "high ", "*")])
    assert same.paths == {"30": ("low",), "50": ("high",), "60": ("high",)}, "as they are written first"
    with pytest.raises(PolicyError, match=r"two parents: at level 0, 1 entry is .* the first in path 1 and path 2"):
        Listed.of([("30", "low", "*"), ("30.0", "high", "*")])
    table = pl.DataFrame({"q": [1, 1], "s": ["30", "50"]})
    known = {"s": [(30.0, "low", "*"), ("30", "high", "*"), (50, "high", "*")]}
    with pytest.raises(PolicyError, match="paths 1 and 2 are of one value, and differ"):
        check_models(table, ["q"], [CLOSENESS], sensitive=["s"], background=Background(hierarchies=known))


CLOSENESS = {"closeness": {"t": 0.2, "ground": "hierarchical"}}


@pytest.mark.parametrize("turn", range(1, 4))
def test_the_hierarchy_of_a_model_goes_by_the_rule(turn: int) -> None:
    paths = [(label, f"group {place % 5}", "*") for place, label in enumerate(ways(0))]
    others = [(label, " ".join([group, ""]), "*") for label, (_, group, _) in zip(ways(turn), paths)]
    rng = np.random.default_rng(turn)
    picks = rng.choice(len(ROWS), 500, p=rng.dirichlet(np.ones(len(ROWS))))
    picks[: len(ROWS)] = range(len(ROWS))
    keys = rng.integers(0, 3, len(picks))
    worst = []
    for texts, known in ((ways(0), paths), (ways(turn), paths), (ways(0), others)):
        table = pl.DataFrame({"q": keys, "s": [texts[pick] for pick in picks]})
        (verdict,) = check_models(
            table, ["q"], [CLOSENESS], sensitive=["s"], background=Background(hierarchies={"s": known})
        )
        worst.append(verdict.worst)
    assert worst[0] is not None
    assert worst[0] > 0.01
    assert worst == pytest.approx([worst[0]] * 3)


# -- the verdict on a table of another program -----------------------------------------------------------------------


def verdict(folder: Path, table: str | pl.DataFrame, rules: str, **files: str) -> tuple[bool, float | None]:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    if isinstance(table, str):
        (folder / "table.csv").write_text(table)
    else:
        table.write_parquet(folder / "table.parquet")
    policy = ps.Policy.loads(rules, folder)
    found = ps.verify(folder / ("table.csv" if isinstance(table, str) else "table.parquet"), policy=policy)
    assert len(found.verdicts) == 1
    return found.verdicts[0].holds, found.verdicts[0].worst


SMOKERS = """
attributes:
  ward: {role: quasi-identifier}
  smokes: {role: sensitive, %s}
models: [{semantic-diversity: {l: 2, d: 2}}]
"""


@pytest.mark.parametrize(
    "smokes",
    [
        "domain: [true, false], distance: {tree: tree.csv}",
        "domain: ['true', 'FALSE'], distance: {tree: {yes: [true], no: [false]}}",
        "distance: {tree: tree.csv}",
        "distance: {tree: {yes: [TRUE], no: ['false']}}",
        "domain: [true, false], distance: {lattice: {true: yes, false: no}}",
        "domain: [true, false], distance: {matrix: matrix.csv}",
    ],
)
@pytest.mark.parametrize(
    "words", [("True", "False"), ("true", "false"), ("TRUE", " FALSE")], ids=lambda words: words[0]
)
def test_truth_values_that_pandas_wrote_are_found_in_trees(smokes: str, words: tuple[str, str], tmp_path: Path) -> None:
    files = {"tree": "true;yes;*\nfalse;no;*\n", "matrix": "true,false\n0,2\n2,0\n"}
    lines = [f"{ward},{word}" for ward in (1, 2) for word in words]
    assert verdict(tmp_path, "\n".join(["ward,smokes", *lines]), SMOKERS % smokes, **files) == (True, 2.0)
    alone = "\n".join(["ward,smokes", *lines, f"3,{words[0]}"])
    assert not verdict(tmp_path, alone, SMOKERS % smokes, **files)[0]


def test_codes_that_became_floats_are_found_in_a_taxonomy(tmp_path: Path) -> None:
    rules = SMOKERS.replace("smokes", "work") % "distance: {taxonomy: occupation}"
    table = pl.DataFrame({"ward": [1, 1, 2, 2], "work": [2221.0, 3112.0, 2221.0, 9112.0]})
    assert verdict(tmp_path, table, rules) == verdict(tmp_path, table.write_csv(), rules) == (True, 4.0)
    near = pl.DataFrame({"ward": [1, 1], "work": [2221.0, 2222.0]})
    assert verdict(tmp_path, near, rules) == verdict(tmp_path, near.write_csv(), rules) == (False, 1.0)


DIVERSE = """
attributes: {q: {role: quasi-identifier}, s: {role: sensitive%s}}
models: [{distinct-diversity: {l: 2}}]
"""
WHOLE = 2**53


@pytest.mark.parametrize(
    ("table", "declared", "found"),
    [
        ("q,s\n1,True\n1,true\n", "", (False, 1.0)),
        ("q,s\n1,flu\n1,flu \n2,flu\n2,gout\n", "", (False, 1.0)),
        ("q,s\n1,30\n1,30.0\n2,x\n2,y\n", "", (False, 1.0)),
        ("q,s\n1,caf\u00e9\n1,cafe\u0301\n", "", (False, 1.0)),
        ("q,s\n1,007\n1,7\n", "", (True, 2.0)),
        ("q,s\n1,1e3\n1,1000\n", "", (True, 2.0)),
        ("q,s\n1,yes\n1,no\n", ", type: boolean, domain: [true, false]", (True, 2.0)),
        ("q,s\n1,yes\n1,1\n", ", type: boolean, domain: [true, false]", (False, 1.0)),
        ("q,s\n1,yes\n1,no\n", "-qid, type: boolean, domain: [true, false]", (True, 2.0)),
        ("q,s\n1,yes\n1,1\n1,no\n", "-qid, type: boolean, domain: [true, false]", (False, None)),
        ("q,s\n1,yes\n1,no\n", ", domain: [true, false]", (False, None)),
        (pl.DataFrame({"q": [1, 1], "s": [1, 0]}), ", domain: [true, false]", (False, None)),
        (pl.DataFrame({"q": [1, 1], "s": [1, 0]}), ", type: boolean, domain: [true, false]", (True, 2.0)),
        (pl.DataFrame({"q": [1, 1], "s": [7, 8]}), ", domain: ['007', '8']", (False, None)),
        (pl.DataFrame({"q": [1, 1], "s": [7.0, 8.0]}), ", domain: ['7', '8.0']", (True, 2.0)),
        (pl.DataFrame({"q": [1, 1], "s": [WHOLE, WHOLE + 1]}), f", domain: [{WHOLE}, {WHOLE + 1}]", (True, 2.0)),
    ],
)
def test_the_models_count_values_by_the_rule(
    table: str | pl.DataFrame, declared: str, found: tuple[bool, float | None], tmp_path: Path
) -> None:
    assert verdict(tmp_path, table, DIVERSE % declared) == found


def test_groups_that_are_written_in_two_ways_are_one(tmp_path: Path) -> None:
    rules = SMOKERS.replace("smokes", "s") % "distance: {tree: tree.csv}"
    tree = "a;1;*\nb;1.0;*\nc;2;*\n"
    assert verdict(tmp_path, "ward,s\n1,a\n1,b\n", rules, tree=tree) == (False, 1.0)
    assert verdict(tmp_path, "ward,s\n1,a\n1,c\n", rules, tree=tree) == (True, 2.0)


@pytest.mark.parametrize("population", ["true\nTRUE\nfalse\n", "True\ntrue\n"])
def test_people_of_a_reference_table_are_found_however_they_are_written(population: str, tmp_path: Path) -> None:
    rules = (DIVERSE % "").replace("distinct-diversity: {l: 2}", "k-map: {k: 2, reference: people.csv}")
    for table in ("q,s\nTrue,a\n", pl.DataFrame({"q": [True], "s": ["a"]})):
        assert verdict(tmp_path, table, rules, people="q\n" + population) == (True, 2.0)
    ages = "q\n30\n30.0\n030\n"
    assert verdict(tmp_path, pl.DataFrame({"q": [30.0], "s": ["a"]}), rules, people=ages) == (True, 2.0)


# -- true and 1, which are one key to Python -------------------------------------------------------------------------

BOTH = """
attributes:
  sex: {role: quasi-identifier}
  s:
    role: sensitive
    domain: [true, 1, 0, false, x]
    prior: {true: 4, 1: 1, 0: 2, false: 2, x: 1}
    protect: {diversity: {l: 2}}
impossible: [{when: {sex: m}, attribute: s, values: [true]}]
"""


def test_a_domain_of_true_and_1_has_two_values(tmp_path: Path) -> None:
    rules = ps.Policy.loads(BOTH)
    assert ps.plan(rules)["s"].attribute.distributions.prior.tolist() == [0.4, 0.1, 0.2, 0.2, 0.1]
    values = {"f": ["True", "1", "0", "false", "x"], "m": ["1", "0", "False", "x"]}
    table = pl.DataFrame(
        [(sex, s) for sex, some in values.items() for s in some * 40], schema=["sex", "s"], orient="row"
    )
    ps.anonymize(table, rules, tmp_path / "out")
    release = ps.Release.open(tmp_path / "out")
    assert ps.verify(release).holds
    shown = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(release.batches(["sex", "s"]))))
    shown = shown.with_columns(pl.col("s").cast(pl.List(pl.String))).explode("s")
    assert set(shown.filter(pl.col("sex") == "m")["s"]) == {"1", "0", "false", "x"}
    assert set(shown.filter(pl.col("sex") == "f")["s"]) == {"true", "1", "0", "false", "x"}
    found = ps.estimate(release, of="s", by="sex")
    assert found.labels == (("true", "1", "0", "false", "x"),)
    assert found.high[found.by["sex"].index("m")].tolist()[0] == 0


def test_a_key_of_a_policy_is_not_taken_for_another() -> None:
    assert parse("{true: a, 1: b, 1.0: c, True: d, x: e}") == {"true": "a", 1: "b", "1.0": "c", "True": "d", "x": "e"}
    with pytest.raises(PolicyError, match="more than once"):
        parse("{30.0: a, 30.00: b}")
    tree = parse("a: {true: , 1: }\nb: [x]")
    distance = distance_from_policy({"tree": tree}, [True, 1, "x"], ".")
    assert distance.matrix()[0].tolist() == [0, 1, 2]


def test_a_draft_lists_no_value_twice() -> None:
    table = pl.DataFrame({"disease": ["True", "true", "flu ", "flu", "30.0", "gout"] * 5})
    entry = ps.Policy.loads(ps.init(table)).by_name["disease"]
    assert entry.values is not None
    assert sorted(map(str, entry.values)) == ["30.0", "flu", "gout", "true"]


# -- that it stays so ------------------------------------------------------------------------------------------------

MATCHING = (
    "semantics", "models", "strata", "tables/codes.py", "tables/labels.py", "tables/readings.py", "tables/published.py",
    "policy/foreign.py",
)  # fmt: skip
"""Rooms that look for values among labels. What they show is `written`, what they compare is `spelled`."""
VALUE_NAMES = {"value", "label", "node", "leaf", "below", "parent", "candidate", "member"}


def test_values_are_not_matched_by_the_text_of_python() -> None:
    source = Path(ps.__file__).parent
    files = [
        file
        for room in MATCHING
        for file in ([source / room] if room.endswith(".py") else (source / room).rglob("*.py"))
    ]
    assert len(files) > 35
    found = [
        f"{file.relative_to(source)}:{node.lineno}: str({node.args[0].id})"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str"
        if len(node.args) == 1 and isinstance(node.args[0], ast.Name) and node.args[0].id in VALUE_NAMES
    ]
    # Elements of lists and structures, which have no other text.
    assert not [place for place in found if not place.startswith("tables/readings.py")], "see polyseme.kernel.spelling"
