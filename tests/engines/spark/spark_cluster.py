"""A standalone Spark cluster on the loopback interface, made of what PySpark's own package holds."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from guard import Guarded, in_session

T = TypeVar("T")

__all__ = ["HERE", "LOOPBACK", "QUICK_START", "SOURCES", "Cluster", "environment", "missing", "wait_for"]

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src"
LOOPBACK = "127.0.0.1"
PATIENCE = 90.0
"""Seconds until something that starts counts as broken; much longer than it takes on a busy machine."""

QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options of Java for processes that live for a minute."""

_OLDEST_JAVA = 17
_EXECUTOR = "CoarseGrainedExecutorBackend"


def missing() -> str | None:
    """Why Spark cannot run here; None where it can."""
    if not Path("/proc/self/stat").exists():
        return "the tests of Spark look for processes in /proc, which only Linux has"
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed here (pip install 'polyseme[spark]')"
    return _missing_java()


def _missing_java() -> str | None:
    java = _java()
    if java is None:
        return "Java is not installed here (Debian: apt install default-jre-headless)"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        return f"Spark needs Java {_OLDEST_JAVA} or later (Debian: apt install default-jre-headless)"
    return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def environment() -> dict[str, str]:
    """What processes of Spark are told: this interpreter, our package and the hooks of the tests, no other host."""
    import pyspark

    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    variables = {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(SOURCES), str(HERE), *inherited])),
        "OPENBLAS_NUM_THREADS": "1",
    }
    return os.environ | variables


def wait_for(found: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T:
    """What is found at last; looks again and again."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not after {patience:g} s")


class Cluster:
    """A master and workers with a core each; every one can be killed, and `heal` puts new ones in place of the dead."""

    def __init__(self, folder: Path, workers: int = 2, memory: str = "1g") -> None:
        self._folder, self._memory, self._size, self._started = folder, memory, workers, 0
        self.workers = list[Guarded]()
        self._master = self._start("master", LOOPBACK, "org.apache.spark.deploy.master.Master", "--port", "0")
        try:
            self.address = self._find_address()
            self.heal()
        except BaseException:
            self.end()
            raise

    def _start(self, name: str, host: str, program: str, *options: str) -> Guarded:
        variables = environment() | {
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self._folder / f"{name}-local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        }
        spark_class = Path(variables["SPARK_HOME"]) / "bin" / "spark-class"
        command = [str(spark_class), program, "--host", host, "--webui-port", "0", *options]
        return Guarded(command, self._folder / f"{name}.log", variables)

    def _find_address(self) -> str:
        def look() -> str | None:
            found = re.search(r"Starting Spark master at (spark://\S+)", self._master.said())
            return found[1] if found else None

        return wait_for(look, "the master of the cluster")

    def heal(self) -> None:
        """As many living workers as there were at first."""
        for worker in [one for one in self.workers if not _has_daemon(one)]:
            worker.end()
            self.workers.remove(worker)
        new = [self._start_worker() for _ in range(self._size - len(self.workers))]
        self.workers += new
        for worker in new:
            wait_for(lambda worker=worker: "Successfully registered with master" in worker.said(), "a worker")  # type: ignore[misc]

    def _start_worker(self) -> Guarded:
        self._started += 1
        # An address each: Spark runs the copy of a slow task on another host only, and all of 127/8 is this one.
        name, host = f"worker-{self._started}", f"127.0.0.{1 + self._started}"
        work = ("--cores", "1", "--memory", self._memory, "--work-dir", str(self._folder / name))
        return self._start(name, host, "org.apache.spark.deploy.worker.Worker", *work, self.address)

    def executors(self) -> list[int]:
        """The processes that run tasks."""
        return [pid for worker in self.workers for pid in in_session(worker.session) if _EXECUTOR in command_of(pid)]

    def end(self) -> None:
        for process in [*self.workers, self._master]:
            process.end()


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _has_daemon(worker: Guarded) -> bool:
    return any("deploy.worker.Worker" in command_of(pid) for pid in in_session(worker.session))
