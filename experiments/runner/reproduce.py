"""From a configuration to a folder of results: ledger, tables, figures, `summary.json`, and how it was computed."""

import importlib.resources
import importlib.util
import math
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from experiments.runner.abstract import AbstractExperiment
from experiments.runner.grid import Grid, run_grid
from logcde._files import write_whole
from logcde._machine import cores, machine, versions
from logcde.datasets.loading import VARIABLE
from logcde.errors import ExperimentError

RESULTS = Path(__file__).parents[1] / "results"
FULL = "full"
"""The preset of a whole experiment, whose folder of results has no suffix."""


def reproduce(
    experiment: AbstractExperiment,
    *,
    out: Path | None = None,
    config: Path | None = None,
    preset: str = FULL,
    seeds: Sequence[int] = (),
    fresh: bool = False,
    workers: int | None = None,
    budget: float | None = None,
    data: Path | None = None,
    console: Console | None = None,
) -> int:
    """Run the cells that are not finished, write the conclusion from all cells, and print it.

    Args:
        experiment: The experiment.
        out: Folder of results; by default that of `results_folder`.
        config: TOML file used instead of a preset.
        preset: Name of a preset of the experiment.
        seeds: Seeds used instead of those of the configuration.
        fresh: Whether finished cells are run again.
        workers: Number of processes; by default one for each core, or one if the experiment measures time.
        budget: Minutes after which no more cells are run.
        data: Folder of data sets; by default the environment variable LOGCDE_DATA.
        console: Where output goes.

    Returns:
        An exit code: 0, 1 if a cell failed, 130 if interrupted.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ExperimentError("An experiment draws figures, but Matplotlib is not installed.", "pip install matplotlib")
    if workers is not None and workers < 1:
        raise ExperimentError(f"An experiment cannot run on {workers} processes.", "Give at least 1 to --workers.")
    console = console or Console(width=None if Console().is_terminal else 120)
    settings = settings_of(experiment, config, preset, seeds)
    folder = out or results_folder(experiment, preset)
    if fresh:
        (folder / "cells.jsonl").unlink(missing_ok=True)
    console.print(f"[bold]{experiment.title}[/]\nResults in {folder}. Ctrl-C stops; the same command resumes.")
    if data is not None:
        os.environ[VARIABLE] = str(data)  # workers inherit it
    workers = workers or (1 if experiment.alone else cores())
    began = time.monotonic()
    deadline = math.inf if budget is None else began + 60 * budget
    try:
        grid = run_grid(experiment, settings, folder, workers, console, deadline)
    except KeyboardInterrupt:
        console.print(f"Stopped. Finished cells are in {folder / 'cells.jsonl'}; the same command resumes.")
        return 130
    for failure in grid.failures:
        console.print(f"[red]Failed[/]: {escape(failure.cell.label)}\n{escape(failure.trace)}", highlight=False)
    if grid.absent:
        console.print(f"{len(grid.absent)} cells were not run because their data are not available.")
    if grid.left:
        console.print(f"The budget left {grid.left} cells unfinished. The same command resumes.")
    conclusion = experiment.conclude(settings, grid.records, folder)
    _write(folder, conclusion.summary, conclusion.text, settings, grid, time.monotonic() - began)
    console.print(Markdown(conclusion.text))
    console.print(f"Tables, figures and summary are in {folder}.")
    return 1 if grid.failures else 0


def results_folder(experiment: AbstractExperiment, preset: str = FULL) -> Path:
    """The folder of committed results, `experiments/results/NAME` or, for other presets, `NAME-PRESET`."""
    folder = RESULTS / (experiment.name if preset == FULL else f"{experiment.name}-{preset}")
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def settings_of(
    experiment: AbstractExperiment, config: Path | None = None, preset: str = FULL, seeds: Sequence[int] = ()
) -> Any:
    """Read a configuration from a file or a preset of the experiment; `seeds`, if any, replace those in it."""
    if config is not None and preset != FULL:
        raise ExperimentError("A configuration file and a preset exclude each other.", "Leave one of them out.")
    if config is None:
        source = f"presets/{preset}.toml"
        presets = importlib.resources.files(f"experiments.{experiment.name}").joinpath("presets")
        if not presets.joinpath(f"{preset}.toml").is_file():
            known = ", ".join(sorted(file.name.removesuffix(".toml") for file in presets.iterdir()))
            raise ExperimentError(f"{experiment.name} has no preset {preset!r}.", f"Choose one of: {known}.")
        text = presets.joinpath(f"{preset}.toml").read_text(encoding="utf-8")
    else:
        source = str(config)
        try:
            text = config.read_text(encoding="utf-8")
        except OSError as error:
            raise ExperimentError(f"The configuration {config} cannot be read: {error.strerror}.") from error
    try:
        settings = msgspec.toml.decode(text, type=experiment.config)
    except msgspec.DecodeError as error:
        raise ExperimentError(f"The configuration {source} is not valid: {error}.") from error
    return msgspec.structs.replace(settings, seeds=tuple(seeds)) if seeds else settings


def _write(folder: Path, summary: dict, text: str, settings: Any, grid: Grid, seconds: float) -> None:
    run = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions("logcde", "equinox", "diffrax", "optax"),
        "seconds": round(seconds, 1),
        "failed": [failure.cell.label for failure in grid.failures],
        "config": msgspec.to_builtins(settings),
    }
    for name, content in (("summary.json", summary), ("run.json", run)):
        write_whole(folder / name, msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n")
    write_whole(folder / "results.md", text)
