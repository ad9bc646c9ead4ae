"""A real PostgreSQL server for tests and benchmarks: a cluster of its own, on a socket, run by an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

__all__ = ["MISSING", "PostgresServer", "missing"]

MISSING = "PostgreSQL is not installed here (Debian: apt install postgresql)"
_SETTINGS = {
    "listen_addresses": "''",
    "fsync": "on",
    "full_page_writes": "on",
    "max_connections": "40",
    "shared_buffers": "'64MB'",
    "logging_collector": "off",
    "log_min_messages": "warning",
}


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian keeps them out of the way."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    return next((path for path in (*candidates, *folders) if (path / "pg_ctl").exists()), None)


def _user() -> str | None:
    """The user to run as: the server refuses to run as root. None where there is no other user."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    users = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in users), None) if shutil.which("runuser") else None


def missing() -> str | None:
    """Why there can be no server; None where there can."""
    if _programs() is None:
        return MISSING
    return None if _user() is not None else "PostgreSQL does not run as root, and there is no other user here"


class PostgresServer:
    """One cluster in a temporary folder.

    quick  whether it may be kept in memory, which survives a crash of the server, though not one of the machine
    """

    def __init__(self, quick: bool = True) -> None:
        programs, user = _programs(), _user()
        assert programs is not None
        assert user is not None
        self._programs, self._user = programs, user
        memory = Path("/dev/shm")  # noqa: S108 - a folder that no other user can enter is made in it
        self.folder = Path(tempfile.mkdtemp(prefix="polyseme-pg-", dir=memory if quick and memory.is_dir() else None))
        self._numbers = count()
        if os.geteuid() == 0:
            shutil.chown(self.folder, user)
        self._run("initdb", "--no-sync", "--auth=trust", "--username=polyseme", "--encoding=UTF8", "-D", self._data)
        with self._settings_file.open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in _SETTINGS.items())
            file.write(f"unix_socket_directories = '{self.folder}'\n")
        self.start()

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    @property
    def _settings_file(self) -> Path:
        return Path(self._data) / "postgresql.conf"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", self._user, "--", *command]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{program}: {done.stderr}"

    def start(self) -> None:
        # Output to a file: a pipe would stay open as long as the server runs.
        self._run("pg_ctl", "start", "--wait", "--silent", "-D", self._data, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-m", "fast", "--wait", "--silent", "-D", self._data)

    def crash(self) -> None:
        """As if the machine lost the processes: no shutdown, recovery at the next start."""
        self._run("pg_ctl", "stop", "-m", "immediate", "--wait", "--silent", "-D", self._data)

    def remove(self) -> None:
        self._run("pg_ctl", "stop", "-m", "immediate", "--silent", "-D", self._data)
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&user=polyseme"

    def new_database(self) -> str:
        """The address of a database that was never used before."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.address(name)
