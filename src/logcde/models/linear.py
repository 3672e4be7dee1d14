"""Linear NCDEs: Log-SLiCE with its blocks, from diagonal to dense, and the plainest model beside them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import BlockDiagonal, Dense, Diagonal, Exponential, Fastest, LinearDynamics, Position
from logcde.flows.scan import AbstractFlow, FlowScan
from logcde.models.initial import AbstractLook, Initial, Learnt, channels_of
from logcde.models.model import CDE
from logcde.models.readout import AbstractReading, Readout, Terminal
from logcde.models.scaling import AbstractScaling, UnitTotals, Unscaled


def LogSLiCE(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    block: int = 4,
    initial: AbstractLook = Learnt(),
    readout: AbstractReading = Terminal(),
    scaling: AbstractScaling = Unscaled(),
    flow: AbstractFlow = Exponential(),
    scan: FlowScan = Fastest(),
    static: int = 0,
    scale: float = 0.25,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """A linear CDE with block-diagonal vector field, driven by log-signatures in `basis`.

    `block=1` is the diagonal D-SLiCE, `block=hidden` the dense LNCDE, anything between BD-SLiCE. `static` is the number
    of static features, `scale` the size of the vector field at the start, times the root of the block.

    >>> model = LogSLiCE(Basis.of_width(3, 2), hidden=64, block=8, outputs=2, key=jax.random.key(0))
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
    return CDE(
        basis=basis,
        scaling=scaling,
        initial=Initial(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=dynamics,
        readout=Readout(readout, dynamics.features, outputs, dtype=dtype, key=keys[2]),
    )


def Additive(  # noqa: N802
    basis: Basis,
    outputs: int,
    *,
    readout: AbstractReading = Terminal(),
    scaling: AbstractScaling = UnitTotals(),
    history: bool = False,
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """What can be told from where the path is: last values, counts and time, each by itself, and static features.

    With `history`, also from the greatest, the least and the first value that each channel had at the end of an
    interval. An additive model for its own sake, or in a `Sum` with a CDE that learns what it leaves over. A readout
    with `widths` makes it an MLP of the same numbers; without, it begins at zero.

    >>> basis = Basis(("pulse", "#pulse", "time"), 1)
    >>> model = Additive(basis, outputs=2, static=1, key=jax.random.key(0))
    >>> model.readout.layers[0].weight.shape
    (2, 4)
    """
    for_initial, for_readout = jax.random.split(key)
    dynamics = Position(basis, static, history)
    initial = Initial(Learnt(), channels_of(basis), static, static, dtype=dtype, key=for_initial)
    reading = Readout(readout, dynamics.features, outputs, dtype=dtype, key=for_readout)
    if not readout.widths:
        reading = eqx.tree_at(lambda tree: tree.layers[-1].weight, reading, replace_fn=jnp.zeros_like)
    return CDE(
        basis=basis,
        scaling=scaling,
        initial=eqx.tree_at(
            lambda tree: (tree.weight, tree.bias), initial, (jnp.eye(static, dtype=dtype), jnp.zeros(static, dtype))
        ),
        dynamics=dynamics,
        readout=reading,
    )
