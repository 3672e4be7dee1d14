"""Channel scalers: every channel's values clipped, compressed if their tails are long, centred and divided by a spread.

Scalers are fitted to training streams and belong to the embedding, so that a model takes values as they were measured,
in training and online. Streams themselves are never changed.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from logcde.errors import StreamError, Where
from logcde.streams.ragged import by_channel
from logcde.streams.schema import listed
from logcde.streams.streams import Streams, changes_of

NORMAL = 1.3489795003921634
"""The interquartile range of a normal distribution, in standard deviations."""
LEAST = 1e-9
"""Quartiles closer than this, relative to the spread, are equal; a bend is no smaller than this share of the values."""
ROUNDING = 1e-13
"""A spread smaller than this, relative to the values, is rounding error: at 1e12, of less than a tenth."""


@dataclasses.dataclass(frozen=True)
class ChannelScale:
    """The scale of one channel: x becomes (g(x) - centre) / spread, after clipping x to [low, high].

    g(x) = arsinh(x / bend) is linear for values much smaller than `bend` and logarithmic, for either sign, for much
    larger ones. If `bend` is infinite, g(x) = x.
    """

    centre: float = 0.0
    spread: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    bend: float = math.inf


class AbstractScaler(abc.ABC):
    """A rule that finds the scale of a channel from its values. Subclass it to give `ChannelScaler.fit` your own."""

    @abc.abstractmethod
    def scale(self, values: Float[np.ndarray, "obs"], low: float, high: float) -> ChannelScale:
        """The scale of a channel from all its observed values, at least one, and its limits."""


@dataclasses.dataclass(frozen=True)
class StandardScaler(AbstractScaler):
    """Mean and standard deviation. Outliers dominate both: see `RobustScaler`."""

    def scale(self, values: Float[np.ndarray, "obs"], low: float, high: float) -> ChannelScale:
        """The mean and the standard deviation of the clipped values."""
        kept = np.clip(values, low, high)
        return ChannelScale(float(kept.mean()), _spread(kept), low, high)


@dataclasses.dataclass(frozen=True)
class MinMaxScaler(AbstractScaler):
    """The least value becomes -1, the greatest 1."""

    def scale(self, values: Float[np.ndarray, "obs"], low: float, high: float) -> ChannelScale:
        """The middle and half the range of the clipped values."""
        kept = np.clip(values, low, high)
        least, greatest = float(kept.min()), float(kept.max())
        return ChannelScale((least + greatest) / 2, (greatest - least) / 2 or 1.0, low, high)


@dataclasses.dataclass(frozen=True)
class RobustScaler(AbstractScaler):
    """Median and quartiles, with clipped tails; channels with long tails are compressed by arsinh.

    Attributes:
        tails: The share of values that is clipped at either end.
        long: A tail is long if its outermost half percent begins more than `long` times as far from the median as its
            quartile. This ratio is 3.8 for normal values, 6.6 for exponential and 13 for log-normal ones.
    """

    tails: float = 0.0005
    long: float = 8.0

    def __post_init__(self) -> None:
        if not 0 <= self.tails < 0.25:
            raise StreamError(
                f"A share of {self.tails} would be clipped at either end.", "It must be at least 0 and below 0.25."
            )

    def scale(self, values: Float[np.ndarray, "obs"], low: float, high: float) -> ChannelScale:
        """The median and the quartiles, clipped at quantiles of the tails and at the given limits."""
        kept = np.clip(values, low, high)
        low, high = (float(end) for end in np.quantile(kept, [self.tails, 1 - self.tails]))
        kept = np.clip(kept, low, high)
        bend = math.inf
        outer_low, quarter, middle, three_quarters, outer_high = np.quantile(kept, [0.005, 0.25, 0.5, 0.75, 0.995])
        tails = (middle - outer_low, outer_high - middle)
        if tails[0] > self.long * (middle - quarter) or tails[1] > self.long * (three_quarters - middle):
            sizes = np.abs(kept[kept != 0])
            bend = max(float(np.median(sizes)), LEAST * float(sizes.max()))
            kept = _bent(kept, bend)
            quarter, middle, three_quarters = np.quantile(kept, [0.25, 0.5, 0.75])
        spread, quartiles = _spread(kept), float(three_quarters - quarter) / NORMAL
        return ChannelScale(float(middle), quartiles if quartiles > LEAST * spread else spread, low, high, bend)


@dataclasses.dataclass(frozen=True)
class Clipped:
    """The number of a channel's observations, and of those below and above its limits."""

    channel: str
    observations: int
    below: int
    above: int


