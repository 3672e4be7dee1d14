"""Linear NCDEs: Log-SLiCE with its blocks, from diagonal to dense, and the plainest model beside them.

Deep Log-SLiCEs: linear CDEs on top of each other.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import (
    BlockDiagonal,
    CumulativeFeatures,
    Dense,
    Diagonal,
    Exponential,
    LinearDynamics,
    ResidualBlock,
    Stack,
)
from logcde.flows.scan import AbstractFlow, FlowScan
from logcde.models.initial import AbstractInitial, InitialState, LearntInitial, channels_of
from logcde.models.model import SequenceModel
from logcde.models.readout import AbstractReadout, ReadoutHead, Terminal
from logcde.models.scaling import AbstractScaling, NoScaling, TotalStdScaling
from logcde.scans import Auto


def log_slice(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    block: int = 4,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Terminal(),
    scaling: AbstractScaling = NoScaling(),
    flow: AbstractFlow = Exponential(),
    scan: FlowScan = Auto(),
    static: int = 0,
    scale: float = 0.25,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A linear CDE with block-diagonal vector field, driven by log-signatures in `basis`.

    `block=1` is the diagonal D-SLiCE, `block=hidden` the dense LNCDE, anything between BD-SLiCE. `static` is the number
    of static features, `scale` the size of the vector field at the start, times the root of the block.

    >>> model = log_slice(Basis.of_width(3, 2), hidden=64, block=8, outputs=2, key=jax.random.key(0))
    >>> model.dynamics.hidden
    64
    """
    keys = jax.random.split(key, 3)
    options = {"scale": scale, "dtype": dtype, "key": keys[0]}
    if block == 1:
        field = Diagonal(basis, hidden, **options)
    elif block == hidden:
        field = Dense(basis, hidden, **options)
    else:
        field = BlockDiagonal(basis, hidden, block, **options)
    dynamics = LinearDynamics(field, flow, scan)
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=dynamics,
        readout=ReadoutHead(readout, dynamics.features, outputs, dtype=dtype, key=keys[2]),
    )


def additive(  # noqa: N802
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
    """What can be told from where the path is: last values, counts and time, each by itself, and static features.

    With `history`, also from the greatest, the least and the first value that each channel had at the end of an
    interval. An additive model for its own sake, or in a `Sum` with a CDE that learns what it leaves over. A readout
    with `widths` makes it an MLP of the same numbers; without, it begins at zero.

    >>> basis = Basis(("pulse", "#pulse", "time"), 1)
    >>> model = additive(basis, outputs=2, static=1, key=jax.random.key(0))
    >>> model.readout.layers[0].weight.shape
    (2, 4)
    """
    for_initial, for_readout = jax.random.split(key)
    dynamics = CumulativeFeatures(basis, static, history)
    initial = InitialState(LearntInitial(), channels_of(basis), static, static, dtype=dtype, key=for_initial)
    reading = ReadoutHead(readout, dynamics.features, outputs, dtype=dtype, key=for_readout)
    if not readout.widths:
        reading = eqx.tree_at(lambda tree: tree.layers[-1].weight, reading, replace_fn=jnp.zeros_like)
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=eqx.tree_at(
            lambda tree: (tree.weight, tree.bias), initial, (jnp.eye(static, dtype=dtype), jnp.zeros(static, dtype))
        ),
        dynamics=dynamics,
        readout=reading,
    )


def deep_log_slice(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    layers: int = 2,
    block: int = 4,
    around: ResidualBlock = ResidualBlock(),
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Terminal(),
    scaling: AbstractScaling = NoScaling(),
    flow: AbstractFlow = Exponential(),
    scan: FlowScan = Auto(),
    static: int = 0,
    scale: float = 0.25,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """`log_slice` with further layers, each a linear CDE driven by what the one below puts out.

    `around` says what lies around each of them: residual connection, gated linear unit, normalisation.

    >>> model = deep_log_slice(Basis.of_width(3, 2), hidden=64, block=8, outputs=2, layers=3, key=jax.random.key(0))
    >>> len(model.dynamics.upper)
    2
    """
    for_first, for_stack = jax.random.split(key)
    shallow = log_slice(
        basis, hidden, outputs, block=block, initial=initial, readout=readout, scaling=scaling, flow=flow, scan=scan,
        static=static, scale=scale, dtype=dtype, key=for_first,
    )  # fmt: skip
    stack = Stack(
        shallow.dynamics, layers, block, around=around, flow=flow, scan=scan, scale=scale, dtype=dtype, key=for_stack
    )
    return dataclasses.replace(shallow, dynamics=stack)
