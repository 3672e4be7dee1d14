"""Predictors of the models that estimators train: features of windows, mixtures of models, late events."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from logcde._typing import Numbers
from logcde.embedding.online import Values
from logcde.errors import LogcdeError, ModelError
from logcde.features import OnlineFeatures
from logcde.features.online import row_of
from logcde.features.windows import window_count
from logcde.models.series import AbstractSeriesModel, EmbeddedModel, FeatureModel, Mixture
from logcde.online.abstract import AbstractPredictor
from logcde.online.predictor import Predictor
from logcde.online.prefix import Arrival, Event
from logcde.online.reordering import ReorderBuffer
from logcde.streams import Partition, Schema
from logcde.streams.stamps import read_stamps

FORMAT = 1


def predictor_of(model: AbstractSeriesModel, *, reorder: object = None) -> AbstractPredictor:
    """A predictor of one series for a model that an estimator trained.

    Args:
        model: The trained model.
        reorder: How late an event may arrive, as a time or duration; by default events arrive in order.

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
        return Predictor(model.sequence, reorder=reorder)
    if isinstance(model, FeatureModel):
        predictor: AbstractPredictor = FeaturePredictor(model)
    elif isinstance(model, Mixture):
        predictor = MixturePredictor(model)
    else:
        raise ModelError(f"A {type(model).__name__} cannot predict event by event.")
    return predictor if reorder is None else ReorderingPredictor(predictor, time_of(model.schema, reorder))


def time_of(schema: Schema, stamp: object) -> float:
    """The time of a stamp of the user's clock."""
    return stamp if type(stamp) is float else float(schema.clock.times(read_stamps([stamp]))[0])


