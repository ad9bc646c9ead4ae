"""What goes wrong on a cluster, at a moment of the test's choosing.

A mishap is wrapped around the function that Spark's workers run, so it strikes from within, in the middle of a task,
and but for a pause in `ShuffleFilesLost` nothing depends on how long things take. Tasks tell each other and the test
what they did by files in a folder:

    drawn/     everything each attempt at a task drew, whether or not it was ever used
    finished/  which tasks ended, on which executor
    struck     is there once the mishap happened; it happens once
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from polyseme.engines.spark.worker import Draw
from polyseme.kernel.randomness import StreamKey

__all__ = [
    "Careless",
    "Disturbed",
    "ExecutorLost",
    "MachineLost",
    "Mishap",
    "Peace",
    "Raised",
    "ShuffleFilesLost",
    "SpeculativeCopy",
    "Spread",
    "as_they_are",
    "drawn",
    "happened",
]

Batches = Iterator[pa.RecordBatch]
Map = Callable[[Batches], Batches]
PATIENCE = 60.0


@dataclass(frozen=True)
class Task:
    """An attempt at a task, as it looks from inside."""

    folder: Path
    partition: int
    executor: int

    @classmethod
    def current(cls, folder: Path) -> Task:
        from pyspark import TaskContext

        context = TaskContext.get()
        # An executor keeps a daemon, and the daemon forks the processes that run Python.
        return cls(folder, context.partitionId() if context else 0, _parent(os.getppid()))

    def strike(self) -> bool:
        """True for the first who asks, whatever task it is."""
        return _claim(self.folder / "struck")

    def finish(self) -> None:
        (self.folder / "finished" / f"{self.executor}-{self.partition}-{uuid.uuid4().hex}").touch()

    def holds_others(self) -> bool:
        """Whether this executor holds what another task made."""
        return any(executor == self.executor for executor, _ in self._finished())

    def others_hold(self) -> bool:
        """Whether another executor holds what a task made."""
        return any(executor != self.executor for executor, _ in self._finished())

    def copied(self) -> bool:
        """Whether another attempt at the same partition got to its end."""
        return any(partition == self.partition for _, partition in self._finished())

    def _finished(self) -> list[tuple[int, int]]:
        names = [path.name.split("-") for path in (self.folder / "finished").iterdir()]
        return [(int(executor), int(partition)) for executor, partition, _ in names]


class Mishap(Protocol):
    """Strikes one task, once it made its rows."""

    def __call__(self, task: Task) -> None: ...


class Peace:
    """Nothing happens."""

    def __call__(self, task: Task) -> None: ...


class Spread:
    """Nothing happens, but no executor does all the work: the first waits for one of another."""

    def __call__(self, task: Task) -> None:
        if _claim(task.folder / "first"):
            _wait(task.others_hold)


class Raised:
    """The first attempt at some task raises after its work."""

    def __call__(self, task: Task) -> None:
        if task.strike():
            raise RuntimeError("this attempt fails because a test wants it to")


class ExecutorLost:
    """An executor is killed that holds the result of another task already, so both are to be done again."""

    def __call__(self, task: Task) -> None:
        if task.holds_others() and task.strike():
            _kill(task.executor)


class MachineLost:
    """The same, with the worker that would start another executor."""

    def __call__(self, task: Task) -> None:
        if task.holds_others() and task.strike():
            _kill(_parent(task.executor), task.executor)


class SpeculativeCopy:
    """A task does its work and then hangs, until a copy that Spark starts elsewhere is through."""

    def __call__(self, task: Task) -> None:
        if task.holds_others() and task.strike():
            _wait(task.copied)


class ShuffleFilesLost:
    """An executor is killed while rows are written: one part is complete, one has its rows, all others have none yet.

    What these read was made again by then. The second to start waits for the third, which follows the first on the same
    executor; it gives Spark time to take note that the first is complete.
    """

    def __call__(self, task: Task) -> None:
        place = next(number for number in count() if _claim(task.folder / f"started-{number}"))
        if place == 1:
            _wait((task.folder / "struck").exists)
        elif place == 2:
            time.sleep(1.5)
            task.strike()
            _kill(task.executor)


@dataclass(frozen=True, eq=False)
class Careless:
    """The control: what a task draws follows from a key of its own, as it would without any care for mishaps."""

    draw: Draw

    def __call__(self, batches: Batches) -> Batches:
        return replace(self.draw, decoys=StreamKey.fresh(), order=StreamKey.fresh())(batches)


def as_they_are(batches: Batches) -> Batches:
    """What writing does, seen from Python."""
    return batches


@dataclass(frozen=True)
class Disturbed:
    """A function of workers, with a record of all it gave and a mishap at the end of it."""

    function: Map
    folder: Path
    mishap: Mishap

    def __call__(self, batches: Batches) -> Batches:
        for name in ("drawn", "finished"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        task = Task.current(self.folder)
        made = list(self.function(batches))
        _record(self.folder / "drawn" / f"{task.partition}-{uuid.uuid4().hex}.arrow", made)
        self.mishap(task)
        task.finish()
        yield from made


def _record(path: Path, made: list[pa.RecordBatch]) -> None:
    if made:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, made[0].schema) as writer:
            for batch in made:
                writer.write_batch(batch)


def drawn(folder: Path) -> pa.Table:
    """All rows that any attempt ever drew."""
    paths = sorted((folder / "drawn").glob("*.arrow"))
    return pa.concat_tables([pa.ipc.open_file(pa.OSFile(str(path))).read_all() for path in paths])


def happened(folder: Path) -> bool:
    """Whether the mishap struck."""
    return (folder / "struck").exists()


def _claim(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(fields[1])


def _kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # This process would live on for a moment, as none does on a machine that lost its power.
    os._exit(1)


def _wait(over: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not over() and time.monotonic() < until:
        time.sleep(0.05)
