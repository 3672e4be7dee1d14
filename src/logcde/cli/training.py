"""The options that say how a model is trained, and how the series are divided.

One training run: series are divided, a model is fitted, and compared with what it has never seen.
"""

import dataclasses
import datetime
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import equinox as eqx
import jax
import numpy as np

from logcde._machine import machine, versions
from logcde.cli.config import as_command, as_toml, options_of, written_to
from logcde.cli.partition_options import of_length
from logcde.cli.resume import digest
from logcde.cli.targets import Examples
from logcde.cli.tasks import Scored, score, table_of
from logcde.errors import TrainingError
from logcde.estimators import saving
from logcde.estimators.choosing import median_gap
from logcde.report.record import CONFIG, RUN, Channel, Data, Evaluation, HeldOut, Run, Setting, write_run
from logcde.streams.partition import Every
from logcde.streams.schema import listed
from logcde.train import Checkpoints

if TYPE_CHECKING:
    from logcde.cli.tasks import AbstractTask
    from logcde.streams.clock import Clock
    from logcde.train import Checkpoints

NAMES = {
    "partition": ("intervals", "--every"),
    "scaler": ("scaler", ""),
    "counts": ("counts", ""),
    "depth": ("depth", "--depth"),
    "model": ("model", "--model, --hidden"),
    "validation_fraction": ("validation", "--validation"),
    "max_iter": ("steps", "--steps"),
}
"""Names for what an estimator chooses, and the options that say otherwise."""


@dataclasses.dataclass(frozen=True)
class Learning:
    """How a model is trained. What is not given is chosen from the data."""

    every: str | None = None
    """Length of the intervals that a series is cut into: a number in the units of time, or a duration such as 90min."""
    depth: int | None = None
    """Levels of the log-signature of an interval: 1 has increments only, 2 also the order of events."""
    model: Literal["slice", "neural"] = "slice"
    """A block-diagonal linear model, which is fast, or a neural one, which is slow."""
    hidden: int | None = None
    """Size of the state of the model."""
    steps: int | None = None
    """Steps of training."""
    rate: float = 0.01
    """Learning rate at its highest; it falls to zero."""
    batch: int = 32
    """Series in one step."""
    holdout: float = 0.2
    """Share of the series that training never sees, to tell how good the model is; 0 trains on all."""
    validation: float | None = None
    """Share of the training series to choose the best moment of training by; from 1,000 series on 0.15."""
    patience: int | None = None
    """Stop after so many looks at these without gain; there are 20 looks."""
    seed: int = 0
    """Seed of all that is random: the same seed on the same machine gives the same model."""

    def estimator(
        self, task: "AbstractTask", clock: "Clock", *, checkpoints: "Checkpoints | None", progress: bool
    ) -> Any:
        """An estimator to be fitted."""
        from logcde import estimators

        architectures = {"slice": estimators.Slice, "neural": estimators.Neural}
        model = None
        if self.hidden is not None or self.model != "slice":
            make = architectures[self.model]
            model = make() if self.hidden is None else make(hidden=self.hidden)
        return getattr(estimators, task.estimator)(
            partition=None if self.every is None else of_length(self.every, clock),
            depth=self.depth,
            model=model,
            max_iter=self.steps,
            learning_rate=self.rate,
            batch_size=self.batch,
            validation_fraction=self.validation,
            patience=self.patience,
            checkpoints=checkpoints,
            verbose=progress,
            random_state=self.seed,
        )

    def check(self) -> None:
        """Refuse numbers that mean nothing, before anything is read."""
        for name in ("depth", "hidden", "steps", "batch", "patience"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise TrainingError(f"--{name} is {number}. Give at least 1.")
        if not 0 < self.rate < np.inf:
            raise TrainingError(f"--rate is {self.rate}. Give a small positive number, such as 0.01.")
        for name in ("holdout", "validation"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise TrainingError(f"--{name} is {share}. Give a share of at least 0 and less than 1, such as 0.2.")
        if not 0 <= self.seed < 2**32:
            raise TrainingError(f"--seed is {self.seed}. Give a whole number from 0 to {2**32 - 1}.")

    def divide(self, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the series to train on and of those to hold out: the same share of every stratum.

        >>> training, held_out = Learning().divide(np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]))
        >>> len(training), len(held_out)
        (8, 2)
        """
        order = np.random.default_rng(self.seed).permutation(len(strata))
        rank = np.empty(len(strata))
        for one in np.unique(strata):
            members = order[strata[order] == one]
            rank[members] = (np.arange(len(members)) + 0.5) / len(members)
        # Of every stratum one stays at least; of what is left over, those that are furthest behind in theirs go first.
        count = min(round(self.holdout * len(strata)), len(strata) - max(2, len(np.unique(strata))))
        firsts = [order[strata[order] == one][0] for one in np.unique(strata)]
        rank[firsts] = -1.0
        held_out = np.sort(order[np.argsort(rank[order], kind="stable")][len(strata) - max(0, count) :])
        return np.setdiff1d(np.arange(len(strata)), held_out), held_out


if TYPE_CHECKING:
    from logcde.cli.train import Train

LIBRARIES = ("logcde", "equinox", "optax", "scikit-learn")


@dataclasses.dataclass(frozen=True)
class Fitted:
    """What came of it."""

    examples: Examples
    estimator: Any
    trained: int
    prior: list[float]
    held_out: Scored | None
    seconds: float

    @property
    def classes(self) -> list[Any] | None:
        """The classes in the order of probabilities."""
        return self.estimator.classes_.tolist() if self.examples.task.name == "classify" else None

    @property
    def parameters(self) -> int:
        """How many numbers were learnt."""
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.estimator.model_, eqx.is_inexact_array)))


Tell = Callable[[str], None]
"""Is told, line by line, how it goes."""


def announce(line: str) -> None:
    """To the user."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def fit(
    examples: Examples,
    learning: Learning,
    tell: Tell,
    *,
    change: Callable[[Examples], Examples] | None = None,
    checkpoints: Checkpoints | None = None,
    progress: bool = True,
) -> Fitted:
    """Divide, fit, compare. With `change`, something is done to the series once their ends are known."""
    task, streams = examples.task, examples.streams
    training, held_out = learning.divide(task.strata(examples.answers, len(streams)))
    examples = examples.ended(median_gap(streams[training]))
    examples = examples if change is None else change(examples)
    known = examples[training]
    for line in _begin(examples, len(held_out)):
        tell(line)
    step = None if checkpoints is None else checkpoints.step()
    if checkpoints is not None and step is not None:
        tell(f"Going on after step {step:,}, from {checkpoints.folder}.")
    began = time.monotonic()
    estimator = learning.estimator(task, streams.schema.clock, checkpoints=checkpoints, progress=progress)
    estimator.fit(known.streams, known.answers)
    seconds = time.monotonic() - began
    classes = estimator.classes_.tolist() if task.name == "classify" else None
    prior = task.prior(task.truth(known.answers, known.streams)[1], classes)
    scored = score(task, estimator, examples[held_out], prior, classes) if len(held_out) else None
    fitted = Fitted(examples, estimator, len(training), prior, scored, seconds)
    for line in _end(fitted):
        tell(line)
    return fitted


