"""GRU-D of the library, hour by hour: last values, which are new, and how long ago each was observed before."""

import time
from pathlib import Path

import jax.numpy as jnp
import msgspec
import numpy as np
import optax
from jaxtyping import Float32, Float64, Int64

from experiments.runner.abstract import Tell
from experiments.runner.recipes import Telling, keys_of
from experiments.sepsis.data import PER_CHANNEL, Hospitals, Split, Told, hourly
from logcde.baselines import HeldControl, gru_d
from logcde.embedding import InitialObservations
from logcde.models import AbstractModel, Inputs, PerInterval, predict
from logcde.streams import Schema
from logcde.streams.ragged import offsets_of, owners
from logcde.train import Batching, Checkpoints, Epochs, Selection, fit, losses

DAY, FARTHEST = 24.0, 5.0
"""Ages are in days, so that states do not fade at first; standardised values are clipped."""
TOGETHER = 1000
CLASSES = 2
NAME, CLOCK = "GRU-D", "hour"


class GRUD(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="gru-d"):
    """A GRU-D with a row and a label for each hour, trained on the first hours of some training stays.

    The state with the least loss on validation stays is kept. All hours are predicted. A labelled hour counts as
    `weight` others. With `decay` the rate falls to 0 along half a cosine, and with `clock` the hour of the stay is a
    further channel, observed each hour. `buckets` is the number of lengths to which stays are padded.
    """

    hidden: int = 64
    stays: int = 12_000
    hours: int = 60
    epochs: int = 8
    rate: float = 3e-3
    batch: int = 64
    patience: int = 2
    weight: float = 1.0
    decay: bool = False
    clock: bool = False
    buckets: int = 4

    def fit(self, given: Hospitals, split: Split, seed: int, tell: Tell, scratch: Path) -> dict[str, Told]:
        """Train, and predict by pieces of stays with similar lengths."""
        began = time.monotonic()
        rng = np.random.default_rng(seed)
        used = np.sort(rng.choice(split.train, min(self.stays, len(split.train)), replace=False))
        checked = np.sort(rng.choice(split.validation, min(self.stays // 4, len(split.validation)), replace=False))
        scale = _scale(given, used)
        (inputs, targets), checks = (self._labelled(given, stays, scale) for stays in (used, checked))
        for_model, for_training = keys_of(seed)
        basis = HeldControl().basis(Schema(given.streams.schema.channels + (CLOCK,) * self.clock))
        readout = PerInterval()
        steps = self.epochs * -(-len(used) // self.batch)
        rate = optax.cosine_decay_schedule(self.rate, steps) if self.decay else self.rate
        result = fit(
            gru_d(basis, self.hidden, CLASSES, readout=readout, key=for_model),
            inputs,
            targets,
            loss=losses.CrossEntropy(weights=(1.0, self.weight)),
            optimiser=optax.adam(rate),
            batching=Batching(size=self.batch, buckets=self.buckets),
            duration=Epochs(self.epochs),
            selection=Selection(validation=checks, every=Epochs(1), patience=self.patience),
            checkpoints=Checkpoints(scratch),
            callbacks=(Telling(tell),),
            key=for_training,
        )
        seconds = time.monotonic() - began
        known, found = (self._odds(result.model, given, part, scale) for part in (split.validation, split.test))
        return {NAME: Told(known, found, seconds, f"best after {result.summary.best_step} steps")}

    def _labelled(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], scale: Float64[np.ndarray, "2 channel"]
    ) -> tuple[Inputs, Int64[np.ndarray, "stay hour"]]:
        inputs = self._inputs(given, stays, scale, self.hours)
        place, hour, label = given.hours_of(stays)
        targets, some = np.zeros((len(stays), inputs.intervals), np.int64), hour < inputs.intervals
        targets[place[some], hour[some]] = label[some]
        return inputs, targets

    def _inputs(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], scale: Float64[np.ndarray, "2 channel"], most: int
    ) -> Inputs:
        """One row for each of the first hours."""
        lengths = np.diff(given.rows)[stays]
        kept = np.minimum(lengths, most)
        channels = scale.shape[1] + self.clock
        values = np.zeros((len(stays), int(kept.max()), 3 * channels), np.float32)
        for begin in range(0, len(stays), TOGETHER):
            some = slice(begin, begin + TOGETHER)
            offsets = offsets_of(lengths[some])
            rows = held(hourly(given.streams[stays[some]], offsets), offsets, scale)
            stay = owners(offsets)
            hour = np.arange(len(rows)) - offsets[stay]
            if self.clock:
                rows = with_clock(rows, hour)
            early = hour < most
            values[begin + stay[early], hour[early]] = rows[early]
        nothing = jnp.zeros((len(stays), channels), bool)
        initial = InitialObservations(nothing.astype(jnp.float32), nothing, nothing)
        static = jnp.zeros((len(stays), 0), jnp.float32)
        return Inputs(jnp.asarray(values), jnp.asarray(kept, jnp.int32), initial, static)

    def _odds(
        self,
        model: AbstractModel,
        given: Hospitals,
        stays: Int64[np.ndarray, "_"],
        scale: Float64[np.ndarray, "2 channel"],
    ) -> Float64[np.ndarray, "hour"]:
        """Log odds of all hours; stays with similar lengths are predicted together."""
        lengths = np.diff(given.rows)[stays]
        offsets, order = offsets_of(lengths), np.argsort(lengths, kind="stable")
        out = np.empty(offsets[-1])
        for begin in range(0, len(order), TOGETHER):
            chosen = order[begin : begin + TOGETHER]
            logits = np.asarray(predict(model, self._inputs(given, stays[chosen], scale, int(lengths.max()))))
            for one, found in zip(chosen, logits[..., 1] - logits[..., 0], strict=True):
                out[offsets[one] : offsets[one + 1]] = found[: lengths[one]]
        return out


def _scale(given: Hospitals, stays: Int64[np.ndarray, "_"]) -> Float64[np.ndarray, "2 channel"]:
    """Mean and standard deviation of the values of each channel."""
    streams = given.streams[stays]
    counts = np.maximum(np.bincount(streams.channel, minlength=len(streams.schema.channels)), 1)
    mean = np.bincount(streams.channel, streams.value, len(counts)) / counts
    off = np.square(streams.value - mean[streams.channel])
    spread = np.sqrt(np.bincount(streams.channel, off, len(counts)) / counts)
    return np.stack([mean, np.where(spread > 0, spread, 1.0)])


def held(
    table: Float32[np.ndarray, "row feature"],
    offsets: Int64[np.ndarray, "stay+1"],
    scale: Float64[np.ndarray, "2 channel"],
) -> Float32[np.ndarray, "row entry"]:
    """The rows of a `HeldControl` with an event at each hour, of standardised values, from hourly features.

    >>> nan = np.nan
    >>> table = np.array([[nan, nan, 0, nan, nan, 0], [7, 0, 1, 7, nan, 1], [7, 1, 1, 7, nan, 2]], np.float32)
    >>> held(table, np.array([0, 3]), np.array([[5.0], [2.0]])).astype(float).round(3).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 0.042], [1.0, 0.0, 0.042]]
    """
    parts = table[:, :-1].reshape(len(table), -1, PER_CHANNEL)
    last, age = parts[..., 0], parts[..., 1]
    value = np.clip(np.nan_to_num((last - scale[0]) / scale[1]), -FARTHEST, FARTHEST)
    ago = np.roll(age, 1, axis=0) + 1
    ago = np.where(np.isfinite(ago), ago, table[:, -1:])
    ago[offsets[:-1]] = 0.0
    return np.concatenate([value, age == 0, ago / DAY], axis=1).astype(np.float32)


def with_clock(
    rows: Float32[np.ndarray, "row entry"], hour: Int64[np.ndarray, "row"]
) -> Float32[np.ndarray, "row longer"]:
    """The same rows with the hour of the stay, in days, as a further channel that is observed each hour.

    >>> with_clock(np.array([[0.0, 1.0, 0.5]], np.float32), np.array([12])).astype(float).round(2).tolist()
    [[0.0, 0.5, 1.0, 1.0, 0.5, 0.04]]
    """
    parts = rows.reshape(len(rows), 3, -1)
    clock = np.stack([np.minimum(hour / DAY, FARTHEST), np.ones(len(hour)), np.full(len(hour), 1 / DAY)], axis=1)
    return np.concatenate([parts, clock[..., None]], axis=2).reshape(len(rows), -1).astype(np.float32)
