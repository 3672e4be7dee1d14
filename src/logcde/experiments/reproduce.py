"""From a configuration to a folder of results: cells, tables, figures, a summary, and how it came about."""

import importlib.resources
import importlib.util
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from logcde._files import write_whole
from logcde._machine import cores, machine, versions
from logcde.errors import ExperimentError
from logcde.experiments.abstract import AbstractExperiment
from logcde.experiments.grid import Grid, run_grid


def reproduce(
    experiment: AbstractExperiment,
    *,
    out: Path | None = None,
    config: Path | None = None,
    seeds: Sequence[int] = (),
    quick: bool = False,
    fresh: bool = False,
    workers: int | None = None,
    console: Console | None = None,
) -> int:
    """Run what is not finished, conclude from all of it, and say so. Returns an exit code.

    Cells that were finished before with the same settings are not run again unless `fresh`. Results go to
    `results/NAME`, or `results/NAME-quick` for a quick look, so that one never takes the place of the other.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ExperimentError("The figures of an experiment need Matplotlib: pip install 'logcde[plot]'.")
    if workers is not None and workers < 1:
        raise ExperimentError(f"An experiment cannot run on {workers} processes. Give at least 1 to --workers.")
    console = console or Console(width=None if Console().is_terminal else 120)
    settings = settings_of(experiment, config, seeds, quick)
    folder = out or Path("results") / f"{experiment.name}{'-quick' if quick else ''}"
    if fresh:
        (folder / "cells.jsonl").unlink(missing_ok=True)
    console.print(f"[bold]{experiment.title}[/]\nResults in {folder}; Ctrl-C stops, the same command goes on.")
    began = time.monotonic()
    try:
        grid = run_grid(experiment, settings, folder, cores() if workers is None else workers, console)
    except KeyboardInterrupt:
        console.print(f"Stopped. What is finished is in {folder / 'cells.jsonl'}; the same command goes on from there.")
        return 130
    for failure in grid.failures:
        console.print(f"[red]Failed[/]: {escape(failure.cell.label)}\n{escape(failure.trace)}", highlight=False)
    conclusion = experiment.conclude(settings, grid.records, folder)
    _write(folder, conclusion.summary, conclusion.text, settings, grid, time.monotonic() - began)
    console.print(Markdown(conclusion.text))
    console.print(f"Tables, figures and summary are in {folder}.")
    return 1 if grid.failures else 0


def settings_of(experiment: AbstractExperiment, config: Path | None, seeds: Sequence[int], quick: bool) -> Any:
    """The configuration in a file, or one that comes with the package, with other seeds if some are given."""
    if config is not None and quick:
        raise ExperimentError("A configuration of your own and --quick exclude each other. Leave one of them out.")
    if config is None:
        name = f"{experiment.name}{'-quick' if quick else ''}.toml"
        source = name
        text = importlib.resources.files("logcde.experiments").joinpath("presets", name).read_text(encoding="utf-8")
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