def save(fitted: Fitted, command: "Train") -> None:
    """Write the folder."""
    options = options_of(dataclasses.replace(command, config=None, overwrite=False, fresh=False))
    command_line = as_command("train", options)
    del options["output"]
    options = written_to(options, type(command), command.output)
    run = _record(fitted, options, command_line)
    extra = {RUN: write_run(run), CONFIG: as_toml(options)}
    saving.save(fitted.estimator, command.output, command.overwrite, extra)


def _begin(examples: Examples, held_out: int) -> list[str]:
    """What is going to be done, and why."""
    streams, task = examples.streams, examples.task
    names, channels = listed(examples.outputs, 3), listed(streams.schema.channels)
    what = {"classify": f"the class {names}", "regress": f"the number {names}", "forecast": f"{names} at each stamp"}
    lines = [
        f"{examples.table.file}: {len(streams):,} series, {len(streams.times):,} events, channels {channels}",
        f"Task: {task.name}, that is to predict {what[task.name]} ({examples.why}).",
        *_notes(streams),
    ]
    told = f"{held_out:,} of {len(streams):,} series are held out: training never sees them."
    lines.append(told if held_out else "No series are held out, so nothing will be known about how good the model is.")
    return lines


def _notes(streams: Any) -> list[str]:
    """What a person should know of the channels."""
    summary = streams.describe()
    same = (summary.channel_observations > 1) & (summary.channel_lowest == summary.channel_highest)
    constant = [summary.channels[number] for number in np.flatnonzero(same)]
    return [f"The value is always the same in {listed(constant)}: only when it is seen can tell."] if constant else []


def _end(fitted: Fitted) -> list[str]:
    """What was chosen, how training went, and how good the model is."""
    lines = ["Settings, and why:"]
    for name, chosen in fitted.estimator.choices_.items():
        label, option = NAMES.get(name, (name, ""))
        hint = f"; {option}" if option else ""
        lines.append(f"  {label:11} {_plain(chosen.value)}  ({chosen.reason}{hint})")
    steps, loss = fitted.estimator.n_iter_, fitted.estimator.history_[-1].loss
    lines.append(
        f"Trained on {fitted.trained:,} series for {steps:,} steps in {fitted.seconds:.0f} s; loss {loss:.3g}."
    )
    temperature = getattr(fitted.estimator, "temperature_", 1.0)
    if temperature != 1:
        lines.append(f"Temperature of the probabilities, by which they are as sure as right: {temperature:.3g}.")
    if fitted.held_out is not None:
        lines += table_of(fitted.held_out, f"On the {fitted.held_out.series:,} held-out series")
    return lines


def _plain(value: Any) -> str:
    return f"of length {value.step}" if isinstance(value, Every) else repr(value)


def _record(fitted: Fitted, options: dict[str, Any], command: str) -> Run:
    examples, estimator, scored = fitted.examples, fitted.estimator, fitted.held_out
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
        history=[Evaluation(**dataclasses.asdict(one)) for one in estimator.history_],
        metrics={} if scored is None else dict(scored.metrics),
        baseline={} if scored is None else dict(scored.baseline),
        held_out=None if scored is None else _held_out(scored),
        seconds={"training": round(fitted.seconds, 3)},
        versions=versions(*LIBRARIES),
        machine=machine(),
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


def _held_out(scored: Scored) -> HeldOut:
    found = scored.found
    return HeldOut(
        series=scored.ids.tolist(),
        time=found.time.tolist(),
        truth=scored.truth.tolist() if isinstance(scored.truth, np.ndarray) else list(scored.truth),
        prediction=found.value.tolist(),
        probabilities=None if found.probabilities is None else found.probabilities.tolist(),
    )
