"""`ForecastModel`: values of many targets at any times ahead, each as a change against the last value."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int64

from logcde.errors import ModelError
from logcde.features.recent import AHEAD, Grouped, RecentFeatures
from logcde.models.forecast_network import ForecastNetwork, mean_of_networks
from logcde.models.heads import AbstractHead
from logcde.models.last_value import ShrunkLast, last_and_age
from logcde.models.series import AbstractSeriesModel
from logcde.streams import Schema, Streams

NUMBERS_IN_MEMORY = 1 << 24
"""Features that are in memory at once."""


@dataclasses.dataclass(frozen=True, eq=False)
class HorizonHead(AbstractHead):
    """Linear heads for several times ahead, and between these a mixture of the two nearest.

    Args:
        column: The feature that is the time ahead.
        ahead: Times ahead that have weights of their own, increasing.
        centre: Mean of each feature, which stands for missing ones.
        spread: Standard deviation of each feature.
        weight: Weights of the standardised features, for each time ahead.
        bias: For each time ahead, what is added.
        limit: Standardised features are clipped to [-limit, limit].

    >>> weight = np.array([[0.0, 0.0], [0.0, 2.0]])  # (feature, time ahead)
    >>> head = HorizonHead(0, np.array([1.0, 3.0]), np.zeros(2), np.ones(2), weight, np.zeros(2))
    >>> head(np.array([[2.0, 1.0], [3.0, 1.0], [3.0, np.nan]], np.float32))[:, 0]
    array([1., 2., 0.])
    """

    column: int
    ahead: Float64[np.ndarray, "knot"]
    centre: Float64[np.ndarray, "feature"]
    spread: Float64[np.ndarray, "feature"]
    weight: Float64[np.ndarray, "feature knot"]
    bias: Float64[np.ndarray, "knot"]
    limit: float = 8.0

    def __call__(self, rows: Float32[np.ndarray, "question feature"]) -> Float64[np.ndarray, "question output"]:
        """One product for each row, so that other rows do not change its rounding."""
        each = np.einsum("qf,fk->qk", self.standardised(rows), self.weight) + self.bias
        return (each * self.mixture(rows[:, self.column])).sum(axis=1)[:, None]

    def standardised(self, rows: Float32[np.ndarray, "question feature"]) -> Float64[np.ndarray, "question feature"]:
        """Features of mean 0 and spread 1, with 0 for missing ones."""
        scaled = (np.ascontiguousarray(rows) - self.centre) / self.spread
        return np.clip(np.nan_to_num(scaled, nan=0.0), -self.limit, self.limit)

    def mixture(self, ahead: Float32[np.ndarray, "question"]) -> Float64[np.ndarray, "question knot"]:
        """Weights of the times ahead, at most two of them above 0 and 1 in sum."""
        return np.stack([np.interp(ahead, self.ahead, one) for one in np.eye(len(self.ahead))], axis=1)

    @property
    def size(self) -> int:
        """Weights of features and biases, for each time ahead."""
        return self.weight.size + self.bias.size


LEVELS = np.array([0.005, 0.01, 0.025, *np.linspace(0.05, 0.95, 19), 0.975, 0.99, 0.995])
"""Levels at which quantiles of errors are kept."""


@dataclasses.dataclass(frozen=True, eq=False)
class ErrorQuantiles:
    """Quantiles of the errors on series left out, value minus forecast, for several times ahead.

    Args:
        ahead: Times ahead, increasing; between these quantiles are interpolated.
        quantile: The quantile at each of `LEVELS`.

    >>> errors = np.linspace(-1, 1, 199)
    >>> found = ErrorQuantiles.of([0.0, 4.0], [errors, 3 * errors])
    >>> found.between(0.8, np.array([0.0, 2.0, 9.0])).round(1).tolist()
    [[-0.8, 0.8], [-1.6, 1.6], [-2.4, 2.4]]
    """

    ahead: Float64[np.ndarray, "knot"]
    quantile: Float64[np.ndarray, "knot level"]

    @staticmethod
    def of(ahead: Sequence[float], errors: Sequence[Float64[np.ndarray, "_"]]) -> "ErrorQuantiles":
        """Quantiles of the errors at each time ahead, as split conformal prediction takes them.

        With n errors, a level q above one half becomes the error of rank (n + 1) q, rounded up, and a level below one
        half its mirror image; the greatest and least errors where there are too few.
        """
        rows = []
        for some in errors:
            ordered, count = np.sort(some), len(some)
            above = np.minimum(np.ceil((count + 1) * np.maximum(LEVELS, 1 - LEVELS) - 1e-9), count).astype(int) - 1
            rows.append(ordered[np.where(LEVELS >= 0.5, above, count - 1 - above)])
        return ErrorQuantiles(np.array(ahead, np.float64), np.array(rows))

    def between(self, coverage: float, ahead: Float[np.ndarray, "question"]) -> Float64[np.ndarray, "question 2"]:
        """The errors between which a share of all is expected, at each time ahead."""
        ends = [
            [np.interp(level, LEVELS, row) for row in self.quantile]
            for level in (0.5 - coverage / 2, 0.5 + coverage / 2)
        ]
        return np.stack([np.interp(ahead, self.ahead, end) for end in ends], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class TargetForecast:
    """How one target is forecast: the shrunk last value plus a weighted sum of heads, and of the networks' mean.

    Args:
        channel: The channel that the target is a value of; None if it is none of them.
        base: The shrunk last value.
        heads: Each predicts the change against the shrunk last value from a row of features.
        ahead: Times ahead at which the weights of the heads are known, increasing.
        weight: Weights there, at least 0 and together at most 1, linear between these times.
        network: Weights of what the networks of all targets forecast, alike; None without networks.
        errors: Errors on series left out; None if there were none.
    """

    channel: int | None
    base: ShrunkLast
    heads: tuple[AbstractHead, ...]
    ahead: Float64[np.ndarray, "knot"]
    weight: Float64[np.ndarray, "head knot"]
    network: Float64[np.ndarray, "knot"] | None = None
    errors: ErrorQuantiles | None = None

    def expected(self, rows: Float32[np.ndarray, "question feature"]) -> Float64[np.ndarray, "question"]:
        """The shrunk last value."""
        return self.base(*last_and_age(rows, self.channel))

    def __call__(
        self,
        rows: Float32[np.ndarray, "question feature"],
        networks: Sequence[Float64[np.ndarray, "question"]] = (),
    ) -> Float64[np.ndarray, "question"]:
        """The forecast of each question, also from what each network forecasts."""
        found = base = self.expected(rows)
        for weight, head in zip(self.weight, self.heads, strict=True):
            found = found + np.interp(rows[:, AHEAD], self.ahead, weight) * head(rows)[:, 0]
        if self.network is not None:
            found = found + np.interp(rows[:, AHEAD], self.ahead, self.network) * (mean_of_networks(networks) - base)
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class ForecastModel(AbstractSeriesModel):
    """Forecasts of all targets after any prefix of a series.

    Args:
        features: What is read of a prefix.
        targets: The forecasts of each target.
        networks: Networks for all targets, whose mean counts.
    """

    features: RecentFeatures
    targets: tuple[TargetForecast, ...]
    networks: tuple[ForecastNetwork, ...] = ()

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """All targets at the horizon of each series, from what was observed before."""
        return self.answers(Grouped.of(streams), np.arange(len(streams)), streams.horizon)

    def answers(
        self,
        grouped: Grouped,
        series: Int64[np.ndarray, "question"],
        time: Float64[np.ndarray, "question"],
        asked: Bool[np.ndarray, "question output"] | None = None,
    ) -> Float64[np.ndarray, "question output"]:
        """Forecast from the observations before each time; every answer depends on its own series and time only.

        Args:
            grouped: The observations.
            series: The series of each question.
            time: The time of each question.
            asked: Which targets to forecast, by default all. The others are NaN.
        """
        wanted = np.ones((len(time), len(self.targets)), bool) if asked is None else asked
        question, target = np.nonzero(wanted)
        out = np.full(wanted.shape, np.nan)
        out[question, target] = self.answer(grouped, series[question], time[question], time[question], target)
        return out

    def answer(
        self,
        grouped: Grouped,
        series: Int64[np.ndarray, "question"],
        until: Float64[np.ndarray, "question"],
        time: Float64[np.ndarray, "question"],
        target: Int64[np.ndarray, "question"],
    ) -> Float64[np.ndarray, "question"]:
        """Forecast one target for each question, from the observations before a time of its own.

        Args:
            grouped: The observations.
            series: The series of each question.
            until: Observations before this are known.
            time: The time asked for, not before that.
            target: The number of the target.
        """
        out = np.empty(len(time))
        for mine, _, found, _ in self._found(grouped, series, until, time, target):
            out[mine] = found
        return out

    def intervals(
        self,
        grouped: Grouped,
        series: Int64[np.ndarray, "question"],
        until: Float64[np.ndarray, "question"],
        time: Float64[np.ndarray, "question"],
        target: Int64[np.ndarray, "question"],
        coverage: float,
    ) -> Float64[np.ndarray, "question 2"]:
        """The interval around each forecast that holds a share of the values, by the errors on series left out."""
        out = np.empty((len(time), 2))
        for mine, ahead, found, one in self._found(grouped, series, until, time, target):
            if one.errors is None:
                raise ModelError(
                    "There are no errors on series left out, so there are no intervals.", "Train on more series."
                )
            out[mine] = found[:, None] + one.errors.between(coverage, ahead)
        return out

    def _found(
        self, grouped: Grouped, series: np.ndarray, until: np.ndarray, time: np.ndarray, target: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, TargetForecast]]:
        """Questions about one target, times ahead, forecasts, and the target, as many at a time as fit into memory."""
        prefixes, place = grouped.prefixes(series, until).distinct()
        order = np.argsort(place, kind="stable")
        size = max(1, NUMBERS_IN_MEMORY // self.features.most)
        for first in range(0, len(order), size):
            chosen = order[first : first + size]
            used, of = np.unique(place[chosen], return_inverse=True)
            part = prefixes[used]
            brief = self.features.brief(grouped, part)
            encoded = [network.encode(brief) for network in self.networks]
            for number in np.unique(target[chosen]).tolist():
                wanted, one = np.flatnonzero(target[chosen] == number), self.targets[number]
                mine, known = chosen[wanted], of[wanted]
                rows = self.features.rows(grouped, part, known, time[mine], one.channel, brief)
                own = rows[:, : rows.shape[1] - brief.shape[1]]
                used = [] if one.network is None else zip(self.networks, encoded, strict=True)
                networks = [network.values(units, known, own, number, one.channel) for network, units in used]
                yield mine, rows[:, AHEAD], one(rows, networks) + self.features.level(one.channel), one

    @property
    def schema(self) -> Schema:
        """The channels of the training series."""
        return self.features.schema

    @property
    def size(self) -> int:
        """Numbers of all heads and networks."""
        heads = sum(head.size for target in self.targets for head in target.heads)
        return heads + sum(network.size for network in self.networks)
