"""A process that runs cells: one line of JSON in for each cell, lines of JSON out about it.

Started by `logcde.experiments.pool` as `python -m logcde.experiments.worker NAME`. What libraries print goes to
standard error, so that standard output carries messages and nothing else.
"""

import os
import sys
import time
import traceback

import msgspec

from logcde._machine import versions
from logcde.experiments.abstract import AbstractCell, AbstractExperiment, Record
from logcde.experiments.messages import Done, Failed, Message, Progress

PAUSE = 0.5


def main() -> None:
    """Run cells until there are no more."""
    from logcde.experiments import EXPERIMENTS

    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    experiment = EXPERIMENTS[sys.argv[1]]
    cells = msgspec.json.Decoder(experiment.cell)
    for line in sys.stdin.buffer:
        out.write(msgspec.json.encode(_outcome(experiment, cells.decode(line), out)) + b"\n")


def _outcome(experiment: AbstractExperiment, cell: AbstractCell, out) -> Message:
    began = time.monotonic()
    told = began

    def tell(part: float) -> None:
        nonlocal told
        if time.monotonic() - told > PAUSE:
            told = time.monotonic()
            out.write(msgspec.json.encode(Progress(part)) + b"\n")

    try:
        outcome = experiment.run(cell, tell)
    except Exception:
        return Failed(traceback.format_exc())
    seconds = round(time.monotonic() - began, 2)
    record = Record(cell, outcome, seconds, versions("logcde", "equinox", "diffrax", "optax"))
    return Done(msgspec.Raw(msgspec.json.encode(record)))


if __name__ == "__main__":
    main()
