"""The layout that `docs/architecture.md` describes: sizes, names and imports that keep modules easy to find."""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import polyseme as ps

SOURCE = Path(ps.__file__).parent
ROOT = SOURCE.parents[1]
MODULES = sorted(SOURCE.rglob("*.py"))
NAMED = [path for path in MODULES if path.name != "__init__.py"]

NOT_VERBS = {"__init__.py", "spelling.py", "ring.py"}
PERSONAL = ("hire", "deal", "cast", "watch", "giveaway", "stranger")
"""Words that call an object a person: no file is named by one."""
VERBS = {
    "adopt", "anonymize", "attack", "estimate", "evaluate", "init", "ledger", "plan", "preview", "prior", "regress",
    "report", "risk", "save", "verify",
}  # fmt: skip


def test_there_are_few_and_full_modules() -> None:
    lines = [path.read_text(encoding="utf-8").count("\n") for path in MODULES]
    # Beside them are the `__init__.py` of folders, most of them one line.
    assert len(NAMED) <= 420
    assert statistics.median(lines) >= 150


def test_a_folder_can_be_read_at_a_glance() -> None:
    # py.typed is a mark for type checkers, and nothing to read.
    entries = [path for path in SOURCE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    assert len(entries) <= 30
    concentrated = {
        str(folder): count for folder, count in Counter(path.parent for path in MODULES).items() if count > 25
    }
    assert not concentrated


def test_verbs_are_thin() -> None:
    files = [path for path in (SOURCE / "verbs").glob("*.py") if path.name != "__init__.py"]
    assert {path.stem for path in files} == VERBS
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in files) <= 2_200


def test_few_file_names_occur_twice() -> None:
    repeated = sorted(name for name, count in Counter(path.name for path in NAMED).items() if count > 1)
    assert len(repeated) <= 40, repeated


def test_files_are_named_by_nouns() -> None:
    names = {path.stem for path in NAMED} | {path.parent.name for path in MODULES}
    gerunds = sorted(name for name in names if re.search(r"ing$", name) and f"{name}.py" not in NOT_VERBS)
    assert len(gerunds) <= 10, gerunds
    personal = sorted(name for name in names if name.startswith(PERSONAL))
    assert not personal


def test_tests_mirror_the_folders() -> None:
    tests = ROOT / "tests"
    assert [path.name for path in tests.glob("*.py")] == ["conftest.py"]
    folders = {path.name for path in tests.iterdir() if path.is_dir() and path.name != "__pycache__"}
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert folders - rooms <= {"docs", "support"}


NUMBERED = {"collection/portable_cases.py"}
"""Lists of seeds that stay as they are: the designs of the test vectors, which other programs are tested with."""


def seed_loops(text: str) -> list[int]:
    """Lines that run a test for the seeds of a range: a parameter named after seeds, or a loop over `seed`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.For | ast.comprehension):
            looped = (
                isinstance(node.target, ast.Name)
                and node.target.id == "seed"
                and ast.unparse(node.iter).startswith("range(")
            )
            found += [node.target.lineno] if looped else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize":
            names, values = (ast.unparse(argument) for argument in node.args[:2])
            found += [node.lineno] if "seed" in names and "range(" in values else []
    return found


def test_examples_come_from_hypothesis_and_not_from_a_list_of_seeds() -> None:
    """What is counted over many seeds, such as coverage, says so: `for seed in replications(60)` (support/draws.py)."""
    tests = ROOT / "tests"
    loops = {str(path.relative_to(tests)): seed_loops(path.read_text(encoding="utf-8")) for path in tests.rglob("*.py")}
    assert {name for name, lines in loops.items() if lines} == NUMBERED


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.parametrize('seed', range(40))\ndef test(seed): ...",
        "@pytest.mark.parametrize(('kind', 'seed'), product('ab', range(4)))\ndef test(kind, seed): ...",
        "def test():\n    for seed in range(40):\n        check(seed)",
        "def test():\n    assert all(holds(seed) for seed in range(40))",
    ],
)
def test_a_list_of_seeds_is_seen(text: str) -> None:
    assert seed_loops(text)
    assert not seed_loops(text.replace("range", "replications"))


TRACED = """
import json, sys, threading
from pathlib import Path
import polars as pl, polyseme as ps

POLICY = '''
attributes:
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [flu, hiv, acne, gout, cold, none], protect: {diversity: {l: 3}}}
'''
frame = pl.DataFrame({"sex": ["m", "f"] * 300, "ill": ["flu", "hiv", "acne", "gout", "cold", "none"] * 100})
top, seen = str(Path(ps.__file__).parent), set()

def imported(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(top):
            return True
        frame = frame.f_back
    return False

def profile(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name not in seen and name.startswith(top) and name.endswith(".py") and not imported(frame):
        seen.add(name)

{program}
sys.setprofile(profile)
threading.setprofile(profile)
run()
sys.setprofile(None)
print(json.dumps(sorted(seen)))
"""


def entered(tmp_path: Path, program: str) -> list[str]:
    """The modules of the package of which a verb runs a function; what only an import runs is not counted."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRACED.replace("{program}", program)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [str(Path(name).relative_to(SOURCE)) for name in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize(
    ("verb", "program", "most"),
    [
        ("anonymize", "def run(): ps.anonymize(frame, POLICY, 'out', seed=1)", 75),
        ("report", "release = ps.anonymize(frame, POLICY, seed=1)\ndef run(): ps.report(release)", 110),
    ],
    ids=["anonymize", "report"],
)
def test_a_verb_enters_few_modules(
    verb: str, program: str, most: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = entered(tmp_path, program)
    with capsys.disabled():
        print(f"\n{verb} enters {len(found)} modules; at most {most}")
    assert len(found) <= most, found
