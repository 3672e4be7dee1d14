"""`Predictors` follows many growing series, which are predicted together."""

import warnings
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float

from logcde._typing import Numbers
from logcde.embedding import Embedding
from logcde.embedding.online import Values
from logcde.errors import ModelError, NonFiniteWarning, StreamError, Where
from logcde.models import AbstractOnlineModel
from logcde.online.abstract import AbstractPredictor
from logcde.online.predictor import Predictor
from logcde.online.serving import PredictorSetup
from logcde.streams import Partition, Schema, TrainingRanges
from logcde.streams.faults import not_finite


class Predictors:
    """Predicts from many growing series, each with an id and with intervals of its own.

    A series begins with its first event, or with `add`, which takes its static features. `predictors[id]` is the
    `Predictor` of one series. The arguments are those of `Predictor`.

    >>> import jax
    >>> from logcde import Embedding, log_slice, Partition, Schema
    >>> schema, embedding = Schema(("pulse", "temp")), Embedding(depth=2)
    >>> model = log_slice(embedding.basis(schema), hidden=8, outputs=1, key=jax.random.key(0))
    >>> predictors = Predictors(model, schema=schema, embedding=embedding, partition=Partition.every(1.0))
    >>> predictors.observe("bed 3", 0.5, {"pulse": 61.0})
    >>> predictors.observe("bed 7", 1.25, {"temp": 37.2})
    >>> predictors.ids, predictors.predict(at=2.0).shape
    (('bed 3', 'bed 7'), (2, 1))
    """

    def __init__(
        self,
        model: AbstractOnlineModel,
        *,
        schema: Schema | None = None,
        embedding: Embedding | None = None,
        partition: Partition | None = None,
        reorder: object = None,
        ranges: TrainingRanges | None = None,
    ) -> None:
        self._setup = PredictorSetup.of(model, schema, embedding, partition, reorder, ranges)
        self._series: dict[Hashable, Predictor] = {}
        self._not_finite: set[Hashable] = set()

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The ids of the series, in the order in which they began and in which they are predicted."""
        return tuple(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __getitem__(self, series: Hashable) -> Predictor:
        """The predictor of one series."""
        if series not in self._series:
            raise ModelError(
                f"There is no series {series!r} yet.",
                "A series begins with its first event, or with `add`.",
                where=Where(series=series),
            )
        return self._series[series]

    def add(self, series: Hashable, static: Numbers | None = None) -> Predictor:
        """Begin a series, with its static features if the model takes some."""
        if series in self._series:
            raise ModelError(f"The series {series!r} has begun already.", where=Where(series=series))
        one = Predictor.from_setup(self._setup, static, series)
        self._series[series] = one
        return one

    def remove(self, series: Hashable) -> None:
        """Forget a series."""
        self._series.pop(series, None)
        self._not_finite.discard(series)

    def observe(
        self,
        series: Hashable,
        time: object,
        values: Values,
        terms: Numbers | None = None,
        continuous: Values | None = None,
    ) -> None:
        """Take one event of one series. Events are in order within a series; series are independent of each other.

        Args:
            series: Id of the series.
            time: Its stamp.
            values: As in `Predictor.observe`, and so are the others.
            terms: The schema's higher-order terms.
            continuous: Values of the schema's continuous channels.
        """
        one = self._series.get(series)
        if one is not None:
            one.observe(time, values, terms, continuous)
            return
        one = Predictor.from_setup(self._setup, None, series)
        one.observe(time, values, terms, continuous)
        self._series[series] = one  # an event that is refused begins no series

    def knot(self, series: Hashable, time: object, continuous: Values) -> None:
        """Take values of the continuous channels of one series, which may begin with them, as in `Predictor.knot`."""
        one = self._series.get(series)
        one = Predictor.from_setup(self._setup, None, series) if one is None else one
        one.knot(time, continuous)
        self._series[series] = one

    def observe_many(
        self,
        series: Sequence[Hashable],
        times: Sequence | np.ndarray,
        values: Sequence | np.ndarray,
        terms: Sequence | np.ndarray | None = None,
        continuous: Sequence | np.ndarray | None = None,
    ) -> None:
        """Take events of many series, one after another.

        Args:
            series: The id of each event's series.
            times: The stamp of each event.
            values: A row of values for each event, and so on for the others.
            terms: The schema's higher-order terms.
            continuous: Values of the schema's continuous channels.
        """
        given = {
            "ids": series,
            "times": times,
            "rows of values": values,
            "rows of terms": terms,
            "rows of continuous values": continuous,
        }
        sizes = {
            name: len(one) if isinstance(one, Sequence) or np.ndim(one) else 0
            for name, one in given.items()
            if one is not None
        }
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{size} {name}" for name, size in sizes.items())
            if not isinstance(values, Sequence) and not np.ndim(values):
                found = (
                    f"{sizes['ids']} ids, {sizes['times']} times, and one number in place of rows of values, {values!r}"
                )
            raise StreamError(f"There are {found}.", "Pass one id, one time and one row of values for each event.")
        nothing = [None] * len(series)
        rows = (nothing if one is None else one for one in (terms, continuous))
        for event in zip(series, times, values, *rows, strict=True):
            self.observe(*event)

    def close(self, time: object) -> None:
        """End the open interval of every series."""
        for one in self._series.values():
            one.close(time)

    def predict(
        self, at: object = None, series: Sequence[Hashable] | None = None
    ) -> Float[np.ndarray, "series output"]:
        """Predict as if each series ended at this time. Changes nothing.

        Args:
            at: A stamp of the streams' clock; by default the latest time of each series.
            series: Ids of the series to predict; all by default.

        Returns:
            The outputs of the model, one row for each series. A series whose outputs are not finite changes no other
            one, and is warned of once.
        """
        ids = self.ids if series is None else tuple(series)
        chosen = [self[one] for one in ids]
        if not chosen:
            raise ModelError("There are no series to predict yet.", "Observe events, or begin a series with `add`.")
        found = np.asarray(predict_together(chosen, [at] * len(chosen)))
        lost = [ids[place] for place in np.flatnonzero(~np.isfinite(found).all(axis=1))]
        if not self._not_finite.issuperset(lost):
            self._not_finite.update(lost)
            warnings.warn(NonFiniteWarning(not_finite(lost)), stacklevel=2)
        return found


def predict_together(
    predictors: Sequence[AbstractPredictor], at: Sequence[object]
) -> list[Float[np.ndarray, "output"]]:
    """Predict many series of one model, each at its own time, in compiled batches.

    Args:
        predictors: Predictors of different series, begun by one predictor. They do not change.
        at: A stamp for each; None is the latest time of the series.
    """
    return list(predictors[0].predict_each(predictors, at)) if predictors else []
