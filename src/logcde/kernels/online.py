"""One event at a time. Everything about a stream is one array of numbers, so that a call passes little.

The array begins with a head: where the interval began, the last event, up to when gaps are composed, and the options.
Then come the last value of each channel, room for one event, and the state of the open interval, as in
`logcde.kernels.area` at depth two and as in `logcde.kernels.tensor` otherwise. Factors go through the same functions as
offline, so the numbers are the same.
"""

import numpy as np

from logcde.kernels import area, tensor
from logcde.kernels._jit import kernel, quick
from logcde.kernels._simd import QUAD

START, LAST, NOW, CHANNELS, COUNTS, TIMED, WIDTH, DEPTH, HEAD = range(9)
"""Places in the head. `WIDTH` counts all letters; `TIMED` says that gaps of time are composed between the events."""

BACKWARDS, MISFIT, INFINITE = -1, -2, -3
"""What `observe` answers instead of a number of observations; `INFINITE - k`: the value of channel k is infinite.

Only an event with at least one observation changes the state.
"""


@kernel
def body(channels):
    """Where the state of the open interval begins: after head, last values, and room for the entries of one event."""
    return HEAD + 3 * channels + 3


@kernel
def parts(state):
    """Position, rows and clock of the open interval at depth two, and the areas given with its events."""
    width = int(state[WIDTH]) - int(state[TIMED])
    row = (width + QUAD - 1) // QUAD * QUAD
    a = body(int(state[CHANNELS]))
    b = a + row + QUAD
    c = b + width * row + QUAD
    e = c + width
    return state[a:b], state[b:c], state[c:e], state[e:]


@kernel
def entries(state):
    """Room for one event's letters, amounts and their offsets, beside the head, where its stamp is `LAST`.

    That is event number `LAST` of arrays of events, so an event needs no arrays of its own.
    """
    d = int(state[CHANNELS])
    return state[HEAD + d : HEAD + 2 * d], state[HEAD + 2 * d : HEAD + 3 * d], state[HEAD + 3 * d : HEAD + 3 * d + 3]


@kernel
def take(state, t, values, letters, amounts, offsets):
    """Check an event, write its entries and take note of it; the number of observations, or what is wrong."""
    d = int(state[CHANNELS])
    if not (t >= state[START] and t > state[LAST] and t < np.inf):
        return BACKWARDS
    if values.size != d:
        return MISFIT
    for k in range(d):
        if np.isinf(values[k]):
            return INFINITE - k
    count = 0
    for k in range(d):
        x = values[k]
        if x == x:
            letters[count] = k
            amounts[count] = x - state[HEAD + k]
            count += 1
    if count > 0:
        offsets[LAST + 1] = count
        state[LAST] = t
        for n in range(count):
            state[HEAD + int(letters[n])] = values[int(letters[n])]
    return count


@quick
def observe_area(state, t, values):
    """Compose one event at depth two. NaN in `values` means not observed."""
    letters, amounts, offsets = entries(state)
    count = take(state, t, values, letters, amounts, offsets)
    if count > 0:
        position, rows, clock, _ = parts(state)
        area.advance(
            LAST, LAST + 1, state[START], state, offsets, letters, amounts, int(state[CHANNELS]), state[COUNTS] > 0,
            position, rows, clock,
        )  # fmt: skip
    return count


@kernel
def push_area(state, letters, amounts):
    """Compose one factor of letters other than time, at depth two."""
    position, rows, clock, _ = parts(state)
    offsets = np.zeros(2)
    offsets[1] = letters.size
    area.advance(0, 1, 0.0, offsets, offsets, letters, amounts, 0, False, position, rows, clock)


@quick
def read_area(state, t, out):
    """Write the log-signature of the open interval up to `t`, or to its last event if later, at depth two."""
    position, rows, clock, areas = parts(state)
    timed = state[TIMED] > 0
    t = max(t, state[LAST], state[START])
    area.emit(t - state[START], timed, int(state[WIDTH]) - timed, position, rows, clock, areas, out)


@quick
def add_areas(state, terms, term_area):
    """Add the areas that came with an event."""
    areas = parts(state)[3]
    for c in range(term_area.size):
        areas[term_area[c]] += terms[c]


