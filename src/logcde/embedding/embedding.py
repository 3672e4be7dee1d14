"""`Embedding`: the options of "From observations to log-signatures" (`sec:procedure`), and what each cannot tell apart.

The front of this package: it hands streams to the engines (host, device, online, index) and knows none of their
methods. The sentences of `invariances` put `app:invariances` of the paper into words.
"""

import dataclasses
from typing import Literal, overload

import numpy as np
from jaxtyping import DTypeLike

from logcde._typing import Numbers
from logcde.algebra import Basis
from logcde.embedding import device
from logcde.embedding.coordinates import Coordinates, checked_depth
from logcde.embedding.host import embed, embed_sparse
from logcde.embedding.index import LogSignatureIndex
from logcde.embedding.logsigs import EmbeddingSpec, LogSignatures, initial_observations
from logcde.embedding.online import OnlineEmbedding
from logcde.embedding.padding import PaddedStreams, pad
from logcde.embedding.sparse import SparseLogSignatures
from logcde.errors import EmbeddingError, Remedy
from logcde.scans import AbstractScan, Sequential
from logcde.streams import ChannelScaler, Partition, Schema, SoftBins, Streams

WITHOUT_COUNTS = (
    "Without counts, an observation that repeats the last value of its channel leaves no trace: adding or removing "
    "such observations anywhere does not change the path. Since every channel starts from the base point 0, a first "
    "value of 0 is such a repetition."
)
WITHOUT_TIME = (
    "Without time, stamps leave no trace: moving events in time, in the same order and each within its query interval, "
    "does not change any log-signature, nor does the length of a gap or of the horizon. Continuous channels, if there "
    "are any, must be moved in time along with the events."
)
WITHOUT_COUNTS_BUT_ROUGHNESS = (
    "Without counts, an observation that repeats the last value of its channel leaves no trace: adding or removing "
    "such observations anywhere does not change the path. A first value of 0, the base point, leaves a trace only in "
    "the roughness of the next one."
)
CLIPPED = (
    "Values beyond the limits of their channel's scale are replaced by these limits: how far beyond they are leaves no "
    "trace."
)
NOTHING = (
    "With counts and time nothing is identified at the level of paths: stamps, observed sets, values, continuous "
    "channels and higher-order terms up to the depth can all be read off the realised path."
)


def invariances(
    *, depth: int, counts: bool, time: bool, clipped: bool = False, roughness: bool = False
) -> tuple[str, ...]:
    """Say in sentences which different data an embedding with these options cannot tell apart.

    >>> print(invariances(depth=2, counts=False, time=True)[0][:80])
    Without counts, an observation that repeats the last value of its channel leaves
    """
    repeated = WITHOUT_COUNTS_BUT_ROUGHNESS if roughness else WITHOUT_COUNTS
    cases = ((repeated, counts), (WITHOUT_TIME, time), (CLIPPED, not clipped))
    dropped = [sentence for sentence, kept in cases if not kept]
    return (*dropped, _truncation(depth)) if dropped else (f"{NOTHING} {_truncation(depth)}",)


def _truncation(depth: int) -> str:
    levels = "the first level" if depth == 1 else f"the first {depth} levels"
    return (
        f"A log-signature keeps {levels} only, one element for each query interval. Different paths may therefore have "
        "the same log-signatures; a greater depth or shorter intervals tell more of them apart. Higher-order terms of "
        f"events are ignored if their degree exceeds {depth}."
    )


