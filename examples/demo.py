"""What `logcde demo` shows, step by step.

Coupled sinusoids (`sec:sinusoid` in the paper), one wave observed often and one sparsely, at times of their own. Both
models are causal, have hidden states of the same size, and are trained on the same series for as many steps at rates
that rise and fall alike.
"""

import csv
import dataclasses
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from logcde import plot
from logcde._files import whole_file
from logcde.algebra import log as tensor_log
from logcde.algebra import multiply_exp, project, unit
from logcde.baselines import HeldControl, gru_d
from logcde.cli.table import Table
from logcde.cli.targets import Answers
from logcde.cli.train import Train
from logcde.cli.training import Fitted, Learning
from logcde.datasets import Dataset
from logcde.datasets.sinusoid import CHANNELS, HORIZON, Sinusoids, sinusoids
from logcde.embedding import Embedding
from logcde.errors import CheckFailed
from logcde.estimators.training import WARMUP
from logcde.models import Inputs, PerInterval, predict
from logcde.paths import decode, realise
from logcde.streams.ragged import owners
from logcde.train import Steps
from logcde.train import fit as train

EXACT, CLOSE = 1e-9, 1e-4
"""What rounding allows for: of log-signatures in double precision, and of predictions in single precision."""


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is done."""

    series: int
    steps: int
    hidden: int


FULL, QUICK = Size(640, 1200, 64), Size(24, 3, 4)


@dataclasses.dataclass(frozen=True)
class Waves:
    """The streams, as they were generated, when each is asked about, and the tables that they were written to."""

    drawn: Sinusoids
    queries: list[np.ndarray]
    observations: Path
    targets: Path

    @property
    def data(self) -> Dataset:
        """Streams, where they are asked about, and the answers."""
        return self.drawn.data


@dataclasses.dataclass(frozen=True)
class Filled:
    """A model that fills gaps: what it predicts for held-out series at their query times, and how it came about."""

    prediction: np.ndarray
    steps: int
    seconds: float
    parameters: int


def observe(size: Size, folder: Path) -> Waves:
    """Generate streams, and write them and the answers as tables beside a folder."""
    drawn = sinusoids("async_sparse", size.series, seed=0)
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


def kept(waves: Waves) -> str:
    """That log-signatures are those of a path, and that this path gives every observation back."""
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
        raise CheckFailed(f"The embedding does not keep what it should ({worst:.1e}). Please report this as a bug.")
    return (
        f"One log-signature for each of {int(logsigs.lengths.sum()):,} intervals between query times. They are those "
        f"of the realised path (largest relative difference {worst:.0e}), and the paths of {len(few)} series decode "
        "to exactly the observations that went in."
    )


def learn(waves: Waves, size: Size, folder: Path) -> Fitted:
    """What `logcde train` does, and the folder that it writes."""
    return Train(
        Table(waves.observations, horizon=f"{HORIZON:g}"),
        Answers(targets=waves.targets),
        Learning(hidden=size.hidden, steps=size.steps),
        output=folder,
        overwrite=True,
        fresh=True,
    ).fit()


def fill(waves: Waves, fitted: Fitted, size: Size) -> Filled:
    """Train a GRU-D on the same series, with as many steps, and predict the held-out ones at the same times."""
    data, held_out = waves.data, held_out_of(fitted)
    known = np.setdiff1d(np.arange(len(data)), held_out)
    held = HeldControl(dtype=np.float32)(data.streams, data.partition)
    inputs = Inputs.of(held)
    learning = Learning(steps=size.steps)
    rising = max(1, round(WARMUP * size.steps))
    rate = optax.warmup_cosine_decay_schedule(0.0, learning.rate, rising, max(size.steps, rising + 1))
    began = time.monotonic()
    result = train(
        gru_d(held.basis, size.hidden, len(CHANNELS), readout=PerInterval(), key=jax.random.key(0)),
        inputs[known],
        data.targets[known],
        validation=None,
        optimiser=optax.adam(rate),
        batch=learning.batch,
        duration=Steps(size.steps),
        every=Steps(size.steps),
        patience=None,
        key=jax.random.key(1),
    )
    seconds = time.monotonic() - began
    found = np.asarray(predict(result.last, inputs[held_out]), float)
    asked = np.isfinite(data.targets[held_out]).all(axis=-1)
    return Filled(found[asked], result.summary.steps, seconds, result.summary.parameters)


def comparison(fitted: Fitted, rival: Filled) -> str:
    """Both models side by side."""
    scored = fitted.held_out
    assert scored is not None
    ours, theirs = (np.square(found - scored.truth).mean(axis=0) for found in (scored.found.value, rival.prediction))
    head = f"  {'':10} {'mse':>8} {'of x1':>8} {'of x2':>8} {'steps':>7} {'seconds':>8} {'parameters':>11}"
    rows = [
        f"  {name:10} {error.mean():8.4f} {error[0]:8.4f} {error[1]:8.4f} {steps:7,} {seconds:8.0f} {count:11,}"
        for name, error, steps, seconds, count in (
            ("Log-SLiCE", ours, fitted.estimator.n_iter_, fitted.seconds, fitted.parameters),
            ("GRU-D", theirs, rival.steps, rival.seconds, rival.parameters),
        )
    ]
    title = (
        f"At {len(scored.ids):,} query times of {scored.series:,} held-out series. Neither model looks ahead, and both "
        "had the same series and number of steps; seconds are those of this machine, with compiling:"
    )
    return "\n".join([title, head, *rows])


def online(fitted: Fitted, series: int = 4, times: int = 8) -> str:
    """Some held-out series event by event, with the largest difference from predicting the same offline."""
    streams, estimator = fitted.examples.streams, fitted.estimator
    chosen = streams[held_out_of(fitted)[:series]]
    at = np.linspace(0, HORIZON, times + 1)[1:] - 0.1
    # One time in each call, as online: intervals end where a series is asked about.
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
        raise CheckFailed(f"Online and offline predictions differ by {worst:.1e}. Please report this as a bug.")
    return (
        f"{len(chosen)} held-out series of {events:,} events, asked {len(at)} times each while they came in: the "
        f"largest difference from offline predictions is {worst:.0e}, which is the rounding of single precision."
    )


def draw(waves: Waves, fitted: Fitted, rival: Filled, file: Path) -> None:
    """One held-out series: when it was observed, the waves, and what both models said at query times."""
    scored = fitted.held_out
    assert scored is not None
    series = int(held_out_of(fitted)[0])
    mine = np.flatnonzero(scored.ids == _name(series))
    at = scored.found.time[mine]
    figure = plot.figure_of(9, 6.4)
    top, *panels = figure.subplots(1 + len(CHANNELS), 1, sharex=True, height_ratios=(1, 2, 2))
    plot.raster(top, waves.data.streams, series)
    top.set_title("Observed: a tick for each value, each channel at times of its own", loc="left", fontsize=10)
    grid = np.linspace(0, HORIZON, 400)
    curve = waves.drawn.waves(series, grid)
    predictions = {"Log-SLiCE": (scored.found.value, "o", 2), "GRU-D, which holds values": (rival.prediction, "^", 3)}
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


def held_out_of(fitted: Fitted) -> np.ndarray:
    """Numbers of the series that training has never seen."""
    assert fitted.held_out is not None
    return np.flatnonzero(np.isin(fitted.examples.streams.ids, np.unique(fitted.held_out.ids)))


def _name(series: int) -> str:
    return f"wave {series}"


def _write(file: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with whole_file(file) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(head)
        writer.writerows(rows)
