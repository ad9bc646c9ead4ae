"""Sessions of Spark for tests: classic ones, and those that speak Connect to a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from spark_cluster import HERE, LOOPBACK, QUICK_START, SOURCES, environment

__all__ = ["Classic"]

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)]),
    "spark.sql.shuffle.partitions": "4",
    "spark.locality.wait": "0s",
}


class Classic:
    """The one classic session that a process can have: another is started when other settings are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._settings, self._session = folder, dict[str, str](), None

    def session(self, master: str, **settings: str) -> Any:
        wanted = _SETTINGS | {"spark.master": master} | {name.replace("_", "."): value for name, value in settings.items()}
        if self._session is None or wanted != self._settings:
            self.stop()
            self._settings, self._session = wanted, self._start(wanted)
        return self._session

    def executors(self) -> int:
        """How many executors there are for the session's tasks, the driver not counted."""
        return int(self._session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def _start(self, settings: dict[str, str]) -> Any:
        from pyspark.sql import SparkSession

        os.environ.update({name: value for name, value in environment().items() if os.environ.get(name) != value})
        builder = SparkSession.builder.config("spark.sql.warehouse.dir", str(self._folder / "warehouse"))
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

    def end(self) -> None:
        """The session, and the virtual machine it ran in."""
        self.stop()
        from pyspark import SparkContext

        if (gateway := SparkContext._gateway) is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=60)
            SparkContext._gateway = SparkContext._jvm = None
