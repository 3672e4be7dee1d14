"""The whole library on generated streams, with a picture and a report at the end: `python -m examples.demo --out out`.

Coupled sinusoids (`sec:sinusoid` in the paper), one wave observed often and one sparsely, at times of their own. Both
models are causal, and are trained on the same series for the same number of steps with the same peak and warm-up of the
learning rate. They differ in parameters and work: a GRU-D takes a step for each event, a Log-SLiCE for an interval of a
few. The state of 32 units in blocks of 16 was chosen on series drawn with seed 1; the GRU-D has 64 units.
"""

import csv
import dataclasses
import importlib.metadata
import json
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from logcde import estimators, plot
from logcde._files import whole_file
from logcde.algebra import log as tensor_log
from logcde.algebra import multiply_exp, project, unit
from logcde.baselines import HeldControl, gru_d
from logcde.cli import main as logcde
from logcde.datasets import Dataset
from logcde.datasets.sinusoid import CHANNELS, HORIZON, Sinusoids, sinusoids
from logcde.embedding import Embedding
from logcde.errors import ArtefactError, CheckFailed, LogcdeError
from logcde.models import Inputs, PerInterval, predict
from logcde.paths import decode, realise
from logcde.report.record import Run, read_run
from logcde.streams.ragged import owners
from logcde.train import Batching, Selection, Steps
from logcde.train import fit as train

EXACT, CLOSE = 1e-9, 1e-4
"""Tolerances for rounding: of log-signatures in double precision, and of predictions in single precision."""
RATE, BATCH, WARMUP = 0.01, 32, 0.05
"""Largest learning rate, batch size and share of steps in which the rate rises: the defaults of `logcde train`."""


@dataclasses.dataclass(frozen=True)
class Size:
    """Number of series, training steps, hidden units of the Log-SLiCE and their blocks, hidden units of the GRU-D."""

    series: int
    steps: int
    hidden: int
    block: int
    rival: int


FULL, QUICK = Size(640, 1200, 32, 16, 64), Size(24, 3, 4, 4, 4)


@dataclasses.dataclass(frozen=True)
class Waves:
    """Generated streams, the query times of each series, and the tables that both were written to."""

    drawn: Sinusoids
    queries: list[np.ndarray]
    observations: Path
    targets: Path

    @property
    def data(self) -> Dataset:
        """Streams, partition and targets."""
        return self.drawn.data


@dataclasses.dataclass(frozen=True)
class Trained:
    """The Log-SLiCE that `logcde train` wrote: its estimator and the record of its training.

    Attributes:
        estimator: The saved estimator.
        run: The record.
        held_out: Numbers of the held-out series, in increasing order.
        ids: Series of each held-out query, by name.
        times: Time of each held-out query.
        truth: Targets at the held-out queries.
        prediction: Predictions there.
    """

    estimator: Any
    run: Run
    held_out: np.ndarray
    ids: np.ndarray
    times: np.ndarray
    truth: np.ndarray
    prediction: np.ndarray

    @classmethod
    def read(cls, folder: Path, series: int) -> "Trained":
        """Read the folder of the model."""
        run = read_run(folder)
        assert run is not None
        assert run.held_out is not None
        ids = np.array(run.held_out.series)
        held_out = np.flatnonzero(np.isin([_name(number) for number in range(series)], ids))
        rows = (np.array(rows, float) for rows in (run.held_out.time, run.held_out.truth, run.held_out.prediction))
        return cls(estimators.load(folder), run, held_out, ids, *rows)


@dataclasses.dataclass(frozen=True)
class Filled:
    """A model that fills gaps: its predictions at the held-out queries, and the cost of its training."""

    prediction: np.ndarray
    steps: int
    seconds: float
    parameters: int


def observe(size: Size, folder: Path, seed: int = 0) -> Waves:
    """Generate streams, and write observations and targets as tables next to `folder`."""
    drawn = sinusoids("async_sparse", size.series, seed=seed)
    streams = drawn.data.streams
    event = owners(streams.obs_offsets)
    series = owners(streams.offsets)[event]
    names = [CHANNELS[channel] for channel in streams.channel]
    rows = zip(map(_name, series), streams.times[event], names, streams.value, strict=True)
    observations = folder.with_name(f"{folder.name}-observations.csv")
    _write(observations, ("series", "time", "channel", "value"), rows)
    targets = folder.with_name(f"{folder.name}-targets.csv")
    cuts = drawn.data.partition.cuts(streams)
    queries = [points[1:] for points in np.split(cuts.points, cuts.offsets[1:-1])]
    asked = (
        (_name(number), *row)
        for number, times in enumerate(queries)
        for row in np.column_stack([times, drawn.waves(number, times)])
    )
    _write(targets, ("series", "time", *CHANNELS), asked)
    return Waves(drawn, queries, observations, targets)


