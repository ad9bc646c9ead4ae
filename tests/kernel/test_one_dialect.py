"""A tree, a matrix or a distribution means the same in a file of its own as in the policy, whatever its words are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme as ps
from polyseme.policy import Policy
from polyseme.policy.resolution import resolve

AWKWARD = {
    "words that YAML 1.1 takes for no and yes": "[no, off, n]\n[yes, on, y]",
    "codes with leading zeros": "[010, 0100, 08]\n[007, 00, 09]",
    "numbers with exponents": "[1e3, 1.5e-3]\n[2E3, 1e+3x]",
    "numbers of programmers": "[0x1F, 0b101, 0o17]\n[1_000, '31', 31.50]",
    "days and times": "[2024-01-31, 2024-13-45]\n['12:30:00', 2001-12-14t21:59:43.10-05:00]",
    "times that YAML 1.1 takes for base 60": '[12:30, 1:20]\n["12:31", 1:20:30.5]',
    "quoted words": "['no', \"010\", '1e3']\n['true', \"null\", '~x']",
    "words as they are": "[true, FALSE, .inf]\n[-1, +2, 3.0]",
    "other scripts": "[はい, いいえ, naïve]\n['c: d', 'a, b', '#e']",
}


def tree_of(words: str) -> str:
    first, second = words.split("\n")
    return f"one: {first}\ntwo: {second}\n"


def policy_of(tree: str) -> str:
    return f"attributes:\n  x:\n    role: sensitive\n    distance: {tree}\n    protect: {{diversity: {{l: 2}}}}\n"


def meaning(text: str, folder: Path) -> tuple[tuple[Any, ...], list[list[float]]]:
    """The values of the domain, and how far apart they are."""
    (folder / "policy.yaml").write_text(text, encoding="utf-8")
    attribute = resolve(Policy.load(folder / "policy.yaml"), None).schema["x"]
    assert attribute.domain is not None
    assert attribute.distance is not None
    everything = np.arange(attribute.domain.size)
    return attribute.domain.values, attribute.distance.between(everything[:, None], everything).tolist()


def inline(words: str, folder: Path) -> tuple[tuple[Any, ...], list[list[float]]]:
    first, second = words.split("\n")
    return meaning(policy_of(f"{{tree: {{one: {first}, two: {second}}}}}"), folder)


@pytest.mark.parametrize("words", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_tree_file_means_what_the_same_tree_means_inline(
    words: str, encoding: str, ending: str, tmp_path: Path
) -> None:
    (tmp_path / "tree.yaml").write_text(tree_of(words), encoding=encoding, newline=ending)
    assert meaning(policy_of("{tree: tree.yaml}"), tmp_path) == inline(words, tmp_path)


@pytest.mark.parametrize("words", AWKWARD.values(), ids=AWKWARD)
def test_nodes_above_the_values_too(words: str, tmp_path: Path) -> None:
    first, second = (part.strip("[]").split(", ")[0] for part in words.split("\n"))
    (tmp_path / "tree.yaml").write_text(f"{first}: [a, b]\n{second}: [c, d]\n", encoding="utf-8")
    expected = meaning(policy_of(f"{{tree: {{{first}: [a, b], {second}: [c, d]}}}}"), tmp_path)
    assert meaning(policy_of("{tree: tree.yaml}"), tmp_path) == expected


@pytest.mark.parametrize("words", AWKWARD.values(), ids=AWKWARD)
def test_a_lattice_file_means_what_the_same_lattice_means_inline(words: str, tmp_path: Path) -> None:
    first, second = (part.strip("[]").split(", ")[0] for part in words.split("\n"))
    domain = f"    domain: [{first}, {second}, c, d]\n"
    nodes = [f"{first}: [up]", f"{second}: [up, down]", "c: [down]", "d: [down]"]
    (tmp_path / "lattice.yaml").write_text("\n".join([*nodes, ""]), encoding="utf-8")
    inside = policy_of(f"{{lattice: {{{', '.join(nodes)}}}}}").replace("    distance", f"{domain}    distance")
    outside = policy_of("{lattice: lattice.yaml}").replace("    distance", f"{domain}    distance")
    assert meaning(outside, tmp_path) == meaning(inside, tmp_path)


def test_a_key_that_is_given_twice_is_refused_in_a_file_too_and_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "tree.yaml").write_text("MARKED: [a, b]\ntwo: [c]\nMARKED: [d]\n")
    with pytest.raises(ps.PolicyError, match=r"tree.yaml cannot be read as YAML \(line 3\)") as caught:
        meaning(policy_of("{tree: tree.yaml}"), tmp_path)
    assert "MARKED" not in str(caught.value)
    (tmp_path / "tree.json").write_text('{"MARKED": ["a", "b"], "two": ["c"], "MARKED": ["d"]}')
    with pytest.raises(ps.PolicyError, match=r"tree.json cannot be read as JSON") as caught:
        meaning(policy_of("{tree: tree.json}"), tmp_path)
    assert "MARKED" not in str(caught.value)


def test_a_json_file_means_what_the_same_json_means_inline(tmp_path: Path) -> None:
    tree = {"no": ["010", "yes", "é"], "1e3": [10, 1.5, True]}
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "tree.json").write_text(json.dumps(tree, indent="\t"), encoding=encoding)
        assert meaning(policy_of("{tree: tree.json}"), tmp_path) == meaning(
            policy_of(f"{{tree: {json.dumps(tree)}}}"), tmp_path
        )


CELLS = {
    "commas": ('no,one\n010,one\n"a, b",two\n1e3,two\n', ("no", "010", "a, b", "1e3")),
    "semicolons": ("no;one\n010;one\na, b;two\n1e3;two\n", ("no", "010", "a, b", "1e3")),
    "semicolons, as many commas": ("a, b;one\n010;one\nno;two\n1e3;two\n", ("a, b", "010", "no", "1e3")),
    "tabs": ("no\tone\n010\tone\na, b\ttwo\n1e3\ttwo\n", ("no", "010", "a, b", "1e3")),
    "bars": ("no|one\n010|one\na, b|two\n1e3|two\n", ("no", "010", "a, b", "1e3")),
    "a separator within quotes in the first line": (
        '"a;b;c",one\nno,one\n010,two\n1e3,two\n',
        ("a;b;c", "no", "010", "1e3"),
    ),
    "other separators within one value": ("a;b;c,one\nno,one\n010,two\n1e3,two\n", ("a;b;c", "no", "010", "1e3")),
    "a line separator of Unicode within a value": (
        "a\u2028b,one\nno,one\n010,two\n1e\x853,two\n",
        ("a\u2028b", "no", "010", "1e\x853"),
    ),
    "a line break within quotes": ('"a\nb",one\nno,one\n010,two\n1e3,two\n', ("a\nb", "no", "010", "1e3")),
}


@pytest.mark.parametrize("case", CELLS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_text_file_is_split_alike(case: str, encoding: str, ending: str, tmp_path: Path) -> None:
    """The same text as a tree, as a distribution and as a table of records."""
    text, values = CELLS[case]
    if "\nb" in text and ending == "\r\n":
        values = tuple(value.replace("\n", ending) for value in values)
    (tmp_path / "tree.csv").write_text(text, encoding=encoding, newline=ending)
    found, far = meaning(policy_of("{tree: tree.csv}"), tmp_path)
    assert found == values
    assert far[0] == [0.0, 1.0, 2.0, 2.0]

    separator = next(mark for mark in ",;\t|" if f"{mark}two" in text)
    shares = text.replace(f"{separator}one", f"{separator}1").replace(f"{separator}two", f"{separator}3")
    (tmp_path / "shares.csv").write_text(shares, encoding=encoding, newline=ending)
    declared = "\n".join(
        [
            "attributes:",
            "  x:",
            "    role: sensitive",
            f"    domain: {json.dumps(values)}",
            "    prior: shares.csv",
            "    protect: {diversity: {l: 2}}",
        ]
    )
    (tmp_path / "policy.yaml").write_text(declared, encoding="utf-8")
    prior = resolve(Policy.load(tmp_path / "policy.yaml"), None).schema["x"].distributions.prior
    assert prior is not None
    assert (8 * prior).tolist() == pytest.approx([1, 1, 3, 3])

    from polyseme.tables.io.readers import open_table

    (tmp_path / "table.csv").write_text(f"x{separator}group\n{text}", encoding=encoding, newline=ending)
    records = [row for batch in open_table(tmp_path / "table.csv").batches() for row in batch.to_pylist()]
    assert tuple(record["x"].strip() for record in records) == values
