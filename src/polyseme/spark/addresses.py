"""Where Spark is: looked at before it is asked, since Spark itself takes minutes to say that nothing is there."""

from __future__ import annotations

import os
import re
import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

from polyseme.errors import Problem, QuestionError

__all__ = ["is_local", "require_address", "require_java", "shown"]

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