def check_embedding(waves: Waves) -> str:
    """Check that log-signatures are those of the realised path, and that the path decodes to the observations."""
    data, embedding = waves.data, Embedding(depth=2)
    few = data.streams[:3]
    paths = realise(few, embedding)
    logsigs = embedding(data.streams, data.partition)
    worst = 0.0
    with jax.enable_x64(True):
        for place, (start, stop) in enumerate(pairwise([0.0, *waves.queries[0][:5].tolist()])):
            total = unit(logsigs.basis)
            for step in np.diff(paths[0].between(start, stop), axis=0):
                total = multiply_exp(total, jnp.asarray(step))
            expected = np.asarray(project(tensor_log(total)).coordinates)
            apart = np.abs(logsigs.values[0, place] - expected).max()
            worst = max(worst, float(apart / (1 + np.abs(expected).max())))
    if decode(paths) != few or worst > EXACT:
        raise CheckFailed(f"The embedding is not that of the realised path ({worst:.1e}).", "Please report this bug.")
    return (
        f"One log-signature for each of {int(logsigs.lengths.sum()):,} intervals between query times. They are those "
        f"of the realised path (largest relative difference {worst:.0e}), and the paths of {len(few)} series decode "
        "to exactly the observations that went in."
    )


def learn(waves: Waves, size: Size, folder: Path) -> Trained:
    """Train a Log-SLiCE by the command `logcde train`, which writes `folder`."""
    options = {"--targets": waves.targets, "--horizon": f"{HORIZON:g}", "--learner": "slice"}
    options |= {"--hidden": size.hidden, "--block": size.block, "--steps": size.steps}
    given = [str(part) for option in options.items() for part in option]
    _command("train", str(waves.observations), *given, "--paper", "-o", str(folder), "--overwrite", "--fresh")
    return Trained.read(folder, size.series)


def fill(waves: Waves, trained: Trained, size: Size) -> Filled:
    """Train a GRU-D on the same series for the same number of steps, and predict the held-out series."""
    data, held_out = waves.data, trained.held_out
    known = np.setdiff1d(np.arange(len(data)), held_out)
    held = HeldControl(dtype=np.float32)(data.streams, data.partition)
    inputs = Inputs.of(held)
    rising = max(1, round(WARMUP * size.steps))
    rate = optax.warmup_cosine_decay_schedule(0.0, RATE, rising, max(size.steps, rising + 1))
    began = time.monotonic()
    result = train(
        gru_d(held.basis, size.rival, len(CHANNELS), readout=PerInterval(), key=jax.random.key(0)),
        inputs[known],
        data.targets[known],
        optimiser=optax.adam(rate),
        batching=Batching(size=BATCH),
        duration=Steps(size.steps),
        selection=Selection(validation=None, every=Steps(size.steps), patience=None),
        key=jax.random.key(1),
    )
    seconds = time.monotonic() - began
    found = np.asarray(predict(result.last, inputs[held_out]), float)
    asked = np.isfinite(data.targets[held_out]).all(axis=-1)
    return Filled(found[asked], result.summary.steps, seconds, result.summary.parameters)


def comparison(trained: Trained, rival: Filled) -> str:
    """A table of both models."""
    ours, theirs = (np.square(found - trained.truth).mean(axis=0) for found in (trained.prediction, rival.prediction))
    head = f"  {'':10} {'mse':>8} {'of x1':>8} {'of x2':>8} {'steps':>7} {'seconds':>8} {'parameters':>11}"
    run = trained.run
    rows = [
        f"  {name:10} {error.mean():8.4f} {error[0]:8.4f} {error[1]:8.4f} {steps:7,} {seconds:8.0f} {count:11,}"
        for name, error, steps, seconds, count in (
            ("Log-SLiCE", ours, trained.estimator.n_iter_, run.seconds["training"], run.parameters),
            ("GRU-D", theirs, rival.steps, rival.seconds, rival.parameters),
        )
    ]
    title = (
        f"At {len(trained.ids):,} query times of {len(trained.held_out):,} held-out series. Both models use past "
        "observations only, and were trained on the same series for the same number of steps; seconds are those of "
        "this machine and include compilation:"
    )
    return "\n".join([title, head, *rows])


def write_errors(trained: Trained, rival: Filled, seed: int, file: Path) -> None:
    """Write the mean squared errors of both models, with what they depend on."""
    errors = {
        name: float(np.square(found - trained.truth).mean())
        for name, found in (("Log-SLiCE", trained.prediction), ("GRU-D", rival.prediction))
    }
    versions = {name: importlib.metadata.version(name) for name in ("logcde", "jax", "jaxlib", "equinox", "optax")}
    record = {"seed": seed, "held-out series": len(trained.held_out), "steps": rival.steps, "mse": errors}
    with whole_file(file) as unfinished:
        unfinished.write_text(json.dumps({**record, "versions": versions}, indent=2) + "\n", "utf-8")


