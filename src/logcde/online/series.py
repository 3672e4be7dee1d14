"""Predictors of the models that estimators train: features of windows, mixtures of models, late events."""

import abc
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from logcde._typing import Numbers
from logcde.embedding import InitialObservations
from logcde.embedding.online import Values
from logcde.errors import ModelError
from logcde.features import OnlineFeatures
from logcde.features.features import like_sized
from logcde.features.online import row_of, windows_of
from logcde.features.windows import Windows, window_count
from logcde.models.forecast import ForecastModel
from logcde.models.series import AbstractSeriesModel, EmbeddedModel, FeatureModel, Mixture, RowModel
from logcde.online.abstract import AbstractPredictor
from logcde.online.forecast import ForecastPredictor
from logcde.online.predictor import Predictor
from logcde.online.reordering import ReorderingPredictor
from logcde.online.serving import AbstractServingModel, serving_model
from logcde.online.states import FORMAT, check_format, restoring
from logcde.online.watching import RangeWatch, begun, copied, restored, watch_of
from logcde.streams import Clock, Partition, Schema, TrainingRanges
from logcde.streams.clock import Time
from logcde.streams.schema import listed
from logcde.streams.series_clock import begun_by, length_on, own_origin, time_on, with_origin_number, zero_for


def predictor_of(
    model: AbstractSeriesModel, *, reorder: object = None, ranges: TrainingRanges | None = None
) -> AbstractPredictor:
    """A predictor of one series for a model that an estimator trained.

    Args:
        model: The trained model.
        reorder: How late an event may arrive, as a time or duration; by default events arrive in order.
        ranges: What the model was trained on. A series far outside of it is warned of, once for each reason.

    >>> from logcde import Streams
    >>> from logcde.estimators import LogCDERegressor
    >>> streams = Streams.from_dense(np.random.default_rng(0).normal(size=(20, 8, 1)), channels=["pulse"], horizon=8.0)
    >>> model = LogCDERegressor(random_state=0).fit(streams, np.arange(20.0)).model_
    >>> predictor = predictor_of(model)
    >>> predictor.observe(0.5, {"pulse": 61.0})
    >>> predictor.predict(at=2.0).shape
    (1,)
    """
    if isinstance(model, EmbeddedModel):
        return Predictor(model.sequence, reorder=reorder, ranges=ranges)
    if model.schema.continuous:
        raise ModelError(
            f"A {type(model).__name__} cannot follow the continuous channels {listed(model.schema.continuous)}.",
            "Train a single network, for example with learner=LogSLiCE().",
        )
    watch = watch_of(ranges, model.schema)
    if isinstance(model, FeatureModel | RowModel):
        predictor: AbstractPredictor = FeaturePredictor(model, watch=watch)
    elif isinstance(model, ForecastModel):
        predictor = ForecastPredictor(model, watch)
    elif isinstance(model, Mixture):
        predictor = MixturePredictor(model, watch=watch)
    else:
        raise ModelError(f"A {type(model).__name__} cannot predict event by event.")
    return predictor if reorder is None else ReorderingPredictor(predictor, length_on(model.schema.clock, reorder))


class AbstractReader(abc.ABC):
    """From the sums over windows of growing series to outputs."""

    @abc.abstractmethod
    def read(
        self, readers: "Sequence[AbstractReader]", windows: Windows, final: Sequence[int]
    ) -> Float[np.ndarray, "series output"]:
        """The outputs for several series, each with a reader of its own that is a copy of one reader.

        Args:
            readers: The readers of these series.
            windows: Their sums.
            final: For each, how many of its first windows nothing that comes later changes.
        """

    @abc.abstractmethod
    def copy(self) -> "AbstractReader":
        """An independent reader of the same series."""


class HeadReader(AbstractReader):
    """Reads the features of all windows."""

    def __init__(self, model: FeatureModel) -> None:
        self._model = model

    def read(
        self, readers: Sequence[AbstractReader], windows: Windows, final: Sequence[int]
    ) -> Float[np.ndarray, "series output"]:
        """The head's outputs, each the same whichever other series are there."""
        assert windows.strangeness is not None
        return self._model.outputs(self._model.features.of_windows(windows), windows.strangeness)

    def copy(self) -> "HeadReader":
        """The same: it keeps nothing."""
        return self


