"""`logcde stress`: how sparse observations may become before a model gets worse.

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

import tyro

from logcde._files import write_whole
from logcde.cli.answers import Answers
from logcde.cli.config import from_options, options_of, read_config, read_from
from logcde.cli.table import in_options
from logcde.cli.train import Train
from logcde.cli.trained import Columns
from logcde.cli.unfinished import Unfinished, checksums, digest
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.cli.curve import Cell, Result
    from logcde.cli.examples import Examples

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
                from logcde.cli.curve import as_text, draw

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
        from logcde.cli.curve import gathered

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
        from logcde.artefact.files import TEXT

        subject = self.subject.resolve()
        if subject.is_file() and (subject.parent / TEXT).exists():
            subject = subject.parent
        name = subject.stem if subject.is_file() else subject.name
        return Path(os.path.relpath(subject.with_name(f"{name}.stress-unfinished")))

    def _asked(self) -> "Work":
        """The same model on less and less."""
        from logcde.artefact.files import NUMBERS, TEXT
        from logcde.cli.curve import Cell
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

        model = {"the model": self.subject / TEXT, "its parameters": self.subject / NUMBERS}
        return Work(cell, {**model, "the table": file, "the targets": answers.targets})

    def _retrained(self) -> "Work":
        """A model of its own for each share."""
        from logcde.cli.curve import Cell
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
    from logcde.cli.curve import Cell

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
    from logcde.streams.dropping import EachChannel, WholePoints, drop

    if share == 0:
        return examples
    kind = WholePoints() if by == "points" else EachChannel()
    answers: Any = examples.answers
    if answers is None:  # the next values of the series themselves, which are those of all
        answers = examples.streams
    return dataclasses.replace(examples, streams=drop(examples.streams, share, kind, seed=seed), answers=answers)
