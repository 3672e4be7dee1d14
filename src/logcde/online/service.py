"""What all series of a predictor share: the model, how events are embedded, where intervals end."""

import dataclasses
import math

import numpy as np

from logcde.embedding import Coordinates, Embedding
from logcde.errors import ModelError, StreamError
from logcde.models import AbstractOnlineModel
from logcde.online.linear import served
from logcde.online.serving import AbstractServed
from logcde.streams import Partition, Schema
from logcde.streams.stamps import read_stamps


@dataclasses.dataclass(frozen=True)
class Service:
    """A model ready to serve; `window` is how late events may come."""

    model: AbstractServed
    coordinates: Coordinates
    partition: Partition | None
    window: float | None

    @staticmethod
    def of(
        model: AbstractOnlineModel,
        schema: Schema | None,
        embedding: Embedding | None,
        partition: Partition | None,
        reorder: object,
    ) -> "Service":
        """From what a user gives; what is not given comes from the model's source."""
        ahead = next((look for look in model.looks if not look.causal), None)
        if ahead is not None:
            raise ModelError(
                f"The initial state of this model looks ahead: {type(ahead).__name__} reads the first value of every "
                "channel, also of those that are not observed yet. Train it with initial=StartValues() or Learnt(), "
                "which do not."
            )
        if (schema is None) != (embedding is None):
            raise ModelError("Give the schema and the embedding together: one means nothing without the other.")
        if schema is not None and embedding is not None:
            coordinates = embedding.coordinates(schema)
        elif model.source is not None:
            coordinates = model.source.coordinates
        else:
            raise ModelError(
                "This model does not say how its log-signatures were made. Give the predictor the schema, the "
                "embedding and the partition of its training data."
            )
        if coordinates.basis != model.basis:
            raise ModelError(f"The model reads {model.basis!r}, but events are embedded in {coordinates.basis!r}.")
        if coordinates.schema.continuous:
            raise ModelError(
                "The schema has continuous channels beside time, of which a predictor would have to know where they "
                "are at every end of an interval. Use logcde.Online and the model's own start, advance and predict."
            )
        rule = partition if partition is not None or model.source is None else model.source.partition
        service = Service(served(model), coordinates, rule, None)
        window = None if reorder is None else service.time(reorder)
        return dataclasses.replace(service, window=window)

    def time(self, stamp: object) -> float:
        """A stamp of the user's clock as time."""
        return float(self.coordinates.schema.clock.times(read_stamps([stamp]))[0])

    def check(self, time: float, row: np.ndarray) -> None:
        """Refuse an event that could never be one."""
        if not math.isfinite(time):
            raise StreamError(f"The stamp of an event is {time}. Stamps are finite.")
        if row.shape != (self.coordinates.channels,) or np.isinf(row).any():
            raise StreamError(
                f"The event at {time} has the values {row.tolist()}. Give one finite number for each of the "
                f"{self.coordinates.channels} channels, NaN = not observed."
            )
