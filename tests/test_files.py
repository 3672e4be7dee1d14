"""Files after kills, with second writers, and that have no end."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from logcde import _files
from logcde._files import (
    held,
    read_regular,
    remove_abandoned,
    restore_set_aside,
    scratch_folder,
    set_aside,
    whole_file,
    write_whole,
)
from logcde.errors import InUseError


def names(folder):
    return {file.name for file in folder.iterdir()}


class Other:
    """Another process, which is inside of a context of `_files` until it is told to leave it, or killed."""

    def __init__(self, context):
        code = f"import sys; from pathlib import Path; from logcde._files import *\nwith {context}:\n"
        code += "    print(flush=True); sys.stdin.read()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)

    def __enter__(self):
        assert self.process.stdout.readline() == "\n", self.process.stderr.read()
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __exit__(self, *error):
        self.process.communicate()


def test_temporary_files_follow_no_links(tmp_path, monkeypatch):
    victim, token = tmp_path / "victim", iter(["aa", "bb"])
    victim.write_text("mine")
    (tmp_path / f".{os.getpid()}.note.txt").symlink_to(victim)
    write_whole(tmp_path / "note.txt", "new")
    monkeypatch.setattr(_files.secrets, "token_hex", lambda size: next(token))
    (tmp_path / ".logcde-aa-note.txt").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "note.txt", "newer")
    write_whole(tmp_path / "note.txt", "newest")
    assert victim.read_text() == "mine"
    assert (tmp_path / "note.txt").read_text() == "newest"


@pytest.mark.parametrize("kind", ["whole_file", "scratch_folder"])
def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(kind, tmp_path):
    with Other(f"{kind}(Path({str(tmp_path / 'note.txt')!r}))") as other:
        (unfinished,) = names(tmp_path)
        write_whole(tmp_path / "other.txt", "new")
        assert names(tmp_path) == {unfinished, "other.txt"}
        other.kill()
        assert unfinished in names(tmp_path)
    write_whole(tmp_path / "other.txt", "newer")
    assert names(tmp_path) == {"other.txt"}


def test_only_own_files_are_removed(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / ".logcde-aa-link").symlink_to(tmp_path / "data")
    (tmp_path / ".logcde-aa-model.old").mkdir()
    os.mkfifo(tmp_path / ".logcde-aa-pipe")
    before = names(tmp_path)
    remove_abandoned(tmp_path)
    assert names(tmp_path) == before


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(_files, "fcntl", None)
    (tmp_path / ".logcde-aa-note.txt").touch()
    with held(tmp_path / "note.txt"), scratch_folder(tmp_path / "note.txt"):
        assert "cannot be locked on this system" in caplog.text
        write_whole(tmp_path / "note.txt", "new")
    assert names(tmp_path) == {".logcde-aa-note.txt", "note.txt"}


def test_without_locks_on_a_file_system_files_are_written_all_the_same(tmp_path, monkeypatch, caplog):
    def refuse(handle, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_files.fcntl, "flock", refuse)
    (tmp_path / ".logcde-aa-note.txt").touch()
    with held(tmp_path / "note.txt"), held(tmp_path / "note.txt"):
        assert "cannot be locked on its file system" in caplog.text
        write_whole(tmp_path / "note.txt", "new")
    assert names(tmp_path) == {".logcde-aa-note.txt", "note.txt"}


def test_a_name_that_another_process_took_in_between_is_not_used(tmp_path, monkeypatch):
    """Another process removes the temporary file between its creation and its lock, as one that a killed one left."""
    lock, taken = _files._lock, []

    def late(handle):
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        return lock(handle)

    monkeypatch.setattr(_files, "_lock", late)
    write_whole(tmp_path / "note.txt", "new")
    assert len(taken) == 1
    assert names(tmp_path) == {"note.txt"}


def test_second_holder_is_told_who_the_first_is(tmp_path):
    state = tmp_path / "new" / "state.json"
    with Other(f"held(Path({str(state)!r}))") as other:
        host = socket.gethostname()
        with pytest.raises(InUseError, match=f"in use by process {other.process.pid} on '{host}' since 20") as error:
            held(state).__enter__()
        assert str(error.value).startswith(str(state))
        other.kill()
        with held(state):
            assert json.loads((state.parent / ".state.json.lock").read_text())["pid"] == os.getpid()
            with pytest.raises(InUseError, match=f"process {os.getpid()} "):
                held(state).__enter__()
    assert names(tmp_path / "new") == set()
    with held(tmp_path / "more" / "model"):
        assert names(tmp_path / "more") == {".model.lock"}
    assert names(tmp_path) == {"new"}


def test_a_lock_that_was_removed_in_between_is_made_again(tmp_path, monkeypatch):
    lock, removed = _files._lock, []

    def late(handle):
        if not removed:
            removed.append(handle)
            (tmp_path / ".state.json.lock").unlink()
        return lock(handle)

    monkeypatch.setattr(_files, "_lock", late)
    with held(tmp_path / "state.json"), pytest.raises(InUseError):
        held(tmp_path / "state.json").__enter__()


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b'{"pid": "x"}', b'{"pid": 1, "host": "a", "since": "x"}'])
def test_holder_that_has_not_written_its_name(content, tmp_path):
    with held(tmp_path / "state.json"):
        (tmp_path / ".state.json.lock").write_bytes(content)
        with pytest.raises(InUseError, match="in use by another process"):
            held(tmp_path / "state.json").__enter__()


def test_lock_files_follow_no_links(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock = tmp_path / ".state.json.lock"
    for link, fault in ((lock.symlink_to, "is a symbolic link"), (lock.hardlink_to, "is another name of a file")):
        link(victim)
        with pytest.raises(InUseError, match=rf"cannot be locked: .*\.state\.json\.lock {fault}\. See who made it"):
            held(tmp_path / "state.json").__enter__()
        lock.unlink()
        assert victim.read_text() == "mine"
    os.mkfifo(lock)
    with pytest.raises(InUseError, match="is not a regular file"):
        held(tmp_path / "state.json").__enter__()


def test_a_full_disk_leaves_no_lock(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"), held(tmp_path / "new" / "state.json"):
        pass
    assert not list(tmp_path.iterdir())


def test_older_folder_returns_after_a_kill(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "old").touch()
    code = f"from logcde._files import *; import os, signal; from pathlib import Path; model = Path({str(model)!r})\n"
    code += "with set_aside(model) as old:\n    model.rename(old)\n    {}os.kill(os.getpid(), signal.SIGKILL)\n"
    for replaced in (False, True):
        made = "model.mkdir(); " if replaced else ""
        subprocess.run([sys.executable, "-c", code.format(made)], check=False)
        assert any(name.endswith("-model.old") for name in names(tmp_path))
        assert restore_set_aside(model)
        assert names(tmp_path) == {"model"}
        assert names(model) == (set() if replaced else {"old"})
    assert not restore_set_aside(model)


def test_two_processes_do_not_replace_one_folder(tmp_path):
    (tmp_path / "model").mkdir()
    with set_aside(tmp_path / "model") as old:
        with pytest.raises(InUseError, match="is being replaced by another process"):
            set_aside(tmp_path / "model").__enter__()
        (tmp_path / "model").rename(old)
        assert not restore_set_aside(tmp_path / "model")
    assert names(tmp_path) == {"model"}


def test_files_without_end_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("pipe", "zeros", "."):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(tmp_path / name)
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 2 * _files._memory())
    with pytest.raises(OSError, match="bytes, more than"):
        read_regular(tmp_path / "large")
    (tmp_path / "small").write_bytes(b"1234")
    (tmp_path / "link").symlink_to(tmp_path / "small")
    assert read_regular(tmp_path / "link", most=4) == b"1234"
    with pytest.raises(OSError, match="it has 4 bytes, more than 3"):
        read_regular(tmp_path / "small", most=3)


def test_a_failing_writer_leaves_the_older_file(tmp_path):
    file = write_whole(tmp_path / "note.txt", "old")
    with pytest.raises(TypeError), whole_file(file) as temporary:
        temporary.write_bytes("half")
    assert names(tmp_path) == {"note.txt"}
    assert Path(file).read_text() == "old"
