"""The flow kernels as C functions, and the handlers that make them callable from XLA.

A C function exists once for each size and precision of a matrix; it is compiled when it is first needed. XLA's handlers
and the kernels of `serve` call it by its address instead of containing a copy of it, so they are small and serve all
sizes. Addresses differ between processes, and machine code that contains one cannot be cached. So servers are passed
the address, and handlers, which XLA passes a frame only, look it up in a table that the linker knows by name.
"""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.np.numpy_support import carray

from logcde.kernels import dense_flow, flow, xla_ffi
from logcde.kernels._jit import OPTIONS
from logcde.kernels._simd import instruction
from logcde.kernels.flow import WIDEST
from logcde.kernels.xla_ffi import ARGUMENTS, RESULTS, answers_metadata_query, batch_and_shape, data, untyped, words

TABLE = np.zeros((2, 2, WIDEST + 1), np.int64)
"""Addresses of C functions: forward and backward, double and single precision, by size; 0: any size above `WIDEST`."""
SYMBOL = "logcde_flow_functions"
llvmlite.binding.add_symbol(SYMBOL, TABLE.ctypes.data)

FORWARD, BACKWARD = 0, 1

_one_at_a_time = threading.RLock()


@instruction
def _entry(typingctx, place):
    """The number at a place in `TABLE`."""

    def codegen(context, builder, signature, arguments):
        table = context.get_c_value(builder, ir.ArrayType(ir.IntType(64), TABLE.size), SYMBOL)
        return builder.load(cgutils.gep_inbounds(builder, table, 0, arguments[0]))

    return types.int64(types.int64), codegen


@instruction
def call(typingctx, address, arguments):
    """Call the C function at an address with a tuple of integers."""

    def codegen(context, builder, signature, given):
        word = ir.IntType(64)
        numbers = cgutils.unpack_tuple(builder, given[1])
        function = ir.FunctionType(ir.VoidType(), [word] * len(numbers)).as_pointer()
        builder.call(builder.inttoptr(given[0], function), numbers)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), codegen


def _place(direction: int, single: bool, size: int) -> int:
    return int(np.ravel_multi_index((direction, int(single), size if size <= WIDEST else 0), TABLE.shape))


def function_of(direction: int, size: int, dtype: np.dtype) -> int:
    """The address of the C function for matrices of this size, compiled if need be.

    `FORWARD` takes the addresses of matrices, hidden and states, `BACKWARD` those of matrices, hidden, states,
    cotangent and results; then both take the numbers of series, intervals, rows and blocks, and whether flows are
    exact. Above `WIDEST` they take single blocks only.
    """
    single = bool(dtype == np.float32)
    place = _place(direction, single, size)
    with _one_at_a_time:
        if not TABLE.flat[place]:
            TABLE.flat[place] = _compiled(direction, size if size <= WIDEST else None, single).address
    return int(TABLE.flat[place])


@functools.cache
def _compiled(direction: int, size: int | None, single: bool) -> Any:
    dtype, reach = (np.float32, flow.SINGLE) if single else (np.float64, flow.DOUBLE)
    function, arguments = (
        (_forward(size, dtype, reach), 8) if direction == FORWARD else (_backward(size, dtype, reach), 11)
    )
    return cfunc(types.void(*[types.int64] * arguments), **OPTIONS)(function)


def _forward(size: int | None, dtype: type, reach: np.ndarray) -> Any:
    def forward(matrices, hidden, states, series, intervals, rows, blocks, exact):
        matrices = carray(untyped(matrices), (series, intervals, rows, rows, blocks), dtype)
        hidden = carray(untyped(hidden), (series, rows, blocks), dtype)
        states = carray(untyped(states), (series, intervals, rows, blocks), dtype)
        if size is None:
            dense_flow.act(matrices, hidden, reach, exact, states)
        else:
            flow.act(matrices, hidden, reach, exact, states, size)

    return forward


def _backward(size: int | None, dtype: type, reach: np.ndarray) -> Any:
    def backward(
        matrices, hidden, states, cotangent, d_matrices, d_hidden, series, intervals, rows, blocks, exact
    ):  # fmt: skip
        matrices = carray(untyped(matrices), (series, intervals, rows, rows, blocks), dtype)
        hidden = carray(untyped(hidden), (series, rows, blocks), dtype)
        states = carray(untyped(states), (series, intervals, rows, blocks), dtype)
        cotangent = carray(untyped(cotangent), (series, intervals, rows, blocks), dtype)
        d_matrices = carray(untyped(d_matrices), (series, intervals, rows, rows, blocks), dtype)
        d_hidden = carray(untyped(d_hidden), (series, rows, blocks), dtype)
        if size is None:
            dense_flow.act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden)
        else:
            flow.act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden, size)

    return backward


def target(direction: int, size: int, dtype: np.dtype, exact: bool) -> str | None:
    """The name by which XLA calls the function for matrices of this size; None if it cannot, or must not."""
    if xla_ffi.is_portable():
        return None
    with _one_at_a_time:
        name = _registered(direction, bool(dtype == np.float32), exact)
        if name is not None:
            function_of(direction, size, dtype)
    return name


def prepare(size: int, dtype: np.dtype, exact: bool) -> None:
    """Begin to compile both functions for matrices of this size in another thread.

    Half of the time is spent in LLVM, which lets other threads run: JAX traces and compiles meanwhile. `target` waits
    for what has begun, and whoever needs a function that could not be compiled gets the error.
    """
    for direction in (FORWARD, BACKWARD):
        _compiler().submit(target, direction, size, dtype, exact)


@functools.cache
def _compiler() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="logcde-compiler")


@functools.cache
def _registered(direction: int, single: bool, exact: bool) -> str | None:
    name = f"logcde_act{'_back' * direction}_{'f32' if single else 'f64'}_{'exact' if exact else 'euler'}"
    first = _place(direction, single, 0)
    compiled = _forward_handler(first, int(exact)) if direction == FORWARD else _backward_handler(first, int(exact))
    return name if xla_ffi.register(name, compiled) else None


def _forward_handler(first: int, exact: int) -> Any:
    @xla_ffi.handler
    def forward(frame):
        if answers_metadata_query(frame):
            return 0
        series, shape = batch_and_shape(frame, ARGUMENTS, 0, 4)
        intervals, rows, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
        call(
            _entry(first + (rows if rows <= WIDEST else 0)),
            (
                data(frame, ARGUMENTS, 0), data(frame, ARGUMENTS, 1), data(frame, RESULTS, 0),
                series, intervals, rows, blocks, exact,
            ),
        )  # fmt: skip
        return 0

    return forward


def _backward_handler(first: int, exact: int) -> Any:
    @xla_ffi.handler
    def backward(frame):
        if answers_metadata_query(frame):
            return 0
        series, shape = batch_and_shape(frame, ARGUMENTS, 0, 4)
        intervals, rows, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
        call(
            _entry(first + (rows if rows <= WIDEST else 0)),
            (
                data(frame, ARGUMENTS, 0), data(frame, ARGUMENTS, 1), data(frame, ARGUMENTS, 2),
                data(frame, ARGUMENTS, 3), data(frame, RESULTS, 0), data(frame, RESULTS, 1),
                series, intervals, rows, blocks, exact,
            ),
        )  # fmt: skip
        return 0

    return backward
