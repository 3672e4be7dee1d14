"""Recurrent models, for comparison: what is commonly used where observations are irregular."""

import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import FadingGRU
from logcde.models.initial import AbstractLook, Initial, Learnt, channels_of
from logcde.models.model import CDE
from logcde.models.readout import AbstractReading, Readout, Terminal
from logcde.models.scaling import Unscaled


def GRUD(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    initial: AbstractLook = Learnt(),
    readout: AbstractReading = Terminal(),
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """A gated recurrent unit on forward-filled values, with masks and time gaps; `basis` is that of a `HeldControl`.

    >>> from logcde import HeldControl, Inputs, Partition, Streams
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> held = HeldControl()(streams, Partition.uniform(2))
    >>> GRUD(held.basis, hidden=16, outputs=2, key=jax.random.key(0))(Inputs.of(held)[0]).shape
    (2,)
    """
    keys = jax.random.split(key, 3)
    channels = channels_of(basis)
    return CDE(
        basis=None,
        scaling=Unscaled(),
        initial=Initial(initial, channels, static, hidden, dtype=dtype, key=keys[1]),
        dynamics=FadingGRU(channels, hidden, dtype=dtype, key=keys[0]),
        readout=Readout(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )
