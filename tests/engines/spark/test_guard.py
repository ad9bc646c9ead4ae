"""Nothing that a test started outlives it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import spark_cluster
from guard import Guarded, in_session

# Starts something that starts something in a group of its own, tells its session, and is killed.
_KILLED = """
import os, signal, sys
from pathlib import Path
from guard import Guarded, in_session
guarded = Guarded(["sh", "-c", "set -m; sleep 600 & sleep 600"], Path(sys.argv[1]), dict(os.environ))
while len(in_session(guarded.session)) < 3:
    pass
print(guarded.session, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_all_processes_end_with_a_test_that_is_killed(tmp_path: Path) -> None:
    variables = os.environ | {"PYTHONPATH": str(spark_cluster.HERE)}
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "log")], env=variables, capture_output=True)
    session = int(killed.stdout)
    spark_cluster.wait_for(lambda: not in_session(session) or None, "the end of all processes", patience=30)


def test_a_guarded_process_ends_when_it_is_told_to(tmp_path: Path) -> None:
    guarded = Guarded(["sleep", "600"], tmp_path / "log", dict(os.environ))
    spark_cluster.wait_for(guarded.running, "the process", patience=30)
    guarded.end()
    assert not in_session(guarded.session)
