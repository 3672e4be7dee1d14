"""A worker process: reads cells as lines of JSON and answers with lines of JSON (`experiments.runner.pool.Message`).

Started by `experiments.runner.pool` as `python -m experiments.runner.worker NAME FOLDER`. Standard output carries
messages only; what libraries print is redirected to standard error. Each unfinished cell has a folder of its own in
FOLDER for files that it resumes from.
"""

import hashlib
import os
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import IO

import jax
import msgspec

from experiments.registry import named
from experiments.runner.abstract import AbstractCell, AbstractExperiment, Record
from experiments.runner.pool import Done, Failed, Message, Progress
from logcde._machine import versions

PAUSE = 0.5
"""Seconds between two messages about progress."""
CLEARED_EVERY = 16
"""Cells between two purges of compiled programs."""


def main() -> None:
    """Run cells until standard input ends."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    experiment, folder = named(sys.argv[1]), Path(sys.argv[2])
    cells = msgspec.json.Decoder(experiment.cell)
    for number, line in enumerate(sys.stdin.buffer):
        if number % CLEARED_EVERY == 0:
            jax.clear_caches()  # cells of one shape share programs; those of many shapes would add up
        scratch = folder / hashlib.sha256(line).hexdigest()[:16]
        out.write(msgspec.json.encode(_outcome(experiment, cells.decode(line), out, scratch)) + b"\n")


def _outcome(experiment: AbstractExperiment, cell: AbstractCell, out: IO[bytes], scratch: Path) -> Message:
    began = time.monotonic()
    told = began

    def tell(part: float) -> None:
        nonlocal told
        if time.monotonic() - told > PAUSE:
            told = time.monotonic()
            out.write(msgspec.json.encode(Progress(part)) + b"\n")

    try:
        outcome = experiment.run(cell, tell, scratch)
    except Exception:
        return Failed(traceback.format_exc())
    if scratch.exists():
        shutil.rmtree(scratch)
    seconds = round(time.monotonic() - began, 2)
    record = Record(cell, outcome, seconds, versions("logcde", "equinox", "diffrax", "optax"))
    return Done(msgspec.Raw(msgspec.json.encode(record)))


if __name__ == "__main__":
    main()
