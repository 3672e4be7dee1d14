"""Files on which nothing is lost: complete or absent, locked against a second writer, read within bounds.

Temporary files and folders have names that begin with `.logcde-` and cannot be guessed. Their writer holds a lock of
the operating system on them, which ends with its process, so that the next writer in the same folder can tell what a
killed one left behind, and removes it. Windows has no such locks: there nothing is locked, and nothing is removed.
"""

import contextlib
import datetime
import errno
import json
import logging
import os
import re
import secrets
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from logcde.errors import InUseError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

PREFIX = ".logcde-"
OLD = ".old"
"""Ends the names of folders that a new version replaces. They may be the only version, so nothing here removes them."""
LARGEST_LOCK = 4096
"""Bytes of a lock file that are read, to say who holds it."""
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
log = logging.getLogger(__name__)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` on success, once it is on the disk, and deleted on failure.

    Creates missing folders. The temporary file is created first, so that a read-only folder is an error at once. Files
    that killed writers left in the folder are removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "new", "note.txt")) as unfinished:
    ...         _ = unfinished.write_text("whole")
    ...     sorted(file.name for file in Path(folder, "new").iterdir())
    ['note.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent)
    with contextlib.ExitStack() as until_renamed:
        while True:
            temporary = _unused_name(path)
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o666))
            if _enter_lock(until_renamed, temporary) is not False:
                break
        try:
            yield temporary
            handle = os.open(temporary, os.O_RDWR | NO_LINKS)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file atomically, so that no reader sees half of it; returns its path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "note.txt"), "whole").read_text()
    'whole'
    """
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@contextlib.contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path`, which is removed at the end unless it was renamed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, scratch_folder(Path(folder, "model")) as scratch:
    ...     scratch.parent == Path(folder), scratch.is_dir()
    (True, True)
    """
    remove_abandoned(path.parent)
    with contextlib.ExitStack() as until_removed:
        while True:
            scratch = _unused_name(path)
            scratch.mkdir()
            if _enter_lock(until_removed, scratch) is not False:
                break
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def set_aside(path: Path) -> Iterator[Path]:
    """Yield a name to which the folder `path` can be renamed while a new version takes its place.

    If `path` is missing at the end, the older version returns; otherwise it is removed. After a kill,
    `restore_set_aside` does so.

    Raises:
        InUseError: Another process is replacing the folder.
    """
    with contextlib.ExitStack() as until_removed:
        if _enter_lock(until_removed, path) is False:
            raise InUseError(f"{path} is being replaced by another process.", "Wait for it to end.")
        old = _unused_name(path, OLD)
        try:
            yield old
        finally:
            if old.exists():
                _restore_or_remove(old, path)


def restore_set_aside(path: Path) -> bool:
    """Finish what a killed process began with `set_aside`; returns whether there was anything to finish."""
    found = False
    for old in set_aside_versions(path):
        with contextlib.ExitStack() as until_removed:
            if _is_own(old) and _enter_lock(until_removed, old):
                _restore_or_remove(old, path)
                found = True
    return found


def set_aside_versions(path: Path) -> list[Path]:
    """Older versions of the folder `path` that are set aside, by a living process or by a killed one."""
    name = re.compile(re.escape(PREFIX) + "[0-9a-f]+-" + re.escape(path.name + OLD))
    return sorted(one for one in path.parent.iterdir() if name.fullmatch(one.name)) if path.parent.is_dir() else []


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files and folders in this folder whose writer was killed."""
    with os.scandir(folder) as entries:
        ours = [Path(one.path) for one in entries if one.name.startswith(PREFIX) and not one.name.endswith(OLD)]
    for path in ours:
        # Files of others are theirs to remove, and a file that cannot be removed must not keep a new one from being
        # written.
        with contextlib.suppress(OSError), contextlib.ExitStack() as until_removed:
            if _is_own(path) and _enter_lock(until_removed, path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def held(path: Path, lock: Path | None = None) -> Iterator[None]:
    """Hold a file or folder, so that other processes that want to hold it are refused.

    Args:
        path: What is held; it need not exist.
        lock: The lock file, which says who holds it; by default `.NAME.lock` beside `path`. Removed at the end, with
            the folders that had to be created for it, if they are empty.

    Raises:
        InUseError: Another process holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with held(Path(folder, "state.json")), held(Path(folder, "state.json")):
    ...         pass
    Traceback (most recent call last):
    ...
    logcde.errors.InUseError: ...state.json is in use by process ...
    """
    if fcntl is None:
        log.warning("%s cannot be locked on this system: nothing keeps a second process from writing it.", path)
        yield
        return
    path = path.absolute()
    lock = path.parent / f".{path.name}.lock" if lock is None else lock
    made = [folder for folder in lock.parents if not folder.exists()]
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = _hold(path, lock)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            os.close(handle)
    finally:
        with contextlib.suppress(OSError):  # not empty
            for folder in made:
                folder.rmdir()


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Read a file that has an end: no pipe, no device, and no more bytes than `most`, by default those of the memory.

    Raises:
        OSError: It cannot be read, or is none of these.

    >>> read_regular(Path(os.devnull))
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] it is not a regular file: '/dev/null'
    """
    # Opened without waiting for a writer of a pipe.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        limit = _memory() if most is None else most
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, more than {limit:,}", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(status.st_size)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk, where the system supports it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unused_name(path: Path, suffix: str = "") -> Path:
    return path.parent / f"{PREFIX}{secrets.token_hex(8)}-{path.name}{suffix}"


def _restore_or_remove(old: Path, path: Path) -> None:
    if path.exists():
        shutil.rmtree(old)
    else:
        old.rename(path)


def _is_own(path: Path) -> bool:
    """Whether a file or folder, not a link to one, belongs to this user."""
    status = path.lstat()
    real = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return real and (fcntl is None or status.st_uid == os.getuid())


def _enter_lock(stack: contextlib.ExitStack, path: Path) -> bool | None:
    """Lock a file or folder until the stack is closed.

    False if another process has it or has removed it, None where the system has no locks.
    """
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | NO_LINKS)
    except FileNotFoundError:
        return False
    stack.callback(os.close, handle)
    locked = _lock(handle)
    return locked if _is_at(handle, path) else False


def _lock(handle: int) -> bool | None:
    """Lock an open file until it is closed; False if another process has it, None where the system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one with this name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _hold(path: Path, lock: Path) -> int:
    """Open and lock a lock file, and write into it who holds it."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _not_ours(path, lock, "is a symbolic link") from error
            raise
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _not_ours(path, lock, "is not a regular file")
            if status.st_nlink > 1:
                raise _not_ours(path, lock, "is another name of a file")
            if status.st_uid != os.geteuid():
                raise _not_ours(path, lock, "belongs to another user")
            locked = _lock(handle)
            if locked is False:
                raise InUseError(f"{path} is in use by {_holder(handle)}.", "Wait for it to end, or stop it.")
            if locked is None:
                log.warning(
                    "%s cannot be locked on its file system: nothing keeps a second process from writing it.", path
                )
            if _is_at(handle, lock):  # not removed by the one who held it before
                since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
                try:
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, json.dumps(holder).encode() + b"\n", 0)
                except OSError:  # a full disk
                    lock.unlink(missing_ok=True)
                    raise
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _not_ours(path: Path, lock: Path, fault: str) -> InUseError:
    """A lock file that another program has made, which must not be written."""
    return InUseError(
        f"{path} cannot be locked: {lock} {fault}.", "See who made it; if nobody needs it, remove it and try again."
    )


def _holder(handle: int) -> str:
    """Who holds a lock, as the lock file says."""
    try:
        holder = json.loads(os.pread(handle, LARGEST_LOCK, 0))
        since = datetime.datetime.fromisoformat(holder["since"])
        return f"process {int(holder['pid'])} on {holder['host']!r} since {since}"
    except (ValueError, KeyError, TypeError, RecursionError):  # it has locked the file, but not yet written this
        return "another process"


def _memory() -> int:
    """Bytes of memory of this machine."""
    if os.name != "posix":
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
