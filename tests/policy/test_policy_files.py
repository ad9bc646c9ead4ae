"""Files that a policy names: below its own folder, and never quoted."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polyseme as ps
from polyseme.policy import Policy

MARK = "root:x:0:0:MARKED"
"""A line of a file that is none of the policy's business."""

HEAD = "attributes:\n  x:\n    role: sensitive\n"
PROMISE = "    protect: {diversity: {l: 2}}\n"
DOMAIN = "    domain: [flu, asthma, ulcer, acne]\n"


def attribute(line: str, domain: str = "") -> str:
    return f"{HEAD}{domain}    {line}\n{PROMISE}"


def model(name: str) -> str:
    return (
        "attributes:\n  x: {role: quasi-identifier}\n  y: {role: sensitive}\n"
        f"models:\n  - {{k-map: {{k: 2, reference: {name}}}}}\n"
    )


KINDS: dict[str, Callable[[str], str]] = {
    "tree": lambda name: attribute(f"distance: {{tree: {name}}}"),
    "tree.file": lambda name: attribute(f"distance: {{tree: {{file: {name}, measure: path}}}}"),
    "tree with a domain": lambda name: attribute(f"distance: {{tree: {name}}}", DOMAIN),
    "lattice": lambda name: attribute(f"distance: {{lattice: {name}}}", DOMAIN),
    "matrix": lambda name: attribute(f"distance: {{matrix: {name}}}"),
    "matrix with a domain": lambda name: attribute(f"distance: {{matrix: {name}}}", DOMAIN),
    "prior": lambda name: attribute(f"prior: {name}", DOMAIN),
    "reference": lambda name: attribute(f"reference: {name}", DOMAIN),
    "k-map": model,
}


def use(text: str, folder: Path, allow_outside: bool = False) -> Any:
    """What reads the files of a policy: the table's models, or the plan."""
    path = folder / "policy.yaml"
    path.write_text(text)
    policy = Policy.load(path, allow_outside)
    if policy.models:
        (folder / "t.csv").write_text("x,y\n1,a\n2,b\n")
        return ps.verify(folder / "t.csv", policy)
    return ps.plan(policy)


def refusal(text: str, folder: Path, allow_outside: bool = False) -> str:
    with pytest.raises(ps.PolysemeError) as caught:
        use(text, folder, allow_outside)
    # All that Python would show of it, with what stands behind it.
    return "".join(traceback.format_exception(caught.value)).replace(repr(text), "")


def complaint(text: str, folder: Path) -> str:
    """What is said against a policy, if anything is."""
    try:
        result = use(text, folder)
    except ps.PolysemeError as error:
        return "".join(traceback.format_exception(error))
    return str([item.obstacle for item in getattr(result, "attributes", ())])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside.csv").write_text(f"{MARK}\n")
    (tmp_path / "outside.yaml").write_text(f"{MARK}\n")
    inner = tmp_path / "policies"
    inner.mkdir()
    (inner / "link.csv").symlink_to(tmp_path / "outside.csv")
    (inner / "linked").symlink_to(tmp_path)
    return inner


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["../outside.csv", "ABSOLUTE", "link.csv", "linked/outside.csv", "../missing.csv"])
def test_files_elsewhere_are_refused(kind: str, name: str, folder: Path) -> None:
    name = str(folder.parent / "outside.csv") if name == "ABSOLUTE" else name
    said = refusal(KINDS[kind](name), folder)
    assert f"'{name}' is outside the policy's folder" in said
    assert "--allow-outside" in said
    assert "MARKED" not in said


@pytest.mark.parametrize("name", ["../tree.csv", "ABSOLUTE"])
def test_files_elsewhere_can_be_allowed(name: str, folder: Path) -> None:
    tree = folder.parent / "tree.csv"
    tree.write_text("flu,lung\nasthma,lung\nulcer,gut\nacne,skin\n")
    text = KINDS["tree"](str(tree) if name == "ABSOLUTE" else name)
    assert use(text, folder, allow_outside=True).usable
    (folder / "trees").mkdir()
    (folder / "trees" / "tree.csv").write_text(tree.read_text())
    assert use(KINDS["tree"]("trees/tree.csv"), folder).usable
    assert use(KINDS["tree"]("trees/../trees/tree.csv"), folder).usable


def test_a_policy_given_as_text_is_in_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ps.PolicyError, match="outside the policy's folder"):
        ps.plan(Policy.loads(KINDS["tree"]("../outside.csv")))
    (folder / "tree.csv").write_text("flu,lung\nasthma,lung\nulcer,gut\nacne,skin\n")
    assert ps.plan(Policy.loads(KINDS["tree"]("tree.csv"))).usable