class RowReader(AbstractReader):
    """Folds the rows of windows that are final into the state of a network, and adds those of the others."""

    def __init__(self, model: RowModel, serving: AbstractServingModel) -> None:
        self._model, self._serving = model, serving
        nothing = np.zeros(0, bool)
        self._state = serving.start(InitialObservations(np.zeros(0), nothing, nothing), np.zeros(0))
        self._folded = 0

    def read(
        self, readers: Sequence[AbstractReader], windows: Windows, final: Sequence[int]
    ) -> Float[np.ndarray, "series output"]:
        """The network's outputs."""
        own = [one for one in readers if isinstance(one, RowReader)]
        rows = self._model.features.of_windows(windows)
        behind = [place for place, one in enumerate(own) if final[place] > one._folded]
        if behind:
            new = [rows.values[place, own[place]._folded : final[place]].astype(np.float64) for place in behind]
            moved = self._serving.advance_many([own[place]._state for place in behind], new)
            for place, state in zip(behind, moved, strict=True):
                own[place]._state, own[place]._folded = state, final[place]
        each = zip(own, rows.values, rows.count.tolist(), strict=True)
        rest = [values[one._folded : count].astype(np.float64) for one, values, count in each]
        return self._serving.predict_many([one._state for one in own], rest)

    def copy(self) -> "RowReader":
        """States are not changed in place, so both may keep the same one."""
        return copy.copy(self)


def reader_of(model: FeatureModel | RowModel) -> AbstractReader:
    """The reader of a series of which nothing is known yet."""
    return RowReader(model, serving_model(model.sequence)) if isinstance(model, RowModel) else HeadReader(model)


