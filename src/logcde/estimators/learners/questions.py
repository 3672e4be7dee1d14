"""Questions about the future of series: how they are drawn, and how a miss counts."""

import abc
import dataclasses

import numpy as np
from jaxtyping import Float64, Int64

from logcde._typing import Numbers
from logcde.errors import TrainingError
from logcde.streams import Streams
from logcde.streams.ragged import owners


class AbstractForecastLoss(abc.ABC):
    """What a forecast should be close to, and how a miss counts: a sum of its square and its size."""

    name: str
    """What the comparison of learners calls it."""

    @property
    @abc.abstractmethod
    def counts(self) -> tuple[float, float]:
        """How much squared and absolute errors count."""

    @property
    def boosting(self) -> tuple[str, ...]:
        """The losses of scikit-learn's boosters whose weighted sum has little of it."""
        names = "squared_error", "absolute_error"
        return tuple(name for name, count in zip(names, self.counts, strict=True) if count > 0)

    def suited(self, values: Float64[np.ndarray, "_"]) -> "AbstractForecastLoss":
        """The loss for a target with these values."""
        return self

    @abc.abstractmethod
    def centre(self, values: Float64[np.ndarray, "_"]) -> float:
        """The constant with the least loss."""

    def __call__(self, errors: Float64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """The loss of each error."""
        squared, absolute = self.counts
        return squared * np.square(errors) + absolute * np.abs(errors) if absolute else squared * np.square(errors)


@dataclasses.dataclass(frozen=True)
class MeanLoss(AbstractForecastLoss):
    """Squared errors: forecasts are means.

    >>> MeanLoss()(np.array([-2.0]))
    array([4.])
    """

    name = "squared error"

    @property
    def counts(self) -> tuple[float, float]:
        """Only squared errors count."""
        return 1.0, 0.0

    def centre(self, values: Float64[np.ndarray, "_"]) -> float:
        """Squared errors are least around the mean."""
        return float(values.mean())


@dataclasses.dataclass(frozen=True)
class MedianLoss(AbstractForecastLoss):
    """Absolute errors: forecasts are medians, which outliers do not move.

    >>> MedianLoss()(np.array([-2.0]))
    array([2.])
    """

    name = "absolute error"

    @property
    def counts(self) -> tuple[float, float]:
        """Only absolute errors count."""
        return 0.0, 1.0

    def centre(self, values: Float64[np.ndarray, "_"]) -> float:
        """Absolute errors are least around the median."""
        return float(np.median(values))


@dataclasses.dataclass(frozen=True)
class BetweenLoss(AbstractForecastLoss):
    """Squared errors plus absolute errors times a share of the range of a target: between means and medians.

    Errors that are small beside that share of the range count like absolute ones, large errors like squared ones. So a
    forecast is a median where a target is predicted closely, and a mean where it is not.

    Args:
        share: How much absolute errors count.
        range: The range of a target, by default that of its values in training.

    >>> BetweenLoss(share=0.1, range=10.0)(np.array([-2.0, 0.5]))
    array([6.  , 0.75])
    >>> values = np.array([0.0, 0.0, 3.0])
    >>> [round(BetweenLoss(share).suited(values).centre(values), 2) for share in (0.0, 0.5, 9.0)]
    [1.0, 0.75, 0.0]
    """

    share: float = 0.05
    range: float | None = None
    name = "squared and absolute error"

    def __post_init__(self) -> None:
        if not (self.share >= 0 and (self.range is None or self.range >= 0)):
            raise TrainingError(f"{self!r} would prefer errors.", "Give a share and a range that are not negative.")

    @property
    def counts(self) -> tuple[float, float]:
        """How much squared and absolute errors count, in units of the target."""
        assert self.range is not None
        return 1.0, self.share * self.range

    def suited(self, values: Float64[np.ndarray, "_"]) -> "AbstractForecastLoss":
        """With the range of these values, unless one is given."""
        return self if self.range is not None else dataclasses.replace(self, range=float(np.ptp(values)))

    def centre(self, values: Float64[np.ndarray, "_"]) -> float:
        """The best of some numbers from the mean to the median, between which the least loss is."""
        numbers = np.linspace(values.mean(), np.median(values), STEPS)
        return float(numbers[np.argmin([self(values - number).mean() for number in numbers])])


STEPS = 101
"""Numbers from the mean to the median that `BetweenLoss` compares."""
ALONE, NEAR, SHARE = 200, 32, 8
"""Least cuts of a single series, how many of the times after each are asked for, and of how many equal parts of the
series these span one."""


@dataclasses.dataclass(frozen=True)
class Cuts:
    """How questions are drawn from series that have no targets of their own: what comes after a cut is asked for.

    Args:
        count: Cuts in each series, at random events. A single series has at least 200, each with questions about up
            to 32 times that lie further and further apart, within an eighth of the series.
        ahead: Longest time from the latest event before a cut to the time asked for; by default the rest of the series.

    >>> Cuts(count=2, ahead=6.0)
    Cuts(count=2, ahead=6.0)
    """

    count: int = 8
    ahead: float | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or not (self.ahead is None or self.ahead > 0):
            raise TrainingError(f"{self!r} asks no question.", "Give at least one cut, and a positive time ahead.")

    def questions(self, streams: Streams, seed: int) -> "Questions":
        """The observations of each series after its cuts."""
        rng = np.random.default_rng(seed)
        event = owners(streams.obs_offsets)
        parts, count = [], max(self.count, ALONE if len(streams) == 1 else 0)
        for series in range(len(streams)):
            begin, end = streams.offsets[series : series + 2]
            later = np.flatnonzero(streams.times[begin:end] > 0) + begin
            later = later[later > begin]
            for cut in rng.choice(later, min(count, len(later)), replace=False).tolist():
                first, last = int(streams.obs_offsets[cut]), int(streams.obs_offsets[end])
                asked = np.arange(first, last)
                if count > self.count:
                    furthest = min(end - cut, max(1, (end - begin) // SHARE))
                    apart = np.geomspace(1, furthest, NEAR).astype(np.int64) - 1
                    asked = asked[np.isin(event[asked], cut + apart)]
                if self.ahead is not None:
                    asked = asked[streams.times[event[asked]] - streams.times[cut - 1] <= self.ahead]
                parts.append((np.full(len(asked), series), np.full(len(asked), streams.times[cut]), asked))
        if not parts:
            return Questions(*(np.empty(0, kind) for kind in (np.int64, float, float, np.int64, float)))
        series, until, asked = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Questions(
            series,
            until,
            streams.times[event[asked]],
            streams.channel[asked].astype(np.int64),
            streams.value[asked].astype(np.float64),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Questions:
    """Questions about the future of series: a target at a time, from what was observed before another time.

    Args:
        series: The series of each question, as its place in the data.
        until: Observations before this are known, in the time of the series.
        time: The time asked for, not before that.
        target: The number of the target; of a channel, if targets are channels.
        value: The answer, in training.

    >>> asked = Questions.about(series=[0, 0, 3], until=24.0, time=[25.0, 30.0, 30.0], target=1)
    >>> len(asked), asked.until.tolist(), asked.target.tolist()
    (3, [24.0, 24.0, 24.0], [1, 1, 1])
    """

    series: Int64[np.ndarray, "question"]
    until: Float64[np.ndarray, "question"]
    time: Float64[np.ndarray, "question"]
    target: Int64[np.ndarray, "question"]
    value: Float64[np.ndarray, "question"]

    @staticmethod
    def about(series: Numbers, until: Numbers, time: Numbers, target: Numbers, value: Numbers = np.nan) -> "Questions":
        """Questions from lists, or from one number for all of them."""
        given = np.broadcast_arrays(series, until, time, target, value)
        kinds = np.int64, np.float64, np.float64, np.int64, np.float64
        found = Questions(*(np.ravel(one).astype(kind) for one, kind in zip(given, kinds, strict=True)))
        if not (found.until <= found.time).all() or not np.isfinite(found.time).all():
            raise TrainingError(
                "A question asks for a time before the end of what is known, or for none.",
                "Give times that are finite, and not before `until`.",
            )
        return found

    def __len__(self) -> int:
        return len(self.series)

    def __getitem__(self, chosen: np.ndarray) -> "Questions":
        return Questions(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))
