"""`logcde stress`: scores as observations are dropped at random.

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

import msgspec
import numpy as np
import tyro

from logcde._documents import write_document
from logcde._files import held, write_whole
from logcde.cli.config import from_options, options_of, read_config, with_paths_from
from logcde.cli.notices import warnings_to
from logcde.cli.resume import FORMAT, START_OVER, ResumableWork, checksums, digest, is_there, read_part
from logcde.cli.targets import TargetOptions
from logcde.cli.tasks import HIGHER_IS_BETTER
from logcde.cli.train import Train
from logcde.cli.trained import TableOverrides
from logcde.errors import CheckpointError, ModelError, OutOfRangeWarning, TableError

if TYPE_CHECKING:
    from logcde.cli.scores import Scores
    from logcde.cli.targets import Examples

TOLERANCE = 0.02
"""How much worse a score may be to count as unchanged; for errors, relative to the error on all observations."""
NOT_IN_KEY = ("subject", "file", "targets", "drop", "seeds", "plot", "json", "fresh")
"""Options that do not determine a point of the curve: paths, of which the content counts, and which points to score."""


@dataclasses.dataclass(frozen=True)
class Stress:
    """Score a model as observations are dropped at random: how sparse can the data become before predictions degrade?

    With a trained model, only its inputs are thinned, as if a feed became sparse after training. With a configuration
    of logcde train, a model is trained on the thinned data for each fraction, as in the paper. On the training table
    only held-out series are scored. After Ctrl-C or a kill, the same command resumes. Examples:

    logcde stress model/ vitals.parquet --plot stress.png

    logcde stress model/train.toml --drop 0 0.5 0.9 --seeds 0 1 2
    """

    subject: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL|CONFIG")]
    """Folder that logcde train wrote, or a configuration of logcde train, such as a train.toml."""
    file: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE")] = None
    """Table of observations in the form of the training table; by default that table."""
    target_options: Annotated[tyro.conf.OmitArgPrefixes[TargetOptions], tyro.conf.arg(name="target")] = TargetOptions()
    overrides: Annotated[tyro.conf.OmitArgPrefixes[TableOverrides], tyro.conf.arg(name="table")] = TableOverrides()
    drop: tuple[float, ...] = (0.0, 0.3, 0.7, 0.95)
    """Fractions of observations to drop."""
    by: Literal["points", "channels"] = "points"
    """points: drop whole events; channels: drop observations of each channel independently."""
    seeds: tuple[int, ...] = ()
    """Random seeds, over which scores are averaged.
    By default 0 to 4 for a model, and 0 for a configuration, which trains one model per fraction and seed."""
    plot: Path | None = None
    """Plot the scores to this file (.png, .pdf, .svg)."""
    json: bool = False
    """Print JSON."""
    fresh: bool = False
    """Start over, instead of resuming where the same command was interrupted."""

    def run(self) -> int:
        """Print the scores for each fraction and return the exit code."""
        try:
            curve = self._curve()
            content = json.dumps(dataclasses.asdict(curve), ensure_ascii=False, allow_nan=False)
            sys.stdout.write((content if self.json else "\n".join(_as_text(curve))) + "\n")
            sys.stdout.flush()  # Results that took long are printed even if the plot fails.
            if self.plot is not None:
                _plot(curve, self.plot)
        except KeyboardInterrupt:
            folder = self._work_folder()
            done = len(list(folder.glob("drop-*.json")))
            kept = f" {done} finished scores are kept in {folder}: the same command computes the others."
            sys.stderr.write(f"logcde: stopped.{kept if done else ''}\n")
            return 130
        return 0

    def _curve(self) -> "Curve":
        wrong = next((share for share in self.drop if not 0 <= share < 1), None)
        if wrong is not None or not self.drop:
            raise TableError(
                f"--drop is {'empty' if wrong is None else wrong}.",
                "Give fractions of at least 0 and less than 1, such as 0 0.5 0.9.",
            )
        shares = tuple(sorted({0.0, *self.drop}))  # The score on all data is what others are compared with.
        retrain = self.subject.is_file()
        seeds = self.seeds or tuple(range(1 if retrain else 5))
        experiment = self._retraining() if retrain else self._evaluation()
        options = {name: value for name, value in options_of(self).items() if name not in NOT_IN_KEY}
        work = ResumableWork(self._work_folder(), options | checksums(experiment.files))
        with contextlib.ExitStack() as until_done:
            with _warn_if_unwritable(work.folder):
                until_done.enter_context(held(work.folder))
            try:
                with _warn_if_unwritable(work.folder):
                    work.begin(fresh=self.fresh)
                cells = [_cached(work.folder, experiment.cell, *pair) for pair in _with_progress(shares, seeds)]
            finally:
                if not any(work.folder.glob("drop-*.json")):
                    work.remove()
            work.remove()
        return _average(cells, self.by, str(self.subject), retrain)

    def _work_folder(self) -> Path:
        """Where finished scores are kept until all are done: next to the model or the configuration."""
        from logcde.artefact.files import MODEL_JSON

        subject = self.subject.resolve()
        if subject.is_file() and (subject.parent / MODEL_JSON).exists():
            subject = subject.parent
        name = subject.stem if subject.is_file() else subject.name
        return Path(os.path.relpath(subject.with_name(f"{name}.stress-unfinished")))

    def _evaluation(self) -> "Experiment":
        """Score one trained model on thinned series."""
        from logcde.artefact.files import MODEL_JSON, MODEL_TENSORS
        from logcde.cli.evaluate import read_test_examples, score_examples
        from logcde.cli.trained import load_trained
        from logcde.report.record import RUN

        trained = load_trained(self.subject)
        run = trained.run
        file, target_options = self.file, self.target_options
        if file is None:
            if run is None:
                raise TableError("No table of observations is given.", "Name it: logcde stress MODEL FILE.")
            before = from_options(with_paths_from(run.config, Train, self.subject), Train, f"{self.subject / RUN}")
            file = before.table.file
            target_options = before.target_options if target_options == TargetOptions() else target_options
        same = run is not None and run.held_out is not None and is_there(file) and digest(file) == run.data.sha256
        examples = read_test_examples(trained, file, target_options, self.overrides, same)

        def cell(share: float, seed: int) -> Cell:
            # Far outside of training is where this command leads on purpose.
            with warnings_to(lambda warning: None, OutOfRangeWarning):
                scores = score_examples(trained, _thinned(examples, share, self.by, seed))
            return _cell(share, seed, trained.task.main_score, scores)

        model = {"the model": self.subject / MODEL_JSON, "its parameters": self.subject / MODEL_TENSORS}
        return Experiment(cell, {**model, "the table": file, "the targets": target_options.targets})

    def _retraining(self) -> "Experiment":
        """Train and score a model on thinned series for each fraction."""
        from logcde.cli.targets import read_examples
        from logcde.cli.trained import needing_estimators

        with needing_estimators():
            from logcde.cli.training import fit
        config = read_config(self.subject, Train)
        if self.file is None and config.table.file is tyro.MISSING:
            raise TableError(f"{self.subject} names no table of observations.", "Name it: logcde stress CONFIG FILE.")
        table = self.overrides.table(self.file or config.table.file, config.table)
        target_options = config.target_options if self.target_options == TargetOptions() else self.target_options
        config.train_options.check()
        examples = read_examples(table, target_options, config.task)
        if not config.train_options.holdout:
            raise TableError("The configuration holds out no series to score.", "Give it a positive holdout.")

        def cell(share: float, seed: int) -> Cell:
            options = dataclasses.replace(config.train_options, seed=config.train_options.seed + seed)
            transform = functools.partial(_thinned, share=share, by=self.by, seed=seed)
            scores = fit(examples, options, _discard, transform=transform, progress=False).scores
            if scores is None:
                raise TableError("There are too few series to hold some out.", "Give more series.")
            return _cell(share, seed, examples.task.main_score, scores)

        files = {"the configuration": self.subject, "the table": table.file, "the targets": target_options.targets}
        return Experiment(cell, files)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """How to score one fraction and seed, and the files that determine the scores."""

    cell: "Callable[[float, int], Cell]"
    files: dict[str, Path | None]


@dataclasses.dataclass(frozen=True)
class Cell:
    """Scores for one dropped fraction and one seed; `score` is the main one."""

    drop: float
    seed: int
    score: str
    series: int
    metrics: dict[str, float]
    baseline: dict[str, float]


def _cell(share: float, seed: int, name: str, scores: "Scores") -> Cell:
    """Refuse scores without all series: those of different fractions would not be comparable."""
    from logcde.streams.faults import not_finite

    if scores.lost:
        raise ModelError(
            f"With {share:.0%} of the observations dropped: {not_finite(scores.lost)}", "Leave out these series."
        )
    return Cell(share, seed, name, scores.series, scores.metrics, scores.baseline)


@dataclasses.dataclass(frozen=True)
class Point:
    """Means and standard deviations of the scores over seeds, for one dropped fraction."""

    drop: float
    mean: dict[str, float]
    std: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Curve:
    """Scores by dropped fraction. `retrained` says whether each point has its own model."""

    subject: str
    retrained: bool
    by: str
    series: int
    seeds: list[int]
    score: str
    points: list[Point]
    baseline: dict[str, float]


def _thinned(examples: "Examples", share: float, by: str, seed: int) -> "Examples":
    """Examples with a fraction of observations dropped. Series keep their ends and their targets."""
    from logcde.streams.transforms import PerChannel, PerEvent, drop_observations

    if share == 0:
        return examples
    scheme = PerEvent() if by == "points" else PerChannel()
    targets: Any = examples.targets
    if targets is None:  # The next values of the series, dropped ones included.
        targets = examples.streams
    return dataclasses.replace(
        examples, streams=drop_observations(examples.streams, share, scheme, seed=seed), targets=targets
    )


def _with_progress(shares: tuple[float, ...], seeds: tuple[int, ...]) -> Iterator[tuple[float, int]]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    pairs = [(share, seed) for share in shares for seed in seeds]
    yield from track(pairs, "scoring", console=console, transient=True, disable=not console.is_terminal)


def _cached(folder: Path, compute: Callable[[float, int], Cell], share: float, seed: int) -> Cell:
    """Scores that an interrupted command left in the folder, or new ones, which are kept there."""
    file = folder / f"drop-{share!r}-seed-{seed}.json"
    if file.exists():
        cell = msgspec.convert(read_part(file), Cell)
        if (cell.drop, cell.seed) != (share, seed):
            raise CheckpointError(f"{file} holds other scores than its name says.", START_OVER)
        return cell
    cell = compute(share, seed)
    if folder.exists():
        with _warn_if_unwritable(file):
            write_whole(file, write_document(dataclasses.asdict(cell), FORMAT))
    return cell


@contextlib.contextmanager
def _warn_if_unwritable(file: Path) -> Iterator[None]:
    """Warn that an interrupted command could not be resumed, which is no reason to stop."""
    try:
        yield
    except OSError as error:
        sys.stderr.write(
            f"logcde: {file} cannot be written: {error.strerror or error}. If this command is interrupted, it cannot "
            "be resumed.\n"
        )


def _discard(line: str) -> None:
    """Print nothing about single trainings."""


def _average(cells: list[Cell], by: str, subject: str, retrained: bool) -> Curve:
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
    return Curve(subject, retrained, by, first.series, seeds, score, points, first.baseline)


def _as_text(curve: Curve) -> list[str]:
    """A table of the curve, and a conclusion."""
    how = "retrained on thinned data" if curve.retrained else "trained on all data, evaluated on thinned data"
    what = "whole events" if curve.by == "points" else "observations of each channel independently"
    seeds = f"{len(curve.seeds)} seed{'s' * (len(curve.seeds) > 1)}"
    names = list(curve.points[0].mean)
    lines = [
        f"{curve.subject}, {how}. Dropped: {what}. Scores on {curve.series:,} series, mean ± std over {seeds}:",
        f"  {'dropped':>9}" + "".join(f"  {name:>18}" for name in names),
    ]
    for point in curve.points:
        cells = (f"{point.mean[name]:.4g} ± {point.std[name]:.2g}" if name in point.mean else "" for name in names)
        lines.append(f"  {point.drop:9.0%}" + "".join(f"  {cell:>18}" for cell in cells))
    baseline = "".join(f"  {curve.baseline.get(name, float('nan')):>18.4g}" for name in names)
    return [*lines, f"  {'no model':>9}{baseline}", _conclusion(curve)]


def _conclusion(curve: Curve) -> str:
    """The largest fraction at which the main score is about that on all observations."""
    name, sign = curve.score, 1 if HIGHER_IS_BETTER[curve.score] else -1
    best, fine = curve.points[0].mean[name], 0.0
    allowed = TOLERANCE if sign > 0 else TOLERANCE * abs(best)
    for point in curve.points:
        if sign * (best - point.mean[name]) > allowed:
            falls = f"with {point.drop:.0%} dropped it is {point.mean[name]:.4g}"
            if not fine:
                return f"On all observations {name} is {best:.4g}; {falls}."
            return f"With up to {fine:.0%} dropped, {name} stays at about {best:.4g}; {falls}."
        fine = point.drop
    return f"Even with {fine:.0%} dropped, {name} stays at about {best:.4g}."


def _plot(curve: Curve, file: Path) -> None:
    try:
        from logcde.plot import drop_curve, figure_of, save

        figure = figure_of(5.5, 3.6)
        axes = figure.subplots()
        pairs = [(point.mean[curve.score], point.std[curve.score]) for point in curve.points]
        label = "retrained" if curve.retrained else Path(curve.subject).name
        drop_curve(axes, [point.drop for point in curve.points], pairs, label)
        baseline = curve.baseline.get(curve.score)
        if baseline is not None:
            axes.axhline(baseline, color="0.6", lw=1, ls=":", label="no model")
        axes.set_ylabel(curve.score)
        axes.legend(frameon=False, fontsize=8)
        save(figure, file)
    except ImportError as error:
        raise TableError("Figures need Matplotlib, which is not installed.", 'pip install "logcde[plot]".') from error
    except (OSError, ValueError) as error:
        raise TableError(f"The figure {file} cannot be written: {error}.", "Give another name with --plot.") from error
