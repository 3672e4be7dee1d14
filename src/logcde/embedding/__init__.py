"""From observations to one log-signature for each query interval: letters, factors and the four engines."""

from logcde.embedding.arrays import logsignature as logsignature
from logcde.embedding.coordinates import Coordinates as Coordinates
from logcde.embedding.device import logsignatures as logsignatures
from logcde.embedding.embedding import Embedding as Embedding
from logcde.embedding.factor_steps import FactorSteps as FactorSteps
from logcde.embedding.index import LogSignatureIndex as LogSignatureIndex
from logcde.embedding.logsigs import EmbeddingSpec as EmbeddingSpec
from logcde.embedding.logsigs import InitialObservations as InitialObservations
from logcde.embedding.logsigs import LogSignatures as LogSignatures
from logcde.embedding.logsigs import initial_observations as initial_observations
from logcde.embedding.online import OnlineEmbedding as OnlineEmbedding
from logcde.embedding.padding import Differences as Differences
from logcde.embedding.padding import PaddedSteps as PaddedSteps
from logcde.embedding.padding import PaddedStreams as PaddedStreams
from logcde.embedding.padding import pad as pad
from logcde.embedding.sparse import SparseLogSignatures as SparseLogSignatures
from logcde.embedding.steps import AbstractRaggedSteps as AbstractRaggedSteps
from logcde.embedding.steps import SparseSteps as SparseSteps
