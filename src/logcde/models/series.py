"""Models of whole series: from streams to outputs, on the host. Estimators train them, save them and serve them."""

import abc
import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, Int64

from logcde.embedding import Embedding, LogSignatures
from logcde.errors import ModelError
from logcde.features import FittedFeatures
from logcde.models.heads import AbstractHead, mix_logits
from logcde.models.inputs import Inputs
from logcde.models.model import SequenceModel
from logcde.models.prediction import predict
from logcde.models.scaling import IncrementRMSScaling, NoScaling
from logcde.streams import Partition, Schema, Streams


class AbstractSeriesModel(abc.ABC):
    """Maps streams to outputs: logits of classes, or numbers."""

    @abc.abstractmethod
    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The outputs of each series, the same to the bit whichever other series are there."""

    @property
    @abc.abstractmethod
    def schema(self) -> Schema:
        """The channels of the training series."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of trained numbers."""


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureModel(AbstractSeriesModel):
    """Features of windows and a head on them.

    >>> from logcde.features import WindowFeatures
    >>> from logcde.models.heads import LinearHead
    >>> streams = Streams.from_dense(np.random.default_rng(0).normal(size=(20, 30, 1)))
    >>> features = WindowFeatures(units=5).fit(streams)
    >>> count = len(features.names)
    >>> head = LinearHead(np.zeros(count), np.ones(count), np.zeros((count, 2)), np.array([0.0, 1.0]))
    >>> FeatureModel(features, head)(streams)[0]
    array([0., 1.])
    """

    features: FittedFeatures
    head: AbstractHead

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The outputs of the head for the features of each series."""
        return self.head(self.features(streams))

    @property
    def schema(self) -> Schema:
        """The channels of the training series."""
        return self.features.schema

    @property
    def size(self) -> int:
        """Numbers of the head."""
        return self.head.size


@dataclasses.dataclass(frozen=True, eq=False)
class QueryIntervals:
    """The intervals that end at query times: their positions, and their number in each series."""

    ends: Int64[np.ndarray, "series query"]
    count: Int64[np.ndarray, "series"]


@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddedModel(AbstractSeriesModel):
    """A sequence model with the embedding and the partition that give its log-signatures."""

    sequence: SequenceModel
    embedding: Embedding
    partition: Partition

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The outputs of the model at the end of each series."""
        return self.outputs(self.embedding(streams, self.partition), None)

    def outputs(
        self, logsigs: LogSignatures, queries: QueryIntervals | None
    ) -> Float64[np.ndarray, "series *query output"]:
        """The outputs for log-signatures; rows beyond a series' own queries are meaningless.

        Series are predicted independently, so that each prediction is the same, to the bit, whichever other series
        are there. Without scaling and spec, which differ between data sets, one compiled program serves all of them.
        """
        scaling = self.sequence.scaling
        assert isinstance(scaling, IncrementRMSScaling)
        bare = dataclasses.replace(self.sequence, scaling=NoScaling(), spec=None)
        return np.asarray(predict(bare, scaled_inputs(logsigs, scaling, queries), independent=True), np.float64)

    @property
    def schema(self) -> Schema:
        """The channels of the training series."""
        assert self.sequence.spec is not None
        return self.sequence.spec.coordinates.schema

    @property
    def size(self) -> int:
        """Parameters of the sequence model."""
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.sequence, eqx.is_inexact_array)))


def scaled_inputs(logsigs: LogSignatures, scaling: IncrementRMSScaling, queries: QueryIntervals | None) -> Inputs:
    """The inputs of a model without scaling: log-signatures scaled on the host, and the query intervals."""
    scaled = logsigs.values * scaling.scale(logsigs.basis)
    inputs = Inputs.of(eqx.tree_at(lambda tree: tree.values, logsigs, scaled))
    if queries is None:
        return inputs
    ends, count = (jnp.asarray(part, jnp.int32) for part in (queries.ends, queries.count))
    return dataclasses.replace(inputs, ends=ends, queries=count)


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture(AbstractSeriesModel):
    """A weighted mean of models: of their probabilities if they are classifiers, of their outputs if not.

    Args:
        models: At least one model.
        weight: Weight of each model; they add up to 1.
        classifies: Whether the outputs are logits.
    """

    models: tuple[AbstractSeriesModel, ...]
    weight: Float64[np.ndarray, "model"]
    classifies: bool

    def __post_init__(self) -> None:
        if len(self.models) != len(self.weight) or not self.models:
            raise ModelError(f"There are {len(self.models)} models and {len(self.weight)} weights.")

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The mean; for classifiers the logarithm of mean probabilities."""
        return self.mixed([model(streams) for model in self.models])

    def mixed(self, outputs: list[Float64[np.ndarray, "series output"]]) -> Float64[np.ndarray, "series output"]:
        """Mix the outputs of the models."""
        return mixed(outputs, self.weight, self.classifies)

    @property
    def schema(self) -> Schema:
        """The channels of the training series."""
        return self.models[0].schema

    @property
    def size(self) -> int:
        """Numbers of all models."""
        return sum(model.size for model in self.models)


def mixed(
    outputs: list[Float64[np.ndarray, "series output"]], weight: Float64[np.ndarray, "model"], classifies: bool
) -> Float64[np.ndarray, "series output"]:
    """Mix the outputs of several models."""
    if classifies:
        return mix_logits(outputs, weight)
    # A sum, not a product of matrices: its rounding does not depend on the number of series.
    return np.asarray(sum(share * one for share, one in zip(weight, outputs, strict=True)))
