"""Edits of a policy: one node changes, and every other byte stays."""

from __future__ import annotations

import ast
import copy
import json
import random
import re
import stat
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from command_line import polyseme
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import PolicyError
from polyseme.kernel.yaml_schema import NotYaml, load
from polyseme.policy.edit import edited, removed

ROOT = Path(__file__).resolve().parents[2]


# -- the law ---------------------------------------------------------------------------------------------------------


@cache
def policies(folder: str = "") -> tuple[str, ...]:
    """Every YAML text that the tests below a folder and the documentation use as a policy."""
    texts: set[str] = set()
    for path in sorted((ROOT / "tests" / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts.update(value for value in constants if isinstance(value, str))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        texts.update(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.S))
    return tuple(sorted(filter(_is_policy, texts)))


def _is_policy(text: str) -> bool:
    if "attributes" not in text and "models" not in text:
        return False
    try:
        document = load(text)
    except NotYaml:
        return False
    known = isinstance(document, dict) and {"attributes", "models", "method"} & document.keys()
    return bool(known) and not re.search(r"[&*]\w|<<", text)


def leaves(node: yaml.Node, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], yaml.Node]]:
    """Every place below a node, inner ones too, by PyYAML's own composer."""
    if steps:
        yield steps, node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from leaves(value, (*steps, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from leaves(value, (*steps, index))


def place_of(steps: tuple[str | int, ...]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in steps)


def at(document: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        document = document[own_key(document, step)]
    return document


def own_key(container: Any, step: str | int) -> Any:
    return step if isinstance(step, int) else next(key for key in container if str(key) == step)


def only_between(before: str, after: str, node: yaml.Node) -> None:
    """All lines but those of a node are the same bytes, in the same order."""
    first, last = node.start_mark.line, end_line(node)
    old, new = before.split("\n"), after.split("\n")
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        first -= 1  # a block goes to the line of its key
    assert new[:first] == old[:first]
    rest = len(old) - last - 1
    assert (new[len(new) - rest :] if rest else []) == old[last + 1 :]


def end_line(node: yaml.Node) -> int:
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return (
        node.end_mark.line
        if node.end_mark.column or node.start_mark.index == node.end_mark.index
        else (node.end_mark.line - 1)
    )


def check_edits(text: str, most: int) -> int:
    """Change, remove and add at some places of a policy, as its text decides; how many edits were made."""
    places = list(leaves(yaml.compose(text, Loader=yaml.SafeLoader)))
    number = zlib.crc32(text.encode())
    chosen = random.Random(number).sample(places, min(most, len(places)))
    for steps, node in chosen:
        expected = load(text)
        parent = at(expected, steps[:-1])
        value: Any = ["x: y", {"k": [1, 2.5, None, True]}, 17, "no"][(number + len(steps)) % 4]
        parent[own_key(parent, steps[-1])] = copy.deepcopy(value)
        after = edited(text, place_of(steps), value)
        assert repr(load(after)) == repr(expected)
        only_between(text, after, node)
        if isinstance(node, yaml.ScalarNode) and node.style in (None, "'", '"') and node.value:
            # A word or a number: not one byte around it changes.
            start, end = node.start_mark.index, node.end_mark.index
            assert after.startswith(text[:start])
            assert after.endswith(text[end:])
        expected = load(text)
        parent = at(expected, steps[:-1])
        del parent[own_key(parent, steps[-1])]
        after = removed(text, place_of(steps))
        assert repr(load(after)) == repr(expected)
        if isinstance(node, yaml.MappingNode):
            expected = load(text)
            at(expected, steps)["new key"] = value
            after = edited(text, f'{place_of(steps)}."new key"', value)
            assert repr(load(after)) == repr(expected)
            assert not set(text.split("\n")) - set(after.split("\n")) or node.flow_style
    return len(chosen)


def test_every_edit_keeps_other_bytes() -> None:
    texts = policies("policy")
    assert len(texts) > 30
    assert sum(check_edits(text, 1) for text in texts) == len(texts)


@pytest.mark.slow
def test_edits_of_all_policies_keep_other_bytes() -> None:
    assert sum(check_edits(text, 3) for text in policies()) > 400


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)


PLACES = ("attributes.age.type", "attributes.sex.role", "attributes.sex.new", "attributes.age.new")


@settings(max_examples=40)
@given(st.sampled_from(PLACES), VALUES)
def test_any_value_reads_back_as_it_is(place: str, value: Any) -> None:
    before = "attributes:\n  age: {role: x, type: y}   # stays\n  sex:\n    role: x   # this too\n"
    after = load(edited(before, place, value))
    column, key = place.split(".")[1:]
    assert repr(after["attributes"][column][key]) == repr(value)


# -- ways of writing -------------------------------------------------------------------------------------------------

CASES = {
    "a value": ("a: {b: 1}   # x\n", "a.b", 2, "a: {b: 2}   # x\n"),
    "a quoted value": ("a: {b: '1', c: 2}\n", "a.b", "two", "a: {b: two, c: 2}\n"),
    "a key with a dot": ("a: {b.c: 1, b: {c: 2}}\n", "a.b.c", 3, "a: {b.c: 3, b: {c: 2}}\n"),
    "a key in quotes": ('a: {"b.c": 1}\n', 'a."b.c"', 3, 'a: {"b.c": 3}\n'),
    "a new key in a block": ("a:\n  b: 1   # x\n\n# y\nc: 2\n", "a.d", 3, "a:\n  b: 1   # x\n  d: 3\n\n# y\nc: 2\n"),
    "a new key in brackets": ("a: {b: 1,\n  c: 2 # x\n}\n", "a.d", 3, "a: {b: 1,\n  c: 2, d: 3 # x\n}\n"),
    "new keys on the way": ("a: {}\nb: 1", "a.c.d.e", 3, "a: {c: {d: {e: 3}}}\nb: 1"),
    "a key without a value": ("a:   # x\nb: 1\n", "a.c", 3, "a: {c: 3}   # x\nb: 1\n"),
    "a new key at the top": ("a: 1\n...\n", "c", [3], "a: 1\nc: [3]\n...\n"),
    "an element": ("a: [1, 2]\n", "a[1]", 3, "a: [1, 3]\n"),
    "a new element": ("a: [1, 2]\n", "a[2]", 3, "a: [1, 2, 3]\n"),
    "a new element in a block": ("a:\n- 1\n- 2 # x\nb: 1\n", "a[2]", 3, "a:\n- 1\n- 2 # x\n- 3\nb: 1\n"),
    "a block": ("a:\n  b:   # x\n    c: 1\n    d: 2\n  e: 3\n", "a.b", {"f": 1}, "a:\n  b: {f: 1}   # x\n  e: 3\n"),
    "other line ends": ("a: 1\r\nb:\r\n  c: 2\r\n", "b.d", 3, "a: 1\r\nb:\r\n  c: 2\r\n  d: 3\r\n"),
    "text on its own lines": ("a: |\n  x\n  y\nb: 1\n", "a", "z", "a: z\nb: 1\n"),
    "after such a text": ("a:\n  b: |\n    x\n\nc: 1\n", "a.d", 2, "a:\n  b: |\n    x\n\n  d: 2\nc: 1\n"),
    "letters of any script": ("größe: {ä: 'é'}  # 年\n", "größe.ä", "漢字", "größe: {ä: 漢字}  # 年\n"),
    "a mark of the byte order": ("\ufeffa: 1\nb: 2\n", "a", 3, "\ufeffa: 3\nb: 2\n"),
    "JSON": ('{"a": {"b": 1}}', "a.b", "x", '{"a": {"b": x}}'),
}  # fmt: skip


@pytest.mark.parametrize(("before", "place", "value", "after"), CASES.values(), ids=CASES)
def test_ways_of_writing(before: str, place: str, value: Any, after: str) -> None:
    assert edited(before, place, value) == after


REMOVED = {
    "a line": ("a:\n  b: 1   # x\n  c: 2\n", "a.b", "a:\n  c: 2\n"),
    "the only one": ("a:\n  b: 1\nc: 2\n", "a.b", "a: {}\nc: 2\n"),
    "the first in brackets": ("a: {b: 1, c: 2}\n", "a.b", "a: {c: 2}\n"),
    "the last in brackets": ("a: {b: 1, c: 2}\n", "a.c", "a: {b: 1}\n"),
    "an element": ("a:\n  - b: 1\n    c: 2\n  - d\n", "a[0]", "a:\n  - d\n"),
    "a key behind a dash": ("a:\n  - b: 1\n    c: 2\n", "a[0].b", "a:\n  - c: 2\n"),
}


@pytest.mark.parametrize(("before", "place", "after"), REMOVED.values(), ids=REMOVED)
def test_removing(before: str, place: str, after: str) -> None:
    assert removed(before, place) == after


@pytest.mark.parametrize(
    ("text", "place", "where", "what"),
    [
        ("a: &x {b: 1}\nc: *x\n", "a.b", "line 1", "anchors"),
        ("a: {b: 1}\nc:\n  <<: {d: 1}\n", "a.b", "line 3", "merged keys"),
        ("a: {b: 1}\n", "a.b.c", "$.a.b", "has no part 'c'"),
        ("a: [1]\n", "a[3]", "$.a", "has no part '3'"),
        ("a: [1]\n", "a.b", "$.a", "has no part 'b'"),
        ("a: 1\n", "a..b", "a..b", "not a place"),
        ("a: 1\n", "$", "$", "whole policy"),
    ],
)
def test_what_cannot_be_changed_is_said_with_its_place(text: str, place: str, where: str, what: str) -> None:
    with pytest.raises(PolicyError) as error:
        edited(text, place, 1)
    (problem,) = error.value.problems
    assert (problem.where, what in problem.what) == (where, True)


def test_nothing_to_remove() -> None:
    with pytest.raises(PolicyError, match="nothing to remove"):
        removed("a: {b: 1}\n", "a.c")


# -- files -----------------------------------------------------------------------------------------------------------

POLICY = """\
# mine
attributes:
  age: {role: quasi-identifier}   # years
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_bytes(POLICY.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    return path


def test_a_file_is_replaced_with_its_permissions_and_line_ends(file: Path) -> None:
    made = ps.edit(file, {"attributes.ill.protect.diversity.l": 3})
    assert file.read_bytes() == POLICY.replace("l: 2", "l: 3").replace("\n", "\r\n").encode()
    assert (made.lines, str(made).encode()) == ((4,), file.read_bytes())
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["policy.yaml"]


def test_a_link_to_a_policy_stays_a_link(file: Path) -> None:
    link = file.with_name("link.yaml")
    link.symlink_to(file)
    ps.edit(link, {"attributes.ill.protect.diversity.l": 3})
    assert link.is_symlink()
    assert b"l: 3" in file.read_bytes()


def test_an_invalid_policy_is_not_written_and_all_problems_are_shown(file: Path) -> None:
    before = file.read_bytes()
    changes = {"attributes.age.role": "quasi", "attributes.ill.protect.diversity.l": 0}
    with pytest.raises(PolicyError) as error:
        ps.edit(file, changes)
    assert len(error.value.problems) == 2
    assert "policy.yaml, line 3: $.attributes.age.role" in str(error.value)
    assert file.read_bytes() == before


def test_an_invalid_policy_can_be_repaired_step_by_step(file: Path) -> None:
    file.write_text(POLICY.replace("quasi-identifier", "quasi").replace("l: 2", "l: 0"), encoding="utf-8")
    ps.edit(file, {"attributes.age.role": "quasi-identifier"})
    ps.edit(file, {"attributes.ill.protect.diversity.l": 2})
    assert file.read_text(encoding="utf-8") == POLICY


def test_a_text_is_returned_and_written_nowhere() -> None:
    made = ps.edit(POLICY, {"attributes.age.type": "integer"}, remove=["attributes.ill"])
    assert made == "# mine\nattributes:\n  age: {role: quasi-identifier, type: integer}   # years\n"
    assert made.before == POLICY


def test_the_command_line_says_which_lines_changed(file: Path) -> None:
    place = "attributes.ill.protect.diversity.l"
    said = polyseme("policy", "set", file, place, "3")
    assert said.stdout.splitlines()[0] == f"{file}: 1 line changed"
    document = json.loads(polyseme("policy", "set", file, "attributes.age.type", "integer", "--json").stdout)
    assert document["changed"] == [{"line": 3, "text": "  age: {role: quasi-identifier, type: integer}   # years"}]
    polyseme("policy", "set", file, "attributes.age.type", "--remove")
    assert file.read_bytes() == POLICY.replace("l: 2", "l: 3").replace("\n", "\r\n").encode()
    assert polyseme("policy", "set", file, place).returncode == 2
    none = polyseme("policy", "set", file.with_name("none.yaml"), place, "3")
    assert (none.returncode, "no such policy file" in none.stderr) == (2, True)


# -- drafts ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("draft") / "people.csv"
    rows = range(240)
    codes = ["B20", "C18.0", "E11.9", "F32.1", "G40.9", "I10", "J45.0", "K02.1"]
    pl.DataFrame(
        {
            "age": [20 + row % 50 for row in rows],
            "ward": ["abcdefgh"[row % 8] for row in rows],
            "diagnosis": [codes[row * 7 % 8] for row in rows],
            "weight": [50 + row % 40 for row in rows],
        }
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def draft(table: Path) -> str:
    return str(ps.init(table))


def test_remarks_of_the_draft_follow(draft: str) -> None:
    assert "{l: 3, d: 3}}   # 3 candidates, no two of the same block" in draft
    made = ps.edit(draft, {"attributes.diagnosis.protect.semantic-diversity": {"l": 2, "d": 4}})
    assert "{l: 2, d: 4}}   # 2 candidates, no two of the same chapter" in made
    made = ps.edit(draft, {"models[0].k-anonymity.k": 8})
    assert "generalized until 8 rows share it" in made
    assert "finds at least 8 rows" in made
    assert made.replace("8 rows", "5 rows").replace("k: 8", "k: 5") == draft
    assert ps.edit(made, {"models[0].k-anonymity.k": 5}) == draft


def test_remarks_in_other_words_stay(draft: str) -> None:
    own = draft.replace("# 3 candidates, no two", "# Three candidates, no two").replace("finds at least 5", "finds 5")
    made = ps.edit(own, {"attributes.diagnosis.protect.semantic-diversity.l": 2, "models[0].k-anonymity.k": 8})
    assert "# Three candidates, no two" in made
    assert "finds 5 rows" in made
    assert len(made.lines) == 3  # two values, and the head of the draft


def test_a_role_with_its_table_is_drafted_and_goes_back(draft: str, table: Path) -> None:
    made = ps.edit(draft, roles={"diagnosis": "quasi-identifier", "ward": "sensitive"}, data=table)
    assert "role: quasi-identifier   # your choice; the draft said sensitive" in made
    assert "role: sensitive   # your choice; the draft said quasi-identifier" in made
    policy = ps.Policy.loads(made)
    assert policy.by_name["diagnosis"].hierarchy is not None
    assert policy.by_name["ward"].protect
    assert ps.edit(made, roles={"diagnosis": "sensitive", "ward": "quasi-identifier"}, data=table) == draft


def test_a_role_without_its_table_takes_out_what_does_not_fit(draft: str) -> None:
    made = ps.edit(draft, roles={"diagnosis": "identifier"})
    assert load(made)["attributes"]["diagnosis"] == {"role": "identifier"}
    assert "role: identifier   # your choice; the draft said sensitive" in made
    again = ps.edit(made, roles={"diagnosis": "insensitive"})
    assert "role: insensitive   # your choice; the draft said sensitive" in again


def test_own_remarks_beside_a_role_stay(table: Path) -> None:
    made = ps.edit(POLICY, roles={"age": "insensitive"})
    assert made == POLICY.replace("quasi-identifier", "insensitive")
    block = "attributes:\n  age:\n    role: quasi-identifier  # asked the ward\n    type: integer\n"
    lines = ps.edit(block, roles={"age": "sensitive"}, data=table).split("\n")
    assert lines[2] == "    role: sensitive  # asked the ward"
    assert lines[5].startswith("    domain: [")


@pytest.mark.slow
def test_every_role_that_a_draft_offers_is_valid(table: Path) -> None:
    made = ps.init(table)
    for column in made.columns:
        for role in column.alternatives:
            policy = ps.Policy.loads(ps.edit(made, roles={column.name: role}, data=table))
            assert policy.by_name[column.name].role.value == role
            ps.plan(policy)


def test_wrong_roles_and_columns_are_said(draft: str, table: Path) -> None:
    with pytest.raises(PolicyError, match="did you mean 'sensitive'"):
        ps.edit(draft, roles={"age": "senstive"})
    with pytest.raises(PolicyError, match="no such column"):
        ps.edit(draft, roles={"ages": "sensitive"})
    with pytest.raises(ps.TableError, match="no column 'ages'"):
        ps.edit(draft, roles={"ages": "sensitive"}, data=table)


def test_the_command_for_roles(draft: str, table: Path) -> None:
    path = table.with_name("policy.yaml")
    path.write_text(draft, encoding="utf-8")
    polyseme("policy", "role", path, "ward", "sensitive", "--data", table)
    assert path.read_text(encoding="utf-8") == ps.edit(draft, roles={"ward": "sensitive"}, data=table)
    said = polyseme("policy", "role", path, "age", "sensitive")
    assert "has no promise yet" in said.stderr
