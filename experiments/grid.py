"""Running the grid of an experiment: what is finished is kept, what is not is run, on several processes at once."""

import contextlib
import dataclasses
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from experiments import messages
from experiments.abstract import AbstractCell, AbstractExperiment, Record
from experiments.ledger import Ledger
from experiments.pool import run_cells


@dataclasses.dataclass(frozen=True)
class Failure:
    """A cell that did not finish."""

    cell: AbstractCell
    trace: str


@dataclasses.dataclass
class Grid:
    """The state of a grid: its records so far, what went wrong, what lacks data, and what there was no time for."""

    records: dict[AbstractCell, Record]
    failures: list[Failure]
    absent: list[AbstractCell] = dataclasses.field(default_factory=list)
    left: int = 0


def run_grid(
    experiment: AbstractExperiment,
    config: Any,
    folder: Path,
    workers: int,
    console: Console,
    deadline: float = math.inf,
) -> Grid:
    """Run all cells that are not finished yet, until a `deadline` of the monotonic clock if there is one.

    An interruption loses of the cells under way what they did not keep themselves, and nothing else.
    """
    ledger = Ledger(folder / "cells.jsonl", experiment.cell, experiment.outcome)
    grid = Grid(ledger.read(), [])
    if ledger.ignored:
        console.print(f"Finished cells of another layout in {ledger.path}, which are ignored: {ledger.ignored}.")
    decoder = msgspec.json.Decoder(Record[experiment.cell, experiment.outcome])
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=console) as progress:
        whole = progress.add_task(experiment.name, left="")
        lanes = [progress.add_task("", total=1.0, visible=False, left="") for _ in range(workers)]
        while (missing := _missing(experiment, config, grid)) and time.monotonic() < deadline:
            found = len(experiment.cells(config, _outcomes(grid))) - len(missing)
            progress.update(whole, total=found + len(missing), completed=found)
            left = set(missing)
            with contextlib.closing(run_cells(experiment.name, missing, workers, folder, deadline)) as said:
                for word in said:
                    match word.message:
                        case messages.Progress(part):
                            progress.update(
                                lanes[word.worker], description=f"  {word.cell.label}", completed=part, visible=True
                            )
                        case messages.Done(raw):
                            record = decoder.decode(raw)
                            ledger.add(record)
                            grid.records[record.cell] = record
                        case messages.Failed(trace):
                            grid.failures.append(Failure(word.cell, trace))
                    if not isinstance(word.message, messages.Progress):
                        left.discard(word.cell)
                        progress.update(lanes[word.worker], visible=False)
                        progress.update(whole, advance=1, left=_time_left(left, grid.records, workers))
        grid.left = len(missing)
    return grid


def _missing(experiment: AbstractExperiment, config: Any, grid: Grid) -> list[AbstractCell]:
    failed = {failure.cell for failure in grid.failures}
    cells = [cell for cell in experiment.cells(config, _outcomes(grid)) if cell not in grid.records]
    grid.absent = [cell for cell in cells if not experiment.can_run(cell)]
    return [cell for cell in cells if cell not in failed and experiment.can_run(cell)]


def _outcomes(grid: Grid) -> Mapping[AbstractCell, Any]:
    return {cell: record.outcome for cell, record in grid.records.items()}


def _time_left(left: Iterable[AbstractCell], records: Mapping[AbstractCell, Record], workers: int) -> str:
    """From how long cells of the same variant took, and all cells where there is none yet."""
    took: dict[str, list[float]] = defaultdict(list)
    for cell, record in records.items():
        took[cell.variant].append(record.seconds)
    if not took:
        return ""
    usual = statistics.fmean(seconds for all_of_it in took.values() for seconds in all_of_it)
    seconds = sum(statistics.fmean(took[cell.variant]) if took[cell.variant] else usual for cell in left) / workers
    return f"about {seconds / 60:.0f} min left" if seconds >= 60 else f"about {seconds:.0f} s left"
