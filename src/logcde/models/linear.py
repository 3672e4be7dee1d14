"""Linear models: Log-SLiCEs, from diagonal to dense and deep, and the additive model."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import (
    AbstractDynamics,
    AbstractFlow,
    AbstractLinearField,
    BlockDiagonal,
    Contracting,
    CumulativeFeatures,
    Dense,
    Diagonal,
    Exponential,
    GroupedLetters,
    LinearDynamics,
    LowRankLetters,
    ResidualBlock,
    RowEncoder,
    StableStack,
    Stack,
    StationaryDynamics,
    layer_basis,
)
from logcde.flows.scan import compile_ahead
from logcde.models.initial import AbstractInitial, InitialState, LearntInitial, channels_of
from logcde.models.model import SequenceModel
from logcde.models.readout import AbstractReadout, MeanMax, ReadoutHead, Terminal
from logcde.models.scaling import AbstractScaling, NoScaling, SoftLimit, TotalStdScaling
from logcde.scans import AbstractScan, Auto


def log_slice(
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    block: int = 4,
    rank: int | None = None,
    groups: Sequence[Sequence[str]] | None = None,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Terminal(),
    scaling: AbstractScaling = NoScaling(),
    flow: AbstractFlow = Exponential(),
    scan: AbstractScan = Auto(),
    static: int = 0,
    init_scale: float = 0.25,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A linear CDE with block-diagonal vector field, driven by log-signatures: Log-SLiCE.

    Args:
        basis: The basis of the log-signatures.
        hidden: The size of the hidden state.
        outputs: The number of outputs; for classifiers, of classes.
        block: The block size: 1 is the diagonal D-SLiCE, `hidden` the dense LNCDE, anything between a BD-SLiCE.
        rank: Let all letters act through so many combinations of them, see `LowRankLetters`: for hundreds of letters.
        groups: Names of letters that act together, each group on blocks of its own, see `GroupedLetters`; areas between
            groups are not read. Groups of two are chosen pairs. Letters in no group act on all blocks.
        initial: What the initial state depends on.
        readout: Which states are read, and by which layers.
        scaling: What log-signatures are scaled by; `fit` fits it.
        flow: The flow of an interval: `Exponential()` or `Euler()`.
        scan: How flows are composed.
        static: The number of static features.
        init_scale: Multiplies the initial vector field, whose entries are N(0, 1 / block).
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> model = log_slice(Basis.of_width(3, 2), hidden=64, block=8, outputs=2, key=jax.random.key(0))
    >>> model.dynamics.hidden
    64
    """
    if block > 0:  # otherwise the field says what is wrong
        compile_ahead(flow, scan, block, dtype)
    keys = jax.random.split(key, 3)
    options = {"init_scale": init_scale, "dtype": dtype, "key": keys[0]}
    own = basis if rank is None else Basis.of_width(rank, basis.depth)
    field: AbstractLinearField
    if block == 1:
        field = Diagonal(own, hidden, **options)
    elif block == hidden:
        field = Dense(own, hidden, **options)
    else:
        field = BlockDiagonal(own, hidden, block, **options)
    if rank is not None:
        field = LowRankLetters(basis, field, key=jax.random.fold_in(keys[0], 1))
    if groups is not None:
        field = GroupedLetters(field, groups)
    dynamics = LinearDynamics(field, flow, scan)
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=dynamics,
        readout=ReadoutHead(readout, dynamics.features, outputs, dtype=dtype, key=keys[2]),
    )


