"""Run the cells of a grid that are not in its ledger, on several processes, with progress bars."""

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

from experiments.runner import pool
from experiments.runner.abstract import AbstractCell, AbstractExperiment, Record
from experiments.runner.ledger import Ledger


@dataclasses.dataclass(frozen=True)
class Failure:
    """A cell that raised an exception."""

    cell: AbstractCell
    trace: str


@dataclasses.dataclass
class Grid:
    """The state of a grid.

    Attributes:
        records: Finished cells.
        failures: Cells that raised an exception.
        absent: Cells whose data are not available.
        left: Number of cells that the deadline left unfinished.
    """

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
    """Run all cells that are not finished.

    An interruption loses only the running cells, as far as these do not resume from files of their own.

    Args:
        experiment: The experiment.
        config: Its configuration.
        folder: Folder of results, with the ledger `cells.jsonl`.
        workers: Number of processes.
        console: Where progress is shown.
        deadline: Time of `time.monotonic` after which no cell is run.
    """
    ledger = Ledger(folder / "cells.jsonl", experiment.cell, experiment.outcome)
    grid = Grid(ledger.read(), [])
    if ledger.ignored:
        console.print(f"Ignored {ledger.ignored} finished cells of another version in {ledger.path}.")
    decoder = msgspec.json.Decoder(Record[experiment.cell, experiment.outcome])
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=console) as progress:
        whole = progress.add_task(experiment.name, left="")
        lanes = [progress.add_task("", total=1.0, visible=False, left="") for _ in range(workers)]
        while (missing := _missing(experiment, config, grid)) and time.monotonic() < deadline:
            found = len(experiment.cells(config, _outcomes(grid))) - len(missing)
            progress.update(whole, total=found + len(missing), completed=found)
            left = set(missing)
            running = pool.run_cells(experiment.name, missing, workers, folder, deadline, experiment.environment)
            with contextlib.closing(running) as reports:
                for report in reports:
                    lane = lanes[report.worker]
                    match report.message:
                        case pool.Progress(part):
                            description = f"  {report.cell.label}"
                            progress.update(lane, description=description, completed=part, visible=True)
                            continue
                        case pool.Done(raw):
                            record = decoder.decode(raw)
                            ledger.add(record)
                            grid.records[record.cell] = record
                        case pool.Failed(trace):
                            grid.failures.append(Failure(report.cell, trace))
                    left.discard(report.cell)
                    progress.update(lane, visible=False)
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
    """Estimate from finished cells of the same variant, or from all cells if the variant has none."""
    took: dict[str, list[float]] = defaultdict(list)
    for cell, record in records.items():
        took[cell.variant].append(record.seconds)
    if not took:
        return ""
    usual = statistics.fmean(seconds for variant in took.values() for seconds in variant)
    seconds = sum(statistics.fmean(took[cell.variant]) if took[cell.variant] else usual for cell in left) / workers
    return f"about {seconds / 60:.0f} min left" if seconds >= 60 else f"about {seconds:.0f} s left"
