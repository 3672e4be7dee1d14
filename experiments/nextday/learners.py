"""Forecasters of the comparison: simple ones, gradient boosting for each variable, and the library's."""

import abc
import time
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from jaxtyping import Float64, Int64

from experiments.nextday.data import CUTS, KNOWN, Observed, Scale, training_questions
from experiments.runner.abstract import Tell
from logcde.estimators import BetweenLoss, DirectForecast, LogCDEForecaster, MeanLoss, MedianLoss, Perceptron, Questions
from logcde.features.recent import Grouped

SHARES = np.linspace(0.0, 1.0, 21)
WINDOWS = (2.0, 6.0, 12.0)
"""Hours of the recent windows whose means boosting reads."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """Forecasts of the questions by name, seconds of training, and a fitted forecaster if it can be asked more."""

    forecasts: dict[str, np.ndarray]
    seconds: float
    interval: np.ndarray | None = None
    fitted: Any = None


class AbstractForecaster(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Trains on some stays and answers questions about others."""

    @abc.abstractmethod
    def run(
        self, observed: Observed, seen: Int64[np.ndarray, "_"], asked: Questions, test: Int64[np.ndarray, "_"],
        scale: Scale, seed: int, tell: Tell,
    ) -> Answers:  # fmt: skip
        """Train on the seen stays and forecast."""


class Simple(AbstractForecaster, frozen=True, tag="simple"):
    """The last value, and the last value shrunk towards the mean by a share for each variable."""

    def run(
        self, observed: Observed, seen: Int64[np.ndarray, "_"], asked: Questions, test: Int64[np.ndarray, "_"],
        scale: Scale, seed: int, tell: Tell,
    ) -> Answers:  # fmt: skip
        """Choose shares on the seen stays."""
        began = time.monotonic()
        grouped = Grouped.of(observed.streams)
        known = observed.questions(seen, KNOWN)
        last, then = last_values(grouped, seen, known, observed), last_values(grouped, test, asked, observed)
        repeated, shrunk = np.empty(len(asked)), np.empty(len(asked))
        for variable in range(observed.variables):
            mine, theirs = known.target == variable, asked.target == variable
            mean = known.value[mine].mean() if mine.any() else 0.0
            off = np.where(np.isfinite(last[mine]), last[mine] - mean, 0.0)
            errors = [np.square(known.value[mine] - mean - share * off).sum() for share in SHARES]
            change = np.where(np.isfinite(then[theirs]), then[theirs] - mean, 0.0)
            repeated[theirs], shrunk[theirs] = mean + change, mean + SHARES[int(np.argmin(errors))] * change
        return Answers(
            forecasts={"last value": repeated, "shrunk last value": shrunk}, seconds=time.monotonic() - began
        )


class Peer(AbstractForecaster, frozen=True, tag="peer"):
    """Gradient boosting for each variable: last value, its age, own mean, last values of all others, time asked for.

    With `windows` also means of recent windows, and the change against the last value as target. The numbers of rounds
    and leaves are chosen for each variable on a fifth of the seen stays.
    """

    windows: bool
    rounds: int = 100
    rate: float = 0.08
    leaves: tuple[int, ...] = (8, 31)
    most: int = 20_000

    def run(
        self, observed: Observed, seen: Int64[np.ndarray, "_"], asked: Questions, test: Int64[np.ndarray, "_"],
        scale: Scale, seed: int, tell: Tell,
    ) -> Answers:  # fmt: skip
        """Search and train for each variable."""
        began = time.monotonic()
        table, theirs = (self._table(observed, stays) for stays in (seen, test))
        known, found = observed.questions(seen, KNOWN), np.empty(len(asked))
        rng = np.random.default_rng(seed)
        for variable in range(observed.variables):
            mine, then = np.flatnonzero(known.target == variable), np.flatnonzero(asked.target == variable)
            mine = np.sort(rng.choice(mine, min(len(mine), self.most), replace=False))
            rows, base = self._rows(table, known[mine], variable)
            wanted, base_then = self._rows(theirs, asked[then], variable)
            values = known.value[mine]
            mean = float(values.mean()) if len(values) else 0.0
            base, base_then = (
                np.where(np.isfinite(one), one, mean) if self.windows else mean for one in (base, base_then)
            )
            found[then] = base_then + self._boosted(rows, values - base, known.series[mine], wanted, seed)
            tell((variable + 1) / observed.variables)
        name = "boosting with windows" if self.windows else "boosting"
        return Answers(forecasts={name: found}, seconds=time.monotonic() - began)

    def _boosted(
        self, rows: np.ndarray, values: np.ndarray, series: np.ndarray, wanted: np.ndarray, seed: int
    ) -> Float64[np.ndarray, "question"]:
        from sklearn.ensemble import HistGradientBoostingRegressor

        if not len(values) or np.ptp(values) == 0:
            return np.full(len(wanted), values.mean() if len(values) else 0.0)
        kept = np.fmin.reduce(rows, axis=0) < np.fmax.reduce(rows, axis=0)
        rows, wanted, rest = rows[:, kept], wanted[:, kept], series % 5 == 0
        options: Any = {"learning_rate": self.rate, "early_stopping": False, "random_state": seed}
        best = (np.inf, 1, self.leaves[0])
        if 0 < rest.sum() < len(rest) and np.ptp(values[~rest]) > 0:
            # Of features that are constant in this part, scikit-learn would find no bins.
            inside = np.fmin.reduce(rows[~rest], axis=0) < np.fmax.reduce(rows[~rest], axis=0)
            for leaves in self.leaves:
                model = HistGradientBoostingRegressor(max_iter=self.rounds, max_leaf_nodes=leaves, **options)
                model.fit(rows[~rest][:, inside], values[~rest])
                for number, stage in enumerate(model.staged_predict(rows[rest][:, inside]), 1):
                    best = min(best, (float(np.square(stage - values[rest]).mean()), number, leaves))
        model = HistGradientBoostingRegressor(max_iter=best[1], max_leaf_nodes=best[2], **options)
        return model.fit(rows, values).predict(wanted)

    def _table(self, observed: Observed, stays: Int64[np.ndarray, "_"]) -> np.ndarray:
        """(stay, variable, feature) at the cut: last value, its age, mean; of windows the mean minus the last value."""
        place = np.full(len(observed.streams), -1)
        place[stays] = np.arange(len(stays))
        inside = (place[observed.series] >= 0) & (observed.time < KNOWN)
        stay, time, value = place[observed.series[inside]], observed.time[inside], observed.value[inside]
        channels = len(observed.streams.schema.channels)
        group = stay * channels + observed.channel[inside]
        size = len(stays) * channels
        last, age = np.full(size, np.nan), np.full(size, np.nan)
        last[group], age[group] = value, KNOWN - time  # in order of time, so that the latest remains
        columns = [last, age]
        for hours in (KNOWN, *WINDOWS) if self.windows else (KNOWN,):
            some = time >= KNOWN - hours
            count = np.bincount(group[some], minlength=size)
            mean = np.bincount(group[some], value[some], size) / np.where(count > 0, count, np.nan)
            columns.append(mean - last if self.windows else mean)
        return np.stack(columns, axis=1).reshape(len(stays), channels, -1)

    def _rows(self, table: np.ndarray, asked: Questions, variable: int) -> tuple[np.ndarray, np.ndarray]:
        own, others = table[asked.series, variable], np.delete(table[:, :, 0], variable, axis=1)[asked.series]
        ahead = (asked.time - KNOWN)[:, None]
        return np.concatenate([ahead, own, others], axis=1), own[:, 0]


