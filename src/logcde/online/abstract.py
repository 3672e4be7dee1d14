"""The contract of predictors, whatever model they serve."""

import abc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from logcde._typing import Numbers
from logcde.embedding.online import Values
from logcde.streams import Partition, Schema


class AbstractPredictor(abc.ABC):
    """Follows one growing series and predicts at any time, with the numbers of the model offline on the prefix."""

    @property
    @abc.abstractmethod
    def schema(self) -> Schema:
        """Channels and clock."""

    @property
    @abc.abstractmethod
    def rule(self) -> Partition | None:
        """The rule by which intervals end, None if the user closes them."""

    @property
    @abc.abstractmethod
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""

    @abc.abstractmethod
    def begin(self, static: Numbers | None = None) -> "AbstractPredictor":
        """A predictor of another series, which has observed nothing yet."""

    @abc.abstractmethod
    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Take one event: everything that was observed at one stamp, later than all events before.

        Args:
            time: A stamp of the streams' clock; where it has datetimes or durations, a number is the time itself.
            values: Maps channels to numbers, or has one number for each channel, NaN for those not observed.
            terms: The schema's higher-order terms.

        Raises:
            StreamError: The event is out of order or not finite. Nothing has changed then.
        """

    @abc.abstractmethod
    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse an event that no series can have, whatever was observed before: a bad stamp or bad values."""

    @abc.abstractmethod
    def close(self, time: object) -> None:
        """End the open interval, for partitions that do not say where the intervals of a growing series end."""

    @abc.abstractmethod
    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Predict as if the series ended at this time, by default its latest. Changes nothing."""

    @abc.abstractmethod
    def predict_each(
        self, predictors: "Sequence[AbstractPredictor]", at: Sequence[object]
    ) -> Float[np.ndarray, "series output"]:
        """Predict several series, each at its own time, together: one call for all where the model has one.

        Args:
            predictors: Predictors that were begun by the same one as this.
            at: A stamp for each; None is the latest time of the series.
        """

    @abc.abstractmethod
    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of intervals that would be over at this time, with the prediction at each."""

    @abc.abstractmethod
    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The whole state of the series, in numbers, lists and mappings that JSON can represent.

        Args:
            arrays: Leave arrays of numbers as arrays of NumPy, for `logcde.online.states.encode`. They are not to be
                written to.
        """

    @abc.abstractmethod
    def restore(self, state: dict[str, Any]) -> "AbstractPredictor":
        """Continue from what `state` returned, in either form, in a predictor with the same model and options."""

    @abc.abstractmethod
    def copy(self) -> "AbstractPredictor":
        """An independent predictor that has observed the same."""
