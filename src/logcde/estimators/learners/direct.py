"""`DirectForecast`: boosting and ridge on recent observations learn the change against the last value."""

import abc
import dataclasses
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int64
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from logcde.estimators.choosing import Choice
from logcde.estimators.learners.boosting import boosted, varied
from logcde.estimators.learners.perceptron import Known, Perceptron, trained
from logcde.estimators.learners.questions import AbstractForecastLoss, Cuts, MeanLoss, Questions
from logcde.estimators.learners.shrinking import PRIOR, SHARES, fit_shrunk, groups_of
from logcde.features.recent import AHEAD, Grouped, RecentFeatures
from logcde.models.forecast import ErrorQuantiles, ForecastModel, HorizonHead, TargetForecast
from logcde.models.forecast_network import ForecastNetwork, with_all
from logcde.models.heads import AbstractHead, TreesHead
from logcde.models.last_value import ShrunkLast, last_and_age
from logcde.streams import Streams

CAUTION = 1.0
"""Standard errors by which the gain of heads on series left out is taken to be less than it seems."""
MANY = 10_000
"""Questions about a target from which on one part of the series is left out, not each part by turns."""
SMALL = 6000
"""Questions below which one thread is faster than several."""
RUNS = 3
"""Runs of boosting with other seeds, if there are not many questions."""
ROUNDS = (0.1, 0.25, 0.5, 1.0)
"""Candidates of the boosting rounds, as a share of the most."""
PENALTIES = np.logspace(-4, 1.5, 12)
"""Candidates of the ridge penalty, as a share of the number of questions."""
RIDGE = 10_000
"""Most questions for ridge regression."""
HORIZONS = 4
"""Most times ahead at which ridge regression, and the mixture, have weights of their own."""
WIDE = 150
"""Features above which ridge weights of the features of all channels do not depend on the time ahead."""


