"""Settings that an estimator chooses from the training data, each with its reason."""

import dataclasses
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int64

from logcde.embedding import Embedding
from logcde.embedding.factors import intervals_of
from logcde.embedding.sparse import DENSE_FROM
from logcde.errors import LogcdeWarning, Remedy, StreamError
from logcde.streams import ChannelScaler, FirstStamp, NumericClock, Partition, RobustScaler, Streams
from logcde.streams.clock import moment_of
from logcde.streams.faults import Places, name
from logcde.streams.partition import LEAST_FILLED, warn_if_mostly_empty
from logcde.streams.ragged import owners
from logcde.streams.scaling import AbstractScaler
from logcde.streams.schema import listed

FEWEST_INTERVALS, MOST_INTERVALS = 8, 64
FEWEST_WINDOWS, MOST_WINDOWS = 8, 32
MOST_COORDINATES = 128
"""The largest basis for which depth 2 is chosen."""
MOST_CHANNELS = 20_000
LATEST_START = 0.5
"""The share of its observation window after which a series begins late."""
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


def brief(option: Any) -> str:
    """The class of an option object and its fields that are not the default.

    >>> brief(RobustScaler()), brief(RobustScaler(long=4.0))
    ('RobustScaler', 'RobustScaler(long=4.0)')
    """
    if not dataclasses.is_dataclass(option):
        return repr(option)
    values = [(one, getattr(option, one.name)) for one in dataclasses.fields(option) if one.init]
    given = ", ".join(f"{one.name}={brief(value)}" for one, value in values if value != one.default)
    return f"{type(option).__name__}({given})" if given else type(option).__name__


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
    """Choose and fit the channel scaler, choose depth. Arguments that are not None are taken as given."""
    filled = count_filled(partition, streams)
    scaling, fitted = _choose_scaler(scaler, streams)
    counting = _choose_counts(counts)
    increments = Embedding(1, counting.value, time)
    letters = increments.basis(streams.schema).width
    many = letters * (letters + 1) // 2 > MOST_COORDINATES  # of few, it does not matter how many are kept
    kept = _count_kept(increments, partition, streams) if many else 0.0
    deep = _choose_depth(depth, counting.value, time, streams, filled, kept)
    # Networks compute in single precision. Sums are in double precision, and rounded once, as they are online.
    embedding = Embedding(deep.value, counting.value, time, np.float32, fitted)
    sparse = _choose_sparse(embedding.basis(streams.schema).dimension, deep.value, kept)
    return embedding, {choice.name: choice for choice in (scaling, counting, deep, sparse)}


def _count_kept(embedding: Embedding, partition: Partition, streams: Streams) -> float:
    """The mean number of coordinates of depth 2 whose letters move in an interval."""
    counts = embedding(streams, partition, sparse=True).counts
    return float(np.mean(counts * (counts + 1) / 2))


def _choose_sparse(dimension: int, depth: int, kept: float) -> Choice:
    """Choose sparse log-signatures where few of many coordinates have letters that move."""
    if depth == 1 or dimension <= MOST_COORDINATES:
        return Choice("sparse", False, f"{dimension} coordinates, which is not many")
    if depth == 2:
        share = kept / dimension
        return Choice("sparse", share < DENSE_FROM, f"{share:.1%} of {dimension} coordinates have letters that move")
    return Choice("sparse", False, "depth 3 or more is computed faster with all zeros")


def count_filled(partition: Partition, streams: Streams) -> int:
    """The number of intervals with an event; warns if most have none.

    >>> streams = Streams.from_arrays([[0.0, 0.5, 9.0]], [[[1.0], [2.0], [3.0]]])
    >>> count_filled(Partition.every(1.0), streams)
    2
    """
    found = intervals_of(streams, partition.cuts(streams))
    filled = int((found.begin < found.end).sum())
    warn_if_mostly_empty(found.size, filled)
    return filled


def warn_of_empty_windows(streams: Streams) -> None:
    """Warn if most series begin in the second half of their observation window, or fill little of it."""
    some = np.flatnonzero(np.diff(streams.offsets))
    first, last = streams.times[streams.offsets[some]], streams.times[streams.offsets[some + 1] - 1]
    window = streams.horizon[some]
    late = (first > LATEST_START * window) | ((last > first) & (last - first < LEAST_FILLED * window))
    if not late.sum() > len(some) / 2:
        return
    places, place = Places(streams.ids, streams.schema, streams.origins), int(np.argmax(late))
    series = some[place]
    ends = [places.stamp(series, time) for time in (first[place], last[place], 0.0, window[place])]
    warnings.warn(
        LogcdeWarning(
            f"Most observation windows are nearly empty, such as that of series {name(streams.ids[series])}: "
            f"it has events from {ends[0]} to {ends[1]}, but goes from {ends[2]} to {ends[3]}.",
            Remedy.EMPTY_INTERVALS,
        ),
        stacklevel=2,
    )


