"""The building blocks of the kernels: `target += a * source` on contiguous numbers, in vector instructions.

A plain loop would compute the same. But Numba has to assume that target and source may overlap, and checks for it
before each loop; with rows of ten or twenty numbers the check costs more than the arithmetic.

Instructions take every array with the position in it that they start from, as scalars in registers: they are expanded
in place, and a record would have to be taken apart again.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

QUAD = 4
"""Numbers in one vector of double precision."""
QUAD_TYPE = ir.VectorType(ir.DoubleType(), QUAD)


def instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that emits machine instructions callable from kernels."""
    return intrinsic(function)


def vector(context, builder, array_type, array, position, width):
    """The address of `width` numbers of a one-dimensional array, as that of a vector."""
    data = context.make_array(array_type)(context, builder, array).data
    number = context.get_value_type(array_type.dtype)
    return builder.bitcast(builder.gep(data, [position]), ir.VectorType(number, width).as_pointer())


def spread_number(builder, number, width):
    """A vector that repeats one number."""
    vector = ir.Constant(ir.VectorType(ir.DoubleType(), width), ir.Undefined)
    for lane in range(width):
        vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
    return vector


def add_product(builder, target, factor, source):
    """Emit target += factor * source for two addresses of vectors."""
    # Aligned to 8 bytes only: rows start anywhere.
    old = builder.load(target, align=8)
    product = builder.fmul(factor, builder.load(source, align=8), flags=("contract",))
    builder.store(builder.fadd(old, product, flags=("contract",)), target, align=8)


@instruction
def add_row(typingctx, target, i, a, source, j, size):
    """target[i : i + size] += a * source[j : j + size], a quad at a time: `size` is rounded up to whole quads."""
    signature = types.void(target, types.uint64, types.float64, source, types.uint64, types.uint64)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, a, source, j, size = args
        factor = spread_number(builder, a, QUAD)
        quad = ir.Constant(size.type, QUAD)
        with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), size, quad, inc=True) as (r, _):
            add_product(
                builder,
                vector(context, builder, array_types[0], target, builder.add(i, r), QUAD),
                factor,
                vector(context, builder, array_types[3], source, builder.add(j, r), QUAD),
            )
        return context.get_dummy_value()

    return signature, codegen


@instruction
def set_row(typingctx, target, i, a, source, j, k, size):
    """target[i : i + size] = a * source[j : j + size] - source[k : k + size], `size` rounded up to whole quads."""
    place = types.uint64
    signature = types.void(target, place, types.float64, source, place, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, a, source, j, k, size = args
        factor, quad = spread_number(builder, a, QUAD), ir.Constant(size.type, QUAD)
        with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), size, quad, inc=True) as (r, _):
            left, right = (
                builder.load(vector(context, builder, array_types[3], source, builder.add(place, r), QUAD), align=8)
                for place in (j, k)
            )
            difference = builder.fsub(builder.fmul(factor, left, flags=("contract",)), right, flags=("contract",))
            builder.store(
                difference, vector(context, builder, array_types[0], target, builder.add(i, r), QUAD), align=8
            )
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_gap(typingctx, tensor, a, size, third):
    """Multiply the levels T1, T2, T3 of a tensor by the exponential of a times letter 0.

    Each is a row of `size`, rounded up to whole quads, at 0, `size` and `third`: T3 += a (T2 + a (T1 + a e / 3) / 2),
    T2 += a (T1 + a e / 2), T1 += a e, where e is one at letter 0.
    """
    place = types.uint64
    signature = types.void(tensor, types.float64, place, place)

    def codegen(context, builder, signature, args):
        tensor, a, size, third = args
        array_type = signature.args[0]
        flags = ("contract",)

        def row(start):
            pointer = vector(context, builder, array_type, tensor, builder.add(start, r), QUAD)
            return pointer, builder.load(pointer, align=8)

        def plus(total, factor, numbers):
            return builder.fadd(total, builder.fmul(factor, numbers, flags=flags), flags=flags)

        def constant(value):
            return ir.Constant(QUAD_TYPE, [value] * QUAD)

        zeros, factor = constant(0.0), spread_number(builder, a, QUAD)
        unit = builder.insert_element(zeros, a, ir.Constant(ir.IntType(32), 0))
        half = builder.fmul(factor, constant(0.5))
        quad, zero = ir.Constant(size.type, QUAD), ir.Constant(size.type, 0)
        with cgutils.for_range_slice(builder, zero, size, quad, inc=True) as (r, _):
            step = builder.select(builder.icmp_unsigned("==", r, zero), unit, zeros)
            (to_first, first), (to_second, second), (to_third, last) = row(zero), row(size), row(third)
            part = plus(second, half, plus(first, constant(1.0 / 3.0), step))
            builder.store(plus(last, factor, part), to_third, align=8)
            builder.store(plus(second, factor, plus(first, constant(0.5), step)), to_second, align=8)
            builder.store(builder.fadd(first, step), to_first, align=8)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def prefetch(typingctx, array, i):
    """Tell the processor that array[i] will be read soon."""
    signature = types.void(array, types.uint64)

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [address, number(0), number(3), number(1)])  # read, keep in all caches, data
        return context.get_dummy_value()

    return signature, codegen
