"""Full disks: files and standard output that take some bytes and no more.

A limit of the operating system on the size of files stands in for a disk, so that every write of every library fails.
"""

import contextlib
import dataclasses
import errno
import io
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from logcde.cli.output import UNWRITTEN
from tests.attacks.commands import Models, call
from tests.cli.streaming import GOOD, a_model, written
from tests.cli.tables import long


@dataclasses.dataclass
class Filled:
    """How many commands met a full disk and said so, and how many had enough room."""

    refused: int = 0
    unprinted: int = 0
    done: int = 0


class Room(io.TextIOBase):
    """Standard output that takes some characters and no more."""

    encoding = "utf-8"

    def __init__(self, room: int) -> None:
        self._room = room

    def write(self, text: str) -> int:
        """Take the text, or as much of it as there is room for."""
        self._room -= len(text)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return len(text)


@contextlib.contextmanager
def limited_files(size: int) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def full_disks(place: Path, count: int, seed: int) -> Filled:
    """Run commands that write files on disks of random sizes; what was there before must stay, or the new be whole."""
    model = Path(Models(place).path("MODEL"))
    a_model().save(place / "streamed")
    long(20).sample(fraction=1.0, shuffle=True, seed=0).write_parquet(place / "long.parquet")
    (place / "lines").write_bytes(written([GOOD | {"time": 0.1 * number} for number in range(1, 30)]))
    columns = ("--series", "id", "--time", "t", "--channel", "name", "--value", "x", "--sort")
    commands = {
        "embed": ("embed", place / "long.parquet", *columns, "--rows", 9, "-o", "made.parquet"),
        "features": ("embed", place / "long.parquet", *columns, "--features", "windows", "-o", "made.csv"),
        "predict": ("predict", model, place / "vitals.parquet", "-o", "made.jsonl"),
        "report": ("report", model, "-o", "made.html"),
        "describe": ("describe", place / "long.parquet", *columns, "--plot", "made.png"),
        "train": ("train", place / "vitals.parquet", "--learner", "ridge", "--target", "state", "-o", "made"),
        "stream": ("stream", place / "streamed", "--state", "made.json"),
    }
    seen, rng = Filled(), np.random.default_rng(seed)
    sizes = {name: _size(run_in(place / f"new {name}", words, place / "lines")[1]) for name, words in commands.items()}
    for number in range(count):
        name = list(commands)[number % len(commands)]
        folder, words, older = place / "case", commands[name], bool(rng.integers(2))
        shutil.rmtree(folder, ignore_errors=True)
        if older and name not in ("train", "stream"):
            folder.mkdir()
            (folder / str(words[-1])).write_text("older")
        before = _contents(folder)
        # A stream writes to the descriptor of its output, which is a file as well.
        out = None if name == "stream" else Room(int(rng.integers(400)))
        with limited_files(int(rng.integers(1.2 * sizes[name]))):
            code, left, said = run_in(folder, words, place / "lines", out)
        told = f"{name} of case {number} of seed {seed} ended with {code}: {said}"
        assert code in (0, 1, UNWRITTEN), told
        if code == 1:
            assert "cannot be written" in said or "failed: File too large" in said or "in temporary files" in said, told
            # A stream writes its state more than once.
            assert name == "stream" or left == before, f"{told}; left {sorted(left)}"
            seen.refused += 1
        else:
            assert _size(left) >= 0.7 * sizes[name], told
            assert (code == UNWRITTEN) == ("Standard output could not be written" in said), told
            seen.unprinted, seen.done = seen.unprinted + (code == UNWRITTEN), seen.done + (code == 0)
        if name == "stream":
            code, _, said = run_in(folder, (*words, "--replay"), place / "lines")
            assert code == 0, f"{told} It does not continue: {said}"
        assert not [path for path in left if ".logcde-" in path or ".lock" in path], f"{told}; left {sorted(left)}"
    return seen


def run_in(folder: Path, words: tuple, lines: Path, out: Room | None = None) -> tuple[int, dict[str, bytes], str]:
    """Run a command in a folder. Returns its code, the files that are there then, and its messages."""
    folder.mkdir(exist_ok=True)
    with contextlib.chdir(folder):
        code, _, said = call(*words, stdin=lines, stdout=out)
    return code, _contents(folder), said


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _size(contents: dict[str, bytes]) -> int:
    return max(map(len, contents.values()))
