"""Vector instructions for several intervals at once: rows of LANES numbers, and STEPS steps at a time.

See `logcde.kernels._simd` for why these are not plain loops, and why they take positions rather than records.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils

from logcde.kernels._simd import QUAD, add_product, instruction, spread_number, vector

LANES = 8
"""Intervals that are composed together."""
STEPS = 8
"""Events that are composed together."""


@instruction
def add_lanes(typingctx, target, i, factor, k, source, j, rows):
    """Row by row of LANES numbers, `rows` of them: target[i ...] += factor[k : k + LANES] * source[j ...]."""
    place = types.uint64
    signature = types.void(target, place, factor, place, source, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, factor, k, source, j, rows = args
        # Read once: the factor is not one of the rows that change.
        scale = builder.load(vector(context, builder, array_types[2], factor, k, LANES), align=8)
        end, step = builder.mul(rows, ir.Constant(rows.type, LANES)), ir.Constant(rows.type, LANES)
        with cgutils.for_range_slice(builder, ir.Constant(rows.type, 0), end, step, inc=True) as (r, _):
            add_product(
                builder,
                vector(context, builder, array_types[0], target, builder.add(i, r), LANES),
                scale,
                vector(context, builder, array_types[4], source, builder.add(j, r), LANES),
            )
        return context.get_dummy_value()

    return signature, codegen


@instruction
def set_outer(typingctx, target, i, base, b, share, factor, k, letters, source, j, rows):
    """Letter by letter, and row by row within: target[i ...] = base[b ...] + share * factor[k ...] * source[j ...].

    Rows of the target and of the base go on from letter to letter, those of the source begin again, and the factor
    moves back by LANES.
    """
    place = types.uint64
    signature = types.void(
        target, place, base, place, types.float64, factor, place, place, source, place, place
    )  # fmt: skip

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, base, b, share, factor, k, letters, source, j, rows = args
        flags, lanes = ("contract",), ir.Constant(rows.type, LANES)
        shares = spread_number(builder, share, LANES)
        end = builder.mul(rows, lanes)
        with cgutils.for_range(builder, letters) as loop:
            back = builder.sub(k, builder.mul(loop.index, lanes))
            scale = builder.load(vector(context, builder, array_types[5], factor, back, LANES), align=8)
            scale = builder.fmul(shares, scale)
            first = builder.mul(loop.index, end)
            here, there = builder.add(i, first), builder.add(b, first)
            with cgutils.for_range_slice(builder, ir.Constant(rows.type, 0), end, lanes, inc=True) as (r, _):
                read = [
                    builder.load(vector(context, builder, kind, array, builder.add(place, r), LANES), align=8)
                    for kind, array, place in ((array_types[2], base, there), (array_types[8], source, j))
                ]
                total = builder.fadd(read[0], builder.fmul(scale, read[1], flags=flags), flags=flags)
                address = vector(context, builder, array_types[0], target, builder.add(here, r), LANES)
                builder.store(total, address, align=8)
        return context.get_dummy_value()

    return signature, codegen


def _lane_reader(context, builder, array_type, array):
    """A function that reads LANES numbers, `step` times `stride` after a position."""

    def read(position, step=0, stride=None):
        if stride is not None:
            position = builder.add(position, builder.mul(stride, ir.Constant(stride.type, step)))
        return builder.load(vector(context, builder, array_type, array, position, LANES), align=8)

    return read


def _lanes_of(value):
    return ir.Constant(ir.VectorType(ir.DoubleType(), LANES), [value] * LANES)


@instruction
def add_steps(typingctx, target, i, factor, k, k_step, source, j, j_step, j_row, rows):
    """Row by row: target[i ...] += factor[k + u k_step ...] * source[j + u j_step ...], summed over u < STEPS.

    A row is LANES numbers; rows of the target are contiguous, those of the source `j_row` apart. Several steps at once,
    because reading and writing the target costs more than the arithmetic of a step.
    """
    place = types.uint64
    signature = types.void(target, place, factor, place, place, source, place, place, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, factor, k, k_step, source, j, j_step, j_row, rows = args
        read_factor = _lane_reader(context, builder, array_types[2], factor)
        read_source = _lane_reader(context, builder, array_types[5], source)
        factors = [read_factor(k, u, k_step) for u in range(STEPS)]
        with cgutils.for_range(builder, rows) as loop:
            address = builder.add(i, builder.mul(loop.index, ir.Constant(i.type, LANES)))
            pointer = vector(context, builder, array_types[0], target, address, LANES)
            place = builder.add(j, builder.mul(loop.index, j_row))
            total = builder.load(pointer, align=8)
            for u in range(STEPS):
                product = builder.fmul(factors[u], read_source(place, u, j_step), flags=("contract",))
                total = builder.fadd(total, product, flags=("contract",))
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_changes(typingctx, target, i, position, p, share, source, j, j_step):
    """For u < STEPS: target[i + u LANES ...] = P + share * v, then P += v.

    P is position[p ...] and v the change source[j + u j_step ...].
    """
    place = types.uint64
    signature = types.void(target, place, position, place, types.float64, source, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, position, p, share, source, j, j_step = args
        read = _lane_reader(context, builder, array_types[5], source)
        pointer = vector(context, builder, array_types[2], position, p, LANES)
        total = builder.load(pointer, align=8)
        factor = spread_number(builder, share, LANES)
        for u in range(STEPS):
            change = read(j, u, j_step)
            address = builder.add(i, ir.Constant(i.type, u * LANES))
            part = builder.fadd(total, builder.fmul(factor, change, flags=("contract",)), flags=("contract",))
            builder.store(part, vector(context, builder, array_types[0], target, address, LANES), align=8)
            total = builder.fadd(total, change)
        builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_products(typingctx, target, i, total, q, factor, k, source, j):
    """For u < STEPS: T += factor[k + u LANES ...] * source[j + u LANES ...], then target[i + u LANES ...] = T.

    T is total[q ...].
    """
    place = types.uint64
    signature = types.void(target, place, total, place, factor, place, source, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, total, q, factor, k, source, j = args
        read_factor = _lane_reader(context, builder, array_types[4], factor)
        read_source = _lane_reader(context, builder, array_types[6], source)
        stride = ir.Constant(i.type, LANES)
        pointer = vector(context, builder, array_types[2], total, q, LANES)
        sums = builder.load(pointer, align=8)
        for u in range(STEPS):
            product = builder.fmul(read_factor(k, u, stride), read_source(j, u, stride), flags=("contract",))
            sums = builder.fadd(sums, product, flags=("contract",))
            address = builder.add(i, ir.Constant(i.type, u * LANES))
            builder.store(sums, vector(context, builder, array_types[0], target, address, LANES), align=8)
        builder.store(sums, pointer, align=8)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_pair(typingctx, target, i, level, q, middle, m, first, a, a_step, second, b, b_step):
    """The part of a word of two letters that level three needs during each of STEPS steps, and the word after them.

    With changes v = first[a + u a_step ...], w = second[b + u b_step ...] and M = middle[m + u LANES ...], which is the
    first letter's position plus v / 2: target[i + u LANES ...] = T + (M / 2 - v / 12) w, then T += M w, where T is
    level[q ...].
    """
    place = types.uint64
    signature = types.void(
        target, place, level, place, middle, place, first, place, place, second, place, place
    )  # fmt: skip

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, level, q, middle, m, first, a, a_step, second, b, b_step = args
        read_middle = _lane_reader(context, builder, array_types[4], middle)
        read_first = _lane_reader(context, builder, array_types[6], first)
        read_second = _lane_reader(context, builder, array_types[9], second)
        stride = ir.Constant(i.type, LANES)
        pointer = vector(context, builder, array_types[2], level, q, LANES)
        total = builder.load(pointer, align=8)
        for u in range(STEPS):
            half_way, change = read_middle(m, u, stride), read_second(b, u, b_step)
            part = builder.fmul(read_first(a, u, a_step), _lanes_of(-1.0 / 12.0), flags=("contract",))
            part = builder.fadd(builder.fmul(half_way, _lanes_of(0.5), flags=("contract",)), part, flags=("contract",))
            during = builder.fadd(total, builder.fmul(part, change, flags=("contract",)), flags=("contract",))
            address = builder.add(i, ir.Constant(i.type, u * LANES))
            builder.store(during, vector(context, builder, array_types[0], target, address, LANES), align=8)
            total = builder.fadd(total, builder.fmul(half_way, change, flags=("contract",)), flags=("contract",))
        builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return signature, codegen


def _mixed(builder, left, right, lanes):
    """A vector of some numbers of two others; those of the second follow those of the first."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), [ir.IntType(32)(lane) for lane in lanes])
    return builder.shuffle_vector(left, right, mask)