def _restoring(restore: Callable[[], None]) -> None:
    """Report any fault of a state as one error."""
    try:
        restore()
    except (LogcdeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelError(f"This state cannot be restored: it belongs to another model or schema ({error}).") from error


def _check_format(state: dict[str, Any], kind: str) -> None:
    if state.get("format") != FORMAT or state.get("kind") != kind:
        raise ModelError(f"it is of kind {state.get('kind')!r} and format {state.get('format')!r}")


class FeaturePredictor(AbstractPredictor):
    """Predicts from the features of one growing series."""

    def __init__(self, model: FeatureModel) -> None:
        self._model = model
        self._online = OnlineFeatures(model.features)

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
        return FeaturePredictor(self._model)

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Take one event, later than all before."""
        self._online.observe(time_of(self.schema, time), values)

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
        time = None if at is None else time_of(self.schema, at)
        return self._model.head(self._model.features.of_windows(self._online.windows(time)))[0]

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of windows that time has passed. One at which an event is, is over after it."""
        time, width, last = time_of(self.schema, until), self._model.features.width, max(self.last, 0.0)
        if not time > last:
            return
        self.check(time, np.full(len(self.schema.channels), np.nan))
        open_window, reached = window_count(np.array([last, time]), width).tolist()
        for number in range(open_window, reached):
            end = max(number * width, last)
            yield end, self.predict(end)

    def state(self) -> dict[str, Any]:
        """The sums over windows."""
        return {"format": FORMAT, "kind": "features", "windows": self._online.state()}

    def restore(self, state: dict[str, Any]) -> "FeaturePredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            _check_format(state, "features")
            self._online = OnlineFeatures(self._model.features).restore(state["windows"])

        _restoring(restore)
        return self

    def copy(self) -> "FeaturePredictor":
        """An independent predictor that has observed the same."""
        other = FeaturePredictor(self._model)
        other._online = self._online.copy()
        return other


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

    def __init__(self, model: Mixture, members: list[AbstractPredictor] | None = None) -> None:
        self._model = model
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
        return MixturePredictor(self._model, [one.begin(static) for one in self._members])

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Give the event to all models, after each has checked it: all take it or none."""
        stamp, row = time_of(self.schema, time), row_of(self.schema, values)
        self.check(stamp, row)
        for one in self._observing:
            one.observe(stamp, row, terms)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse what any of the models refuses."""
        for one in self._observing:
            one.check(time, row)

    def close(self, time: object) -> None:
        """Refuse: intervals end by the rules of the models."""
        self._members[0].close(time)

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Mix the predictions."""
        time = None if at is None else time_of(self.schema, at)
        return self._model.mixed([np.asarray(one.predict(time), np.float64)[None] for one in self._members])[0]

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of the first model's intervals."""
        for end, _ in self._members[0].ends(until):
            yield end, self.predict(end)

    def state(self) -> dict[str, Any]:
        """The states of all models."""
        return {"format": FORMAT, "kind": "mixture", "members": [one.state() for one in self._observing]}

    def restore(self, state: dict[str, Any]) -> "MixturePredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            _check_format(state, "mixture")
            members = [one.copy() for one in self._members]
            for one, part in zip(share_windows(members), state["members"], strict=True):
                one.restore(part)
            self._members, self._observing = members, share_windows(members)

        _restoring(restore)
        return self

    def copy(self) -> "MixturePredictor":
        """An independent predictor that has observed the same."""
        return MixturePredictor(self._model, [one.copy() for one in self._members])


class ReorderingPredictor(AbstractPredictor):
    """Holds events back for a window of time, and gives them to another predictor in order."""

    def __init__(self, inner: AbstractPredictor, window: float) -> None:
        self._inner, self._buffer = inner, ReorderBuffer(window)

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._inner.schema

    @property
    def rule(self) -> Partition | None:
        """The rule of the inner predictor."""
        return self._inner.rule

    @property
    def last(self) -> float:
        """Time of the last event that is final."""
        return self._inner.last

    def begin(self, static: Numbers | None = None) -> "ReorderingPredictor":
        """A predictor of another series."""
        return ReorderingPredictor(self._inner.begin(static), self._buffer.window)

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Hold the event, and pass on those that nothing can precede any more."""
        stamp, row = time_of(self.schema, time), row_of(self.schema, values)
        self.check(stamp, row)  # now, not when the event is released
        if np.isnan(row).all():
            return
        self._buffer.add(Arrival(stamp, event=Event(stamp, row, None if terms is None else np.asarray(terms))))
        for arrival in self._buffer.release():
            _pass(self._inner, arrival)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse what the inner predictor refuses."""
        self._inner.check(time, row)

    def close(self, time: object) -> None:
        """Refuse: intervals end by rules."""
        self._inner.close(time)

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Predict from all events up to this time, also those that are held."""
        time = max(self._inner.last, self._buffer.newest) if at is None else time_of(self.schema, at)
        held = self._buffer.held_until(time)
        ahead = self._inner.copy() if held else self._inner
        for arrival in held:
            _pass(ahead, arrival)
        return ahead.predict(time)

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Refuse: no interval is final."""
        raise ModelError("Events may still arrive late, so no interval is final.", "Leave out reorder=.")

    def state(self) -> dict[str, Any]:
        """The inner state and the events that are held."""
        return {"format": FORMAT, "kind": "reorder", "inner": self._inner.state(), "held": self._buffer.state()}

    def restore(self, state: dict[str, Any]) -> "ReorderingPredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            _check_format(state, "reorder")
            buffer = self._buffer.copy()
            buffer.restore(state["held"])
            self._inner, self._buffer = self._inner.copy().restore(state["inner"]), buffer

        _restoring(restore)
        return self

    def copy(self) -> "ReorderingPredictor":
        """An independent predictor that has observed the same."""
        other = ReorderingPredictor(self._inner.copy(), self._buffer.window)
        other._buffer = self._buffer.copy()
        return other


def _pass(predictor: AbstractPredictor, arrival: Arrival) -> None:
    assert arrival.event is not None
    predictor.observe(arrival.time, arrival.event.row, arrival.event.terms)
