"""How many modules of ours each verb enters (calls a function of), which a reader has to know, and how many it loads.

    python benchmarks/modules.py

Each verb runs in a process of its own, from the command line, on a small table.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TABLE = "zip,sex,job\n" + "".join(f"{row % 7},{'fm'[row % 2]},{'abcdef'[row % 6]}\n" for row in range(60))
POLICY = """
attributes:
  zip: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  job: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 2}}}
"""
VERBS = {
    "anonymize": ["policy.yaml", "table.csv", "--out", "release"],
    "estimate": ["release", "--of", "job", "--by", "sex"],
    "verify": ["release"],
    "attack": ["release", "--original", "table.csv"],
    "report": ["release", "--original", "table.csv", "--out", "report.html"],
}
COUNT = """
import contextlib, inspect, io, sys
files = set()

def note(frame, event, argument):
    # Functions only: modules and classes are run when they are imported.
    if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        files.add(frame.f_code.co_filename)

from polyseme.cli import main
sys.argv = ["polyseme", *sys.argv[1:]]
with contextlib.redirect_stdout(io.StringIO()):
    sys.setprofile(note)
    try:
        main()
        code = 0
    except SystemExit as left:
        code = left.code or 0
    sys.setprofile(None)
loaded = [name for name in sys.modules if name == "polyseme" or name.startswith("polyseme.")]
print(sum(getattr(sys.modules[name], "__file__", None) in files for name in loaded), len(loaded))
sys.exit(code)
"""


def entered(folder: Path, verb: str, arguments: list[str]) -> tuple[int, int]:
    """Modules of ours in which a function was called, and those that were loaded."""
    command = [sys.executable, "-c", COUNT, verb, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    called, loaded = done.stdout.split()[-2:]
    return int(called), int(loaded)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "table.csv").write_text(TABLE, encoding="utf-8")
        (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        print(f"{'verb':<12}{'entered':>8}{'loaded':>8}")
        for verb, arguments in VERBS.items():
            called, loaded = entered(folder, verb, arguments)
            print(f"{verb:<12}{called:>8}{loaded:>8}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
