"""One training run of the command line: split, fit, score the held-out series, save with a record."""

import dataclasses
import datetime
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from logcde._machine import machine, versions
from logcde.cli.config import as_toml
from logcde.cli.notices import NOT_SCORED, Notices
from logcde.cli.resume import digest
from logcde.cli.scores import Scores, learner_table, score, score_table
from logcde.cli.targets import Examples
from logcde.cli.train_options import TrainOptions
from logcde.estimators import saving
from logcde.estimators.choosing import median_gap
from logcde.report.record import CONFIG, RUN, Channel, Data, Evaluation, HeldOut, Run, Setting, compared, write_run
from logcde.streams.partition import Every
from logcde.streams.schema import listed
from logcde.train import Checkpoints

CHOICES = {
    "origin": ("time from", "--origin"),
    "partition": ("intervals", "--every"),
    "scaler": ("scaler", ""),
    "counts": ("counts", ""),
    "depth": ("depth", "--depth"),
    "learner": ("learner", "--learner"),
    "network": ("network", "--hidden"),
    "validation": ("validation", "--validation"),
    "steps": ("steps", "--steps"),
}
"""Settings that an estimator chooses: the name to print, and the options that set it."""
LIBRARIES = ("logcde", "equinox", "optax", "scikit-learn")
"""Libraries whose versions are recorded."""


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A fitted estimator, its training examples and its scores.

    Attributes:
        examples: All series with their targets, held-out ones included.
        estimator: The fitted estimator.
        trained: Number of training series.
        prior: The best constant prediction on the training series.
        scores: Scores on the held-out series; None if there are none.
        seconds: Duration of training.
    """

    examples: Examples
    estimator: Any
    trained: int
    prior: list[float]
    scores: Scores | None
    seconds: float

    @property
    def classes(self) -> list[Any] | None:
        """The classes in the order of probabilities; None if the model predicts numbers."""
        return self.estimator.classes_.tolist() if self.examples.task.name == "classify" else None

    @property
    def parameters(self) -> int:
        """Number of trained parameters."""
        return self.estimator.model_.size


def fit(
    examples: Examples,
    options: TrainOptions,
    log: Callable[[str], None],
    *,
    transform: Callable[[Examples], Examples] | None = None,
    checkpoints: Checkpoints | None = None,
    progress: bool = True,
) -> Fitted:
    """Split the examples, fit an estimator, and score it on the held-out series.

    Args:
        examples: Series with their targets.
        options: Options of the model and its training.
        log: Receives lines about the data, the settings and the scores.
        transform: Applied to all examples once the ends of series are known.
        checkpoints: Where to keep the state of training, and to resume from.
        progress: Show a progress bar.
    """
    task, streams = examples.task, examples.streams
    training, held_out = options.split(task.strata(examples.targets, len(streams)))
    examples = examples.ending(median_gap(streams[training]))
    examples = examples if transform is None else transform(examples)
    known = examples[training]
    for line in _lines_before(examples, len(held_out)):
        log(line)
    step = None if checkpoints is None else checkpoints.step()
    if checkpoints is not None and step is not None:
        log(f"Resuming after step {step:,} from {checkpoints.folder}.")
    began = time.monotonic()
    estimator = options.estimator(task, streams.schema.clock, checkpoints=checkpoints, progress=progress)
    estimator.fit(known.streams, known.targets)
    seconds = time.monotonic() - began
    classes = estimator.classes_.tolist() if task.name == "classify" else None
    prior = task.prior(task.truth(known.targets, known.streams)[1], classes)
    notices = Notices()
    with notices.collecting():
        scores = score(task, estimator, examples[held_out], prior, classes) if len(held_out) else None
    notices.lost = [] if scores is None else scores.lost
    fitted = Fitted(examples, estimator, len(training), prior, scores, seconds)
    for line in [*_lines_after(fitted), *notices.lines(len(held_out), NOT_SCORED)]:
        log(line)
    return fitted


def save(fitted: Fitted, folder: Path, options: dict[str, Any], command: str, key: str, *, overwrite: bool) -> None:
    """Write the folder of the model, with the record of the run and its options as TOML.

    Args:
        fitted: The fitted estimator with its scores.
        folder: The folder to write.
        options: Options of the run by name, with paths relative to the folder.
        command: The command line of the run.
        key: Checksum of the options and tables of the run.
        overwrite: Replace an older model.
    """
    extra = {RUN: write_run(_record(fitted, options, command, key)), CONFIG: as_toml(options)}
    saving.save(fitted.estimator, folder, overwrite, extra)


def announce(line: str) -> None:
    """Print a line at once, also where standard output is buffered."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _lines_before(examples: Examples, held_out: int) -> list[str]:
    """The data, the task and the split."""
    streams, task = examples.streams, examples.task
    names, channels = listed(examples.outputs, 3), listed(streams.schema.channels)
    what = {
        "classify": f"the class {names}",
        "regress": f"the number {names}",
        "forecast": f"{names} at query times",
    }
    lines = [
        f"{examples.table.file}: {len(streams):,} series, {len(streams.times):,} events, channels {channels}",
        f"Task: {task.name}, predicts {what[task.name]} ({examples.why}).",
        *_notes(streams),
    ]
    split = f"Held out from training: {held_out:,} of {len(streams):,} series."
    lines.append(split if held_out else "No series are held out, so the model will not be scored.")
    return lines


