"""Models as portable programs: StableHLO, which needs neither this library nor Python to run.

A program takes log-signatures of intervals and gives predictions, for whole series (`predict`) or interval by interval
(`start`, `advance`, `read`). It calls no kernels of this library, see `logcde.flows.portable`.
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from jaxtyping import Array

from logcde._files import scratch_folder
from logcde._machine import versions
from logcde.embedding import InitialObservations
from logcde.errors import ArtefactError, ModelError
from logcde.kernels.xla_ffi import portable
from logcde.models import AbstractOnlineModel, Inputs
from logcde.models.initial import channels_of
from logcde.models.model import dtype_of

SIGNATURE = "signature.json"
MOST = 1_000_000
"""The largest number of intervals, and of series in a call, that a program is written for."""
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
INITIAL = ("first", "seen", "at_start", "static")

Argument: TypeAlias = tuple[str, jax.ShapeDtypeStruct]
"""The name of an array that a program takes, and what it is for many series."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arrays, for many series at once, with the names of what it takes and gives."""

    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    results: tuple[str, ...]


def export(
    model: AbstractOnlineModel,
    path: str | os.PathLike,
    *,
    intervals: int,
    series: int | None = None,
    facts: dict[str, Any] | None = None,
) -> Path:
    """Write a model as StableHLO programs, with a description of what they take and give.

    Each program is written twice: as `NAME.bin`, which JAX alone reads (`jax.export.deserialize`), and as `NAME.mlir`,
    portable bytecode of StableHLO for other compilers. `signature.json` names arguments, results and coordinates.

    Args:
        model: A trained model.
        path: The folder to write; it must not exist.
        intervals: The number of intervals that `predict` takes. Shorter series are padded by rows of zeros; online
            programs take any number of intervals.
        series: The number of series in a call, for compilers that need it; by default any number.
        facts: Further entries of the description.

    Returns:
        The folder.

    >>> import tempfile
    >>> import logcde as lc
    >>> model = lc.log_slice(lc.Basis.of_width(3, 2), hidden=4, block=2, outputs=1, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = export(model, Path(parent, "exported"), intervals=5)
    ...     found = jax.export.deserialize(bytearray((folder / "predict.bin").read_bytes()))
    >>> found.out_avals[0].shape[1:]
    (1,)
    """
    folder = Path(path)
    if folder.exists():
        raise ArtefactError(f"{folder} exists already.", "Choose another name, or remove it.")
    for name, number in (("intervals", intervals), ("series", 1 if series is None else series)):
        if not 1 <= number <= MOST:
            raise ModelError(f"{name} is {number}.", f"Give a whole number from 1 to {MOST:,}.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    count = jax_export.symbolic_shape("series")[0] if series is None else series
    described = {}
    with scratch_folder(folder) as scratch:
        for name, program in programs_of(model, count, intervals).items():
            given = [argument for _, argument in program.arguments]
            with portable(), _without_paths():
                found = jax_export.export(jax.jit(program.function), platforms=PLATFORMS)(*given)
            (scratch / f"{name}.bin").write_bytes(_serialized(found))
            (scratch / f"{name}.mlir").write_bytes(found.mlir_module_serialized)
            described[name] = {
                "arguments": [_described(*argument) for argument in program.arguments],
                "results": [_described(*each) for each in zip(program.results, found.out_avals, strict=True)],
            }
        assert model.basis is not None
        signature = {
            "coordinates": model.basis.labels,
            "platforms": PLATFORMS,
            "programs": described,
            "versions": versions(),
            **(facts or {}),
        }
        (scratch / SIGNATURE).write_text(json.dumps(signature, indent=1) + "\n")
        scratch.rename(folder)
    return folder


def programs_of(model: AbstractOnlineModel, series: Any, intervals: int) -> dict[str, Program]:
    """The programs of a model for a number of series, which may be symbolic."""
    if model.basis is None:
        raise ModelError(
            "This model takes rows of features of windows, which are not part of a program.",
            "Export a network on log-signatures, such as LogSLiCE.",
        )
    dtype, channels = dtype_of(model), channels_of(model.basis)
    one = (
        jnp.zeros(channels, dtype),
        jnp.zeros(channels, bool),
        jnp.zeros(channels, bool),
        jnp.zeros(model.statics, dtype),
    )

    def of_series(shape: tuple[int, ...], kind: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((series, *shape), kind)

    def begin(first: Array, seen: Array, at_start: Array, static: Array) -> Any:
        return model.start(InitialObservations(first, seen, at_start), static)

    leaves, tree = jax.tree.flatten(jax.eval_shape(begin, *one))
    kept = tuple((f"state_{number}", of_series(leaf.shape, leaf.dtype)) for number, leaf in enumerate(leaves))
    initial = tuple((name, of_series(array.shape, array.dtype)) for name, array in zip(INITIAL, one, strict=True))
    row = ("logsig", of_series((model.basis.dimension,), dtype))
    rows = ("logsigs", of_series((intervals, model.basis.dimension), dtype))

    def whole(logsigs: Array, length: Array, first: Array, seen: Array, at_start: Array, static: Array) -> Array:
        return model(Inputs(logsigs, length, InitialObservations(first, seen, at_start), static))

    def start(*given: Array) -> list[Array]:
        return jax.tree.leaves(begin(*given))

    def advance(*given: Array) -> list[Array]:
        return jax.tree.leaves(model.advance(jax.tree.unflatten(tree, given[:-1]), given[-1]))

    def read(*given: Array) -> Array:
        return model.predict(jax.tree.unflatten(tree, given))

    names = tuple(name for name, _ in kept)
    length = ("length", of_series((), np.int32))
    return {
        "predict": Program(jax.vmap(whole), (rows, length, *initial), ("prediction",)),
        "start": Program(jax.vmap(start), initial, names),
        "advance": Program(jax.vmap(advance), (*kept, row), names),
        "read": Program(jax.vmap(read), kept, ("prediction",)),
    }


def _serialized(found: jax_export.Exported) -> bytes:
    try:
        return bytes(found.serialize())
    except ImportError as error:
        raise ArtefactError(
            "Exporting needs flatbuffers, which is not installed.", 'pip install "logcde[export]".'
        ) from error


@contextlib.contextmanager
def _without_paths() -> Iterator[None]:
    """Programs that are traced within name no files of this machine."""
    name = "jax_hlo_source_file_canonicalization_regex"
    before = getattr(jax.config, name)
    jax.config.update(name, ".*")
    try:
        yield
    finally:
        jax.config.update(name, before)


def _described(name: str, array: Any) -> dict[str, Any]:
    sizes: Sequence[Any] = array.shape
    return {
        "name": name,
        "shape": [size if isinstance(size, int) else str(size) for size in sizes],
        "dtype": np.dtype(array.dtype).name,
    }
