"""Servers that speak Spark Connect, each in processes of its own: Spark's, and Sail, which needs no Java."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from guard import Guarded
from spark_cluster import LOOPBACK, QUICK_START, environment, wait_for

__all__ = ["ConnectServer", "missing_sail", "sail", "spark_connect"]

_SAIL = """
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print("started at: %s:%d" % server.listening_address, flush=True)
import threading
threading.Event().wait()
"""


def missing_sail() -> str | None:
    """Why Sail cannot run here; None where it can."""
    for package, hint in (("pyspark", "'polyseme[spark]'"), ("pysail", "pysail")):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed here (pip install {hint})"
    return None


class ConnectServer:
    """A server that was started, and where it listens."""

    def __init__(self, command: list[str], folder: Path, name: str, variables: dict[str, str]) -> None:
        self._process = Guarded(command, folder / f"{name}.log", environment() | variables)
        try:
            self.address = "sc://" + wait_for(self._listening, name)
        except BaseException:
            self.end()
            raise

    def _listening(self) -> str | None:
        found = re.search(r"started at: \D*(\d+\.\d+\.\d+\.\d+:\d+)", self._process.said())
        return found[1] if found else None

    def end(self) -> None:
        self._process.end()


def sail(folder: Path) -> ConnectServer:
    return ConnectServer([sys.executable, "-c", _SAIL], folder, "sail", {})


def spark_connect(folder: Path) -> ConnectServer:
    """Spark's own server, on two cores of this machine."""
    submit = Path(environment()["SPARK_HOME"]) / "bin" / "spark-submit"
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": LOOPBACK,
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "connect-warehouse"),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    program = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    command = [str(submit), "--master", "local[2]", "--driver-memory", "1g", *options, *program]
    return ConnectServer(command, folder, "spark-connect", {})