def _transposed(builder, a, b, c, d):
    """Transpose a matrix of four vectors of four numbers."""
    low_ab, high_ab = _mixed(builder, a, b, (0, 4, 2, 6)), _mixed(builder, a, b, (1, 5, 3, 7))
    low_cd, high_cd = _mixed(builder, c, d, (0, 4, 2, 6)), _mixed(builder, c, d, (1, 5, 3, 7))
    return (
        _mixed(builder, low_ab, low_cd, (0, 1, 4, 5)),
        _mixed(builder, high_ab, high_cd, (0, 1, 4, 5)),
        _mixed(builder, low_ab, low_cd, (2, 3, 6, 7)),
        _mixed(builder, high_ab, high_cd, (2, 3, 6, 7)),
    )


def _transposed_lanes(builder, rows):
    """Transpose a matrix of eight vectors of eight numbers.

    Blocks of one number, then of two, then of four change places with those across the diagonal: three shuffles of a
    pair of rows at a time.
    """
    for size in (1, 2, 4):
        first = [i for i in range(LANES) if not i & size]  # the places that keep their numbers in the upper row
        rows = list(rows)
        for i in first:
            above, below = rows[i], rows[i + size]
            rows[i] = _mixed(builder, above, below, [c if not c & size else c - size + LANES for c in range(LANES)])
            rows[i + size] = _mixed(
                builder, above, below, [c + size if not c & size else c + LANES for c in range(LANES)]
            )
    return rows