@dataclasses.dataclass(frozen=True)
class DirectForecast:
    """The default of `LogCDEForecaster`: learns the change of each target against its last value, any time ahead.

    The last value of the channel in question is shrunk towards a mean by its age. Gradient boosting, ridge regression
    and, with many questions, a network for all targets learn what is left, from recent observations of all channels and
    the time asked for. Their weights have the least loss on series left out, where weights of 0 leave the shrunk last
    value.

    Args:
        loss: `MeanLoss()`, `MedianLoss()`, or `BetweenLoss()`.
        cuts: How questions are drawn from the series if there are no targets.
        rounds: Most boosting rounds; how many of them help is chosen on series left out.
        rate: Learning rate of boosting.
        leaves: Most leaves of a tree.
        folds: Parts of the series, each left out by turns; with many questions, only one is.
        questions: Most training questions about a target; of more, some are drawn.
        totals: Whether the number of observations of each channel is read too, which tells how closely it is watched.
        network: The network for all targets, one for each part of the series; None for none.
    """

    loss: AbstractForecastLoss = MeanLoss()
    cuts: Cuts = Cuts()
    rounds: int = 200
    rate: float = 0.06
    leaves: int = 15
    folds: int = 4
    questions: int = 40_000
    totals: bool = False
    network: Perceptron | None = Perceptron()

    def fit_questions(
        self, streams: Streams, asked: Questions, channels: Sequence[int | None], names: Sequence[str], seed: int
    ) -> tuple[ForecastModel, dict[str, Choice]]:
        """Train on series and questions about them.

        Args:
            streams: The series.
            asked: Questions and their answers.
            channels: For each target the channel that it is a value of; None if it is none of them.
            names: The name of each target.
            seed: Seed of everything random.
        """
        grouped = Grouped.of(streams)
        prefixes = grouped.prefixes(asked.series, asked.until)
        features = RecentFeatures.fit(streams, float((asked.time - prefixes.end).max()), totals=self.totals)
        drawn = [self._drawn(np.flatnonzero(asked.target == number), (seed, number)) for number in range(len(names))]
        every = np.concatenate(drawn)
        asked, (distinct, place) = asked[every], prefixes[every].distinct()
        brief = features.brief(grouped, distinct)
        bounds = np.cumsum([0, *map(len, drawn)])
        parts = [slice(first, last) for first, last in itertools.pairwise(bounds.tolist())]
        own, nothing = [], np.empty((len(distinct), 0), np.float32)
        for part, channel in zip(parts, channels, strict=True):
            used, of = np.unique(place[part], return_inverse=True)
            own.append(features.rows(grouped, distinct[used], of, asked.time[part], channel, nothing[used]))
        values = asked.value - np.array([features.level(channel) for channel in channels])[asked.target]
        suited = [self.loss.suited(values[part]) for part in parts]
        networks: tuple[ForecastNetwork, ...] = ()
        unseen = None
        if self.network is not None and len(asked) >= self.network.fewest:
            rows = np.concatenate([with_all(one, features.most - brief.shape[1]) for one in own])
            known = Known(brief, place, rows, asked.target, values, channels)
            networks, unseen = self._networks(self.network, known, asked, suited, seed)
        targets, choices = [], {}
        for number, (part, channel, name) in enumerate(zip(parts, channels, names, strict=True)):
            began = time.monotonic()
            rows = np.concatenate([own[number], brief[place[part]]], axis=1)
            ridge = rows.shape[1] - (brief.shape[1] if rows.shape[1] > WIDE else 0)
            answered = None if unseen is None else unseen[part]
            given = asked.series[part], asked.until[part], asked.time[part]
            table = _Table(rows, values[part], *given, channel, ridge, answered)
            with threadpool_limits(1 if len(rows) < SMALL else None):
                target, shares, losses = self._compared(table, suited[number], seed)
            targets.append(target)
            text = f"{self.loss.name} {losses[1]:.4g} left out, {losses[0]:.4g} of the shrunk last value"
            choices[name] = Choice(name, shares, f"weights; {text}, {time.monotonic() - began:.1f} s")
        helps = any(target.network is not None for target in targets)
        return ForecastModel(features, tuple(targets), networks if helps else ()), choices

    def _drawn(self, mine: Int64[np.ndarray, "_"], seed: Sequence[int]) -> Int64[np.ndarray, "_"]:
        """As many questions as are wanted."""
        if len(mine) <= self.questions:
            return mine
        return np.sort(np.random.default_rng(seed).choice(mine, self.questions, replace=False))

    def _compared(
        self, table: "_Table", loss: AbstractForecastLoss, seed: int
    ) -> tuple[TargetForecast, dict[str, float], tuple[float, float]]:
        """Compare what learners predict for series that they did not see, mix those that help, and train these on all.

        Returns:
            The forecast, the mean weight of each learner, and the losses of the shrunk last value and of the mixture on
            series left out.
        """
        runs = RUNS if len(table.series) < MANY else 1
        several = len(loss.boosting) > 1
        learners: dict[str, _AbstractPath] = {
            f"boosting, {kind}" if several else "boosting": _Boosting(self, kind, runs, seed) for kind in loss.boosting
        }
        learners["ridge"] = _Ridge(table.own, seed)
        missed, ahead, paths = [], [], []
        for training, rest in self._folds(table, seed, few=len(table.series) < MANY):
            known, unknown = table[training], table[rest]
            base = known.shrunk(loss)
            change, expected = known.values - known.expected(base), unknown.expected(base)
            missed.append(unknown.values - expected)
            ahead.append(unknown.rows[:, AHEAD])
            found = [learner.path(known.rows, change, unknown.rows) for learner in learners.values()]
            if unknown.answered is not None:
                found.append(np.nan_to_num(unknown.answered - expected)[None])
            paths.append(found)
        base = table.shrunk(loss)
        if not missed:
            none = np.zeros((0, 1))
            return TargetForecast(table.channel, base, (), np.zeros(1), none), {}, (np.nan, np.nan)
        left = np.concatenate(missed)
        unseen = [np.concatenate(each, axis=1) for each in zip(*paths, strict=True)]
        best = [int(np.argmin([loss(left - one).mean() for one in path])) for path in unseen]
        chosen = [path[one] for path, one in zip(unseen, best, strict=True)]
        after = np.concatenate(ahead)
        knots, weight, losses = self._weights(loss, left, after, chosen)
        mixed = sum(np.interp(after, knots, share) * one for share, one in zip(weight, chosen, strict=True))
        order, parts = groups_of(after, HORIZONS)
        errors = ErrorQuantiles.of(knots.tolist(), np.split((left - mixed)[order], parts[1:]))
        change = table.values - table.expected(base)
        used = [one for one in range(len(learners)) if weight[one].any()]
        heads = tuple(list(learners.values())[one].head(table.rows, change, best[one]) for one in used)
        network = weight[-1] if table.answered is not None and weight[-1].any() else None
        names = learners if table.answered is None else [*learners, "network"]
        shares = {name: round(float(each.mean()), 2) for name, each in zip(names, weight, strict=True)}
        return TargetForecast(table.channel, base, heads, knots, weight[used], network, errors), shares, losses

    def _networks(
        self, options: Perceptron, known: Known, asked: Questions, losses: Sequence[AbstractForecastLoss], seed: int
    ) -> tuple[tuple[ForecastNetwork, ...], Float64[np.ndarray, "question"]]:
        """A network without each part of the series, and what it forecasts for that part; NaN where there is none.

        What comes after a part of a single series is not left out, so a network of all of it takes their place.
        """
        unseen, networks = np.full(len(known), np.nan), []
        for training, rest in self._folds(asked, seed, few=True):
            networks.append(trained(options, known[training], losses, seed + len(networks)))
            unseen[rest] = known[rest].answered(networks[-1])
        if len(np.unique(asked.series)) < 2:
            networks = [trained(options, known, losses, seed)]
        return tuple(networks), unseen

    def _folds(self, asked: "_Table | Questions", seed: int, *, few: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Training questions and those left out, of other series; of one series, of later cuts. Once, if not few."""
        order = np.random.default_rng(seed).permutation(np.unique(asked.series))
        if len(order) < 2:
            yield from self._later(asked, few=few)
            return
        parts = np.array_split(order, min(self.folds, len(order)))
        for part in parts[: None if few else 1]:
            rest = np.isin(asked.series, part)
            yield np.flatnonzero(~rest), np.flatnonzero(rest)

    def _later(self, asked: "_Table | Questions", *, few: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Consecutive blocks of the cuts of one series, each left out of training on what was known before it."""
        cuts = np.unique(asked.until)
        blocks = np.array_split(cuts, min(self.folds + 1, len(cuts)))[1:]
        for block in blocks if few else blocks[-1:]:
            training = np.flatnonzero(asked.time < block[0])
            if len(training):
                yield training, np.flatnonzero((asked.until >= block[0]) & (asked.until <= block[-1]))

    def _weights(
        self,
        loss: AbstractForecastLoss,
        left: Float64[np.ndarray, "question"],
        ahead: Float32[np.ndarray, "question"],
        unseen: Sequence[Float64[np.ndarray, "question"]],
    ) -> tuple[Float64[np.ndarray, "knot"], Float64[np.ndarray, "head knot"], tuple[float, float]]:
        """Times ahead, weights of the heads there with little loss, and the mean loss without and with them.

        Where the gain may be chance, as with few questions, weights are small.
        """
        order, parts = groups_of(ahead, HORIZONS)
        weights, without = mixtures(len(unseen)), loss(left)[order]
        sums, squares = np.empty((2, len(weights), len(parts)))
        for number, each in enumerate(weights):
            errors = left
            for weight, one in zip(each, unseen, strict=True):
                errors = errors - weight * one
            more = loss(errors)[order] - without
            sums[number], squares[number] = np.add.reduceat(more, parts), np.add.reduceat(np.square(more), parts)
        expected = sums + PRIOR * sums.sum(axis=1, keepdims=True) / len(left)
        best = np.argmin(expected + CAUTION * np.sqrt(squares), axis=0)
        least = without.mean() + np.take_along_axis(sums, best[None], axis=0).sum() / len(left)
        knots = np.array([np.median(part) for part in np.split(ahead[order], parts[1:])], np.float64)
        return knots, weights[best].T, (float(without.mean()), float(least))


def mixtures(heads: int) -> Float64[np.ndarray, "mixture head"]:
    """Weights from `SHARES` of some heads that are at most 1 together, none first; of more than 3 every second one.

    >>> len(mixtures(2)), mixtures(2)[:2].tolist(), len(mixtures(4))
    (231, [[0.0, 0.0], [0.0, 0.05]], 1001)
    """
    some = SHARES if heads < 4 else SHARES[::2]
    every = np.stack(np.meshgrid(*[some] * heads, indexing="ij"), axis=-1).reshape(-1, heads)
    return every[every.sum(axis=1) <= 1.0 + 1e-9]


@dataclasses.dataclass(frozen=True, eq=False)
class _Table:
    """Questions about one target, and what networks that did not see their series answered.

    Ridge weights of the first `own` features vary with the time ahead.
    """

    rows: Float32[np.ndarray, "question feature"]
    values: Float64[np.ndarray, "question"]
    series: Int64[np.ndarray, "question"]
    until: Float64[np.ndarray, "question"]
    time: Float64[np.ndarray, "question"]
    channel: int | None
    own: int
    answered: Float64[np.ndarray, "question"] | None

    def __getitem__(self, chosen: np.ndarray) -> "_Table":
        given = self.rows[chosen], self.values[chosen], self.series[chosen], self.until[chosen], self.time[chosen]
        answered = None if self.answered is None else self.answered[chosen]
        return _Table(*given, self.channel, self.own, answered)

    def expected(self, base: ShrunkLast) -> Float64[np.ndarray, "question"]:
        """The shrunk last values."""
        return base(*last_and_age(self.rows, self.channel))

    def shrunk(self, loss: AbstractForecastLoss) -> ShrunkLast:
        """Choose what is left of the last value by its age."""
        return fit_shrunk(*last_and_age(self.rows, self.channel), self.values, loss)


class _AbstractPath(abc.ABC):
    """Learns changes from rows, with a choice of how closely."""

    @abc.abstractmethod
    def path(
        self, rows: Float32[np.ndarray, "known feature"], change: Float64[np.ndarray, "known"],
        unknown: Float32[np.ndarray, "question feature"],
    ) -> Float64[np.ndarray, "candidate question"]:  # fmt: skip
        """What each candidate, trained on some rows, predicts for others."""

    @abc.abstractmethod
    def head(
        self, rows: Float32[np.ndarray, "known feature"], change: Float64[np.ndarray, "known"], candidate: int
    ) -> AbstractHead:
        """Train one of the candidates."""


class _Boosting(_AbstractPath):
    """Histogram gradient boosting, the mean of some runs if questions are few; candidates are numbers of rounds."""

    def __init__(self, options: DirectForecast, loss: str, runs: int, seed: int) -> None:
        self.options, self.loss, self.runs, self.seed = options, loss, runs, seed
        self.rounds = sorted({max(1, round(share * options.rounds)) for share in ROUNDS})

    def path(
        self, rows: Float32[np.ndarray, "known feature"], change: Float64[np.ndarray, "known"],
        unknown: Float32[np.ndarray, "question feature"],
    ) -> Float64[np.ndarray, "candidate question"]:  # fmt: skip
        """What boosters predict after each number of rounds."""
        total = np.zeros((len(self.rounds), len(unknown)))
        for run in range(self.runs):
            total += self._boosted(rows, change, self.rounds[-1], run).staged(unknown, self.rounds)[..., 0]
        return total / self.runs

    def head(
        self, rows: Float32[np.ndarray, "known feature"], change: Float64[np.ndarray, "known"], candidate: int
    ) -> AbstractHead:
        """The trees of all runs."""
        return mean_of([self._boosted(rows, change, self.rounds[candidate], run) for run in range(self.runs)])

    def _boosted(self, rows: np.ndarray, change: np.ndarray, rounds: int, run: int) -> TreesHead:
        """The trees of one run."""
        options: Any = {
            "loss": self.loss, "max_iter": rounds, "learning_rate": self.options.rate,
            "max_leaf_nodes": self.options.leaves, "max_features": 0.3, "l2_regularization": 5.0,
            "early_stopping": False, "random_state": (self.seed + run) % 2**32,
        }  # fmt: skip
        return boosted(HistGradientBoostingRegressor(**options), rows, change)


def mean_of(heads: Sequence[TreesHead]) -> TreesHead:
    """The mean of several sums of trees, as one."""
    shifts = np.cumsum([0, *(len(head.feature) for head in heads[:-1])]).astype(np.int32)

    def joined(name: str, *, moved: bool = False) -> Any:
        parts = (getattr(head, name) + (shift if moved else 0) for head, shift in zip(heads, shifts, strict=True))
        return np.concatenate([*parts]) if len(heads) > 1 else getattr(heads[0], name)

    inner = np.concatenate([head.feature for head in heads]) >= 0
    return TreesHead(
        roots=joined("roots", moved=True),
        output=joined("output"),
        feature=joined("feature"),
        threshold=joined("threshold"),
        left=np.where(inner, joined("left", moved=True), 0).astype(np.int32),
        right=np.where(inner, joined("right", moved=True), 0).astype(np.int32),
        missing_left=np.concatenate([head.missing_left for head in heads]),
        value=joined("value") / len(heads),
        bias=np.mean([head.bias for head in heads], axis=0),
    )


class _Ridge(_AbstractPath):
    """Ridge regression; candidates are penalties.

    Weights of the first `own` features change with the time ahead, those of the others do not.
    """

    def __init__(self, own: int, seed: int) -> None:
        self.own, self.seed = own, seed

    def path(
        self, rows: Float32[np.ndarray, "known feature"], change: Float64[np.ndarray, "known"],
        unknown: Float32[np.ndarray, "question feature"],
    ) -> Float64[np.ndarray, "candidate question"]:  # fmt: skip
        """What the weights for each penalty predict."""
        head, weights = self._solved(rows, change, PENALTIES)
        return weights.T @ self._products(head, unknown).T

    def head(
        self, rows: Float32[np.ndarray, "known feature"], change: Float64[np.ndarray, "known"], candidate: int
    ) -> AbstractHead:
        """The weights for one penalty."""
        head, weights = self._solved(rows, change, PENALTIES[candidate : candidate + 1])
        knots, common = len(head.ahead), rows.shape[1] - self.own
        each = weights[common:, 0].reshape(-1, knots)
        shared = np.tile(weights[:common], (1, knots))
        return dataclasses.replace(head, weight=np.concatenate([each[1:], shared]), bias=each[0])

    def _solved(
        self, rows: np.ndarray, change: np.ndarray, penalties: np.ndarray
    ) -> tuple[HorizonHead, Float64[np.ndarray, "product penalty"]]:
        """Scales of the features, and for each penalty the weights of their products with the times ahead."""
        if len(rows) > RIDGE:
            drawn = np.sort(np.random.default_rng(self.seed).choice(len(rows), RIDGE, replace=False))
            rows, change = rows[drawn], change[drawn]
        ahead = rows[:, AHEAD].astype(np.float64)
        knots = np.unique(np.quantile(ahead, np.linspace(0, 1, HORIZONS), method="nearest"))
        kept = varied(rows)
        known = np.where(kept[None], rows, 0.0).astype(np.float64)
        centre, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        spread = np.where(kept & (spread > 0), spread, np.inf)
        head = HorizonHead(AHEAD, knots, centre, spread, np.zeros((rows.shape[1], len(knots))), np.zeros(len(knots)))
        products = self._products(head, rows)
        sizes, vectors = np.linalg.eigh(products.T @ products)
        projected = vectors.T @ (products.T @ change)
        scaled = projected[:, None] / (np.maximum(sizes, 0.0)[:, None] + penalties * len(rows))
        return head, vectors @ scaled

    def _products(self, head: HorizonHead, rows: np.ndarray) -> Float64[np.ndarray, "question product"]:
        """Features of all channels; then the constant 1 and the others, times the mixture of times ahead."""
        scaled = head.standardised(rows)
        own = np.concatenate([np.ones((len(rows), 1)), scaled[:, : self.own]], axis=1)
        mixture = head.mixture(rows[:, head.column])
        each = (own[:, :, None] * mixture[:, None, :]).reshape(len(rows), -1)
        return np.concatenate([scaled[:, self.own :], each], axis=1)
