"""The Spark session: one that is given or runs already, or a new one for an address.

An address is checked first, since Spark itself takes minutes to report that nothing is there.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from polyseme.engines.spark.jobs import named
from polyseme.kernel.errors import Problem, QuestionError, TableError
from polyseme.kernel.plugins import pip_line, require

__all__ = ["BATCH_ROWS", "is_local", "refuse_alike", "require_address", "require_java", "session", "settings", "shown"]

_LOCAL = re.compile(r"local(-cluster)?(\[[\d*,\s]+\])?")
_PORTS = {"spark": 7077, "sc": 15002}
_PATIENCE = 5.0
"""Seconds until a server should have answered."""
_HINT = "local[4], spark://HOST:7077, yarn, k8s://URL, or sc://HOST:15002 for a Spark Connect server"
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


def is_local(master: str) -> bool:
    """Whether this names cores of this machine.

    >>> is_local("local[2]"), is_local("local"), is_local("spark://local:7077")
    (True, True, False)
    """
    return _LOCAL.fullmatch(master) is not None


def shown(master: str) -> str:
    """An address without its options, one of which may be a token.

    >>> shown("sc://host:15002/;use_ssl=true;token=secret")
    'sc://host:15002'
    """
    return master.partition(";")[0].rstrip("/") if ";" in master else master


def require_address(master: str) -> None:
    """Raise for what is not an address of Spark, and where nothing answers at one."""
    if is_local(master) or master == "yarn":
        return
    kind, mark, rest = master.partition("://")
    if not mark or not rest:
        raise QuestionError(Problem("master", f"'{shown(master)}' is not an address of Spark", _HINT))
    if kind not in _PORTS or (kind == "sc" and _through_proxy()):
        return
    places = [_place(master, one, _PORTS[kind]) for one in re.split("[/;]", rest)[0].split(",")]
    if not any(_answers(host, port) for host, port in places):
        named = ", ".join(f"{host}:{port}" for host, port in places)
        raise QuestionError(
            Problem("master", f"nothing answers at {named}", "is it running, and can it be reached from here?")
        )


def _place(master: str, written: str, usual: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{written}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise QuestionError(Problem("master", f"'{shown(master)}' is not an address of Spark", _HINT))
    return host, port or usual


def _through_proxy() -> bool:
    """Whether a proxy calls the server for us."""
    return any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False


def require_java() -> None:
    """Raise where the Java is missing in which a classic session runs."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise QuestionError(
            "a Spark session on this machine needs Java, and JAVA_HOME names a folder without bin/java",
            "set JAVA_HOME to the folder of Java 17 or 21",
        )
    if not home and shutil.which("java") is None:
        raise QuestionError(
            "a Spark session on this machine needs Java, and there is none: JAVA_HOME is not set, no java on PATH",
            "install Java 17 or 21 (Debian: openjdk-17-jre-headless), or name a Spark Connect server: sc://HOST:15002",
        )


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BATCH_ROWS = 100_000
"""Rows of an Arrow batch between Spark and Python: with its default of 10,000 the map takes twice as long."""
_OLDEST = 4
"""The first PySpark whose frames become Arrow tables."""
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has started Java and knows the master."""
_REMOTE = "SPARK_REMOTE"
_JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
_LOGGING = "log4j2.properties"
_log = logging.getLogger(__name__)


def session(spark: Any = None, master: str | None = None) -> SparkSession:
    """A session to work with.

    spark   one that the caller has
    master  where to work otherwise: `local[4]`, `spark://HOST:7077`, `yarn` or `k8s://URL` for a classic one,
            `sc://HOST:15002` for a Spark Connect server; when None the running session, or whatever spark-submit or
            SPARK_REMOTE say, or all cores of this machine
    """
    if spark is not None:
        return cast("SparkSession", spark)
    _require_package()
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession() if master is None else None
    return found or _made(master or os.environ.get(_REMOTE))


def _require_package() -> None:
    require("spark", "the Spark engine")
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < _OLDEST:
        raise QuestionError(f"PySpark {pyspark.__version__} is too old: {_OLDEST}.0 is needed", pip_line("spark"))


def _made(master: str | None) -> SparkSession:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    if master is not None:
        require_address(master)
    try:
        if master is not None and master.startswith("sc://"):
            return cast("SparkSession", builder.remote(master).getOrCreate())
        return _classic(builder, master)
    except QuestionError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no session; and messages may have secrets
        raise QuestionError(
            f"no Spark session on {shown(master) if master else 'this machine'} ({named(error)})",
            "a classic session needs Java 17 or 21 (JAVA_HOME); a Spark Connect server is named sc://HOST:PORT",
        ) from None


def _classic(builder: Any, master: str | None) -> SparkSession:
    from pyspark import SparkConf, SparkContext

    wanted = {"spark.app.name": "polyseme", "spark.ui.showConsoleProgress": "false"}
    if _SUBMITTED not in os.environ:
        require_java()
        if master is None or is_local(master):
            # Its workers are on this machine: they find what this interpreter finds.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Where no master is named Spark takes all cores of this machine, unless spark-submit was given another.
    if master is not None:
        wanted["spark.master"] = master
    with _quiet():
        with _own_interruption():
            SparkContext.getOrCreate(SparkConf().setAll(list(wanted.items())))
        return cast("SparkSession", builder.config(map=wanted).getOrCreate())


@contextmanager
def _quiet() -> Iterator[None]:
    """Show only errors of Java's log on the terminal, unless the user has configured logging."""
    before, ours = os.environ.get(_JAVA_OPTIONS), Path(__file__).with_name(_LOGGING)
    if before is not None or _own_logging() or _log.isEnabledFor(logging.INFO) or not ours.is_file():
        yield
        return
    os.environ[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={ours.as_uri()}"
    try:
        yield
    finally:
        del os.environ[_JAVA_OPTIONS]


@contextmanager
def _own_interruption() -> Iterator[None]:
    """Keep the handler of Ctrl-C: PySpark's asks Java something in the middle of another call.

    Where there is none, as in a notebook, PySpark's is better than nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    ours = callable(before) and before is not signal.default_int_handler
    if ours and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _own_logging() -> bool:
    """Whether this installation of Spark has a configuration of its log."""
    homes = [os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME") and f"{os.environ['SPARK_HOME']}/conf"]
    return any(Path(home, _LOGGING).is_file() for home in homes if home)


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """SQL settings for a while; a server that does not let them be changed works with its own."""
    before: dict[str, str | None] = {}
    for name, value in wanted.items():
        try:
            before[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)
        except Exception:  # noqa: BLE001 - each kind of server has errors of its own, and none of them matters here
            before.pop(name, None)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def refuse_alike(spark: SparkSession, names: Sequence[str]) -> None:
    """Raise for names that differ in case only: a session takes them for one by default."""
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    alike = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
    if alike:
        named = ["', '".join(name for name in names if name.lower() == one) for one in alike]
        hint = 'rename them, or spark.conf.set("spark.sql.caseSensitive", "true")'
        what = "differ in their case only: Spark takes them for one"
        raise TableError(Problem("", f"columns '{several}' {what}", hint) for several in named)