@dataclasses.dataclass(frozen=True)
class Embedding:
    """Embed observation streams as interval log-signatures, without filling gaps.

    With counts and time the embedding is faithful (`prop:faithfulness`); without one of them it is invariant to some
    changes of the data, see `invariances`.

    Args:
        depth: Depth of the log-signatures.
        counts: Give each channel a second coordinate, which counts its observations.
        time: Add time as a coordinate.
        dtype: Precision of the result. Sums are in double precision in any case, and rounded once. Models compute in
            single precision: where only they read the result, `np.float32` halves memory and most of the time.
        scaler: Scales values, in training and online alike.
        soft_bins: Give each channel further coordinates, one for each bin of its values: a soft histogram. An
            observation is split linearly between the two nearest knots; all bins of a channel add up to its count.
        roughness: Give each channel a further coordinate, which sums its squared changes: twice the area between the
            lead and the lag of the channel, or its quadratic variation as observed. The first observation of a channel
            adds nothing, because no value comes before it: the step from the base point 0 is no change.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"], horizon=4.0)
    >>> logsigs = Embedding(depth=2)(streams, Partition.uniform(2))
    >>> logsigs.basis.labels
    ('pulse', '#pulse', 'time', '[pulse, #pulse]', '[pulse, time]', '[#pulse, time]')
    >>> logsigs.values[0, 1]
    array([-2.,  1.,  2.,  0.,  0.,  0.])
    >>> soft_bins = SoftBins(("pulse",), ((4.0, 8.0),))
    >>> logsigs = Embedding(depth=1, soft_bins=soft_bins)(streams, Partition.uniform(1))
    >>> dict(zip(logsigs.basis.labels, logsigs.values[0, 0].tolist()))
    {'pulse': 4.0, '#pulse': 3.0, '#pulse~4': 2.25, '#pulse~8': 0.75, 'time': 4.0}
    >>> logsigs = Embedding(depth=1, roughness=True)(streams, Partition.uniform(2))
    >>> logsigs.basis.labels, logsigs.values[0].tolist()
    (('pulse', '#pulse', '~pulse', 'time'), [[6.0, 2.0, 1.0, 2.0], [-2.0, 1.0, 4.0, 2.0]])
    """

    depth: int = 2
    counts: bool = True
    time: bool = True
    dtype: DTypeLike = np.float64
    scaler: ChannelScaler | None = None
    soft_bins: SoftBins | None = None
    roughness: bool = False

    def __post_init__(self) -> None:
        depth = checked_depth(self.depth)
        dtype = np.dtype(self.dtype)
        if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise EmbeddingError(f"The dtype is {dtype}.", "Choose float32 or float64.")
        if self.soft_bins is not None and not self.counts:
            raise EmbeddingError("Soft bins refine the counts of channels, but counts=False.", Remedy.BINS_NEED_COUNTS)
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "dtype", dtype)

    def coordinates(self, schema: Schema) -> Coordinates:
        """Coordinates of the driving path for streams of this schema."""
        return Coordinates(schema, self.depth, self.counts, self.time, self.scaler, self.soft_bins, self.roughness)

    def basis(self, schema: Schema) -> Basis:
        """Basis of the log-signatures of streams of this schema.

        >>> Embedding(depth=1, counts=False).basis(Schema(("a", "b"))).labels
        ('a', 'b', 'time')
        """
        return self.coordinates(schema).basis

    @overload
    def __call__(
        self, streams: Streams, partition: Partition, *, sparse: Literal[False] = False, threads: int | None = None
    ) -> LogSignatures: ...
    @overload
    def __call__(
        self, streams: Streams, partition: Partition, *, sparse: Literal[True], threads: int | None = None
    ) -> SparseLogSignatures: ...
    @overload
    def __call__(
        self, streams: Streams, partition: Partition, *, sparse: bool, threads: int | None = None
    ) -> LogSignatures | SparseLogSignatures: ...
    def __call__(
        self, streams: Streams, partition: Partition, *, sparse: bool = False, threads: int | None = None
    ) -> LogSignatures | SparseLogSignatures:
        """Compute one log-signature for each interval of the partition, with the host engine.

        Args:
            streams: Any number of series.
            partition: Query intervals.
            sparse: Keep the coordinates of letters that move in an interval only, in time and memory that grow with
                what an interval observes instead of with the number of channels. The same numbers, to the bit.
            threads: Number of threads; by default one for each core.

        >>> streams = Streams.from_events([("p1", 0.5, {"b": 2.0})], channels=("a", "b", "c"), horizon=1.0)
        >>> logsigs = Embedding(depth=2)(streams, Partition.uniform(1), sparse=True)
        >>> logsigs.letters.tolist(), logsigs.values.tolist()  # b, #b, time and their areas
        ([1, 4, 6], [2.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        """
        coordinates = self.coordinates(streams.schema)
        scaled = coordinates.scaled(streams)
        cuts, spec = partition.cuts(streams), EmbeddingSpec(coordinates, partition)
        if sparse:
            found = embed_sparse(scaled, cuts, coordinates, self.dtype, threads)
            return found.with_spec(initial_observations(scaled), spec)
        values, lengths = embed(scaled, cuts, coordinates, self.dtype, threads)
        return LogSignatures(values, lengths, coordinates.basis, initial_observations(scaled), spec)

    def on_device(self, streams: Streams, partition: Partition, *, scan: AbstractScan = Sequential()) -> LogSignatures:
        """Compute the same with the JAX engine, on its default device, in double precision rounded to `dtype`.

        >>> streams = Streams.from_arrays([[0.5]], [[[3.0]]], horizon=1.0)
        >>> Embedding(depth=1).on_device(streams, Partition.uniform(1)).values.tolist()
        [[[3.0, 1.0, 1.0]]]
        """
        coordinates = self.coordinates(streams.schema)
        scaled = coordinates.scaled(streams)
        logsigs = device.embed(scaled, partition.cuts(streams), coordinates, self.dtype, scan)
        return logsigs.with_spec(initial_observations(scaled), EmbeddingSpec(coordinates, partition))

    def pad(self, streams: Streams, partition: Partition) -> PaddedStreams:
        """Pad streams to one size for `logsignatures`, which can be traced, mapped and differentiated.

        Differences of values and stamps are taken before anything is rounded to `dtype`.
        """
        coordinates = self.coordinates(streams.schema)
        return pad(coordinates.scaled(streams), partition.cuts(streams), coordinates, self.dtype)

    def invariances(self) -> tuple[str, ...]:
        """Say in sentences which different data the chosen options cannot tell apart.

        >>> len(Embedding(counts=False).invariances()) > len(Embedding().invariances())
        True
        """
        clipped = self.scaler is not None and self.scaler.limited
        return invariances(
            depth=self.depth, counts=self.counts, time=self.time, clipped=clipped, roughness=self.roughness
        )

    def online(self, schema: Schema, start: float = 0.0, continuous: Numbers | None = None) -> OnlineEmbedding:
        """Start a stream that is embedded one event at a time.

        Args:
            schema: Channels of the stream.
            start: Start of the first interval.
            continuous: Values of the schema's continuous channels at the start.

        >>> online = Embedding(depth=1, counts=False).online(Schema(("pulse",)))
        >>> online.observe(2.0, [61.0])
        >>> online.logsig()
        array([61.,  2.])
        """
        return OnlineEmbedding(self.coordinates(schema), start, continuous)

    def index(self, streams: Streams) -> LogSignatureIndex:
        """Index streams for log-signatures over arbitrary intervals."""
        coordinates = self.coordinates(streams.schema)
        return LogSignatureIndex(coordinates.scaled(streams), coordinates)
