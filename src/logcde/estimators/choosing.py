"""What an estimator chooses by itself, from the data, and why: units, coordinates, intervals, length of training."""

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
MOST_CHANNELS = 20_000
FEWEST_STEPS, MOST_STEPS = 100, 6000
EPOCHS, MORE_EPOCHS, MANY = 60, 150, 50
"""How often every series is seen; more often if they have at least so many observations each."""
ENOUGH = 1000
"""Series from which on some are held out."""
HELD_OUT = 0.15


@dataclasses.dataclass(frozen=True, repr=False)
class Choice:
    """What was chosen, and why."""

    value: Any
    why: str

    def __repr__(self) -> str:
        return f"{self.value!r} ({self.why})"


GIVEN = "as given"


def usual_gap(streams: Streams) -> float:
    """The median time from one event of a series to its next; 1 where no series has two.

    >>> usual_gap(Streams.from_arrays([[0.0, 0.1, 0.2]], [[[1.0], [2.0], [3.0]]]))
    0.1
    """
    owner = owners(streams.offsets)
    gaps = np.diff(streams.times)[owner[1:] == owner[:-1]]
    return neat(float(np.median(gaps))) if gaps.size else 1.0


def neat(number: float) -> float:
    """The fraction that it is but for rounding, so that cuts fall on stamps exactly."""
    near = float(Fraction(number).limit_denominator(100_000))
    return near if abs(near - number) <= 1e-12 * abs(number) else number


def refuse_many(streams: Streams) -> None:
    """Refuse more channels than a model can have parameters for, which most often are no channels."""
    count = len(streams.schema.channels)
    if count > MOST_CHANNELS:
        raise StreamError(
            f"There are {count:,} channels; {MOST_CHANNELS:,} are the most that an estimator learns from. Choose "
            "fewer. If these are not channels, see whether the columns were named rightly."
        )


def choose_partition(given: Partition | None, streams: Streams, gap: float) -> Choice:
    """Intervals as long as the usual gap, or as many gaps as keep them few."""
    if given is not None:
        return Choice(given, GIVEN)
    length = float(np.quantile(streams.horizon, 0.9))
    if length < FEWEST_INTERVALS * gap:
        why = f"{FEWEST_INTERVALS} intervals for short series, which share compiled programs in this way"
        return Choice(Partition.every(neat(length / FEWEST_INTERVALS)), why)
    several = max(1, int(np.ceil(round(length / gap / MOST_INTERVALS, 6))))
    why = "the usual gap between observations"
    if several > 1:
        why = f"{several} times {why}, so that there are at most about {MOST_INTERVALS} intervals"
    return Choice(Partition.every(neat(gap * several)), why)


def choose_embedding(
    units: AbstractScaler | None,
    counts: bool | None,
    time: bool,
    depth: int | None,
    streams: Streams,
    partition: Partition,
) -> tuple[Embedding, dict[str, Choice]]:
    """Units of the channels, their counts where they are not observed together, depth 2 where it can say something."""
    schema = streams.schema
    made: dict[str, Choice] = {}
    made["units"] = (
        Choice(units, GIVEN) if units is not None else Choice(RobustScaler(), "a few wild values cannot spoil it")
    )
    scaler = ChannelScaler.fit(streams, made["units"].value) if not schema.terms else None
    if scaler is None:
        made["units"] = Choice(None, "values with higher-order terms have their units already")
    if counts is not None:
        made["counts"] = Choice(counts, GIVEN)
    elif streams.synchronous:
        made["counts"] = Choice(False, "all channels are observed together")
    else:
        made["counts"] = Choice(True, "channels are observed at different times")
    letters = len(schema.channels) * (1 + made["counts"].value) + len(schema.continuous) + time
    intervals = len(partition.cuts(streams).points) - len(streams)
    crowded = len(streams.times) > 1.5 * intervals
    coordinates = letters * (letters + 1) // 2
    if depth is not None:
        made["depth"] = Choice(depth, GIVEN)
    elif schema.terms:
        made["depth"] = Choice(max(term.degree for term in schema.terms), "the degree of the terms")
    elif not crowded:
        made["depth"] = Choice(1, "intervals hold hardly more than one event, whose order depth 2 would tell")
    elif coordinates > MOST_COORDINATES:
        made["depth"] = Choice(1, f"depth 2 would have {coordinates} coordinates")
    else:
        made["depth"] = Choice(2, "intervals hold several events, and it tells their order")
    embedding = Embedding(made["depth"].value, made["counts"].value, time, np.float64, scaler)
    return embedding, made


def choose_steps(given: int | None, series: int, observations: float, batch: int) -> Choice:
    """So many epochs of so many series with so many observations each, within bounds."""
    if given is not None:
        return Choice(given, GIVEN)
    epochs = EPOCHS if observations < MANY else MORE_EPOCHS
    steps = min(max(epochs * -(-series // batch), FEWEST_STEPS), MOST_STEPS)
    return Choice(steps, f"{epochs} epochs of {series} series, but {FEWEST_STEPS} to {MOST_STEPS} steps")


def choose_held_out(
    given: float | None, classes: Int64[np.ndarray, "series"], rng: np.random.Generator
) -> tuple[Int64[np.ndarray, "_"] | None, Choice]:
    """Series for validation, the same share of every class, so that none is without training series."""
    count = len(classes)
    if given is None:
        fraction = HELD_OUT if count >= ENOUGH else 0.0
        why = f"{count} series are {'enough' if fraction else f'fewer than {ENOUGH}, and all are needed'}"
    else:
        fraction, why = given, GIVEN
    order = rng.permutation(count)
    chosen = [
        members[: int(fraction * len(members))] for members in (order[classes[order] == k] for k in np.unique(classes))
    ]
    held_out = np.sort(np.concatenate(chosen))
    if fraction and not len(held_out):
        why = f"{fraction} of any class is less than one series"
    return (held_out, Choice(fraction, why)) if len(held_out) else (None, Choice(0.0, why))
