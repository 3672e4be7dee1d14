"""Many devices and many processes: one mesh, whose only axis is the batch; parameters and data are on every device.

Several processes, started with `jax.distributed.initialize`, all call `fit` with the same arguments. What they could
see differently, the clock and the keyboard, they agree on before each call.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

AXIS = "batch"
Devices: TypeAlias = Sequence[Any]
"""Some of `jax.devices()`."""


def mesh_of(devices: Devices | None) -> Mesh:
    """These devices, or all that JAX has, in one row."""
    return Mesh(np.asarray(jax.devices() if devices is None else list(devices)), (AXIS,))


def whole(batch: int, mesh: Mesh) -> int:
    """The least multiple of the number of devices that holds a batch."""
    return -(-batch // mesh.size) * mesh.size


def place(mesh: Mesh, tree: PyTree, *axes: str | None) -> Any:
    """A tree of host arrays on all devices of a mesh: a copy on each, or cut along the named axis."""
    sharding = NamedSharding(mesh, PartitionSpec(*axes))
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding, may_alias=False)  # what is given away stays intact here

    def put(leaf: np.ndarray | jax.Array) -> jax.Array:
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(put(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])

    return jax.tree.map(put, tree)


def leads() -> bool:
    """Whether this process is the one that writes and shows things."""
    return jax.process_index() == 0


def agree(stop: bool, count: int) -> tuple[bool, int]:
    """Stop if one process wants to; otherwise do as many steps as the first one says."""
    if jax.process_count() == 1:
        return stop, count
    said = multihost_utils.process_allgather(np.array([int(stop), count], np.int32))
    return bool(said[:, 0].any()), int(said[0, 1])


def share(content: bytes) -> bytes:
    """What the first process has, in all of them."""
    if jax.process_count() == 1:
        return content
    size = int(multihost_utils.broadcast_one_to_all(np.array(len(content), np.int32)))
    mine = np.frombuffer(content, np.uint8) if leads() else np.zeros(size, np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(mine)).tobytes()
