"""Sessions of Spark for tests: a classic one, and those that speak Connect to a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_cluster import HERE, LOOPBACK, QUICK_START, SOURCES, environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SPECULATION", "Classic", "remote"]

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
    # An executor that is gone stays gone.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
}
"""With these Spark runs a copy of every task that is slower than others."""


class Classic:
    """The one classic session that a process can have: another is started when other settings are asked for."""

    def __init__(self, folder: Path) -> None:
        self._warehouse = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        self._settings = dict[str, str]()
        self._session: SparkSession | None = None

    def session(self, master: str, settings: dict[str, str] | None = None) -> SparkSession:
        wanted = _SETTINGS | self._warehouse | {"spark.master": master} | (settings or {})
        if self._session is None or wanted != self._settings:
            self.stop()
            self._settings, self._session = wanted, _started(wanted)
        return self._session

    def executors(self) -> int:
        """How many executors there are for the session's tasks; the driver is in Spark's count too."""
        assert self._session is not None
        return int(self._session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

    def end(self) -> None:
        """The session, and the virtual machine it ran in."""
        self.stop()
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=60)
            SparkContext._gateway = SparkContext._jvm = None


def _started(settings: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.update(environment())
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def remote(address: str) -> Any:
    """A session with a server; beside a classic one, which the ordinary way of making it would not have."""
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(address).create()
