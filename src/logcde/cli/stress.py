"""The dropping curve of `logcde stress`: what was measured, put together, told and drawn.

`logcde stress`: how sparse observations may become before a model gets worse.

The dropping experiment of `tab:uea_drop_summary` in the paper, on the user's own table.
"""

import contextlib
import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde._files import write_whole
from logcde.cli.config import from_options, options_of, read_config, read_from
from logcde.cli.resume import Unfinished, checksums, digest
from logcde.cli.table import in_options
from logcde.cli.targets import Answers
from logcde.cli.tasks import HIGHER
from logcde.cli.train import Train
from logcde.cli.trained import Columns
from logcde.errors import TableError

ENOUGH = 0.02
"""A score that is worse by no more than this, of errors by no more than this share, is called about as good."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One share of observations left out, by one draw."""

    drop: float
    seed: int
    score: str
    series: int
    metrics: dict[str, float]
    baseline: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Point:
    """One share of observations left out: means and standard deviations over draws."""

    drop: float
    mean: dict[str, float]
    std: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Result:
    """The curve. `retrained` says whether each point has a model of its own."""

    subject: str
    retrained: bool
    by: str
    series: int
    seeds: list[int]
    score: str
    points: list[Point]
    baseline: dict[str, float]


def gathered(cells: list[Cell], by: str, subject: str, retrained: bool) -> Result:
    """Means over draws, share by share."""
    points = []
    for share in dict.fromkeys(cell.drop for cell in cells):
        here = [cell.metrics for cell in cells if cell.drop == share]
        names = [name for name in here[0] if all(name in one for one in here)]
        values = {name: [one[name] for one in here] for name in names}
        means = {name: float(np.mean(numbers)) for name, numbers in values.items()}
        points.append(Point(share, means, {name: float(np.std(numbers)) for name, numbers in values.items()}))
    first = cells[0]
    seeds = list(dict.fromkeys(cell.seed for cell in cells))
    score = first.score if all(first.score in point.mean for point in points) else next(iter(points[0].mean))
    return Result(subject, retrained, by, first.series, seeds, score, points, first.baseline)


def as_text(result: Result) -> list[str]:
    """The curve for people, and what follows from it."""
    how = (
        "trained anew on what is left" if result.retrained else "trained on all observations, asked about what is left"
    )
    what = "whole points in time" if result.by == "points" else "observations of each channel by itself"
    names = list(result.points[0].mean)
    lines = [
        f"{result.subject}, {how}. Of {result.series:,} series, {what} are left out, {_drawn(len(result.seeds))}.",
        f"  {'left out':>9}" + "".join(f"  {name:>18}" for name in names),
    ]
    for point in result.points:
        cells = (f"{point.mean[name]:.4g} ± {point.std[name]:.2g}" if name in point.mean else "" for name in names)
        lines.append(f"  {point.drop:9.0%}" + "".join(f"  {cell:>18}" for cell in cells))
    alone = "".join(f"  {result.baseline.get(name, float('nan')):>18.4g}" for name in names)
    return [*lines, f"  {'no model':>9}{alone}", _verdict(result)]


def _drawn(count: int) -> str:
    return "drawn once" if count == 1 else f"drawn {count} times"


def _verdict(result: Result) -> str:
    """How far one can go."""
    name, sign = result.score, 1 if HIGHER[result.score] else -1
    best, fine = result.points[0].mean[name], 0.0
    allowed = ENOUGH if sign > 0 else ENOUGH * abs(best)
    for point in result.points:
        if sign * (best - point.mean[name]) > allowed:
            falls = f"with {point.drop:.0%} left out it is {point.mean[name]:.4g}"
            if not fine:
                return f"On all observations {name} is {best:.4g}; {falls}."
            return f"Up to {fine:.0%} left out, {name} stays about as good as on all observations, {best:.4g}; {falls}."
        fine = point.drop
    return f"Even with {fine:.0%} left out, {name} stays about as good as on all observations, {best:.4g}."


def draw(result: Result, file: Path) -> None:
    """The curve as a figure."""
    try:
        from logcde.plot import dropping, figure_of, save

        figure = figure_of(5.5, 3.6)
        axes = figure.subplots()
        pairs = [(point.mean[result.score], point.std[result.score]) for point in result.points]
        label = "trained anew" if result.retrained else Path(result.subject).name
        dropping(axes, [point.drop for point in result.points], pairs, label)
        alone = result.baseline.get(result.score)
        if alone is not None:
            axes.axhline(alone, color="0.6", lw=1, ls=":", label="without a model")
        axes.set_ylabel(result.score)
        axes.legend(frameon=False, fontsize=8)
        save(figure, file)
    except ImportError as error:
        raise TableError('A figure needs Matplotlib, which is not installed: pip install "logcde[plot]".') from error
    except (OSError, ValueError) as error:
        raise TableError(f"The figure {file} cannot be written: {error}. Give another name with --plot.") from error


