"""Data parallelism over devices and processes: one mesh, whose only axis is the batch.

Parameters and data are replicated on every device. Several processes, started with `jax.distributed.initialize`, all
call `fit` with the same arguments. What may differ between them, the clock and Ctrl-C, they agree on before each call
of the compiled program.
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
    """A one-dimensional mesh of these devices, or of all that JAX has."""
    return Mesh(np.asarray(jax.devices() if devices is None else list(devices)), (AXIS,))


def round_up_to_devices(batch: int, mesh: Mesh) -> int:
    """The smallest multiple of the number of devices that holds a batch."""
    return -(-batch // mesh.size) * mesh.size


def put_on_mesh(mesh: Mesh, tree: PyTree, *axes: str | None) -> Any:
    """Copy a tree of host arrays to all devices of a mesh: replicated, or split along the named axes."""
    sharding = NamedSharding(mesh, PartitionSpec(*axes))
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding, may_alias=False)  # the compiled program may donate the copy

    def put(leaf: np.ndarray | jax.Array) -> jax.Array:
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(put(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])

    return jax.tree.map(put, tree)


def is_main_process() -> bool:
    """Whether this process writes checkpoints and runs callbacks."""
    return jax.process_index() == 0


def agree_across_processes(stop: bool, count: int) -> tuple[bool, int]:
    """Stop if any process was interrupted; the number of steps is that of the main process."""
    if jax.process_count() == 1:
        return stop, count
    gathered = multihost_utils.process_allgather(np.array([int(stop), count], np.int32))
    return bool(gathered[:, 0].any()), int(gathered[0, 1])


def broadcast_from_main(content: bytes) -> bytes:
    """The bytes that the main process has, in all processes."""
    if jax.process_count() == 1:
        return content
    size = int(multihost_utils.broadcast_one_to_all(np.array(len(content), np.int32)))
    own = np.frombuffer(content, np.uint8) if is_main_process() else np.zeros(size, np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(own)).tobytes()
