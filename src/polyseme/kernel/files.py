"""Files that appear only when whole, files with secrets, and turns between processes.

Files and folders have a temporary name until the last byte is written. Files with secrets are readable by their owner
only and never overwritten. Several processes that read, change and write one file take turns.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from polyseme.kernel.errors import InvalidInput
from polyseme.kernel.work import Cancellation, check_cancelled

__all__ = ["refuse_existing", "require_place", "reserve", "turn", "whole_file", "whole_folder", "write_once"]


def reserve(file: Path) -> None:
    """Make an empty file for a program that would let everybody read what it makes.

    One that is there becomes private.

    What SQLite keeps beside a database has the permissions of the database.
    """
    handle = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if os.name == "posix" and os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def write_once(file: Path, text: str) -> None:
    """Write a new file; `FileExistsError` where there is one, or a link."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        # Half a key would be taken for one, or stand in the way of the next attempt.
        file.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(
    target: Path, overwrite: bool = False, contents: Collection[str] = (), cancellation: Cancellation | None = None
) -> Iterator[Path]:
    """A temporary folder that becomes `target` when the block ends well, else vanishes.

    contents  what a folder must hold to be replaced, or else be a release: nothing but our own work is ever removed

    A block whose work was cancelled did not end well.
    """
    refuse_existing(target, overwrite)
    if target.exists():
        _refuse_foreign(target, contents)
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(target, ".partial")
    try:
        partial.mkdir(mode=0o700)
        yield partial
        _require_going(cancellation)
        partial.chmod(_usual_mode(partial / ".mode", Path.mkdir, Path.rmdir))
        # Others may have come to the same place in the meantime.
        refuse_existing(target, overwrite)
        if target.exists():
            _refuse_foreign(target, contents)
            _exchange(target, partial, contents)
        else:
            _move_folder(partial, target)
    except OSError as error:
        _name(error, partial, target)
        raise
    finally:
        _remove(partial)


def _require_going(cancellation: Cancellation | None) -> None:
    """Raise `Cancelled` if the work on a file should stop, by its own token or the context's."""
    check_cancelled()
    if cancellation is not None:
        cancellation.check()


def _name(error: OSError, partial: Path, target: Path) -> None:
    """Make a system error name the user's path instead of the temporary one."""
    if isinstance(error.filename, str | Path) and Path(error.filename).is_relative_to(partial):
        error.filename = str(target / Path(error.filename).relative_to(partial))
        error.filename2 = None


def _remove(folder: Path) -> None:
    """Remove a folder, also when the user interrupts this too."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _refuse_foreign(folder: Path, contents: Collection[str] = ()) -> None:
    """Raise unless a folder is empty, or whole work of ours without any other file."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: this is a file and is not replaced by a folder", "choose another place")
    found = {path.name for path in folder.iterdir()}
    ours = set(contents) if found.issuperset(contents) and contents else _files_of_release(folder)
    if found and not ours:
        raise InvalidInput(f"{folder}: not made by this command, so it is not replaced", "choose another place")
    _refuse_others(folder, found - ours)
    parts = _parts_of_release(folder)
    for path in folder.iterdir():
        inside = {f"{path.name}/{part.name}" for part in path.iterdir()} if path.is_dir() else set()
        if inside & parts:
            _refuse_others(folder, inside - parts)
        elif inside:
            _refuse_foreign(path)


def _refuse_others(folder: Path, others: Collection[str]) -> None:
    if others:
        raise InvalidInput(
            f"{folder}: holds other files too, so it is not replaced: {', '.join(sorted(others)[:6])}",
            "move them, or choose another location",
        )


def _files_of_release(folder: Path) -> set[str]:
    """The names of the files and folders of a release; none where there is no manifest of ours."""
    parts = _parts_of_release(folder)
    return {"manifest.json", *(part.split("/")[0] for part in parts)} if parts else set()


def _parts_of_release(folder: Path) -> set[str]:
    """The data files that a release's manifest names; none without a manifest of ours."""
    try:
        document = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        ours = isinstance(document["format"], int) and isinstance(document["checksum"], str)
        data = document["data"]
        files = [str(item["file"]) for item in data["files"]] if "files" in data else [str(data["file"])]
        return set(files) if ours else set()
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def _exchange(target: Path, partial: Path, contents: Collection[str]) -> None:
    """Put one folder in the place of another; when that fails, the old one stays."""
    old = _beside(target, ".old")
    try:
        target.rename(old)
        _refuse_foreign(old, contents)  # nothing can be added under its name any more
        _move_folder(partial, target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _move_folder(folder: Path, target: Path) -> None:
    """Give a folder a name that nothing has; at most an empty folder is replaced."""
    try:
        folder.rename(target)
    except OSError:
        refuse_existing(target)
        raise


def _beside(target: Path, suffix: str) -> Path:
    """A new name in the same folder, known before it exists, so that cleanup always finds it."""
    # A name may be as long as the file system allows, and this one is longer.
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}{suffix}")


