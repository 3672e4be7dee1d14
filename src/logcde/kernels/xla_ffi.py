"""Kernels inside `jax.jit` on a CPU: the one module that knows the frame in which XLA calls a foreign function.

A handler is a C function that Numba compiles, so nothing is built at install time and no call goes through the Python
interpreter. It reads the addresses and dimensions of its arrays from the call frame, whose layout is that of XLA's
`c_api.h`, and passes them on to a kernel. If XLA refuses a handler, callers use pure JAX instead.
"""

import contextlib
import contextvars
import ctypes
import logging
from collections.abc import Callable, Iterator
from typing import Any

import jax
from numba import cfunc, types
from numba.extending import intrinsic

from logcde.kernels._jit import OPTIONS, inlined, merged

LOG = logging.getLogger("logcde")

# Offsets of fields in bytes: in the frame, in its lists of arguments and results, in a buffer.
API, ARGUMENTS, RESULTS = 16, 40, 80
EXTENSION, BUFFERS = 8, 32
DATA, RANK, DIMENSIONS = 24, 32, 40
# In an extension, in the metadata that an extension asks for, and in the version of the interface.
EXTENSION_KIND, METADATA, ASKS_FOR_METADATA = 8, 24, 1
VERSION, VERSION_SIZE, MAJOR, MINOR, TRAITS = 8, 24, 16, 20, 32
WRITTEN_FOR = 3


_PORTABLE = contextvars.ContextVar("portable", default=False)


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """Within it, programs that JAX traces call no kernels of this library: their twins in JAX run on any machine.

    Predictions agree to rounding, and take longer on a CPU. A program that was traced before stays as it is.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logcde.flows.scan import act
    >>> given = jnp.zeros((3, 2, 2, 1)), jnp.ones((2, 1))
    >>> with portable():
    ...     program = jax.jit(lambda matrices, state: act(matrices, state, True)).lower(*given)
    >>> "custom_call" in program.as_text()
    False
    """
    token = _PORTABLE.set(True)
    try:
        yield
    finally:
        _PORTABLE.reset(token)


def is_portable() -> bool:
    """Whether programs are traced without kernels."""
    return _PORTABLE.get()


def _pointer(pointer_type: types.Type) -> Callable[..., Any]:
    """A function from an address to a pointer of this type."""

    @intrinsic
    def at(typingctx, address):
        def codegen(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(pointer_type))

        return pointer_type(types.intp), codegen

    return at


words, halves = _pointer(types.CPointer(types.int64)), _pointer(types.CPointer(types.int32))
untyped = _pointer(types.voidptr)


@inlined
def answers_metadata_query(frame):
    """Whether XLA only asks for the version of the interface; if so, write the one that this module understands."""
    extension = words(frame + EXTENSION)[0]
    if extension == 0 or halves(extension + EXTENSION_KIND)[0] != ASKS_FOR_METADATA:
        return False
    metadata, api = words(extension + METADATA)[0], words(frame + API)[0]
    theirs, ours = api + 16, metadata + VERSION
    words(ours)[0] = VERSION_SIZE
    words(ours + 8)[0] = 0
    # Within a major version, fields are only ever added.
    halves(ours + MAJOR)[0] = 0
    halves(ours + MINOR)[0] = min(WRITTEN_FOR, halves(theirs + MINOR)[0])
    halves(metadata + TRAITS)[0] = 0
    return True


@merged
def data(frame, arrays, number):
    """The address of the numbers of one array; `arrays` is ARGUMENTS or RESULTS."""
    return words(words(words(frame + arrays + BUFFERS)[0] + 8 * number)[0] + DATA)[0]


@inlined
def buffer(frame, arrays, number):
    """The address of the description of one array; `arrays` is ARGUMENTS or RESULTS."""
    return words(words(frame + arrays + BUFFERS)[0] + 8 * number)[0]


@inlined
def batch_and_shape(frame, arrays, number, trailing):
    """The number of examples in the leading axes of an array, and the address of its `trailing` last dimensions."""
    found = buffer(frame, arrays, number)
    dimensions, leading = words(found + DIMENSIONS)[0], words(found + RANK)[0] - trailing
    examples = 1
    for axis in range(leading):
        examples *= words(dimensions)[axis]
    return examples, dimensions + 8 * leading


@inlined
def example_of(frame, number, n, trailing):
    """Which example of an argument belongs to example n of the first result, if leading axes of size one are shared."""
    mine, theirs = buffer(frame, ARGUMENTS, number), buffer(frame, RESULTS, 0)
    own, whole = words(words(mine + DIMENSIONS)[0]), words(words(theirs + DIMENSIONS)[0])
    leading = words(mine + RANK)[0] - trailing
    found, stride = 0, 1
    for axis in range(leading - 1, -1, -1):
        if own[axis] > 1:
            found += n % whole[axis] * stride
        stride *= own[axis]
        n //= whole[axis]
    return found


def handler(function: Callable[[Any], Any]) -> Any:
    """Compile a function of the frame's address for XLA, or take it from the cache on disk: see `_jit`."""
    return cfunc(types.intp(types.intp), **OPTIONS)(function)


def register(name: str, compiled: Any) -> bool:
    """Register a handler with XLA for CPUs; if XLA refuses it, log one line and return False."""
    try:
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(compiled.address))
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    except (RuntimeError, ValueError, TypeError) as reason:
        LOG.warning("XLA refuses the kernel %s, so slower pure JAX replaces it: %s", name, reason)
        return False
    return True