@instruction
def load_changes(typingctx, target, i, source, places, m, lag):
    """target[i + r LANES + l] = source[p + r] - source[p + r - lag], for p = places[l] + m, l < LANES, r < LANES.

    Loads LANES consecutive changes of each lane. `source` may have single precision, changes have double.
    """
    place = types.uint64
    signature = types.void(target, place, source, places, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, i, source, places, m, lag = args
        single = array_types[2].dtype == types.float32
        data = context.make_array(array_types[3])(context, builder, places).data

        def read(position):
            # Aligned to one number only: rows start anywhere.
            address = vector(context, builder, array_types[2], source, position, LANES)
            numbers = builder.load(address, align=4 if single else 8)
            return builder.fpext(numbers, ir.VectorType(ir.DoubleType(), LANES)) if single else numbers

        changes = []
        for lane in range(LANES):
            start = builder.load(builder.gep(data, [ir.Constant(ir.IntType(64), lane)]))
            here = builder.add(start, m)
            changes.append(builder.fsub(read(here), read(builder.sub(here, lag))))
        for r, row in enumerate(_transposed_lanes(builder, changes)):
            position = builder.add(i, ir.Constant(i.type, r * LANES))
            builder.store(row, vector(context, builder, array_types[0], target, position, LANES), align=8)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def store_rows(typingctx, target, a, b, c, d, source, i, stride):
    """target[p + r] = source[i + r stride + l], for l, p in enumerate((a, b, c, d)), r < 4, the first lane last.

    The inverse of the transposition in `load_changes`, rounded to the precision of `target`.
    """
    place = types.uint64
    signature = types.void(target, place, place, place, place, source, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, *places, source, i, stride = args
        single = array_types[0].dtype == types.float32
        columns = []
        for _ in range(QUAD):
            columns.append(builder.load(vector(context, builder, array_types[5], source, i, QUAD), align=8))
            i = builder.add(i, stride)
        for place, row in reversed(list(zip(places, _transposed(builder, *columns), strict=True))):
            numbers = builder.fptrunc(row, ir.VectorType(ir.FloatType(), QUAD)) if single else row
            builder.store(
                numbers, vector(context, builder, array_types[0], target, place, QUAD), align=4 if single else 8
            )
        return context.get_dummy_value()

    return signature, codegen
