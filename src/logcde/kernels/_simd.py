"""What the kernels are built from: `target += a * source` on neighbouring numbers, in vector instructions.

Written as a plain loop, either would do the same. Numba, however, has to assume that target and source may overlap, and
checks for it before each loop; with rows of ten or twenty numbers that costs more than the arithmetic.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

QUAD = 4
EIGHT = 8
LANES = 16


def instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that writes machine instructions callable from kernels."""
    return intrinsic(function)


def _vector(context, builder, array_type, array, position, width):
    """Address of `width` numbers of a one-dimensional array, as a vector."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), ir.VectorType(ir.DoubleType(), width).as_pointer())


def _add_product(builder, target, factor, source):
    # An alignment of 8 bytes: rows begin anywhere.
    old = builder.load(target, align=8)
    product = builder.fmul(factor, builder.load(source, align=8), flags=("contract",))
    builder.store(builder.fadd(old, product, flags=("contract",)), target, align=8)


@instruction
def add_row(typingctx, target, i, a, source, j, size):
    """target[i : i + size] += a * source[j : j + size], a quad at a time: `size` is rounded up to whole quads."""
    signature = types.void(target, types.uint64, types.float64, source, types.uint64, types.uint64)

    def codegen(context, builder, signature, args):
        kinds = signature.args
        target, i, a, source, j, size = args
        factor = ir.Constant(ir.VectorType(ir.DoubleType(), QUAD), ir.Undefined)
        for lane in range(QUAD):
            factor = builder.insert_element(factor, a, ir.Constant(ir.IntType(32), lane))
        quad = ir.Constant(size.type, QUAD)
        with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), size, quad, inc=True) as (r, _):
            _add_product(
                builder,
                _vector(context, builder, kinds[0], target, builder.add(i, r), QUAD),
                factor,
                _vector(context, builder, kinds[3], source, builder.add(j, r), QUAD),
            )
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_first(typingctx, target, a):
    """target[0] += a, as one quad: a row that is read right after a single number was written would have to wait."""
    signature = types.void(target, types.float64)

    def codegen(context, builder, signature, args):
        address = _vector(context, builder, signature.args[0], args[0], ir.Constant(ir.IntType(64), 0), QUAD)
        zeros = ir.Constant(ir.VectorType(ir.DoubleType(), QUAD), [0.0] * QUAD)
        change = builder.insert_element(zeros, args[1], ir.Constant(ir.IntType(32), 0))
        builder.store(builder.fadd(builder.load(address, align=8), change), address, align=8)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_lanes(typingctx, target, i, factor, k, source, j, rows):
    """Row by row of LANES numbers, `rows` of them: target[i ...] += factor[k : k + LANES] * source[j ...]."""
    place = types.uint64
    signature = types.void(target, place, factor, place, source, place, place)

    def codegen(context, builder, signature, args):
        kinds = signature.args
        target, i, factor, k, source, j, rows = args
        # Read once: the factor is not among the rows that change.
        scale = builder.load(_vector(context, builder, kinds[2], factor, k, LANES), align=8)
        end, step = builder.mul(rows, ir.Constant(rows.type, LANES)), ir.Constant(rows.type, LANES)
        with cgutils.for_range_slice(builder, ir.Constant(rows.type, 0), end, step, inc=True) as (r, _):
            _add_product(
                builder,
                _vector(context, builder, kinds[0], target, builder.add(i, r), LANES),
                scale,
                _vector(context, builder, kinds[4], source, builder.add(j, r), LANES),
            )
        return context.get_dummy_value()

    return signature, codegen


def _transposed(builder, a, b, c, d):
    """Four vectors of four numbers as the rows of a matrix, turned into its columns."""

    def mixed(left, right, lanes):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), QUAD), [ir.IntType(32)(lane) for lane in lanes])
        return builder.shuffle_vector(left, right, mask)

    low_ab, high_ab = mixed(a, b, (0, 4, 2, 6)), mixed(a, b, (1, 5, 3, 7))
    low_cd, high_cd = mixed(c, d, (0, 4, 2, 6)), mixed(c, d, (1, 5, 3, 7))
    return (
        mixed(low_ab, low_cd, (0, 1, 4, 5)),
        mixed(high_ab, high_cd, (0, 1, 4, 5)),
        mixed(low_ab, low_cd, (2, 3, 6, 7)),
        mixed(high_ab, high_cd, (2, 3, 6, 7)),
    )


@instruction
def load_changes(typingctx, target, i, source, a, b, c, d, lag):
    """target[i + r LANES + l] = source[p + r] - source[p + r - lag], for l, p in enumerate((a, b, c, d)), r < 4.

    Four neighbouring changes of each of four lanes.
    """
    place = types.uint64
    signature = types.void(target, place, source, place, place, place, place, place)

    def codegen(context, builder, signature, args):
        kinds = signature.args
        target, i, source, *places, lag = args

        def read(position):
            return builder.load(_vector(context, builder, kinds[2], source, position, QUAD), align=8)

        changes = [builder.fsub(read(place), read(builder.sub(place, lag))) for place in places]
        for r, row in enumerate(_transposed(builder, *changes)):
            position = builder.add(i, ir.Constant(i.type, r * LANES))
            builder.store(row, _vector(context, builder, kinds[0], target, position, QUAD), align=8)
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
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, number(0), number(3), number(1)])  # for reading, to stay, data
        return context.get_dummy_value()

    return signature, codegen


def _dots(broadcast):
    """An instruction: target[t : t + 8] = scale * sum over n < count of matrix[m + n stride : ... + 8] * f_n.

    f_n is the number factor[f + n], or, unless it is to be `broadcast`, the numbers factor[f + n stride : ... + 8].
    """

    def dots(typingctx, target, t, matrix, m, stride, factor, f, count, scale):
        place, number = types.uint64, types.float64
        signature = types.void(target, place, matrix, place, place, factor, place, place, number)

        def codegen(context, builder, signature, args):
            kinds = signature.args
            target, t, matrix, m, stride, factor, f, count, scale = args
            vector = ir.VectorType(ir.DoubleType(), EIGHT)

            def spread(scalar):
                first = builder.insert_element(
                    ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
                )
                lanes = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), [0] * EIGHT)
                return builder.shuffle_vector(first, first, lanes)

            total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * EIGHT))
            with cgutils.for_range(builder, count) as loop:
                along = builder.mul(loop.index, stride)
                row = builder.load(_vector(context, builder, kinds[2], matrix, builder.add(m, along), EIGHT), align=8)
                if broadcast:
                    data = context.make_array(kinds[5])(context, builder, factor).data
                    other = spread(builder.load(builder.gep(data, [builder.add(f, loop.index)])))
                else:
                    other = builder.load(
                        _vector(context, builder, kinds[5], factor, builder.add(f, along), EIGHT), align=8
                    )
                product = builder.fmul(row, other, flags=("contract",))
                builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
            result = builder.fmul(builder.load(total), spread(scale))
            builder.store(result, _vector(context, builder, kinds[0], target, t, EIGHT), align=8)
            return context.get_dummy_value()

        return signature, codegen

    return dots


dot_numbers = instruction(_dots(broadcast=True))
dot_lanes = instruction(_dots(broadcast=False))
