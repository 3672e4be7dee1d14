"""`logcde stress`: how sparse observations may become before a model gets worse.

The dropping experiment of `tab:uea_drop_summary` in the paper, on the user's own table.
"""

import dataclasses
import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from logcde.cli.answers import Answers
from logcde.cli.config import read_config
from logcde.cli.table import in_options
from logcde.cli.train import Train
from logcde.cli.trained import Columns
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.cli.examples import Examples

ENOUGH = 0.02
"""A score that is worse by no more than this, of errors by no more than this share, is called about as good."""


@dataclasses.dataclass(frozen=True)
class Stress:
    """Say how sparse your feed may become before predictions get worse, by leaving out observations by chance.

    A trained model is only asked about what is left, as if a feed had become sparse after training; with a
    configuration of logcde train, a model is trained anew on what is left for each share, as in the paper. Of the table
    that a model was trained on, only the series that were held out are looked at. Examples:

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

    def run(self) -> int:
        """Do it."""
        try:
            with in_options():
                result = self._result()
                content = json.dumps(dataclasses.asdict(result), ensure_ascii=False, allow_nan=False)
                sys.stdout.write((content if self.json else "\n".join(_as_text(result))) + "\n")
                sys.stdout.flush()  # What took long is told, even if it cannot be drawn.
                if self.plot is not None:
                    _draw(result, self.plot)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped.\n")
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
        cells = self._retrained(shares, seeds) if from_config else self._asked(shares, seeds)
        return _gathered(list(cells), self.by, str(self.subject), from_config)

    def _asked(self, shares: tuple[float, ...], seeds: tuple[int, ...]) -> "Iterator[Cell]":
        """The same model on less and less."""
        from logcde.cli.evaluate import known_examples, scored_by
        from logcde.cli.fitting import digest
        from logcde.cli.trained import load_trained

        trained = load_trained(self.subject)
        run = trained.run
        file = self.file or (None if run is None else Path(run.data.file))
        if file is None:
            raise TableError("Name the table of observations: logcde stress MODEL FILE.")
        answers = self.answers
        if self.file is None and run is not None and answers == Answers():
            answers = _answers_of(run.config)
        same = run is not None and run.held_out is not None and file.is_file() and digest(file) == run.data.sha256
        examples = known_examples(trained, file, answers, self.columns, same)
        for share, seed in _pairs(shares, seeds):
            scored = scored_by(trained, _left(examples, share, self.by, seed))
            yield Cell(share, seed, trained.task.score, scored.series, scored.metrics, scored.baseline)

    def _retrained(self, shares: tuple[float, ...], seeds: tuple[int, ...]) -> "Iterator[Cell]":
        """A model of its own for each share."""
        from logcde.cli.examples import read_examples
        from logcde.cli.trained import needing_estimators

        with needing_estimators():
            from logcde.cli.fitting import fit
        config = read_config(self.subject, Train)
        if self.file is None and config.table.file is tyro.MISSING:
            raise TableError(f"{self.subject} names no table of observations. Name it: logcde stress CONFIG FILE.")
        table = self.columns.table(self.file or config.table.file, config.table)
        answers = config.answers if self.answers == Answers() else self.answers
        config.learning.check()
        examples = read_examples(table, answers, config.task)
        if not config.learning.holdout:
            raise TableError("Without --holdout there are no series to compare with. Give the configuration some.")
        for share, seed in _pairs(shares, seeds):
            learning = dataclasses.replace(config.learning, seed=config.learning.seed + seed)
            change = functools.partial(_left, share=share, by=self.by, seed=seed)
            fitted = fit(examples, learning, _quiet, change=change, progress=False)
            scored = fitted.held_out
            if scored is None:
                raise TableError("The series are too few to hold some out. Give more.")
            yield Cell(share, seed, examples.task.score, scored.series, scored.metrics, scored.baseline)


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
    from logcde.streams.dropping import EachChannel, WholePoints, drop

    if share == 0:
        return examples
    kind = WholePoints() if by == "points" else EachChannel()
    answers: Any = examples.answers
    if answers is None:  # the next values of the series themselves, which are those of all
        answers = examples.streams
    return dataclasses.replace(examples, streams=drop(examples.streams, share, kind, seed=seed), answers=answers)


def _answers_of(config: dict[str, Any]) -> Answers:
    from logcde.cli.config import from_options

    return from_options(config, Answers, "run.json")


def _gathered(cells: list[Cell], by: str, subject: str, retrained: bool) -> Result:
    import numpy as np

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


def _as_text(result: Result) -> list[str]:
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
    from logcde.cli.scores import HIGHER

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


def _draw(result: Result, file: Path) -> None:
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
