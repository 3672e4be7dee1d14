"""A process that runs cells: one line of JSON in for each cell, lines of JSON out about it.

Started by `experiments.pool` as `python -m experiments.worker NAME FOLDER`. What libraries print goes to
standard error, so that standard output carries messages and nothing else. An unfinished cell has a place of its own in
the folder, where it may keep what it needs to go on after an interruption.
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

from experiments.abstract import AbstractCell, AbstractExperiment, Record
from experiments.messages import Done, Failed, Message, Progress
from logcde._machine import versions

PAUSE = 0.5
TOGETHER = 16


def main() -> None:
    """Run cells until there are no more."""
    from experiments import EXPERIMENTS

    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    experiment, folder = EXPERIMENTS[sys.argv[1]], Path(sys.argv[2])
    cells = msgspec.json.Decoder(experiment.cell)
    for number, line in enumerate(sys.stdin.buffer):
        if number % TOGETHER == 0:
            jax.clear_caches()  # cells of one shape share what is compiled, but of many shapes it would add up
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