def deep_log_slice(
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    layers: int = 2,
    block: int = 4,
    residual: ResidualBlock = ResidualBlock(),
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Terminal(),
    scaling: AbstractScaling = NoScaling(),
    flow: AbstractFlow = Exponential(),
    scan: AbstractScan = Auto(),
    static: int = 0,
    init_scale: float = 0.25,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A stack of linear CDEs: a `log_slice` whose upper layers are driven by the output of the layer below.

    Args:
        basis: The basis of the log-signatures.
        hidden: The size of the hidden state of every layer.
        outputs: The number of outputs.
        layers: The number of layers.
        block: The block size of every layer.
        residual: What is applied to the state of every layer: residual connection, gated linear unit, normalisation.
        initial: What the initial state of the first layer depends on.
        readout: Which states are read, and by which layers.
        scaling: What log-signatures are scaled by; `fit` fits it.
        flow: The flow of an interval.
        scan: How flows are composed.
        static: The number of static features.
        init_scale: Multiplies the initial vector fields.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> model = deep_log_slice(Basis.of_width(3, 2), hidden=64, block=8, outputs=2, layers=3, key=jax.random.key(0))
    >>> len(model.dynamics.upper)
    2
    """
    for_first, for_stack = jax.random.split(key)
    shallow = log_slice(
        basis, hidden, outputs, block=block, initial=initial, readout=readout, scaling=scaling, flow=flow, scan=scan,
        static=static, init_scale=init_scale, dtype=dtype, key=for_first,
    )  # fmt: skip
    stack = Stack(
        shallow.dynamics, layers, block, residual=residual, flow=flow, scan=scan, init_scale=init_scale, dtype=dtype,
        key=for_stack,
    )  # fmt: skip
    return dataclasses.replace(shallow, dynamics=stack)


def deep_stable(
    rows: Basis | int,
    hidden: int,
    outputs: int,
    *,
    layers: int = 3,
    block: int = 2,
    time_only: bool = True,
    memory: tuple[float, float] = (1.0, 32.0),
    dropout: float = 0.3,
    input_dropout: float = 0.2,
    input_limit: float = 8.0,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = MeanMax(dropout=0.3),
    scaling: AbstractScaling = SoftLimit(),
    scan: AbstractScan = Auto(),
    static: int = 0,
    init_scale: float = 1.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A deep stack of stable flows, bounded for any input: residual layers that forget along time.

    Args:
        rows: What drives the model: the basis of log-signatures, or the size of plain rows, for example of standardised
            features of windows. Log-signatures drive a contracting linear CDE below the residual layers; each plain row
            is limited softly and mapped linearly.
        hidden: The size of the output and of the state of every layer.
        outputs: The number of outputs.
        layers: The number of residual layers.
        block: The block size of all states.
        time_only: Whether the states of residual layers rotate by time only: their inputs then only add to them, which
            costs much less. Otherwise inputs rotate them too.
        memory: The shortest and the longest of the initial time constants of the residual layers, in intervals, and of
            the linear CDE, in units of scaled time.
        dropout: The share of what a residual layer adds that is dropped in training.
        input_dropout: The share of the entries of plain rows that is dropped in training.
        input_limit: Entries of plain rows are limited softly to this size.
        initial: What the initial state depends on; it shifts all plain rows.
        readout: Which states are read, and by which layers.
        scaling: What log-signatures are scaled by; `fit` fits it. Plain rows are not scaled.
        scan: How flows are composed.
        static: The number of static features.
        init_scale: Multiplies the initial rotations.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> model = deep_stable(12, hidden=16, outputs=3, key=jax.random.key(0))
    >>> len(model.dynamics.layers)
    3
    """
    for_first, for_stack, for_initial, for_readout, *keys = jax.random.split(key, 4 + layers)
    options = {"memory": memory, "init_scale": init_scale, "dtype": dtype}
    first: AbstractDynamics
    if isinstance(rows, Basis):
        first = LinearDynamics(Contracting(rows, hidden, block, key=for_first, **options), scan=scan)
    else:
        first = RowEncoder(rows, hidden, limit=input_limit, dropout=input_dropout, dtype=dtype, key=for_first)
    fields = [Contracting(layer_basis(hidden), hidden, block, time_only=time_only, key=k, **options) for k in keys]
    mixers = [StationaryDynamics(field, scan) if time_only else LinearDynamics(field, scan=scan) for field in fields]
    basis = rows if isinstance(rows, Basis) else None
    channels = 0 if basis is None else channels_of(basis)
    return SequenceModel(
        basis=basis,
        scaling=scaling if basis is not None else NoScaling(),
        initial=InitialState(initial, channels, static, hidden, dtype=dtype, key=for_initial),
        dynamics=StableStack(first, mixers, dropout=dropout, dtype=dtype, key=for_stack),
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=for_readout),
    )


def additive(
    basis: Basis,
    outputs: int,
    *,
    readout: AbstractReadout = Terminal(),
    scaling: AbstractScaling = TotalStdScaling(),
    history: bool = False,
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A glass-box model: a linear layer on each channel's last value, its count, the time, and static features.

    Its prediction is a sum with one term for each feature of `CumulativeFeatures`, so that every weight can be read:
    start with it to see what a data set tells without any order of events, and compare other models with it. In a
    `Sum` with a CDE, the CDE learns what the additive part leaves over. It costs next to nothing to train and serve.

    Args:
        basis: The basis of the log-signatures; only level one is read, so that depth 1 suffices.
        outputs: The number of outputs.
        readout: Which states are read. With `widths`, the linear layer becomes an MLP of the same features; without,
            its weights begin at zero.
        scaling: What log-signatures are scaled by; `fit` fits it.
        history: Whether each channel's highest, lowest and first value are features as well.
        static: The number of static features.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    Which channel matters? The last value of `pulse` decides here, and `temp` does not.

    >>> import logcde as lc
    >>> import numpy as np
    >>> values = np.random.default_rng(0).normal(size=(64, 5, 2))
    >>> streams = lc.Streams.from_dense(values, channels=["pulse", "temp"])
    >>> logsigs = lc.Embedding(depth=1)(streams, lc.Partition.uniform(1))
    >>> model = additive(logsigs.basis, outputs=1, key=jax.random.key(0))
    >>> targets = 3 * values[:, -1, :1]
    >>> result = lc.fit(model, logsigs, targets, duration=lc.Steps(200), callbacks=(), key=jax.random.key(1))
    >>> weights = np.abs(result.model.readout.layers[0].weight[0])
    >>> result.model.dynamics.names[weights.argmax()]
    'pulse'
    """
    for_initial, for_readout = jax.random.split(key)
    dynamics = CumulativeFeatures(basis, static, history)
    initial = InitialState(LearntInitial(), channels_of(basis), static, static, dtype=dtype, key=for_initial)
    head = ReadoutHead(readout, dynamics.features, outputs, dtype=dtype, key=for_readout)
    if not readout.widths:
        head = eqx.tree_at(lambda tree: tree.layers[-1].weight, head, replace_fn=jnp.zeros_like)
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=eqx.tree_at(
            lambda tree: (tree.weight, tree.bias), initial, (jnp.eye(static, dtype=dtype), jnp.zeros(static, dtype))
        ),
        dynamics=dynamics,
        readout=head,
    )
