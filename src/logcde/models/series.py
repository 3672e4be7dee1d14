"""Models of whole series: from streams to outputs, on the host. Estimators train them, save them and serve them."""

import abc
import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Float64, Int64

from logcde.embedding import Embedding, InitialObservations, LogSignatures, SparseLogSignatures
from logcde.errors import ModelError
from logcde.features import FittedFeatures, FittedRows
from logcde.features.rows import Rows
from logcde.models.bounds import AbstractBounds
from logcde.models.ensemble import Ensemble
from logcde.models.heads import AbstractHead, mix_logits
from logcde.models.inputs import Inputs
from logcde.models.model import AbstractOnlineModel, SequenceModel
from logcde.models.prediction import predict
from logcde.models.scaling import AbstractScaling, IncrementRMSScaling, NoScaling, SoftLimit
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

    Args:
        features: The fitted features.
        head: Maps features to outputs.
        bounds: Limits the outputs.

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
    bounds: AbstractBounds | None = None

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The outputs of the head for the features of each series."""
        return self.outputs(self.features(streams), self.features.strangeness(streams))

    def outputs(
        self, rows: Float32[np.ndarray, "series feature"], strangeness: Float64[np.ndarray, "series"]
    ) -> Float64[np.ndarray, "series output"]:
        """The outputs for features, and the strangeness, of each series."""
        found = self.head(rows)
        return found if self.bounds is None else self.bounds(found, strangeness)

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
    """A network, or an ensemble of them, with the embedding and the partition that give its log-signatures.

    Args:
        sequence: The network.
        embedding: How series are embedded.
        partition: The intervals of a series.
        sparse: Whether log-signatures are sparse.
    """

    sequence: AbstractOnlineModel
    embedding: Embedding
    partition: Partition
    sparse: bool = False

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The outputs of the model at the end of each series."""
        return self.outputs(self.embedding(streams, self.partition, sparse=self.sparse), None)

    def outputs(
        self, logsigs: LogSignatures | SparseLogSignatures, queries: QueryIntervals | None
    ) -> Float64[np.ndarray, "series *query output"]:
        """The outputs for log-signatures; rows beyond a series' own queries are meaningless.

        Series are predicted independently, so that each prediction is the same, to the bit, whichever other series
        are there. Without scaling and spec, which differ between data sets, one compiled program serves all of them.
        """
        scaling = networks_of(self.sequence)[0].scaling
        bare = map_networks(lambda one: dataclasses.replace(one, scaling=NoScaling(), spec=None), self.sequence)
        return np.asarray(predict(bare, scaled_inputs(logsigs, scaling, queries), independent=True), np.float64)

    @property
    def schema(self) -> Schema:
        """The channels of the training series."""
        assert self.sequence.spec is not None
        return self.sequence.spec.coordinates.schema

    @property
    def size(self) -> int:
        """Parameters of the networks."""
        return _parameters(self.sequence)


@dataclasses.dataclass(frozen=True, eq=False)
class RowModel(AbstractSeriesModel):
    """A network, or an ensemble of them, that goes along the rows of windows."""

    sequence: AbstractOnlineModel
    features: FittedRows

    def __call__(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """The outputs of the model at the end of each series, independent of the other series."""
        inputs = row_inputs(self.features(streams))
        return np.asarray(predict(self.sequence, inputs, independent=True), np.float64)

    @property
    def schema(self) -> Schema:
        """The channels of the training series."""
        return self.features.schema

    @property
    def size(self) -> int:
        """Parameters of the networks."""
        return _parameters(self.sequence)


def networks_of(model: AbstractOnlineModel) -> tuple[SequenceModel, ...]:
    """The members of an ensemble, or the network itself."""
    members = model.models if isinstance(model, Ensemble) else (model,)
    return tuple(one for one in members if isinstance(one, SequenceModel))


def map_networks(function: Callable[[SequenceModel], SequenceModel], model: AbstractOnlineModel) -> AbstractOnlineModel:
    """Change each member of an ensemble, or the network itself."""
    changed = [function(one) for one in networks_of(model)]
    return Ensemble(changed, model.average) if isinstance(model, Ensemble) else changed[0]


def scaled_inputs(
    logsigs: LogSignatures | SparseLogSignatures, scaling: AbstractScaling, queries: QueryIntervals | None
) -> Inputs:
    """The inputs of a model without scaling: log-signatures scaled on the host, and the query intervals."""
    limited = isinstance(scaling, SoftLimit)
    inner = scaling.scaling if limited else scaling
    assert isinstance(inner, IncrementRMSScaling)
    # In double precision: scales, and numbers in the units of the data, may be beyond the range of single precision.
    if isinstance(logsigs, SparseLogSignatures):
        scaled = logsigs.scaled(inner.scale(logsigs.basis.truncate(1))).values
    else:
        scaled = np.multiply(logsigs.values, inner.scale(logsigs.basis), dtype=np.float64)
    if limited:
        np.divide(scaled, scaling.limit, out=scaled)
        np.tanh(scaled, out=scaled)
        scaled *= scaling.limit
    inputs = Inputs.of(eqx.tree_at(lambda tree: tree.values, logsigs, scaled))
    if queries is None:
        return inputs
    ends, count = (jnp.asarray(part, jnp.int32) for part in (queries.ends, queries.count))
    return dataclasses.replace(inputs, ends=ends, queries=count)


def row_inputs(rows: Rows) -> Inputs:
    """The inputs of a model of rows."""
    nothing = np.zeros((len(rows.count), 0), bool)
    none = jnp.zeros(nothing.shape, jnp.float32)
    initial = InitialObservations(none, jnp.asarray(nothing), jnp.asarray(nothing))
    return Inputs(jnp.asarray(rows.values), jnp.asarray(rows.count, jnp.int32), initial, none)


def _parameters(model: AbstractOnlineModel) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))


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