def require_place(target: Path, overwrite: bool = False, ours: Callable[[Path], bool] | None = None) -> None:
    """Raise where no file can or may be put; called before the work that makes it.

    ours  which files may be replaced; any when omitted
    """
    refuse_existing(target, overwrite)
    if target.is_dir():
        raise InvalidInput(f"{target}: a folder, not a file", "give the name of a file in it")
    if ours is not None and target.exists() and not ours(target):
        raise InvalidInput(f"{target}: not made by this command, so it is not replaced", "choose another place")


@contextmanager
def whole_file(
    target: Path,
    overwrite: bool = False,
    cancellation: Cancellation | None = None,
    ours: Callable[[Path], bool] | None = None,
    private: bool = False,
    mode: int | None = None,
) -> Iterator[Path]:
    """A temporary file that takes the place of `target` when the block ends well, else vanishes.

    ours     which files may be replaced; any when omitted
    private  whether only the owner may read it, also when it is whole
    mode     its permissions, where they are known
    """
    require_place(target, overwrite, ours)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(target, f".partial{target.suffix[:20]}")
    try:
        partial.touch(mode=0o600, exist_ok=False)
        yield partial
        _require_going(cancellation)
        usual = 0o600 if private else mode
        partial.chmod(_usual_mode(_beside(target, ".mode"), Path.touch, Path.unlink) if usual is None else usual)
        if overwrite:
            require_place(target, overwrite, ours)  # others may have come to the same place in the meantime
            partial.replace(target)
        else:
            _move_file(partial, target)
    except OSError as error:
        _name(error, partial, target)
        raise
    finally:
        partial.unlink(missing_ok=True)


def _move_file(file: Path, target: Path) -> None:
    """Link a file to a free name: unlike a rename, a link never replaces another file."""
    try:
        target.hardlink_to(file)
    except OSError:
        refuse_existing(target)
        file.rename(target)  # not every file system has second names


def refuse_existing(target: Path, overwrite: bool = False) -> None:
    """Raise where something is that must not be replaced."""
    _refuse_dangling(target)
    if target.exists() and not overwrite:
        raise InvalidInput(f"{target}: exists already", "choose another location, or use --force to replace it")


def _refuse_dangling(target: Path) -> None:
    """Raise where a link leads to nothing: its maker would choose where our work appears."""
    for path in (target, *target.parents):
        if path.is_symlink() and not path.exists():
            raise InvalidInput(
                f"{path}: a dangling symbolic link, which is not followed",
                "remove it, or choose another location",
            )


def _usual_mode(probe: Path, make: Callable[[Path], None], remove: Callable[[Path], None]) -> int:
    """The permissions of a new file or folder here.

    Python tells the process's mask only by changing it, and in that moment other threads would write for everybody.
    """
    try:
        make(probe)
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        if probe.exists():
            remove(probe)


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for a turn at the file, and keep other processes waiting until the block ends.

    The system ends a turn with its process, so nothing is left behind by one that was killed. A process that takes a
    second turn inside its first waits for itself, for ever.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = _taken(lock)
    except OSError as error:
        error.filename = str(path)  # users do not know the name of the lock
        raise
    try:
        yield
    finally:
        _given_back(lock, descriptor)


if sys.platform == "win32":
    import msvcrt
    import time

    _AGAIN = 0.05
    """Seconds between two attempts."""

    def _taken(lock: Path) -> int:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(_AGAIN)
            else:
                return descriptor

    def _given_back(lock: Path, descriptor: int) -> None:
        os.close(descriptor)

else:
    import fcntl

    def _taken(lock: Path) -> int:
        while True:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except BaseException:
                os.close(descriptor)
                raise
            if _names(lock, descriptor):
                return descriptor
            os.close(descriptor)  # the process before has removed the file that this one waited at

    def _names(lock: Path, descriptor: int) -> bool:
        try:
            return os.path.samestat(lock.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _given_back(lock: Path, descriptor: int) -> None:
        # Removed before it is given back: those who wait at it notice, and take a new one.
        lock.unlink(missing_ok=True)
        os.close(descriptor)
