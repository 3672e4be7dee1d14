"""Depth one, four and more for streams that observe all their channels together, in lanes.

Tensors are as in `logcde.kernels.depth_n`, with a lane for each interval in place of each number, and without padding.
"""

import numpy as np

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._lane_simd import LANES, STEPS, add_lanes, set_outer
from logcde.kernels.depth_n import layout_of
from logcde.kernels.lanes import (
    BLOCK,
    block_places,
    count_steps,
    load_elapsed,
    load_steps,
    longest_of,
    prefetch_group,
    store_coordinates,
)
from logcde.kernels.records import LaneGroup


@kernel
def dense_step(moves, at, low, high, ones, layout, tensor, partial):
    """Multiply every lane of `tensor` by the exponential of letters `low` to `high`, as `depth_n.advance` does.

    Letters are numbered from the last one: the lanes of letter k are at `moves[at - k LANES]`.
    """
    depth, power, offset = layout.depth, layout.power, layout.offset
    one = index(1)
    lanes = index(LANES)
    begin = index(low)
    end = index(high)
    moving = end - begin
    first = at - begin * lanes
    for top in range(depth, 1, -1):
        # Level by level: `partial` is the tensor times the first terms of the exponential, in Horner's form.
        for m in range(1, top):
            share = 1.0 / (top - m + 1)
            size = power[m - 1]
            row = (offset[m] + begin * size) * lanes
            if moving < power[1]:
                for i in range(offset[m] * lanes, offset[m + 1] * lanes):
                    partial[i] = tensor[i]
            if m == 1:
                set_outer(partial, row, tensor, row, share, moves, first, moving, ones, index(0), one)
            else:
                lower = offset[m - 1] * lanes
                set_outer(partial, row, tensor, row, share, moves, first, moving, partial, lower, size)
        lower = offset[top - 1] * lanes
        size = power[top - 1]
        if top < depth:
            row = (offset[top] + begin * size) * lanes
            set_outer(tensor, row, tensor, row, 1.0, moves, first, moving, partial, lower, size)
        else:
            for k in range(begin, end):
                row = (offset[top] + power[top - 2] * (k * (k + one) // index(2))) * lanes
                size = (k + one) * power[top - 2]
                add_lanes(tensor, row, moves, at - k * lanes, partial, lower, size)
    row = begin * lanes
    set_outer(tensor, row, tensor, row, 1.0, moves, first, moving, ones, index(0), one)


@kernel
def add_lane_products(left, right, layout, highest, out):
    """Add the products of lower levels of `left` and `right` to levels 2 to `highest` of `out`.

    As `logcde.kernels.depth_n.add_products`.
    """
    width, depth, power, offset = layout
    one = index(1)
    d = index(width)
    lanes = index(LANES)
    for n in range(2, min(highest, depth - 1) + 1):
        for p in range(1, n):
            row = offset[n]
            for suffix in range(offset[n - p], offset[n - p] + power[n - p]):
                add_lanes(out, row * lanes, right, suffix * lanes, left, offset[p] * lanes, power[p])
                row += power[p]
    if highest < depth or depth == 1:
        return
    row = offset[depth]
    for k in range(d):
        size = (k + one) * power[depth - 2]
        for p in range(1, depth - 1):
            first = offset[depth - p] + k * power[depth - p - 1]
            target = row
            # Letters of the suffix before k, the last of them not above k.
            for suffix in range(first, first + (k + one) * power[depth - p - 2]):
                add_lanes(out, target * lanes, right, suffix * lanes, left, offset[p] * lanes, power[p])
                target += power[p]
        add_lanes(out, row * lanes, right, k * lanes, left, offset[depth - 1] * lanes, size)
        row += size


@kernel
def take_logarithm(layout, tensor, old, new):
    """Write the logarithm of the lanes of `tensor` to `old`, in Horner's form; `new` is scratch space."""
    depth, offset = layout.depth, layout.offset
    old[:] = tensor
    for j in range(depth - 1 if depth > 1 else 0, -1, -1):
        constant = (-1.0 if j % 2 else 1.0) / (j + 1)
        highest = depth - j
        for i in range(offset[highest + 1] * index(LANES)):
            new[i] = constant * tensor[i]
        add_lane_products(old, tensor, layout, highest, new)
        old[:] = new


@kernel
def compose_dense(first, last, order, intervals, events, alphabet, log_map, out):
    """Write the log-signatures of intervals `order[first]` to `order[last]`, where events observe all channels.

    See `logcde.kernels.lanes`. At depths two and three, their own kernels are faster.
    """
    times, values = events.times, events.value
    channels, counts, timed, depth = alphabet.channels, alphabet.counted, alphabet.timed, alphabet.depth
    moving = 2 * channels if counts else channels
    width = moving + (1 if timed else 0)
    one = index(1)
    lanes = index(LANES)
    layout = layout_of(width, depth, 1)
    size = np.int64(layout.offset[depth + 1])
    tensor = scratch(size * LANES)
    partial = scratch(size * LANES)
    moves = scratch(STEPS * moving * LANES if counts else 0)
    gap = scratch(LANES)
    ones = scratch(LANES)
    ones[:] = 1.0
    places = block_places()
    steps = scratch(BLOCK * channels * LANES)
    elapsed = scratch(BLOCK * LANES)
    before = scratch(LANES)
    old = scratch(size * LANES)
    new = scratch(size * LANES)
    coordinates = scratch(out.shape[1] * LANES)
    for at in range(first, last, LANES):
        group = LaneGroup(order, at, min(LANES, last - at))
        longest = longest_of(group, intervals)
        if timed:
            longest += 1  # the gap after the last event
        tensor[:] = 0.0
        before[:] = 0.0
        for k in range(0, longest, BLOCK):
            n = min(BLOCK, longest - k)
            load_steps(group, k, n, intervals, events, channels, places, steps)
            if k + BLOCK >= longest:
                prefetch_group(order, at + LANES, last, intervals, values, channels)
            if timed:
                load_elapsed(group, k, n, intervals, times, elapsed)
            for s in range(index(n)):
                if timed:
                    for lane in range(lanes):
                        gap[lane] = elapsed[s * lanes + lane] - before[lane]
                        before[lane] = elapsed[s * lanes + lane]
                    dense_step(gap, index(0), 0, 1, ones, layout, tensor, partial)
                source = steps
                step = s
                if counts:
                    step = s % index(STEPS)
                    if step == index(0):
                        count_steps(group, k + s, intervals, channels, steps, s * index(channels) * lanes, moves)
                    source = moves
                # The first letter that moves is the last one in this numbering.
                at_zero = (step * index(moving) + index(width) - one) * lanes
                dense_step(source, at_zero, width - moving, width, ones, layout, tensor, partial)
        take_logarithm(layout, tensor, old, new)
        store_coordinates(group, old, log_map, coordinates, out)
