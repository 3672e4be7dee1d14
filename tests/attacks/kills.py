"""Commands that are killed, and run again: the result is that of a run that was not, and nothing else is left.

A process is killed at a random time after its imports, or before a random one of the operations that change files.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.attacks.commands import call
from tests.cli.streaming import a_model, history, written
from tests.cli.tables import COLUMNS, long
from tests.cli.training_tables import QUICK, TABLE, tables

CHILD = """
import os, signal, sys
import jax
from logcde.cli import main, train
train.CHECKPOINT_SECONDS = 0.0
folder, left = sys.argv[1], [int(sys.argv[2])]
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def hook(event, arguments):
    if event == "open":
        if not isinstance(arguments[2], int) or not arguments[2] & WRITES:
            return
    elif event not in CHANGES:
        return
    if any(isinstance(one, (str, bytes, os.PathLike)) and folder in os.fsdecode(one) for one in arguments[:2]):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

sys.stderr.write("ready\\n")
sys.stderr.flush()
sys.addaudithook(hook)
try:
    main(sys.argv[3:])
finally:
    sys.stderr.write(f"\\n{int(sys.argv[2]) - left[0]} changes\\n")
"""
MANY = 10**9
LAST = 15
"""Changes of files with which a command ends, in which it is killed more often than in others."""
VICTIMS = ("embed", "train ridge", "train ridge again", "train network", "stream")
"""Commands that are killed."""


@dataclasses.dataclass
class Killed:
    """How many processes were killed, by how, and how many were done before that."""

    at_times: int = 0
    at_changes: int = 0
    done: int = 0


@dataclasses.dataclass(frozen=True)
class Victim:
    """A command to kill.

    Attributes:
        words: The command; "OUT" is what it writes.
        again: The command to run after a kill.
        result: What counts of the files that it leaves.
        prepare: Called with the folder before the command is run again.
        lines: Standard input.
    """

    words: tuple
    again: tuple
    result: Callable[[Path], object]
    prepare: Callable[[Path], None] = lambda folder: None
    lines: Path = Path(os.devnull)


def victims(place: Path) -> dict[str, Victim]:
    """Commands to kill, on tables in this folder."""
    tables(place)
    long(20).sample(fraction=1.0, shuffle=True, seed=0).write_parquet(place / "shuffled.parquet")
    a_model().save(place / "streamed")
    (place / "lines").write_bytes(written(history(60)))
    embed = ("embed", place / "shuffled.parquet", *COLUMNS, "--sort", "--every", 3, "--rows", 9, "-o", "OUT.csv")
    ridge = ("train", place / "vitals.parquet", *TABLE, "--learner", "ridge", "--target", "state", "-o", "OUT")
    network = ("train", place / "vitals.parquet", *QUICK, "--target", "state", "-o", "OUT")
    stream = ("stream", place / "streamed", "--state", "OUT.json", "--state-every", 3)
    return {
        "embed": Victim(embed, embed, _all_files),
        "train ridge": Victim(ridge, ridge, _parameters),
        "train ridge again": Victim((*ridge, "--overwrite"), (*ridge, "--overwrite"), _parameters),
        "train network": Victim(network, network, _parameters),
        "stream": Victim(stream, (*stream, "--replay"), _predictions, _truncate, place / "lines"),
    }


def kills(place: Path, count: int, seed: int, name: str) -> Killed:
    """Kill a command so many times, in turn at a random time and before a random change of a file."""
    victim, rng, seen = victims(place)[name], np.random.default_rng(seed), Killed()
    folder = _fresh(place / "whole", name, victim)
    changes, seconds = _run(folder, victim, MANY)
    assert changes
    expected = victim.result(folder)
    for number in range(count):
        folder = _fresh(place / "case", name, victim)
        told = f"{name}, kill {number} of seed {seed}"
        if number % 2:
            code = _run(folder, victim, _change(rng, changes))[0]
            seen.at_changes += code is None
        else:
            code = _run(folder, victim, MANY, float(rng.uniform(0, seconds)))[0]
            seen.at_times += code is None
        seen.done += code is not None
        victim.prepare(folder)
        with contextlib.chdir(folder), (folder / "out").open("a") as out:
            code, _, said = call(*_words(victim.again), stdin=victim.lines, stdout=out)
        assert code == 0, f"{told}: {said}"
        assert victim.result(folder) == expected, told
        left = [*folder.rglob(".*"), *folder.rglob("unfinished")]
        assert not left, f"{told}; left {left}"
    return seen


def _change(rng: np.random.Generator, changes: int) -> int:
    """A change before which to kill: every other time one of the last, where results take their final names."""
    first = max(0, changes - LAST) if rng.integers(2) else 0
    return int(rng.integers(first, changes))


def _fresh(folder: Path, name: str, victim: Victim) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if name.endswith("again"):
        with contextlib.chdir(folder):
            assert call(*_words(victim.words[:-1]), "--seed", 1)[0] == 0
    return folder


def _words(words: tuple) -> list[str]:
    return [str(word).replace("OUT", "made") for word in words]


def _run(folder: Path, victim: Victim, changes: int, after: float | None = None) -> tuple[int | None, float]:
    """Run a command in a process of its own, which is killed before a change or after so many seconds.

    Returns the number of changes, None if it was killed, and the seconds since its imports.
    """
    words = [sys.executable, "-c", CHILD, str(folder), str(changes), *_words(victim.words)]
    words = [str(folder / word) if word.startswith("made") else word for word in words]
    with (
        victim.lines.open() as lines,
        (folder / "out").open("w") as out,
        subprocess.Popen(words, cwd=folder, stdin=lines, stdout=out, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        ready = process.stderr.readline()
        assert ready == "ready\n", ready
        began = time.monotonic()
        if after is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
            process.kill()
        said = process.stderr.read()
        code = process.wait()
        assert code in (0, -signal.SIGKILL), said
        return (None if code else int(said.split()[-2])), time.monotonic() - began


def _all_files(folder: Path) -> object:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "out"}


def _parameters(folder: Path) -> object:
    """The parameters of a model; its record has dates and durations."""
    found = {path.name for path in folder.iterdir()} | {path.name for path in (folder / "made").iterdir()}
    return found, (folder / "made" / "model.safetensors").read_bytes()


def _predictions(folder: Path) -> object:
    return sorted(path.name for path in folder.iterdir()), (folder / "out").read_bytes()


def _truncate(folder: Path) -> None:
    """Cut the predictions to those that the state counts, as the documentation says."""
    state = folder / "made.json"
    count = json.loads(state.read_text())["progress"]["predictions"] if state.exists() else 0
    lines = (folder / "out").read_bytes().splitlines(keepends=True)
    (folder / "out").write_bytes(b"".join(lines[:count]))