class FeaturePredictor(AbstractPredictor):
    """Predicts from the windows of one growing series."""

    def __init__(
        self, model: FeatureModel | RowModel, reader: AbstractReader | None = None, watch: RangeWatch | None = None
    ) -> None:
        self._model, self._watch = model, watch
        self._online = OnlineFeatures(model.features)
        self._fresh = reader_of(model) if reader is None else reader
        self._reader = self._fresh.copy()

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._model.schema

    @property
    def rule(self) -> Partition:
        """Intervals are the windows of the features."""
        return Partition.every(self._model.features.width)

    @property
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""
        return self._online.last

    def begin(self, static: Numbers | None = None) -> "FeaturePredictor":
        """A predictor of another series."""
        return FeaturePredictor(self._model, self._fresh, begun(self._watch))

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Take one event, later than all before."""
        row = row_of(self.schema, values)
        self._online.observe(time, row)
        if self._watch is not None:
            self._watch.take(self._online.last, row)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse a stamp before 0 or far beyond all training, and infinite values."""
        self._online.check(time, row)

    def share(self, other: "FeaturePredictor") -> None:
        """Follow the series of another predictor, which has observed the same with equal windows."""
        self._online = other._online

    @property
    def digest(self) -> str:
        """Identifies the width of windows, the channels and their scales."""
        return self._model.features.digest

    def close(self, time: object) -> None:
        """Refuse: windows have one width."""
        raise ModelError(f"Intervals end by the rule {self.rule!r}, with which the model was trained.")

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Predict as if the series ended at this time."""
        return self.predict_each([self], [at])[0]

    def predict_each(
        self, predictors: Sequence[AbstractPredictor], at: Sequence[object]
    ) -> Float[np.ndarray, "series output"]:
        """Predict several series together."""
        return _read([features_only(predictors)], at)[0]

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of windows that time has passed. One at which an event is, is over after it."""
        clock, width, last = self._online.clock, self._model.features.width, max(self.last, 0.0)
        time = float(time_on(clock, until))
        if not time > last:
            return
        self.check(time, np.full(len(self.schema.channels), np.nan))
        open_window, reached = window_count(np.array([last, time]), width).tolist()
        zero = zero_for(clock, until)
        for number in range(open_window, reached):
            end = max(number * width, last)
            yield end + zero, self.predict(Time(end))

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The sums over windows."""
        return {"format": FORMAT, "kind": "features", "windows": self._online.state(arrays)}

    def restore(self, state: dict[str, Any]) -> "FeaturePredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            check_format(state, "features")
            self._online = OnlineFeatures(self._model.features).restore(state["windows"])
            self._reader, self._watch = self._fresh.copy(), restored(self._watch, self.last)

        restoring(restore)
        return self

    def copy(self) -> "FeaturePredictor":
        """An independent predictor that has observed the same."""
        other = FeaturePredictor(self._model, self._fresh, copied(self._watch))
        other._online, other._reader = self._online.copy(), self._reader.copy()
        return other


def features_only(predictors: Sequence[AbstractPredictor]) -> list[FeaturePredictor]:
    """Predictors that are all those of features."""
    found = [one for one in predictors if isinstance(one, FeaturePredictor)]
    assert len(found) == len(predictors)
    return found


def _read(models: Sequence[list[FeaturePredictor]], at: Sequence[object]) -> list[Float[np.ndarray, "series output"]]:
    """The outputs of models with equal windows for several series.

    Args:
        models: For each model the predictors of these series. Predictors of one series follow it together.
        at: A stamp for each series.
    """
    series = [one._online for one in models[0]]
    ends = [one.end(stamp) for one, stamp in zip(series, at, strict=True)]
    for of_model in models:
        for one, stamp, end in zip(of_model, at, ends, strict=True):
            if one._watch is not None and stamp is not None:
                one._watch.ask(end)
    counts, channels = window_count(np.array(ends), series[0].width), len(series[0].schema.channels)
    found: list[list[Any]] = [[None] * len(series) for _ in models]
    for chosen in like_sized(counts, channels, np.arange(len(series))):
        places = chosen.tolist()
        windows = windows_of([series[place] for place in places], [ends[place] for place in places])
        final = [series[place].final for place in places]
        for of_model, outputs in zip(models, found, strict=True):
            readers = [of_model[place]._reader for place in places]
            for place, one in zip(places, readers[0].read(readers, windows, final), strict=True):
                outputs[place] = one
    return [np.array(outputs) for outputs in found]


def share_windows(predictors: list[AbstractPredictor]) -> list[AbstractPredictor]:
    """Let predictors with equal windows follow one series together.

    Args:
        predictors: Predictors that have observed the same.

    Returns:
        Those that are to observe on behalf of all.
    """
    first: dict[str, FeaturePredictor] = {}
    observing: list[AbstractPredictor] = []
    for one in predictors:
        if isinstance(one, FeaturePredictor):
            other = first.setdefault(one.digest, one)
            if other is not one:
                one.share(other)
                continue
        observing.append(one)
    return observing


class MixturePredictor(AbstractPredictor):
    """Predicts from the predictors of all models of a mixture. Those with equal windows share their sums."""

    def __init__(
        self, model: Mixture, members: list[AbstractPredictor] | None = None, watch: RangeWatch | None = None
    ) -> None:
        self._model, self._watch = model, watch
        self._clock: Clock = model.schema.clock
        self._members = [predictor_of(one) for one in model.models] if members is None else members
        self._observing = share_windows(self._members)

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._model.schema

    @property
    def rule(self) -> Partition | None:
        """The rule of the first model."""
        return self._members[0].rule

    @property
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""
        return self._members[0].last

    def begin(self, static: Numbers | None = None) -> "MixturePredictor":
        """A predictor of another series."""
        return MixturePredictor(self._model, [one.begin(static) for one in self._members], begun(self._watch))

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Give the event to all models, after each has checked it: all take it or none."""
        clock = begun_by(self._clock, time)
        moment, row = time_on(clock, time), row_of(self.schema, values)
        self.check(float(moment), row)
        for one in self._observing:
            one.observe(moment, row, terms)
        self._clock = clock
        if self._watch is not None:
            self._watch.take(float(moment), row)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse what any of the models refuses."""
        for one in self._observing:
            one.check(time, row)

    def close(self, time: object) -> None:
        """Refuse: intervals end by the rules of the models."""
        self._members[0].close(time_on(self._clock, time))

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Mix the predictions."""
        return self.predict_each([self], [at])[0]

    def predict_each(
        self, predictors: Sequence[AbstractPredictor], at: Sequence[object]
    ) -> Float[np.ndarray, "series output"]:
        """Predict several series together, with windows that several models read summed once."""
        own = [one for one in predictors if isinstance(one, MixturePredictor)]
        times = [None if stamp is None else time_on(one._clock, stamp) for one, stamp in zip(own, at, strict=True)]
        of_models = list(zip(*(one._members for one in own), strict=True))
        found: list[Any] = [None] * len(of_models)
        windowed: dict[str, list[int]] = {}
        for number, members in enumerate(of_models):
            if isinstance(members[0], FeaturePredictor):
                windowed.setdefault(members[0].digest, []).append(number)
            else:
                found[number] = members[0].predict_each(members, times)
        for numbers in windowed.values():
            outputs = _read([features_only(of_models[number]) for number in numbers], times)
            for number, of_model in zip(numbers, outputs, strict=True):
                found[number] = of_model
        for one, time in zip(own, times, strict=True):
            if one._watch is not None and time is not None:
                one._watch.ask(float(time))
        return self._model.mixed([np.array(one, np.float64) for one in found])

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of the first model's intervals."""
        zero = zero_for(self._clock, until)
        for end, _ in self._members[0].ends(time_on(self._clock, until)):
            yield end + zero, self.predict(Time(end))

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The states of all models."""
        origin = own_origin(self._clock, self.schema.clock)
        members = [one.state(arrays) for one in self._observing]
        return {"format": FORMAT, "kind": "mixture", "origin": origin, "members": members}

    def restore(self, state: dict[str, Any]) -> "MixturePredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            check_format(state, "mixture")
            members = [one.copy() for one in self._members]
            for one, part in zip(share_windows(members), state["members"], strict=True):
                one.restore(part)
            clock = with_origin_number(self.schema.clock, state.get("origin"))
            self._members, self._observing, self._clock = members, share_windows(members), clock
            self._watch = restored(self._watch, self.last)

        restoring(restore)
        return self

    def copy(self) -> "MixturePredictor":
        """An independent predictor that has observed the same."""
        other = MixturePredictor(self._model, [one.copy() for one in self._members], copied(self._watch))
        other._clock = self._clock
        return other
