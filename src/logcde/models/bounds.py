"""Bounds of outputs: numbers stay near those of training, and no class is certain, least of all far from training."""

import abc
import dataclasses

import numpy as np
from jaxtyping import Float64

from logcde.errors import ModelError
from logcde.models.heads import LEAST, log_softmax

HALF = 0.1
"""The strangeness of a series at which class frequencies count as much as what was learnt."""


class AbstractBounds(abc.ABC):
    """Limits what a model says about a series."""

    @abc.abstractmethod
    def __call__(
        self, outputs: Float64[np.ndarray, "series output"], strangeness: Float64[np.ndarray, "series"]
    ) -> Float64[np.ndarray, "series output"]:
        """The limited outputs.

        Args:
            outputs: Logits of classes, or numbers.
            strangeness: How far each series is from those of training, from 0 to 1.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class ClassBounds(AbstractBounds):
    """Mixes probabilities with the class frequencies: a little always, and nearly all the way for strange series.

    Args:
        prior: Frequencies of the classes.
        least: Weight of the frequencies for a series that is not strange.

    >>> bounds = ClassBounds(np.array([0.5, 0.5]), least=0.01)
    >>> np.exp(bounds(np.array([[0.0, 50.0], [0.0, 50.0]]), np.array([0.0, 0.3]))).round(3)
    array([[0.005, 0.995],
           [0.45 , 0.55 ]])
    """

    prior: Float64[np.ndarray, "class"]
    least: float

    def __post_init__(self) -> None:
        if not (0 <= self.least <= 1 and (self.prior >= 0).all() and np.isclose(self.prior.sum(), 1.0)):
            raise ModelError(f"Class frequencies {self.prior.tolist()} with a weight of {self.least} are not possible.")

    def __call__(
        self, outputs: Float64[np.ndarray, "series output"], strangeness: Float64[np.ndarray, "series"]
    ) -> Float64[np.ndarray, "series output"]:
        """Logarithms of the mixed probabilities."""
        strange = np.square(strangeness) / (np.square(strangeness) + HALF**2)
        share = (self.least + (1 - self.least) * strange)[:, None]
        return np.log(np.maximum((1 - share) * np.exp(log_softmax(outputs)) + share * self.prior, LEAST))


@dataclasses.dataclass(frozen=True, eq=False)
class NumberBounds(AbstractBounds):
    """Clips numbers.

    Args:
        low: Least number.
        high: Greatest number.

    >>> NumberBounds(0.0, 9.0)(np.array([[-1.0], [4.0]]), np.zeros(2))
    array([[0.],
           [4.]])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ModelError(f"Numbers cannot be clipped to [{self.low}, {self.high}].")

    def __call__(
        self, outputs: Float64[np.ndarray, "series output"], strangeness: Float64[np.ndarray, "series"]
    ) -> Float64[np.ndarray, "series output"]:
        """Numbers from `low` to `high`."""
        return np.clip(outputs, self.low, self.high)