if TYPE_CHECKING:
    from logcde.cli.targets import Examples

ASIDE = ("subject", "file", "targets", "drop", "seeds", "plot", "json", "fresh")
"""Options that say where things are and which points of the curve are wanted, and not what comes of one."""


@dataclasses.dataclass(frozen=True)
class Stress:
    """Say how sparse your feed may become before predictions get worse, by leaving out observations by chance.

    A trained model is only asked about what is left, as if a feed had become sparse after training; with a
    configuration of logcde train, a model is trained anew on what is left for each share, as in the paper. Of the table
    that a model was trained on, only the series that were held out are looked at. After Ctrl-C or a kill, the same
    command goes on with what is missing. Examples:

    logcde stress model/ vitals.parquet --plot stress.png

    logcde stress model/train.toml --drop 0 0.5 0.9 --seeds 0 1 2
    """

    subject: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL|CONFIG")]
    """The folder that logcde train wrote, or a configuration of logcde train, such as its train.toml."""
    file: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE")] = None
    """A table of observations like that of training; by default that one itself."""
    answers: tyro.conf.OmitArgPrefixes[Answers] = Answers()
    columns: tyro.conf.OmitArgPrefixes[Columns] = Columns()
    drop: tuple[float, ...] = (0.0, 0.3, 0.7, 0.95)
    """Shares of observations to leave out."""
    by: Literal["points", "channels"] = "points"
    """Leave out whole points in time, or observations of each channel by itself."""
    seeds: tuple[int, ...] = ()
    """What is left out is drawn with each of these, and the mean is told; by default five times for a model, once for a
    configuration, which takes as many trainings."""
    plot: Path | None = None
    """Draw the curve into this file (.png, .pdf, .svg)."""
    json: bool = False
    """Print JSON, for machines."""
    fresh: bool = False
    """Begin anew, instead of going on where the same command was stopped."""

    def run(self) -> int:
        """Do it."""
        try:
            with in_options():
                result = self._result()

                content = json.dumps(dataclasses.asdict(result), ensure_ascii=False, allow_nan=False)
                sys.stdout.write((content if self.json else "\n".join(as_text(result))) + "\n")
                sys.stdout.flush()  # What took long is told, even if it cannot be drawn.
                if self.plot is not None:
                    draw(result, self.plot)
        except KeyboardInterrupt:
            place = self._place()
            done = len(list(place.glob("drop-*.json")))
            kept = f" {done} points of the curve are kept in {place}: the same command goes on with the others."
            sys.stderr.write(f"logcde: stopped.{kept if done else ''}\n")
            return 130
        return 0

    def _result(self) -> "Result":

        wrong = next((share for share in self.drop if not 0 <= share < 1), None)
        if wrong is not None or not self.drop:
            found = "" if wrong is None else f" {wrong}"
            raise TableError(
                f"--drop is{found or ' empty'}. Give shares of at least 0 and less than 1, such as 0 0.5 0.9."
            )
        shares = tuple(sorted({0.0, *self.drop}))  # Without that of all data there is nothing to compare with.
        from_config = self.subject.is_file()
        seeds = self.seeds or tuple(range(1 if from_config else 5))
        work = self._retrained() if from_config else self._asked()
        decisive = {name: value for name, value in options_of(self).items() if name not in ASIDE}
        unfinished = Unfinished(self._place(), decisive | checksums(work.files))
        try:
            with _telling(unfinished.folder):
                unfinished.begin(fresh=self.fresh)
            cells = [_kept(unfinished.folder, work.cell, *pair) for pair in _pairs(shares, seeds)]
        finally:
            if not any(unfinished.folder.glob("drop-*.json")):
                unfinished.remove()
        unfinished.remove()
        return gathered(cells, self.by, str(self.subject), from_config)

    def _place(self) -> Path:
        """Where finished points of the curve are kept until all are: beside the model or the configuration."""
        from logcde.artefact.files import MODEL_JSON

        subject = self.subject.resolve()
        if subject.is_file() and (subject.parent / MODEL_JSON).exists():
            subject = subject.parent
        name = subject.stem if subject.is_file() else subject.name
        return Path(os.path.relpath(subject.with_name(f"{name}.stress-unfinished")))

    def _asked(self) -> "Work":
        """The same model on less and less."""
        from logcde.artefact.files import MODEL_JSON, MODEL_TENSORS
        from logcde.cli.evaluate import known_examples, scored_by
        from logcde.cli.trained import load_trained
        from logcde.report.record import RUN

        trained = load_trained(self.subject)
        run = trained.run
        file, answers = self.file, self.answers
        if file is None:
            if run is None:
                raise TableError("Name the table of observations: logcde stress MODEL FILE.")
            before = from_options(read_from(run.config, Train, self.subject), Train, f"{self.subject / RUN}")
            file = before.table.file
            answers = before.answers if answers == Answers() else answers
        same = run is not None and run.held_out is not None and file.is_file() and digest(file) == run.data.sha256
        examples = known_examples(trained, file, answers, self.columns, same)

        def cell(share: float, seed: int) -> "Cell":
            scored = scored_by(trained, _left(examples, share, self.by, seed))
            return Cell(share, seed, trained.task.score, scored.series, scored.metrics, scored.baseline)

        model = {"the model": self.subject / MODEL_JSON, "its parameters": self.subject / MODEL_TENSORS}
        return Work(cell, {**model, "the table": file, "the targets": answers.targets})

    def _retrained(self) -> "Work":
        """A model of its own for each share."""
        from logcde.cli.targets import read_examples
        from logcde.cli.trained import needing_estimators

        with needing_estimators():
            from logcde.cli.training import fit
        config = read_config(self.subject, Train)
        if self.file is None and config.table.file is tyro.MISSING:
            raise TableError(f"{self.subject} names no table of observations. Name it: logcde stress CONFIG FILE.")
        table = self.columns.table(self.file or config.table.file, config.table)
        answers = config.answers if self.answers == Answers() else self.answers
        config.learning.check()
        examples = read_examples(table, answers, config.task)
        if not config.learning.holdout:
            raise TableError("Without --holdout there are no series to compare with. Give the configuration some.")

        def cell(share: float, seed: int) -> "Cell":
            learning = dataclasses.replace(config.learning, seed=config.learning.seed + seed)
            change = functools.partial(_left, share=share, by=self.by, seed=seed)
            fitted = fit(examples, learning, _quiet, change=change, progress=False)
            scored = fitted.held_out
            if scored is None:
                raise TableError("The series are too few to hold some out. Give more.")
            return Cell(share, seed, examples.task.score, scored.series, scored.metrics, scored.baseline)

        return Work(cell, {"the configuration": self.subject, "the table": table.file, "the targets": answers.targets})


