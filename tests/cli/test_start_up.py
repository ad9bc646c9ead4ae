"""What the commands import: most of a small run is spent on that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_commands_import_only_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "attributes:\n  sex: {role: quasi-identifier}\n"
        "  income: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}\n"
    )
    rows = [f"{'fm'[row % 2]},{'abcd'[row % 7 % 4]}" for row in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,income", *rows, ""]))
    # One process for all of them: what an earlier command imported is not there either.
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(HEAVY), json.dumps(COMMANDS)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {command: [0, []] for command in COMMANDS}