class Library(AbstractForecaster, frozen=True, tag="library"):
    """`LogCDEForecaster` for any variable and time after any prefix; with two losses, also the mean of both.

    `share` is that of the loss between mean and median. About the variables `closely` there are up to `many` questions,
    and `questions` about each of the others. With `totals` the numbers of observations are read, and with `network` a
    network learns from the questions about all variables.
    """

    losses: tuple[Literal["mean", "median", "between"], ...]
    rounds: int = 120
    rate: float = 0.07
    questions: int = 20_000
    name: str = "logcde"
    share: float = 0.05
    cuts: tuple[float, ...] = CUTS
    closely: tuple[str, ...] = ()
    many: int = 60_000
    totals: bool = False
    network: bool = False

    def run(
        self, observed: Observed, seen: Int64[np.ndarray, "_"], asked: Questions, test: Int64[np.ndarray, "_"],
        scale: Scale, seed: int, tell: Tell,
    ) -> Answers:  # fmt: skip
        """Train one forecaster for each loss."""
        began = time.monotonic()
        names = observed.streams.schema.channels[: observed.variables]
        most = [self.many if name in self.closely else self.questions for name in names]
        known = training_questions(observed, seen, most, seed, self.cuts)
        forecasts, fitted = {}, []
        kinds = {"mean": MeanLoss(), "median": MedianLoss(), "between": BetweenLoss(self.share)}
        for number, loss in enumerate(self.losses):
            learner = DirectForecast(
                loss=kinds[loss],
                rounds=self.rounds,
                rate=self.rate,
                questions=max(most),
                totals=self.totals,
                network=Perceptron() if self.network else None,
            )
            fitted.append(LogCDEForecaster(learner=learner, random_state=seed).fit(observed.streams[seen], known))
            tell((number + 1) / len(self.losses))
        seconds = time.monotonic() - began
        streams = observed.streams[test]
        for loss, forecaster in zip(self.losses, fitted, strict=True):
            forecasts[f"{self.name}, {loss}"] = forecaster.answer(streams, asked)
        if len(self.losses) > 1:
            forecasts[f"{self.name}, between mean and median"] = np.mean(list(forecasts.values()), axis=0)
        interval = fitted[0].interval(streams, asked, 0.9)
        return Answers(forecasts=forecasts, seconds=seconds, interval=interval, fitted=fitted[0])


Learner: TypeAlias = Simple | Peer | Library


def last_values(
    grouped: Grouped, stays: Int64[np.ndarray, "_"], asked: Questions, observed: Observed
) -> Float64[np.ndarray, "question"]:
    """The last value of the variable in question before `until`, NaN if there is none."""
    group = stays[asked.series] * grouped.channels + asked.target
    found = np.full(len(asked), np.nan)
    for until in np.unique(asked.until):
        mine = np.flatnonzero(asked.until == until)
        known = np.concatenate([[0], np.cumsum(grouped.times < until)])
        begin = grouped.offsets[group[mine]]
        place = begin + known[grouped.offsets[group[mine] + 1]] - known[begin] - 1
        some = place >= begin
        found[mine[some]] = grouped.values[place[some]]
    return found