@dataclasses.dataclass(frozen=True)
class Work:
    """How a point of the curve is found, by share and seed, and the files that decide it."""

    cell: "Callable[[float, int], Cell]"
    files: dict[str, Path | None]


def _kept(folder: Path, compute: "Callable[[float, int], Cell]", share: float, seed: int) -> "Cell":
    """A point of the curve that was finished before, or a new one, which is kept."""

    file = folder / f"drop-{share!r}-seed-{seed}.json"
    if file.exists():
        return Cell(**json.loads(file.read_text("utf-8")))
    cell = compute(share, seed)
    if folder.exists():
        with _telling(file):
            write_whole(file, json.dumps(dataclasses.asdict(cell)))
    return cell


@contextlib.contextmanager
def _telling(file: Path) -> Iterator[None]:
    """Say that something cannot be kept, which is no reason to give up the work itself."""
    try:
        yield
    except OSError as error:
        sys.stderr.write(
            f"logcde: {file} cannot be written: {error.strerror or error}. This goes on, but if it is stopped, it will "
            "begin anew.\n"
        )


def _pairs(shares: tuple[float, ...], seeds: tuple[int, ...]) -> Iterator[tuple[float, int]]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    pairs = [(share, seed) for share in shares for seed in seeds]
    yield from track(pairs, "dropping", console=console, transient=True, disable=not console.is_terminal)


def _quiet(line: str) -> None:
    """Tell nobody."""


def _left(examples: "Examples", share: float, by: str, seed: int) -> "Examples":
    """What is left. A series keeps its end, and what is to be predicted of it."""
    from logcde.streams.transforms import PerChannel, PerEvent, drop_observations

    if share == 0:
        return examples
    kind = PerEvent() if by == "points" else PerChannel()
    answers: Any = examples.answers
    if answers is None:  # the next values of the series themselves, which are those of all
        answers = examples.streams
    return dataclasses.replace(
        examples, streams=drop_observations(examples.streams, share, kind, seed=seed), answers=answers
    )