def online(waves: Waves, trained: Trained, series: int = 4, times: int = 8) -> str:
    """Replay some held-out series event by event and compare with offline predictions."""
    estimator, chosen = trained.estimator, waves.data.streams[trained.held_out[:series]]
    at = np.linspace(0, HORIZON, times + 1)[1:] - 0.1
    # One time in each call, as online: a query time ends an interval.
    offline = np.stack([estimator.predict(chosen, at=[one])[:, 0] for one in at], axis=1)
    worst, events = 0.0, 0
    for place in range(len(chosen)):
        one, predictor, seen = chosen[place : place + 1], estimator.online(), 0
        for number, moment in enumerate(at.tolist()):
            while seen < len(one.times) and one.times[seen] < moment:
                mine = slice(*one.obs_offsets[seen : seen + 2])
                values = zip(one.channel[mine].tolist(), one.value[mine].tolist(), strict=True)
                predictor.observe(float(one.times[seen]), {CHANNELS[channel]: value for channel, value in values})
                seen += 1
            worst = max(worst, float(np.abs(predictor.predict(at=moment) - offline[place, number]).max()))
        events += seen
    if worst > CLOSE:
        raise CheckFailed(f"Online and offline predictions differ by {worst:.1e}.", "Please report this bug.")
    return (
        f"{len(chosen)} held-out series of {events:,} events, {len(at)} predictions for each as they come in: the "
        f"largest difference from offline predictions is {worst:.0e}, which is the rounding of single precision."
    )


def draw(waves: Waves, trained: Trained, rival: Filled, file: Path) -> None:
    """Draw one held-out series: its observation times, the waves, and the predictions of both models."""
    series = int(trained.held_out[0])
    mine = np.flatnonzero(trained.ids == _name(series))
    at = trained.times[mine]
    figure = plot.figure_of(9, 6.4)
    top, *panels = figure.subplots(1 + len(CHANNELS), 1, sharex=True, height_ratios=(1, 2, 2))
    plot.channel_raster(top, waves.data.streams, series)
    top.set_title("Observed: a tick for each value, each channel at times of its own", loc="left", fontsize=10)
    grid = np.linspace(0, HORIZON, 400)
    curve = waves.drawn.waves(series, grid)
    predictions = {"Log-SLiCE": (trained.prediction, "o", 2), "GRU-D, which holds values": (rival.prediction, "^", 3)}
    for channel, axes in enumerate(panels):
        axes.plot(grid, curve[:, channel], color="0.6", lw=1.3, label="the wave, never shown")
        for name, (found, mark, colour) in predictions.items():
            style = {"color": plot.COLOURS[colour], "mfc": "none", "mew": 1.5, "ms": 6, "clip_on": False}
            axes.plot(at, found[mine, channel], mark, label=f"{name}, predicted", **style)
        axes.set_ylabel(CHANNELS[channel])
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    title = "Predicted at free query times of a held-out series, from what was observed before each"
    panels[0].set_title(title, loc="left", fontsize=10)
    panels[0].legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, -0.2))
    panels[-1].set_xlabel("time")
    plot.save(figure, file)


@dataclasses.dataclass(frozen=True)
class Demo:
    """Train on asynchronous streams, compare with a model that fills gaps, predict online, and draw it.

    Two waves are observed each at times of its own, one of them sparsely, and predicted at query times that are
    independent of these. It takes about two minutes on two cores. Example: python -m examples.demo --out out
    """

    out: Path = Path("out")
    """Folder to write: demo.png, demo (the trained model with its report), demo.json (the errors of both models), and
    the two tables they were trained on."""
    seed: int = 0
    """Seed of the generated streams."""
    quick: bool = False
    """A few series and steps, to check the installation; models learn next to nothing."""

    def run(self) -> None:
        """Run all steps, and print what they show."""
        size, folder, picture = QUICK if self.quick else FULL, self.out / "demo", self.out / "demo.png"
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            waves = observe(size, folder, self.seed)
        except OSError as error:
            found = f"{error.filename or self.out} cannot be written: {error.strerror or error}."
            raise ArtefactError(found, "Choose another folder with --out.") from error
        _say(f"1. The streams\n{waves.data.streams.describe()}")
        _say(f"2. What their embedding keeps\n{check_embedding(waves)}")
        _say("3. A Log-SLiCE, trained by logcde train")
        trained = learn(waves, size, folder)
        _say("4. A model that fills gaps: GRU-D, which holds every value until the next one")
        rival = fill(waves, trained, size)
        sys.stdout.write(comparison(trained, rival) + "\n")
        write_errors(trained, rival, self.seed, self.out / "demo.json")
        _say(f"5. Online, event by event\n{online(waves, trained)}")
        draw(waves, trained, rival, picture)
        _command("report", str(folder))
        _say(f"Picture: {picture}   Report: {folder / 'report.html'}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo; exits with a sentence on an error, and with 130 on Ctrl-C."""
    demo = tyro.cli(Demo, prog="python -m examples.demo", args=arguments)
    try:
        demo.run()
    except LogcdeError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("demo: stopped before the end; there is no new report.\n")
        sys.exit(130)


def _command(*arguments: str) -> None:
    """Run a command of `logcde` in this process; a failure ends the demo."""
    try:
        logcde(arguments)
    except SystemExit as end:
        if end.code:
            raise


def _say(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


def _name(series: int) -> str:
    return f"wave {series}"


def _write(file: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with whole_file(file) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(head)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