@dataclasses.dataclass(frozen=True)
class ChannelScaler:
    """A scale for each channel. Pass it to `Embedding(scaler=...)`, or call it with streams to scale them.

    Scale channels whose units differ (beats per minute, mg/l) before a model sees their increments: at depth 2 and more
    the log-signature multiplies them. Fit the scaler to the training streams only.

    Attributes:
        channels: The names of the channels.
        each: The scale of each.

    >>> streams = Streams.from_dense(np.array([[[60.0, 1.0], [70.0, 30.0], [80.0, 900.0]]]), channels=["pulse", "crp"])
    >>> scaler = ChannelScaler.fit(streams, StandardScaler(), limits={"crp": (0.0, 300.0)})
    >>> scaler(streams).value.reshape(3, 2)[:, 0].round(3)
    array([-1.225,  0.   ,  1.225])
    >>> [one for one in scaler.clipped(streams) if one.above]
    [Clipped(channel='crp', observations=3, below=0, above=1)]
    """

    channels: tuple[str, ...]
    each: tuple[ChannelScale, ...]

    @classmethod
    def fit(
        cls,
        streams: Streams,
        scaler: AbstractScaler = RobustScaler(),
        limits: Mapping[str, tuple[float, float]] | None = None,
    ) -> "ChannelScaler":
        """Fit a scale to the values of each channel. A channel that is never observed is not scaled.

        Args:
            streams: The training streams.
            scaler: The rule that finds the scale of a channel.
            limits: The lowest and highest possible value of some channels. Values outside, such as a body temperature
                of 0, are clipped before the scale is fitted.
        """
        if streams.schema.terms:
            raise StreamError(
                f"The streams have higher-order terms, such as {streams.schema.terms[0].name!r}, which are products of "
                "unscaled values.",
                "Scale values and terms together, before they become streams.",
            )
        channels, given = streams.schema.channels, dict(limits or {})
        for name, (low, high) in given.items():
            if name not in channels:
                raise StreamError(
                    f"There are limits for {name!r}, which is not a channel.", f"The channels are {listed(channels)}."
                )
            if not low < high:
                raise StreamError(
                    f"The limits of {name!r} are {low} and {high}.",
                    "The first must be below the second.",
                    where=Where(channel=name),
                )
        each = []
        for name, values in zip(channels, by_channel(streams.channel, streams.value, len(channels)), strict=True):
            low, high = given.get(name, (-math.inf, math.inf))
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                each.append(scaler.scale(values, low, high) if len(values) else ChannelScale(low=low, high=high))
            if not (math.isfinite(each[-1].centre) and math.isfinite(each[-1].spread)):
                raise StreamError(
                    f"The values of channel {name!r} go from {values.min()} to {values.max()}, too large for a scale "
                    "of theirs in float64.",
                    "Leave such values out, or give limits.",
                    where=Where(channel=name),
                )
        return cls(channels, tuple(each))

    def __post_init__(self) -> None:
        if len(self.channels) != len(self.each):
            raise StreamError(
                f"There are {len(self.channels)} channels and {len(self.each)} scales.", "Give one for each."
            )

    def __call__(self, streams: Streams) -> Streams:
        """The streams with scaled values, in double precision: their differences are small beside the centre."""
        self.check(streams.schema.channels)
        value = self._apply(streams.value.astype(np.float64, copy=False), streams.channel)
        if streams.change is None:
            return dataclasses.replace(streams, value=value)
        # Between two values that are not clipped nor bent, the scale is linear; the first change of a channel starts
        # from 0, before and after scaling.
        _, spread, low, high, bend = (array[streams.channel] for array in self._arrays)
        linear = np.isinf(bend) & (streams.value >= low) & (streams.value <= high)
        both = linear & (changes_of(streams, linear.astype(np.float64)) == 0)
        change = np.where(both, streams.change / spread, changes_of(streams, value))
        return dataclasses.replace(streams, value=value, change=change)

    def select(self, channels: Sequence[str]) -> "ChannelScaler":
        """The scales of some channels, in this order."""
        return ChannelScaler(tuple(channels), tuple(self.each[self.channels.index(name)] for name in channels))

    def row(self, row: Float[np.ndarray, "*event channel"]) -> Float[np.ndarray, "*event channel"]:
        """Scale rows with one number for each channel, NaN where it is not observed."""
        return self._apply(row, slice(None))

    def one(self, channel: str, value: float) -> float:
        """Scale one value of one channel."""
        place = self.channels.index(channel)
        return float(self._apply(np.array(value, np.float64), slice(place, place + 1))[0])

    def clipped(self, streams: Streams) -> tuple[Clipped, ...]:
        """Count the observations of each channel that lie outside its limits."""
        self.check(streams.schema.channels)
        low, high = self._arrays[2:4]
        count = len(self.channels)
        observations = np.bincount(streams.channel, minlength=count)
        below = np.bincount(streams.channel, streams.value < low[streams.channel], minlength=count)
        above = np.bincount(streams.channel, streams.value > high[streams.channel], minlength=count)
        rows = zip(self.channels, observations, below, above, strict=True)
        return tuple(Clipped(name, int(n), int(b), int(a)) for name, n, b, a in rows)

    def outside(
        self, values: Float[np.ndarray, "*event obs"], channel: Int[np.ndarray, "obs"] | slice = slice(None)
    ) -> Bool[np.ndarray, "*event obs"]:
        """Whether values lie outside the limits of their channels; by default one value for each channel."""
        low, high = (limits[channel] for limits in self._arrays[2:4])
        return (values < low) | (values > high)

    @property
    def limited(self) -> bool:
        """Whether any channel is clipped."""
        return any(math.isfinite(one.low) or math.isfinite(one.high) for one in self.each)

    def check(self, channels: tuple[str, ...]) -> None:
        """Refuse streams with other channels."""
        if channels != self.channels:
            raise StreamError(
                f"The scales are those of the channels {listed(self.channels)}, but the streams have "
                f"{listed(channels)}.",
                "Read them with the schema of the streams that the scales were fitted to.",
            )

    @functools.cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return tuple(np.array([dataclasses.astuple(one) for one in self.each], np.float64).reshape(-1, 5).T)

    def _apply(self, values: np.ndarray, channel: np.ndarray | slice) -> np.ndarray:
        centre, spread, low, high, bend = (array[channel] for array in self._arrays)
        values = np.clip(values, low, high)
        return (np.where(np.isfinite(bend), _bent(values, bend), values) - centre) / spread


def _bent(values: np.ndarray, bend: float | np.ndarray) -> np.ndarray:
    return np.arcsinh(values / bend)


def _spread(values: Float[np.ndarray, "obs"]) -> float:
    """The standard deviation, or 1 for a channel that is constant up to rounding: its values become zero."""
    found = float(values.std())
    return found if found > ROUNDING * float(np.abs(values).max()) else 1.0
