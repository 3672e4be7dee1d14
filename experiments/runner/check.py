"""Rerun a finished cell and compare its outcome with the committed one."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from experiments.runner.abstract import AbstractExperiment, Record, Tell
from experiments.runner.ledger import Ledger
from logcde.errors import ExperimentError


def cheapest(experiment: AbstractExperiment, folder: Path, text: str = "") -> Record:
    """The finished cell that took the least time, of those that can run here and whose label contains `text`."""
    records = Ledger(folder / "cells.jsonl", experiment.cell, experiment.outcome).read().values()
    runnable = [record for record in records if text in record.cell.label and experiment.can_run(record.cell)]
    if not runnable:
        matching = f" whose label contains {text!r}" if text else ""
        raise ExperimentError(
            f"{folder / 'cells.jsonl'} has no finished cell{matching} that can run here.",
            "Give the folder of data sets by --data, or another text by --label.",
        )
    return min(runnable, key=lambda record: record.seconds)


def differences(experiment: AbstractExperiment, record: Record, tell: Tell) -> list[str]:
    """Rerun the cell of a record and list the fields in which its outcome differs; measured times are left out."""
    with tempfile.TemporaryDirectory() as scratch:
        outcome = experiment.run(record.cell, tell, Path(scratch) / "cell")
    # Through JSON, as the committed one went.
    again = msgspec.json.decode(msgspec.json.encode(outcome), type=experiment.outcome)
    before, after = (_stripped(msgspec.to_builtins(one), experiment.timings) for one in (record.outcome, again))
    return list(_compared(before, after, "outcome"))


def _stripped(value: Any, timings: frozenset[str]) -> Any:
    match value:
        case dict():
            return {name: _stripped(part, timings) for name, part in value.items() if name not in timings}
        case list() | tuple():
            return [_stripped(part, timings) for part in value]
    return value


def _compared(before: Any, after: Any, place: str) -> Iterator[str]:
    """One line for each leaf that differs.

    >>> list(_compared({"mse": [1.0, 2.0]}, {"mse": [1.0, 3.0]}, "outcome"))
    ['outcome.mse[1]: 2.0 before, 3.0 now']
    """
    match before, after:
        case dict(), dict():
            for name in {**before, **after}:
                yield from _compared(before.get(name), after.get(name), f"{place}.{name}")
        case list(), list() if len(before) == len(after):
            for number, pair in enumerate(zip(before, after, strict=True)):
                yield from _compared(*pair, f"{place}[{number}]")
        case _ if before != after and not (before != before and after != after):  # NaN equals NaN here
            yield f"{place}: {before} before, {after} now"