def unobserved(streams: Streams) -> list[str]:
    """The channels that are never observed."""
    count = np.bincount(streams.channel, minlength=len(streams.schema.channels))
    return [name for name, observations in zip(streams.schema.channels, count, strict=True) if not observations]


def check_observed(streams: Streams) -> None:
    """Refuse training series with a channel that is never observed."""
    if names := unobserved(streams):
        raise StreamError(_never(names, len(streams)), Remedy.LEAVE_CHANNELS)


def warn_of_unobserved(streams: Streams) -> None:
    """Warn of channels that are never observed in training."""
    if names := unobserved(streams):
        warning = LogcdeWarning(_never(names, len(streams)) + " The model ignores it.", Remedy.LEAVE_CHANNELS)
        warnings.warn(warning, stacklevel=4)


def _never(names: list[str], series: int) -> str:
    return f"{listed(names)} is never observed in the {series} training series, so nothing can be learnt about it."


def warn_of_empty_series(streams: Streams) -> None:
    """Warn of series to predict that have no observation."""
    empty = streams.ids[np.diff(streams.offsets) == 0]
    if len(empty):
        found = f"{len(empty):,} of {len(streams):,} series have no observation, such as {name(empty[0])}."
        if len(streams) == 1:
            found = "The series has no observation."
        warning = LogcdeWarning(found, "Predictions are what the model says without any: check that they are wanted.")
        warnings.warn(warning, stacklevel=4)


def choose_origin(streams: Streams) -> dict[str, Choice]:
    """The stamp from which the time of plain numbers counts, with its reading; nothing if that is 0.

    >>> choose_origin(Streams.from_arrays([[1.7e9, 1.7e9 + 60]], [[[1.0], [2.0]]]))
    {'origin': 1700000000.0 (stamps begin far from 0, read as 2023-11-14T22:13:20 in seconds since 1970)}
    """
    clock, origins = streams.schema.clock, streams.origins
    if not isinstance(clock, NumericClock) or clock.origin == 0.0:
        return {}
    first = clock.origin if origins is None else float(origins.min())
    moment = "" if first is None else moment_of(first)
    reason = "stamps begin far from 0" + f", read as {moment}" * bool(moment)
    return {"origin": Choice("origin", FirstStamp() if clock.origin is None else clock.origin, reason)}


def _choose_scaler(given: AbstractScaler | None, streams: Streams) -> tuple[Choice, ChannelScaler | None]:
    if streams.schema.terms:
        return Choice("scaler", None, "streams with higher-order terms are not rescaled"), None
    choice = Choice("scaler", RobustScaler(), "robust to outliers")
    if given is not None:
        choice = Choice("scaler", given, GIVEN)
    return choice, ChannelScaler.fit(streams, choice.value)


def _choose_counts(given: bool | None) -> Choice:
    if given is not None:
        return Choice("counts", given, GIVEN)
    return Choice("counts", False, "a network that counts does not stand a denser feed")


def _choose_depth(given: int | None, counts: bool, time: bool, streams: Streams, filled: int, kept: float) -> Choice:
    """Choose depth 2 where intervals hold several events, whose order it encodes, and the basis stays small.

    Empty intervals have no order, and do not count: `filled` is the number of the others. A basis is small as well if
    few of its coordinates, `kept` on average, have letters that move in an interval.
    """
    schema = streams.schema
    if given is not None:
        return Choice("depth", given, GIVEN)
    if schema.terms:
        return Choice("depth", max(term.degree for term in schema.terms), "the degree of the higher-order terms")
    if len(streams.times) <= 1.5 * filled:
        return Choice("depth", 1, "few intervals hold more than one event, so depth 2 would add little")
    letters = len(schema.channels) * (1 + counts) + len(schema.continuous) + time
    coordinates = letters * (letters + 1) // 2
    if coordinates > MOST_COORDINATES and (kept > MOST_COORDINATES or kept >= DENSE_FROM * coordinates):
        return Choice("depth", 1, f"depth 2 would have {coordinates} coordinates, more than {MOST_COORDINATES}")
    return Choice("depth", 2, "intervals hold several events, and depth 2 encodes their order")


def choose_windows(given: int | None, streams: Streams) -> Choice:
    """Choose the number of windows of a series of typical length: its number of events, within bounds."""
    if given is not None:
        return Choice("windows", given, GIVEN)
    events = float(np.quantile(np.diff(streams.offsets), 0.9))
    windows = int(np.clip(events, FEWEST_WINDOWS, MOST_WINDOWS))
    return Choice("windows", windows, f"the events of a series, limited to {FEWEST_WINDOWS} to {MOST_WINDOWS}")


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