@quick
def step_area(state, t, values, out):
    """`observe_area` and `read_area` in one call: from Python, most of a call's time goes into the call itself."""
    letters, amounts, offsets = entries(state)
    position, rows, clock, areas = parts(state)
    timed = state[TIMED] > 0
    count = take(state, t, values, letters, amounts, offsets)
    if count > 0:
        area.advance(
            LAST, LAST + 1, state[START], state, offsets, letters, amounts, int(state[CHANNELS]), state[COUNTS] > 0,
            position, rows, clock,
        )  # fmt: skip
    if count >= 0:
        area.emit(t - state[START], timed, int(state[WIDTH]) - timed, position, rows, clock, areas, out)
    return count


@kernel
def first_bad(state, times, values):
    """The first of many events that `observe` would refuse, or -1."""
    last = state[LAST]
    for n in range(times.size):
        if not (times[n] > last and times[n] >= state[START] and times[n] < np.inf):
            return n
        last = times[n]
        for k in range(values.shape[1]):
            if np.isinf(values[n, k]):
                return n
    return -1


@kernel
def follow_area(state, times, values, terms, term_area, out):
    """Compose events, which have been checked, one after another and write the log-signature after each."""
    letters, amounts, offsets = entries(state)
    position, rows, clock, areas = parts(state)
    timed = state[TIMED] > 0
    width = int(state[WIDTH]) - timed
    for n in range(times.size):
        if take(state, times[n], values[n], letters, amounts, offsets) > 0:
            area.advance(
                LAST, LAST + 1, state[START], state, offsets, letters, amounts, int(state[CHANNELS]),
                state[COUNTS] > 0, position, rows, clock,
            )  # fmt: skip
            for c in range(term_area.size):
                areas[term_area[c]] += terms[n, c]
        area.emit(times[n] - state[START], timed, width, position, rows, clock, areas, out[n])


@kernel
def push_tensor(state, t, letters, amounts, offsets, at, terms, term_offsets, term_position, term_coefficient):
    """Compose the gap to `t`, then the factor number `at`, at depths other than two."""
    elements = state[body(int(state[CHANNELS])) :]
    width, depth = int(state[WIDTH]), int(state[DEPTH])
    power, offset = tensor.layout(width, depth, QUAD)
    partial, letter, amount, lie, work = tensor.workspace(width, elements.size, term_offsets.size > 1)
    tensor.advance(
        at, at + 1, state[NOW], t, state, offsets, letters, amounts, int(state[CHANNELS]), state[COUNTS] > 0,
        state[TIMED] > 0, width, depth, power, offset, terms, term_offsets, term_position, term_coefficient, elements,
        partial, letter, amount, lie, work,
    )  # fmt: skip
    state[NOW] = t


@quick
def observe_tensor(state, t, values, terms, term_offsets, term_position, term_coefficient):
    """Compose one event at depths other than two. NaN in `values` means not observed; `terms` is its only row."""
    letters, amounts, offsets = entries(state)
    count = take(state, t, values, letters, amounts, offsets)
    if count > 0:
        rows = np.zeros((LAST + 1, terms.size))
        rows[LAST] = terms
        push_tensor(
            state, t, letters, amounts, offsets, LAST, rows, term_offsets, term_position, term_coefficient
        )  # fmt: skip
    return count


@quick
def read_tensor(
    state, t, lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out
):  # fmt: skip
    """Write the log-signature of the open interval up to `t`, or to its last event, at depths other than two."""
    width, depth = int(state[WIDTH]), int(state[DEPTH])
    power, offset = tensor.layout(width, depth, QUAD)
    elements = state[body(int(state[CHANNELS])) :].copy()
    partial, letter, amount, lie, work = tensor.workspace(width, elements.size, False)
    tensor.advance(
        0, 0, state[NOW], max(t, state[NOW]), state, state, state, state, 0, False, state[TIMED] > 0, width, depth,
        power, offset, np.zeros((0, 0)), np.zeros(1, np.int64), np.zeros(0, np.uint64), np.zeros(0), elements,
        partial, letter, amount, lie, work,
    )  # fmt: skip
    tensor.logarithm(
        elements, width, power, offset, depth, lead_position, lead_sign, rest_coordinate, rest_position,
        rest_coefficient, partial, np.empty(elements.size), out,
    )  # fmt: skip


@kernel
def follow_tensor(
    state, times, values, terms, term_offsets, term_position, term_coefficient,
    lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out,
):  # fmt: skip
    """As `follow_area`, at depths other than two."""
    for n in range(times.size):
        observe_tensor(state, times[n], values[n], terms[n], term_offsets, term_position, term_coefficient)
        read_tensor(
            state, times[n], lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out[n]
        )  # fmt: skip
