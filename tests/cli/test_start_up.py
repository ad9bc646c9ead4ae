"""What the commands import: most of a small run is spent on that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (
    "anonymize policy.yaml people.csv --out release",
    "estimate release --of income --by sex",
    "verify release",
    "attack release",
    "evaluate release --original people.csv --of income",
    "plan policy.yaml --data people.csv",
    "risk people.csv",
)
HEAVY = (
    *(f"scipy.{part}" for part in ("cluster", "interpolate", "ndimage", "optimize", "spatial", "stats")),
    *("altair", "apsw", "IPython", "jinja2", "matplotlib", "pandas", "pyspark", "sklearn", "starlette", "vl_convert"),
    *(f"polyseme.{room}" for room in ("collection", "demo", "papers", "reports", "spark", "testing")),
)
"""Half a second and more together. Those of scipy take part in linear programs, dendrograms and smoothing only."""
PROGRAM = """
import contextlib, io, json, sys
from polyseme.cli import main
heavy, found = json.loads(sys.argv[1]), {}
for command in json.loads(sys.argv[2]):
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        try:
            main(command.split())
        except SystemExit as leaving:
            code = leaving.code
    found[command] = [code, [name for name in heavy if name in sys.modules]]
print(json.dumps(found))
"""


LIMITS = {
    "anonymize": 163,
    "attack": 135,
    "estimate": 170,
    "evaluate": 179,
    "init": 167,
    "plan": 188,
    "report": 238,
    "risk": 147,
    "verify": 199,
}
"""Modules of this package that a verb imports, at most; each takes one to two thousandths of a second."""
OTHERS = 35
"""Modules of the standard library and other packages, at most, beside those of numpy, polars and pyarrow."""
WITHIN = ("cryptography", "jinja2", "jsonschema", "rich", "scipy", "threadpoolctl", "yaml")
"""Imported by the functions that use them."""
COUNT = """
import json, os, sys
import numpy, polars, pyarrow
known = set(sys.modules)
for verb in sys.argv[1:]:
    if not os.fork():
        __import__("polyseme", fromlist=[verb])
        names = sorted(set(sys.modules) - known)
        print(json.dumps([verb, names]), flush=True)
        os._exit(0)
    os.wait()
"""


def run_program(*arguments: str, cwd: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-c", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each verb is imported in a fork of one process")
def test_verbs_import_no_more_modules_than_they_did(tmp_path: Path) -> None:
    found = dict(json.loads(line) for line in run_program(COUNT, *LIMITS, cwd=tmp_path).splitlines())
    assert found.keys() == LIMITS.keys()
    for verb, names in found.items():
        ours = [name for name in names if name.split(".")[0] == "polyseme"]
        others = [name for name in names if name.split(".")[0] not in ("polyseme", "pyarrow", "polars", "numpy")]
        assert f"polyseme.verbs.{verb}" in ours
        assert len(ours) <= LIMITS[verb], (verb, len(ours), ours)
        assert len(others) <= OTHERS, (verb, len(others), others)
        assert not {name.split(".")[0] for name in others} & set(WITHIN), verb


def test_commands_import_only_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "attributes:\n  sex: {role: quasi-identifier}\n"
        "  income: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}\n"
    )
    rows = [f"{'fm'[row % 2]},{'abcd'[row % 7 % 4]}" for row in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,income", *rows, ""]))
    # One process for all of them: what an earlier command imported is not there either.
    found = run_program(PROGRAM, json.dumps(HEAVY), json.dumps(COMMANDS), cwd=tmp_path)
    assert json.loads(found) == {command: [0, []] for command in COMMANDS}
