"""Vector instructions for many small matrices and vectors, one in each lane: the building blocks of the flow kernels.

A "row" here is WIDE contiguous numbers, entry r of WIDE vectors at once; a matrix is size x size such rows, `down` and
`right` numbers apart. Plain loops would compute the same, but more slowly, see `_simd`. Numbers have single or double
precision.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils

from logcde.kernels._simd import instruction

WIDE = 8
"""Matrices that are processed together."""


def _number_type(array_type):
    return ir.FloatType() if array_type.dtype == types.float32 else ir.DoubleType()


class _Rows:
    """Rows of one array, for reading and writing."""

    def __init__(self, context, builder, array_type, array):
        self.builder = builder
        self.data = context.make_array(array_type)(context, builder, array).data
        self.vector = ir.VectorType(_number_type(array_type), WIDE)
        self.align = array_type.dtype.bitwidth // 8

    def _address(self, position):
        return self.builder.bitcast(self.builder.gep(self.data, [position]), self.vector.as_pointer())

    def load(self, position):
        return self.builder.load(self._address(position), align=self.align)

    def store(self, value, position):
        self.builder.store(value, self._address(position), align=self.align)


def _splat(builder, value):
    vector = ir.Constant(ir.VectorType(value.type, WIDE), ir.Undefined)
    for lane in range(WIDE):
        vector = builder.insert_element(vector, value, ir.IntType(32)(lane))
    return vector


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _wide(builder):
    return ir.IntType(64)(WIDE)


@instruction
def affine(typingctx, target, t, base, b, matrix, m, down, right, source, s, size, scale):
    """target = base + scale * matrix @ source, in every lane; the rows of vectors are contiguous."""
    place = types.uint64
    number = target.dtype
    signature = types.void(target, place, base, place, matrix, place, place, place, source, place, place, number)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, t, base, b, matrix, m, down, right, source, s, size, scale = args
        into, start, entries, vector = (
            _Rows(context, builder, array_type, array)
            for array_type, array in (
                (array_types[0], target),
                (array_types[2], base),
                (array_types[4], matrix),
                (array_types[8], source),
            )
        )
        factor, wide = _splat(builder, scale), _wide(builder)
        total = cgutils.alloca_once(builder, into.vector)
        with cgutils.for_range(builder, size) as row:
            builder.store(ir.Constant(into.vector, [0.0] * WIDE), total)
            line, place_in = builder.add(m, builder.mul(row.index, down)), builder.mul(row.index, wide)
            with cgutils.for_range(builder, size) as column:
                entry = entries.load(builder.add(line, builder.mul(column.index, right)))
                value = vector.load(builder.add(s, builder.mul(column.index, wide)))
                builder.store(_multiply_add(builder, entry, value, builder.load(total)), total)
            result = _multiply_add(builder, factor, builder.load(total), start.load(builder.add(b, place_in)))
            into.store(result, builder.add(t, place_in))
        return context.get_dummy_value()

    return signature, codegen


@instruction
def descend(typingctx, target, t, total, o, matrix, m, down, right, source, s, size, scale):
    """With y = transposed matrix @ source in every lane: total += y and target = scale * y."""
    place = types.uint64
    number = target.dtype
    signature = types.void(target, place, total, place, matrix, place, place, place, source, place, place, number)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        target, t, total, o, matrix, m, down, right, source, s, size, scale = args
        into, onto, entries, vector = (
            _Rows(context, builder, array_type, array)
            for array_type, array in (
                (array_types[0], target),
                (array_types[2], total),
                (array_types[4], matrix),
                (array_types[8], source),
            )
        )
        factor, wide = _splat(builder, scale), _wide(builder)
        product = cgutils.alloca_once(builder, into.vector)
        with cgutils.for_range(builder, size) as column:
            builder.store(ir.Constant(into.vector, [0.0] * WIDE), product)
            line, place_in = builder.add(m, builder.mul(column.index, right)), builder.mul(column.index, wide)
            with cgutils.for_range(builder, size) as row:
                entry = entries.load(builder.add(line, builder.mul(row.index, down)))
                value = vector.load(builder.add(s, builder.mul(row.index, wide)))
                builder.store(_multiply_add(builder, entry, value, builder.load(product)), product)
            y, sum_place = builder.load(product), builder.add(o, place_in)
            onto.store(builder.fadd(onto.load(sum_place), y), sum_place)
            into.store(builder.fmul(factor, y), builder.add(t, place_in))
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_outer(typingctx, matrix, m, down, right, left, a, other, b, size, terms):
    """matrix[r, c] += sum over k < terms of left[k, r] * other[k, c], in every lane; vectors are contiguous."""
    place = types.uint64
    signature = types.void(matrix, place, place, place, left, place, other, place, place, place)

    def codegen(context, builder, signature, args):
        array_types = signature.args
        matrix, m, down, right, left, a, other, b, size, terms = args
        entries, lefts, others = (
            _Rows(context, builder, array_type, array)
            for array_type, array in ((array_types[0], matrix), (array_types[4], left), (array_types[6], other))
        )
        wide = _wide(builder)
        vector = builder.mul(size, wide)
        total = cgutils.alloca_once(builder, entries.vector)
        with cgutils.for_range(builder, size) as row, cgutils.for_range(builder, size) as column:
            position = builder.add(
                m, builder.add(builder.mul(row.index, down), builder.mul(column.index, right))
            )  # fmt: skip
            builder.store(entries.load(position), total)
            from_row = builder.add(a, builder.mul(row.index, wide))
            from_column = builder.add(b, builder.mul(column.index, wide))
            with cgutils.for_range(builder, terms) as term:
                along = builder.mul(term.index, vector)
                x, y = lefts.load(builder.add(from_row, along)), others.load(builder.add(from_column, along))
                builder.store(_multiply_add(builder, x, y, builder.load(total)), total)
            entries.store(builder.load(total), position)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_rows(typingctx, target, t, source, s, size, scale):
    """target += scale * source, in every lane; the rows of vectors are contiguous."""
    place = types.uint64
    signature = types.void(target, place, source, place, place, target.dtype)

    def codegen(context, builder, signature, args):
        target, t, source, s, size, scale = args
        into = _Rows(context, builder, signature.args[0], target)
        out = _Rows(context, builder, signature.args[2], source)
        factor, wide = _splat(builder, scale), _wide(builder)
        with cgutils.for_range(builder, size) as row:
            along = builder.mul(row.index, wide)
            position = builder.add(t, along)
            total = _multiply_add(builder, factor, out.load(builder.add(s, along)), into.load(position))
            into.store(total, position)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def copy_rows(typingctx, target, t, target_step, source, s, source_step, rows):
    """Copy rows from one array to another, each with its own distance between rows."""
    place = types.uint64
    signature = types.void(target, place, place, source, place, place, place)

    def codegen(context, builder, signature, args):
        target, t, target_step, source, s, source_step, rows = args
        into = _Rows(context, builder, signature.args[0], target)
        out = _Rows(context, builder, signature.args[3], source)
        with cgutils.for_range(builder, rows) as row:
            value = out.load(builder.add(s, builder.mul(row.index, source_step)))
            into.store(value, builder.add(t, builder.mul(row.index, target_step)))
        return context.get_dummy_value()

    return signature, codegen


@instruction
def largest_norm(typingctx, matrix, m, down, right, size):
    """The largest 1-norm of the matrices in all lanes; NaN if a matrix contains NaN."""
    place = types.uint64
    signature = matrix.dtype(matrix, place, place, place, place)

    def codegen(context, builder, signature, args):
        matrix, m, down, right, size = args
        entries = _Rows(context, builder, signature.args[0], matrix)
        element = entries.vector.element
        zero = ir.Constant(entries.vector, [0.0] * WIDE)
        name = f"llvm.fabs.v{WIDE}f{entries.align * 8}"
        magnitude_type = ir.FunctionType(entries.vector, [entries.vector])
        magnitude = cgutils.get_or_insert_function(builder.module, magnitude_type, name)
        total, largest = (cgutils.alloca_once(builder, entries.vector) for _ in range(2))
        builder.store(zero, largest)
        with cgutils.for_range(builder, size) as column:
            builder.store(zero, total)
            start = builder.add(m, builder.mul(column.index, right))
            with cgutils.for_range(builder, size) as row:
                entry = entries.load(builder.add(start, builder.mul(row.index, down)))
                builder.store(builder.fadd(builder.load(total), builder.call(magnitude, [entry])), total)
            old, new = builder.load(largest), builder.load(total)
            # An ordered comparison with NaN is false, so a NaN is taken over and stays.
            builder.store(builder.select(builder.fcmp_ordered("<=", new, old), old, new), largest)
        lanes, found = builder.load(largest), cgutils.alloca_once_value(builder, element(0.0))
        for lane in range(WIDE):
            new, old = builder.extract_element(lanes, ir.IntType(32)(lane)), builder.load(found)
            builder.store(builder.select(builder.fcmp_ordered("<=", new, old), old, new), found)
        return builder.load(found)

    return signature, codegen


@instruction
def add_commutator(typingctx, target, t, left, x, x_down, x_right, right, y, y_down, y_right, size, scale):
    """target += scale * (left @ right - right @ left), in every lane; the rows of `target` are contiguous."""
    place = types.uint64
    operand = (place, place, place)
    signature = types.void(target, place, left, *operand, right, *operand, place, target.dtype)

    def codegen(context, builder, signature, args):
        target, t, left, x, x_down, x_right, right, y, y_down, y_right, size, scale = args
        into, lefts, rights = (
            _Rows(context, builder, signature.args[number], array)
            for number, array in ((0, target), (2, left), (6, right))
        )
        factor, wide = _splat(builder, scale), _wide(builder)
        zero = ir.Constant(into.vector, [0.0] * WIDE)
        ahead, back = (cgutils.alloca_once(builder, into.vector) for _ in range(2))

        def at(begin, down, row, along, column):
            return builder.add(begin, builder.add(builder.mul(row, down), builder.mul(column, along)))

        with cgutils.for_range(builder, size) as row, cgutils.for_range(builder, size) as column:
            builder.store(zero, ahead)
            builder.store(zero, back)
            with cgutils.for_range(builder, size) as term:
                r, c, k = row.index, column.index, term.index
                for total, first, second in (
                    (ahead, lefts.load(at(x, x_down, r, x_right, k)), rights.load(at(y, y_down, k, y_right, c))),
                    (back, rights.load(at(y, y_down, r, y_right, k)), lefts.load(at(x, x_down, k, x_right, c))),
                ):
                    builder.store(_multiply_add(builder, first, second, builder.load(total)), total)
            position = builder.add(t, builder.mul(builder.add(builder.mul(row.index, size), column.index), wide))
            difference = builder.fsub(builder.load(ahead), builder.load(back))
            into.store(_multiply_add(builder, factor, difference, into.load(position)), position)
        return context.get_dummy_value()

    return signature, codegen


TOGETHER = 8
"""Rows that are kept in registers at a time."""


class _Entries:
    """The choices, whole numbers, and amounts of a sum."""

    def __init__(self, context, builder, array_types, chosen, amounts):
        self.builder = builder
        self.chosen, self.amounts = (
            context.make_array(array_type)(context, builder, array).data
            for array_type, array in zip(array_types, (chosen, amounts), strict=True)
        )

    def choice(self, entry):
        return self.builder.sext(self.builder.load(self.builder.gep(self.chosen, [entry])), ir.IntType(64))

    def amount(self, entry):
        return self.builder.load(self.builder.gep(self.amounts, [entry]))


def _places(builder, start, size):
    wide = _wide(builder)
    return [builder.mul(builder.add(start, ir.IntType(64)(row)), wide) for row in range(size)]


def _in_groups(builder, rows, group):
    """Call `group` for all rows, for `TOGETHER` of them at a time and then for those that are left."""
    together, one = ir.IntType(64)(TOGETHER), ir.IntType(64)(1)
    whole = builder.mul(builder.udiv(rows, together), together)
    with cgutils.for_range_slice(builder, ir.IntType(64)(0), whole, together, ir.IntType(64)) as (start, _):
        group(start, TOGETHER)
    with cgutils.for_range_slice(builder, whole, rows, one, ir.IntType(64)) as (start, _):
        group(start, 1)


@instruction
def add_selected(typingctx, target, t, source, s, stride, chosen, amounts, first, last, rows):
    """target += sum over first <= e < last of amounts[e] * the matrix at s + chosen[e] * stride, in every lane."""
    place = types.uint64
    signature = types.void(target, place, source, place, place, chosen, amounts, place, place, place)

    def codegen(context, builder, signature, args):
        target, t, source, s, stride, chosen, amounts, first, last, rows = args
        into, out = (
            _Rows(context, builder, signature.args[0], target),
            _Rows(context, builder, signature.args[2], source),
        )
        entries = _Entries(context, builder, signature.args[5:7], chosen, amounts)

        def group(start, size):
            places = _places(builder, start, size)
            totals = [cgutils.alloca_once(builder, into.vector) for _ in range(size)]
            for total, along in zip(totals, places, strict=True):
                builder.store(into.load(builder.add(t, along)), total)
            with cgutils.for_range_slice(builder, first, last, ir.IntType(64)(1), ir.IntType(64)) as (entry, _):
                factor = _splat(builder, entries.amount(entry))
                line = builder.add(s, builder.mul(entries.choice(entry), stride))
                for total, along in zip(totals, places, strict=True):
                    row = out.load(builder.add(line, along))
                    builder.store(_multiply_add(builder, factor, row, builder.load(total)), total)
            for total, along in zip(totals, places, strict=True):
                into.store(builder.load(total), builder.add(t, along))

        _in_groups(builder, rows, group)
        return context.get_dummy_value()

    return signature, codegen


@instruction
def add_to_selected(typingctx, target, t, stride, chosen, amounts, first, last, source, s, rows):
    """The matrix at t + chosen[e] * stride += amounts[e] * source for first <= e < last, in every lane."""
    place = types.uint64
    signature = types.void(target, place, place, chosen, amounts, place, place, source, place, place)

    def codegen(context, builder, signature, args):
        target, t, stride, chosen, amounts, first, last, source, s, rows = args
        into, out = (
            _Rows(context, builder, signature.args[0], target),
            _Rows(context, builder, signature.args[7], source),
        )
        entries = _Entries(context, builder, signature.args[3:5], chosen, amounts)

        def group(start, size):
            places = _places(builder, start, size)
            values = [out.load(builder.add(s, along)) for along in places]
            with cgutils.for_range_slice(builder, first, last, ir.IntType(64)(1), ir.IntType(64)) as (entry, _):
                factor = _splat(builder, entries.amount(entry))
                line = builder.add(t, builder.mul(entries.choice(entry), stride))
                for value, along in zip(values, places, strict=True):
                    position = builder.add(line, along)
                    into.store(_multiply_add(builder, factor, value, into.load(position)), position)

        _in_groups(builder, rows, group)
        return context.get_dummy_value()

    return signature, codegen