FAULTS = {
    "one line": f"{MARK}\n",
    "two lines alike": f"{MARK}\n{MARK}\n",
    "many fields": f"{MARK},{MARK},1\nflu,{MARK}\n",
    "values and a secret": f"flu,{MARK}\nasthma,{MARK}\nulcer,b\nacne,b\n{MARK},1\n{MARK},2\n",
    "near words": f"fly,{MARK}\nasthme,{MARK}\n",
    "a header": f"flu,asthma,ulcer,acne\n0,1,{MARK},1\n1,0,1,1\n1,1,0,1\n1,1,1,0\n",
    "a long header": f"flu,asthma,ulcer,acne,{MARK}\n0,1,1,1,1\n1,0,1,1,1\n1,1,0,1,1\n1,1,1,0,1\n1,1,1,1,{MARK}\n",
    "labels in front": f",flu,asthma,ulcer,acne\n{MARK},0,1,1,1\nb,1,0,1,1\nc,1,1,0,1\nd,1,1,1,0\n",
    "an open quote": f'flu,"{MARK}\nasthma,1\n',
    "twice": f"{MARK},1\n{MARK},2\nflu,1\n",
    "a secret share": f"flu,1\nasthma,{MARK}\nulcer,1\nacne,1\n",
    "yaml": f"flu: [{MARK}\n  - : {MARK}",
    "yaml, a list": f"- {MARK} MARKED\n- b\n",
    "yaml, a circle": f"'{MARK}': ['b']\nb: ['{MARK}']\nflu: ['{MARK}']\nasthma: b\nulcer: b\nacne: b\n",
    "yaml, twice": f"'{MARK}': [flu, '{MARK}']\nb: [flu, '{MARK}', asthma, ulcer, acne]\n",
    "yaml, near": f"fly: '{MARK}'\n'{MARK}': a\n",
    "json": f'{{"flu": "{MARK}", {MARK}',
    "no text": "",
}


@pytest.mark.parametrize("ending", ["csv", "yaml", "json"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"tree.file", "reference"}))
def test_no_error_quotes_a_file(kind: str, fault: str, ending: str, folder: Path) -> None:
    (folder / f"f.{ending}").write_text(FAULTS[fault])
    text = KINDS[kind](f"f.{ending}")
    # Whatever the file holds, asking for more than it gives must not bring it out either.
    for harder in (text, text.replace("{l: 2}", "{l: 90}"), text.replace("diversity: {l: 2}", SEMANTIC), text + RULE):
        assert "MARKED" not in complaint(harder, folder)


SEMANTIC = "semantic-diversity: {l: 3, d: 9}"
RULE = "impossible:\n  - {when: {x: 1}, attribute: x, values: [root]}\n"


@pytest.mark.parametrize(
    ("kind", "name", "content", "said"),
    [
        (
            "tree",
            "f.csv",
            f"flu,lung\n\n{MARK},lung\nflu,lung\n",
            "f.csv more than once, the first of them in lines 1, 4",
        ),
        ("tree", "f.yaml", f"flu: lung\nasthma: [{MARK}\n", "f.yaml cannot be read as YAML (line 3)"),
        ("tree", "f.json", f'{{"flu":\n {MARK}', "f.json cannot be read as JSON (line 2)"),
        ("matrix", "f.csv", f"a,b\n0,1\n{MARK},0\n", "f.csv, line 3: a field is not a number"),
        ("matrix", "f.csv", f"a,b\n0,1\n1,0,{MARK}\n", "f.csv, line 3: expected 2 numbers, found 3 fields"),
        ("prior", "f.csv", f"flu,1\n\nasthma,{MARK}\n", "'f.csv', line 3: expected a value and a number"),
        ("lattice", "f.yaml", f"'{MARK}': a\n", "4 of 4 values are not in the lattice f.yaml: flu, asthma"),
        ("k-map", "f.csv", f"{MARK},{MARK}\n1,2\n", "f.csv: the same column name more than once: columns 1 and 2"),
    ],
)
def test_an_error_says_the_file_and_the_line(kind: str, name: str, content: str, said: str, folder: Path) -> None:
    (folder / name).write_text(content)
    heard = refusal(KINDS[kind](name), folder)
    assert said in heard
    assert "MARKED" not in heard


def test_every_file_that_is_wrong_is_named_with_its_place(folder: Path) -> None:
    text = "attributes:\n" + "".join(
        f"  {name}: {{role: sensitive, distance: {{{spec}}}, protect: {{diversity: {{l: 2}}}}}}\n"
        for name, spec in (("a", "tree: ../outside.csv"), ("b", "matrix: none.csv"))
    )
    with pytest.raises(ps.PolicyError) as caught:
        use(text, folder)
    assert [problem.where for problem in caught.value.problems] == [
        "$.attributes.a.distance.tree",
        "$.attributes.b.distance.matrix",
    ]


@pytest.mark.parametrize("command", ["plan", "anonymize", "verify"])
def test_the_command_line_allows_files_elsewhere_when_told(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from polyseme.cli import main

    (folder.parent / "tree.csv").write_text("flu,lung\nasthma,lung\nulcer,gut\nacne,skin\n")
    (folder / "policy.yaml").write_text(KINDS["tree"]("../tree.csv") + "models:\n  - {diversity: {l: 1}}\n")
    (folder / "t.csv").write_text("x\n" + "flu\nasthma\nulcer\nacne\n" * 3)
    arguments = {
        "plan": ["plan", str(folder / "policy.yaml")],
        "anonymize": ["anonymize", str(folder / "policy.yaml"), str(folder / "t.csv"), "--out", str(folder / "out")],
        "verify": ["verify", str(folder / "t.csv"), "--policy", str(folder / "policy.yaml")],
    }[command]
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "outside the policy's folder" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--allow-outside"])
    assert left.value.code == 0
