"""From a configuration to a folder of results: cells, tables, figures, a summary, and how it came about."""

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

from experiments.abstract import AbstractExperiment
from experiments.grid import Grid, run_grid
from logcde._files import write_whole
from logcde._machine import cores, machine, versions
from logcde.datasets.loading import VARIABLE
from logcde.errors import ExperimentError


def reproduce(
    experiment: AbstractExperiment,
    *,
    out: Path | None = None,
    config: Path | None = None,
    preset: str | None = None,
    seeds: Sequence[int] = (),
    fresh: bool = False,
    workers: int | None = None,
    budget: float | None = None,
    data: Path | None = None,
    console: Console | None = None,
) -> int:
    """Run what is not finished, conclude from all of it, and say so. Returns an exit code.

    Cells that were finished before with the same settings are not run again unless `fresh`. Results go to
    `results/NAME`, or `results/NAME-PRESET` with a preset, so that one never takes the place of the other. After
    `budget` minutes no more is run, and what is missing is marked as such. `data` is the folder of data sets.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ExperimentError("The figures of an experiment need Matplotlib: pip install 'logcde[plot]'.")
    if workers is not None and workers < 1:
        raise ExperimentError(f"An experiment cannot run on {workers} processes. Give at least 1 to --workers.")
    console = console or Console(width=None if Console().is_terminal else 120)
    settings = settings_of(experiment, config, preset, seeds)
    folder = out or Path("results") / _named(experiment, preset)
    if fresh:
        (folder / "cells.jsonl").unlink(missing_ok=True)
    console.print(f"[bold]{experiment.title}[/]\nResults in {folder}; Ctrl-C stops, the same command goes on.")
    if data is not None:
        os.environ[VARIABLE] = str(data)  # where the workers look for it
    workers = workers or (1 if experiment.alone else cores())
    began = time.monotonic()
    deadline = math.inf if budget is None else began + 60 * budget
    try:
        grid = run_grid(experiment, settings, folder, workers, console, deadline)
    except KeyboardInterrupt:
        console.print(f"Stopped. What is finished is in {folder / 'cells.jsonl'}; the same command goes on from there.")
        return 130
    for failure in grid.failures:
        console.print(f"[red]Failed[/]: {escape(failure.cell.label)}\n{escape(failure.trace)}", highlight=False)
    if grid.absent:
        console.print(f"Cells whose data are not there, and which were not run: {len(grid.absent)}.")
    if grid.left:
        console.print(f"The budget is used up: {grid.left} cells were not run. The same command goes on with them.")
    conclusion = experiment.conclude(settings, grid.records, folder)
    _write(folder, conclusion.summary, conclusion.text, settings, grid, time.monotonic() - began)
    console.print(Markdown(conclusion.text))
    console.print(f"Tables, figures and summary are in {folder}.")
    return 1 if grid.failures else 0


def settings_of(experiment: AbstractExperiment, config: Path | None, preset: str | None, seeds: Sequence[int]) -> Any:
    """The configuration in a file, or one that comes with the package, with other seeds if some are given."""
    if config is not None and preset is not None:
        raise ExperimentError("A configuration of your own and a preset exclude each other. Leave one of them out.")
    if config is None:
        source = f"{_named(experiment, preset)}.toml"
        presets = importlib.resources.files("experiments").joinpath("presets")
        if not presets.joinpath(source).is_file():
            known = sorted(file.name for file in presets.iterdir() if file.name.startswith(f"{experiment.name}-"))
            names = ", ".join(name.removeprefix(f"{experiment.name}-").removesuffix(".toml") for name in known)
            raise ExperimentError(f"There is no preset {preset!r} of {experiment.name}. There are: {names}.")
        text = presets.joinpath(source).read_text(encoding="utf-8")
    else:
        source = str(config)
        try:
            text = config.read_text(encoding="utf-8")
        except OSError as error:
            raise ExperimentError(f"The configuration {config} cannot be read: {error.strerror}.") from error
    try:
        settings = msgspec.toml.decode(text, type=experiment.config)
    except msgspec.DecodeError as error:
        raise ExperimentError(f"The configuration {source} does not say what can be run: {error}.") from error
    return msgspec.structs.replace(settings, seeds=tuple(seeds)) if seeds else settings


def _named(experiment: AbstractExperiment, preset: str | None) -> str:
    return experiment.name if preset is None else f"{experiment.name}-{preset}"


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
