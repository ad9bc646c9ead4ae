"""Every benchmark, one after the other: `make bench`, or `python benchmarks/run.py NAME..` for some of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    names = sys.argv[1:] or sorted(
        path.stem
        for path in FOLDER.glob("*.py")
        if path.stem not in ("run", "peers", "adult", "adult_help", "coverage")
    )
    # As the command line does; and ratios then compare one core with one core.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    failed = []
    for name in names:
        print(f"\n== {name} {'=' * (70 - len(name))}", flush=True)
        if subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], check=False, env=environment).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
