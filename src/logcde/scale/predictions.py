"""Predictions of a fitted estimator, row by row, and the table that they make."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.errors import ModelError, NonFinitePredictionError, TableError
from logcde.scale.rows import AbstractRows, Tally, stamp_type

if TYPE_CHECKING:
    from logcde.streams import Schema, Streams


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions row by row: the number of the series, the time, and classes or numbers (row, output).

    Rows that are not `finite` have no prediction: their numbers are NaN, and their class means nothing.
    """

    series: np.ndarray
    time: np.ndarray
    value: np.ndarray
    probabilities: np.ndarray | None = None

    @property
    def finite(self) -> np.ndarray:
        """Which rows have a prediction."""
        return np.asarray(np.isfinite(self.value if self.probabilities is None else self.probabilities).all(axis=1))

    def __getitem__(self, rows: np.ndarray) -> "Predictions":
        """Select rows by a mask."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return Predictions(self.series[rows], self.time[rows], self.value[rows], probabilities)


@dataclasses.dataclass(frozen=True)
class PredictionRows(AbstractRows):
    """The predictions of an estimator: at the end of every series, or of a forecaster at query times.

    Attributes:
        estimator: A fitted classifier, regressor or forecaster.
        outputs: The names of the predicted targets.
        time: The name of the column of the time predicted for.
        ended: Whether observation windows end at a given horizon, and not a typical gap after the last event.
        queries: From some series to those of them that have queries, and the query times.
    """

    estimator: Any
    outputs: tuple[str, ...]
    time: str = "time"
    ended: bool = False
    queries: "Callable[[Streams], tuple[Streams, Any]] | None" = None

    def columns(self, series: str, schema: "Schema", text: bool) -> Any:
        """Columns of series and time, and of each prediction."""
        from logcde.streams.frames import arrow

        pyarrow, estimator = arrow(), self.estimator
        known = [(series, pyarrow.string() if text else pyarrow.int64()), (self.time, stamp_type(schema.clock))]
        labels = pyarrow.array(estimator.classes_.tolist()).type if is_classifier(estimator) else pyarrow.float64()
        for name in prediction_columns(estimator, self.outputs):
            if name in (series, self.time):
                raise TableError(
                    f"The output would have two columns named {name!r}.", "Rename that column of the table."
                )
            known.append((name, labels if name == "prediction" else pyarrow.float64()))
        return pyarrow.schema(known)

    def tables(self, streams: "Streams", columns: Any, tally: Tally) -> Iterator[Any]:
        """A row for each prediction; one that is not finite is left empty."""
        from logcde.estimators.data import last_times, with_horizon
        from logcde.streams.frames import arrow

        pyarrow = arrow()
        if not self.ended:
            streams = with_horizon(streams, last_times(streams) + self.estimator.gap_)
        at = None
        if self.queries is not None:
            streams, at = self.queries(streams)
        if not len(streams):
            return
        made = predict(self.estimator, streams, at)
        finite, clock = made.finite, streams.schema.clock
        tally.lost += streams.ids[np.unique(made.series[~finite])].tolist()
        origins = None if streams.origins is None else streams.origins[made.series]
        arrays = [pyarrow.array(streams.ids[made.series].tolist()), pyarrow.array(clock.stamps(made.time, origins))]
        for values in prediction_columns(self.estimator, self.outputs).values():
            column = pyarrow.array(np.asarray(values(made)).tolist())
            arrays.append(column if finite.all() else pyarrow.compute.if_else(pyarrow.array(finite), column, None))
        arrays = [column.cast(kind) for column, kind in zip(arrays, columns.types, strict=True)]
        yield pyarrow.Table.from_arrays(arrays, schema=columns)
        tally.rows += len(made.series)
        tally.series += len(streams)


def is_classifier(estimator: Any) -> bool:
    """Whether an estimator predicts classes."""
    return hasattr(estimator, "predict_proba")


def is_forecaster(estimator: Any) -> bool:
    """Whether an estimator predicts at query times."""
    from logcde.estimators import LogCDEForecaster

    return isinstance(estimator, LogCDEForecaster)


def predict(estimator: Any, streams: "Streams", at: Any = None) -> Predictions:
    """Predictions of an estimator; a forecaster's at query times, by default at the end of every series.

    Rows whose numbers are not finite have none.
    """
    if is_forecaster(estimator):
        from logcde.estimators.queries import queries_at
        from logcde.streams.ragged import owners

        asked = queries_at(at, streams)
        found = _those_that_are_finite(lambda: estimator.predict(streams, at=asked))
        return Predictions(owners(asked.offsets), asked.times, found[asked.present])
    if at is not None:
        raise ModelError(
            f"{type(estimator).__name__} predicts once for each series, at its end.", "Leave out query times."
        )
    number = np.arange(len(streams))
    if is_classifier(estimator):
        found = _those_that_are_finite(lambda: estimator.predict_proba(streams))
        return Predictions(number, streams.horizon, estimator.classes_[found.argmax(axis=1)], found)
    found = _those_that_are_finite(lambda: estimator.predict(streams))
    return Predictions(number, streams.horizon, found[:, None])


def prediction_columns(estimator: Any, outputs: Sequence[str]) -> Mapping[str, Callable[[Predictions], Any]]:
    """The columns of a table of predictions, and how to compute each."""
    if is_classifier(estimator):
        each = {f"probability_{one}": _probability(number) for number, one in enumerate(estimator.classes_.tolist())}
        return {"prediction": lambda predictions: predictions.value, **each}
    if is_forecaster(estimator):
        return {f"prediction_{name}": _output(number) for number, name in enumerate(outputs)}
    return {"prediction": _output(0)}


def _those_that_are_finite(predict: Callable[[], np.ndarray]) -> np.ndarray:
    """Predictions, NaN for series whose own are not finite: they do not stop the others."""
    try:
        return predict()
    except NonFinitePredictionError as error:
        return error.predictions


def _probability(number: int) -> Callable[[Predictions], Any]:
    return lambda predictions: predictions.probabilities[:, number]  # type: ignore[index]


def _output(number: int) -> Callable[[Predictions], Any]:
    return lambda predictions: predictions.value[:, number]