def _notes(streams: Any) -> list[str]:
    summary = streams.describe()
    same = (summary.channel_observations > 1) & (summary.channel_lowest == summary.channel_highest)
    constant = [summary.channels[number] for number in np.flatnonzero(same)]
    verb = "is" if len(constant) == 1 else "are"
    note = f"{listed(constant)} {verb} constant; only the observation times are informative."
    return [note] if constant else []


def _lines_after(fitted: Fitted) -> list[str]:
    """The settings that were chosen, the course of training, and the scores."""
    choices, learners = fitted.estimator.choices_, compared(fitted.estimator.choices_)
    lines = ["Settings, with the reason and the option to change each:"]
    for name, chosen in choices.items():
        if name in {learner for learner, *_ in learners}:
            continue
        label, option = CHOICES.get(name, (name, ""))
        hint = f"; {option}" if option else ""
        lines.append(f"  {label:11} {_setting(chosen.value)}  ({chosen.reason}{hint})")
    lines += learner_table(learners)
    history, steps = fitted.estimator.history_, fitted.estimator.n_iter_
    course = f" for {steps:,} steps in {fitted.seconds:.0f} s; loss {history[-1].loss:.3g}" if history else ""
    lines.append(f"Trained on {fitted.trained:,} series{course or f' in {fitted.seconds:.0f} s'}.")
    if fitted.scores is not None:
        lines += score_table(fitted.scores, f"Scores on the {fitted.scores.series:,} held-out series")
    return lines


def _setting(value: Any) -> str:
    return f"of length {value.step}" if isinstance(value, Every) else repr(value)


def _record(fitted: Fitted, options: dict[str, Any], command: str, key: str) -> Run:
    examples, estimator, scores = fitted.examples, fitted.estimator, fitted.scores
    return Run(
        command=command,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        config=options,
        task=examples.task.name,
        task_reason=examples.why,
        outputs=list(examples.outputs),
        classes=fitted.classes,
        prior=fitted.prior,
        data=_data(fitted),
        choices={name: Setting(repr(one.value), one.reason) for name, one in estimator.choices_.items()},
        parameters=fitted.parameters,
        history=[Evaluation(**dataclasses.asdict(look)) for look in estimator.history_],
        metrics={} if scores is None else dict(scores.metrics),
        baseline={} if scores is None else dict(scores.baseline),
        held_out=None if scores is None else _held_out(scores),
        seconds={"training": round(fitted.seconds, 3)},
        versions=versions(*LIBRARIES),
        machine=machine(),
        key=key,
    )


def _data(fitted: Fitted) -> Data:
    examples = fitted.examples
    streams = examples.streams
    summary = streams.describe()
    columns = (summary.channel_observations, summary.channel_lowest, summary.channel_highest)
    numbers = zip(*(column.tolist() for column in (*columns, summary.channel_median_gap)), strict=True)
    return Data(
        file=str(examples.table.file),
        sha256=digest(examples.table.file),
        rows=examples.rows,
        series=len(streams),
        trained=fitted.trained,
        held_out=len(streams) - fitted.trained,
        events=summary.events,
        observations=summary.observations,
        channels=[Channel(name, *row) for name, row in zip(summary.channels, numbers, strict=True)],
        unit=summary.unit,
        gap=fitted.estimator.gap_,
    )


def _held_out(scores: Scores) -> HeldOut:
    predictions = scores.predictions
    return HeldOut(
        series=scores.ids.tolist(),
        time=predictions.time.tolist(),
        truth=scores.truth.tolist() if isinstance(scores.truth, np.ndarray) else list(scores.truth),
        prediction=predictions.value.tolist(),
        probabilities=None if predictions.probabilities is None else predictions.probabilities.tolist(),
    )
