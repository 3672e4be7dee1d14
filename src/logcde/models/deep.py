"""Deep Log-SLiCEs: linear CDEs on top of each other."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import Block, Exponential, Fastest, Stack
from logcde.flows.scan import AbstractFlow, FlowScan
from logcde.models.initial import AbstractLook, Learnt
from logcde.models.linear import LogSLiCE
from logcde.models.model import CDE
from logcde.models.readout import AbstractReading, Terminal
from logcde.models.scaling import AbstractScaling, Unscaled


def DeepLogSLiCE(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    layers: int = 2,
    block: int = 4,
    around: Block = Block(),
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
    """`LogSLiCE` with further layers, each a linear CDE driven by what the one below puts out.

    `around` says what lies around each of them: residual connection, gated linear unit, normalisation.

    >>> model = DeepLogSLiCE(Basis.of_width(3, 2), hidden=64, block=8, outputs=2, layers=3, key=jax.random.key(0))
    >>> len(model.dynamics.upper)
    2
    """
    for_first, for_stack = jax.random.split(key)
    shallow = LogSLiCE(
        basis, hidden, outputs, block=block, initial=initial, readout=readout, scaling=scaling, flow=flow, scan=scan,
        static=static, scale=scale, dtype=dtype, key=for_first,
    )  # fmt: skip
    stack = Stack(
        shallow.dynamics, layers, block, around=around, flow=flow, scan=scan, scale=scale, dtype=dtype, key=for_stack
    )
    return dataclasses.replace(shallow, dynamics=stack)
