"""`Predictors`: many series that are still coming in, and what a model says about all of them at once."""

from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float

from logcde._typing import Numbers
from logcde.embedding import Embedding
from logcde.embedding.online import Values
from logcde.errors import ModelError
from logcde.models import AbstractOnlineModel
from logcde.online.predictor import Predictor, settle
from logcde.online.service import Service
from logcde.streams import Partition, Schema


class Predictors:
    """A model and many series, each with an id, each with its own intervals: see `Predictor` for the options.

    A series begins with its first event, or with `add`, which takes its static features. `predictors[id]` is the
    `Predictor` of one series.

    >>> import jax
    >>> from logcde import Embedding, LogSLiCE, Partition, Schema
    >>> schema, embedding = Schema(("pulse", "temp")), Embedding(depth=2)
    >>> model = LogSLiCE(embedding.basis(schema), hidden=8, outputs=1, key=jax.random.key(0))
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
    ) -> None:
        self._service = Service.of(model, schema, embedding, partition, reorder)
        self._series: dict[Hashable, Predictor] = {}

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The series in the order in which they began, which is that of the predictions."""
        return tuple(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __getitem__(self, series: Hashable) -> Predictor:
        """The predictor of one series."""
        if series not in self._series:
            raise ModelError(f"There is no series {series!r} yet. It begins with its first event, or with `add`.")
        return self._series[series]

    def add(self, series: Hashable, static: Numbers | None = None) -> Predictor:
        """Begin a series, with the features of it that do not change."""
        if series in self._series:
            raise ModelError(f"The series {series!r} has begun already.")
        one = Predictor.serving(self._service, static)
        self._series[series] = one
        return one

    def remove(self, series: Hashable) -> None:
        """Forget a series."""
        self._series.pop(series, None)

    def observe(self, series: Hashable, time: object, values: Values) -> None:
        """Take one event of one series, in the order of that series; other series may be elsewhere in time."""
        one = self._series.get(series)
        (self.add(series) if one is None else one).observe(time, values)

    def observe_many(
        self, series: Sequence[Hashable], times: Sequence | np.ndarray, values: Sequence | np.ndarray
    ) -> None:
        """Take events of many series, in this order."""
        for one, time, row in zip(series, times, values, strict=True):
            self.observe(one, time, row)

    def close(self, time: object) -> None:
        """End the open interval of every series here."""
        for one in self._series.values():
            one.close(time)

    def predict(
        self, at: object = None, series: Sequence[Hashable] | None = None
    ) -> Float[np.ndarray, "series output"]:
        """The predictions of all series, or of these, as if each ended at this time, by default at its latest."""
        chosen = list(self._series.values()) if series is None else [self[one] for one in series]
        if not chosen:
            raise ModelError("There is no series yet to predict for.")
        settle(chosen)
        kept, steps = zip(*(one.ahead(at) for one in chosen), strict=True)
        return self._service.model.predict_many(list(kept), list(steps))
