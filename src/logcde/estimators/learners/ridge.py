"""Ridge regression on features of windows. Every series is predicted without it in closed form."""

import dataclasses

import numpy as np
from jaxtyping import Float, Float32, Float64

from logcde.errors import check_whole
from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.features import FittedFeatures, WindowFeatures
from logcde.features.smoothing import AbstractSmoother, Shrinkage
from logcde.models.heads import CalibratedHead, LinearHead
from logcde.models.series import FeatureModel
from logcde.streams import Streams

PENALTIES = np.logspace(-5, 1, 13)
"""Candidates, as a share of the number of features."""
FACTORS = np.logspace(-0.5, 2.0, 61)
"""Candidates of the number that turns scores into logits."""
MOST, FEWER = 12_000_000, 1500
"""Numbers of a table of features above which it has fewer features, because time grows with both."""
LIMIT = 8.0
"""Standardised features are limited to this."""


@dataclasses.dataclass(frozen=True)
class WindowRidge(AbstractLearner):
    """Ridge regression on random units of windows; a linear map of hundreds of shapes that a series may contain.

    The penalty is the one with the least loss on series left out. Scores of classes become logits by a factor that is
    chosen in the same way.

    Args:
        units: Number of random units; from a few thousand series on there are fewer. With 0, features are statistics of
            each channel instead: levels and changes, for targets that depend on them rather than on shapes.
        biases: Features of each unit.
        smoother: How the observations of windows become signals.
    """

    units: int = 2000
    biases: int = 3
    smoother: AbstractSmoother = Shrinkage()

    def __post_init__(self) -> None:
        check_whole("WindowRidge", "units", self.units, least=0)
        check_whole("WindowRidge", "biases", self.biases)

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Solve for all penalties by one decomposition."""
        if self.units:
            many = len(task.targets) * self.units * self.biases > MOST
            units = max(1, FEWER // self.biases) if many else self.units
            features = WindowFeatures(
                smoother=self.smoother, statistics=False, units=units, biases=self.biases, seed=task.seed
            ).fit(task.streams)
            rows = features(task.streams)
        else:
            features, rows = statistics_of(task.streams, self.smoother, FEWER * len(task.targets))
        head, unseen = fit_ridge(rows, task)
        return Learnt(FeatureModel(features, head, task.bounds), task.bounded(unseen))


def statistics_of(
    streams: Streams, smoother: AbstractSmoother, most: int, *, nan_unobserved: bool = False
) -> tuple[FittedFeatures, Float32[np.ndarray, "series feature"]]:
    """Statistics of each channel; a lean selection of them if the table would have more numbers than `most`."""
    features = WindowFeatures(smoother=smoother, nan_unobserved=nan_unobserved, units=0).fit(streams)
    if len(streams) * features.size > most:
        features = dataclasses.replace(features, lean=True)
    return features, features(streams)


def fit_ridge(
    rows: Float[np.ndarray, "series feature"], task: Task
) -> tuple[LinearHead | CalibratedHead, Float64[np.ndarray, "series output"]]:
    """Fit a linear head, and predict each series by the head of all others."""
    centre, spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    spread = np.where(spread > 1e-9, spread, np.inf)
    scaled = np.clip((rows - centre) / spread, -LIMIT, LIMIT)
    # With features and targets of mean 0 the bias needs no unknown of its own, so the closed form is exact.
    shift, bias = np.average(scaled, axis=0, weights=task.weight), task.prior
    scaled, wanted = scaled - shift, task.wanted
    root = np.sqrt(task.weight)[:, None]
    sizes, vectors = left_vectors(scaled * root)
    projected = vectors.T @ ((wanted - bias) * root)
    best, chosen = np.inf, (1.0, 1.0, wanted)
    for penalty in PENALTIES * scaled.shape[1]:
        kept = sizes / (sizes + penalty)
        fitted = (vectors * kept) @ projected
        own = np.square(vectors) @ kept + task.weight / task.weight.sum()
        held_out = wanted - ((wanted - bias) * root - fitted) / root / np.maximum(1 - own, 1e-6)[:, None]
        factor = 1.0 if task.classes is None else task.best_factor(held_out, FACTORS)
        loss = task.loss(held_out * factor)
        if loss < best:
            best, chosen = loss, (penalty, factor, held_out)
    penalty, factor, held_out = chosen
    weight = (scaled * root).T @ ((vectors / (sizes + penalty)) @ projected)
    head = LinearHead(centre, np.where(np.isfinite(spread), spread, 1.0), weight, bias - shift @ weight, LIMIT)
    return (head if task.classes is None else CalibratedHead(head, factor)), held_out * factor


def left_vectors(
    rows: Float64[np.ndarray, "series feature"],
) -> tuple[Float64[np.ndarray, "rank"], Float64[np.ndarray, "series rank"]]:
    """Squared singular values and left singular vectors, from the smaller of the two products of `rows` with itself.

    >>> sizes, vectors = left_vectors(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> sizes, np.abs(vectors)
    (array([4., 9.]), array([[0., 1.],
           [1., 0.],
           [0., 0.]]))
    """
    series, features = rows.shape
    if series <= features:
        sizes, vectors = np.linalg.eigh(rows @ rows.T)
        return np.maximum(sizes, 0.0), vectors
    sizes, right = np.linalg.eigh(rows.T @ rows)
    kept = sizes > sizes[-1] * 1e-12
    return sizes[kept], rows @ (right[:, kept] / np.sqrt(sizes[kept]))
