"""Settings that an estimator chooses from the training data, each with its reason."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int64

from logcde.embedding import Embedding
from logcde.errors import StreamError
from logcde.streams import ChannelScaler, Partition, RobustScaler, Streams
from logcde.streams.ragged import owners
from logcde.streams.scaling import AbstractScaler

FEWEST_INTERVALS, MOST_INTERVALS = 8, 64
MOST_COORDINATES = 128
"""The largest basis for which depth 2 is chosen."""
MOST_CHANNELS = 20_000
FEWEST_STEPS, MOST_STEPS = 100, 6000
EPOCHS, LONG_EPOCHS, LONG = 60, 150, 50
"""Epochs of training; `LONG_EPOCHS` if series have at least `LONG` observations on average."""
VALIDATION_SERIES, VALIDATION_FRACTION = 1000, 0.15
"""Fewest series of which some are held out for validation, and the fraction that is."""
GIVEN = "as given"


@dataclasses.dataclass(frozen=True, repr=False)
class Choice:
    """A setting of a fitted estimator, its value and the reason for it, which is "as given" if the user set it.

    >>> Choice("depth", 2, GIVEN)
    2 (as given)
    """

    name: str
    value: Any
    reason: str

    def __repr__(self) -> str:
        return f"{self.value!r} ({self.reason})"


def median_gap(streams: Streams) -> float:
    """Return the median time between consecutive events of a series; 1 if no series has two events.

    >>> median_gap(Streams.from_arrays([[0.0, 0.1, 0.2]], [[[1.0], [2.0], [3.0]]]))
    0.1
    """
    owner = owners(streams.offsets)
    gaps = np.diff(streams.times)[owner[1:] == owner[:-1]]
    return near_fraction(float(np.median(gaps))) if gaps.size else 1.0


def near_fraction(number: float) -> float:
    """Return the fraction with a denominator up to 100,000 that equals `number` up to rounding, or else `number`.

    Cuts at multiples of the result then fall exactly on the stamps of a regular grid.
    """
    near = float(Fraction(number).limit_denominator(100_000))
    return near if abs(near - number) <= 1e-12 * abs(number) else number


def check_channel_count(streams: Streams) -> None:
    """Refuse more channels than a model can have parameters for: most often, columns were mistaken for channels."""
    count = len(streams.schema.channels)
    if count > MOST_CHANNELS:
        raise StreamError(
            f"There are {count:,} channels; an estimator learns from at most {MOST_CHANNELS:,}.",
            "Choose fewer, or check that the right columns are named as channels.",
        )


def choose_partition(given: Partition | None, streams: Streams, gap: float) -> Choice:
    """Choose intervals of one `gap`, or of as many gaps as keep the number of intervals small."""
    if given is not None:
        return Choice("partition", given, GIVEN)
    length = float(np.quantile(streams.horizon, 0.9))
    if length < FEWEST_INTERVALS * gap:
        reason = f"{FEWEST_INTERVALS} intervals for all short series, so that they share compiled programs"
        return Choice("partition", Partition.every(near_fraction(length / FEWEST_INTERVALS)), reason)
    several = max(1, int(np.ceil(round(length / gap / MOST_INTERVALS, 6))))
    reason = "the median gap between events"
    if several > 1:
        reason = f"{several} times {reason}, for at most about {MOST_INTERVALS} intervals"
    return Choice("partition", Partition.every(near_fraction(gap * several)), reason)


def choose_embedding(
    scaler: AbstractScaler | None,
    counts: bool | None,
    time: bool,
    depth: int | None,
    streams: Streams,
    partition: Partition,
) -> tuple[Embedding, dict[str, Choice]]:
    """Choose and fit the channel scaler, choose counts and depth. Arguments that are not None are taken as given."""
    scaling, fitted = _choose_scaler(scaler, streams)
    counting = _choose_counts(counts, streams)
    deep = _choose_depth(depth, counting.value, time, streams, partition)
    embedding = Embedding(deep.value, counting.value, time, np.float64, fitted)
    return embedding, {choice.name: choice for choice in (scaling, counting, deep)}


def _choose_scaler(given: AbstractScaler | None, streams: Streams) -> tuple[Choice, ChannelScaler | None]:
    if streams.schema.terms:
        return Choice("scaler", None, "streams with higher-order terms are not rescaled"), None
    choice = Choice("scaler", RobustScaler(), "robust to outliers")
    if given is not None:
        choice = Choice("scaler", given, GIVEN)
    return choice, ChannelScaler.fit(streams, choice.value)


def _choose_counts(given: bool | None, streams: Streams) -> Choice:
    if given is not None:
        return Choice("counts", given, GIVEN)
    if streams.synchronous:
        return Choice("counts", False, "all channels are observed together")
    return Choice("counts", True, "channels are observed at different times")


def _choose_depth(given: int | None, counts: bool, time: bool, streams: Streams, partition: Partition) -> Choice:
    """Choose depth 2 where intervals hold several events, whose order it encodes, and the basis stays small."""
    schema = streams.schema
    if given is not None:
        return Choice("depth", given, GIVEN)
    if schema.terms:
        return Choice("depth", max(term.degree for term in schema.terms), "the degree of the higher-order terms")
    intervals = len(partition.cuts(streams).points) - len(streams)
    if len(streams.times) <= 1.5 * intervals:
        return Choice("depth", 1, "few intervals hold more than one event, so depth 2 would add little")
    letters = len(schema.channels) * (1 + counts) + len(schema.continuous) + time
    coordinates = letters * (letters + 1) // 2
    if coordinates > MOST_COORDINATES:
        return Choice("depth", 1, f"depth 2 would have {coordinates} coordinates, more than {MOST_COORDINATES}")
    return Choice("depth", 2, "intervals hold several events, and depth 2 encodes their order")


def choose_steps(given: int | None, series: int, observations: float, batch: int) -> Choice:
    """Choose the number of training steps from the numbers of series and of observations of each, within bounds."""
    if given is not None:
        return Choice("steps", given, GIVEN)
    epochs = EPOCHS if observations < LONG else LONG_EPOCHS
    steps = min(max(epochs * -(-series // batch), FEWEST_STEPS), MOST_STEPS)
    return Choice(
        "steps", steps, f"{epochs} epochs of {series} series, limited to {FEWEST_STEPS} to {MOST_STEPS} steps"
    )


def choose_held_out(
    given: float | None, classes: Int64[np.ndarray, "series"], rng: np.random.Generator
) -> tuple[Int64[np.ndarray, "_"] | None, Choice]:
    """Draw the validation series: the same fraction of each class, rounded down, so that each keeps training series."""
    count = len(classes)
    if given is None:
        enough = count >= VALIDATION_SERIES
        fraction = VALIDATION_FRACTION if enough else 0.0
        reason = f"{count} series, fewer than {VALIDATION_SERIES}: all are used for training"
        if enough:
            reason = f"{count} series, at least {VALIDATION_SERIES}"
    else:
        fraction, reason = given, GIVEN
    order = rng.permutation(count)
    chosen = [
        members[: int(fraction * len(members))] for members in (order[classes[order] == k] for k in np.unique(classes))
    ]
    held_out = np.sort(np.concatenate(chosen))
    if fraction and not len(held_out):
        reason = f"{fraction} of each class is less than one series"
    if not len(held_out):
        return None, Choice("validation", 0.0, reason)
    return held_out, Choice("validation", fraction, reason)
