"""One event at a time. Everything about a stream is one array of numbers, so that a call passes little.

The array starts with a head: the start of the open interval, the last event, the time up to which gaps are composed,
and the `Alphabet`. Then come the last value of each channel, space for one event, and the state of the open interval,
as in `logcde.kernels.depth2` at depth two and as in `logcde.kernels.depth_n` otherwise. Factors are composed as they
are offline, so the numbers agree to rounding.

Entry points take plain arrays: composing one event takes about a microsecond, and passing a record from Python would
take as long again. Inside, arrays are grouped into the records that other kernels take.
"""

import numpy as np

from logcde.kernels import depth2, depth_n
from logcde.kernels._jit import index, kernel, quick, scratch
from logcde.kernels._simd import QUAD, add_row, set_row
from logcde.kernels.records import Alphabet, Factors, LogMap, TermMap

START, LAST, NOW, CHANNELS, COUNTED, TIMED, WIDTH, DEPTH, HEAD = range(9)
"""Places in the head; `CHANNELS` to `DEPTH` are the fields of an `Alphabet`."""

BACKWARDS, MISFIT, INFINITE = -1, -2, -3
"""What `observe` returns instead of a number of observations; `INFINITE - k`: the value of channel k is infinite.

Only an event with at least one observation changes the state.
"""


@kernel
def body(channels):
    """Where the state of the open interval begins: after head, last values, and space for the entries of one event."""
    return HEAD + 3 * channels + 3


@kernel
def parts(state):
    """The state of the open interval at depth two, and the areas given with its events."""
    width = int(state[WIDTH]) - int(state[TIMED])
    row = (width + QUAD - 1) // QUAD * QUAD
    a = body(int(state[CHANNELS]))
    b = a + row + QUAD
    c = b + width * row + QUAD
    e = c + width
    return depth2.AreaState(state[a:b], state[b:c], state[c:e]), state[e:]


@kernel
def entries(state):
    """Space for the letters and amounts of one event, and for their offsets.

    The event's time is at `LAST` in the head. So it is factor number `LAST` of arrays that are all views of the state,
    and needs no arrays of its own.
    """
    d = int(state[CHANNELS])
    return state[HEAD + d : HEAD + 2 * d], state[HEAD + 2 * d : HEAD + 3 * d], state[HEAD + 3 * d : HEAD + 3 * d + 3]


@kernel
def accept(state, t, values):
    """The number of observations of an event, or the code of what is wrong with it."""
    d = int(state[CHANNELS])
    if not (t >= state[START] and t > state[LAST] and t < np.inf):
        return BACKWARDS
    if values.size != d:
        return MISFIT
    count = 0
    for k in range(index(d)):
        x = values[k]
        if x == x:
            if np.isinf(x):
                return INFINITE - np.int64(k)
            count += 1
    return count


@kernel
def take(state, t, values, letters, amounts, offsets):
    """Check an event and write its entries and its time; returns the number of observations, or what is wrong."""
    answer = accept(state, t, values)
    if answer <= 0:
        return answer
    count = 0
    for k in range(values.size):
        x = values[k]
        if x == x:
            letters[count] = k
            amounts[count] = x - state[HEAD + k]
            state[HEAD + k] = x
            count += 1
    offsets[LAST + 1] = count
    state[LAST] = t
    return count


@kernel
def compose_area(state, t, values):
    """Compose one event at depth two; returns the number of observations, or what is wrong.

    As `logcde.kernels.depth2.advance`, but on one array: passing its parts would take longer than composing them.
    """
    d = index(int(state[CHANNELS]))
    counts = state[COUNTED] > 0
    answer = accept(state, t, values)
    if answer <= 0:
        return answer
    width = index(int(state[WIDTH]) - int(state[TIMED]))
    row = (width + index(QUAD - 1)) // index(QUAD) * index(QUAD)
    amounts = index(HEAD) + d
    position = index(body(np.int64(d)))
    rows = position + row + index(QUAD)
    clock = rows + width * row + index(QUAD)
    moment = t - state[START]
    state[LAST] = t
    # Letters that move together see each other's midpoint.
    for k in range(d):
        if values[k] == values[k]:
            v = values[k] - state[index(HEAD) + k]
            state[index(HEAD) + k] = values[k]
            state[amounts + k] = v
            state[position + k] += 0.5 * v
            if counts:
                state[position + d + k] += 0.5
    for k in range(d):
        if values[k] == values[k]:
            v = state[amounts + k]
            add_row(state, rows + k * row, v, state, position, row)
            state[clock + k] += v * moment
            if counts:
                add_row(state, rows + (k + d) * row + d, 1.0, state, position + d, row - d)
                state[clock + d + k] += moment
    for k in range(d):
        if values[k] == values[k]:
            state[position + k] += 0.5 * state[amounts + k]
            if counts:
                state[position + d + k] += 0.5
    return answer


@kernel
def write_area(state, t, out):
    """Write the log-signature of the open interval up to `t`, as `logcde.kernels.depth2.emit` does."""
    one = index(1)
    timed = state[TIMED] > 0
    width = index(int(state[WIDTH]) - int(state[TIMED]))
    row = (width + index(QUAD - 1)) // index(QUAD) * index(QUAD)
    position = index(body(np.int64(state[CHANNELS])))
    rows = position + row + index(QUAD)
    clock = rows + width * row + index(QUAD)
    length = t - state[START]
    size = index(out.size)
    for i in range(width):
        out[i] = state[position + i]
    p = width
    if timed:
        out[p] = length
        p += one
    for i in range(width):
        half = 0.5 * state[position + i]
        others = width - i - one
        if p + others + index(QUAD) <= size:
            set_row(out, p, half, state, position + i + one, rows + i * row + i + one, others)
        else:
            for j in range(others):
                out[p + j] = half * state[position + i + one + j] - state[rows + i * row + i + one + j]
        p += others
        if timed:
            out[p] = half * length - state[clock + i]
            p += one
    given = index(state.size) - clock - width  # areas that came with the events
    p -= given
    for i in range(given):
        out[p + i] += state[clock + width + i]


@quick
def observe_area(state, t, values):
    """Compose one event at depth two. NaN in `values`: not observed."""
    return compose_area(state, t, values)


@kernel
def push_area(state, letters, amounts):
    """Compose one factor of letters other than time, at depth two."""
    offsets = np.zeros(2)
    offsets[1] = letters.size
    factors = Factors(offsets, offsets, letters, amounts, np.zeros((0, 0)))
    depth2.advance(0, 1, 0.0, factors, 0, False, parts(state)[0])


@quick
def read_area(state, t, out):
    """Write the log-signature of the open interval up to `t`, or up to its last event if that is later."""
    write_area(state, max(t, state[LAST], state[START]), out)


@kernel
def read_areas(states, times, out):
    """`read_area` for many series, one row each."""
    for n in range(states.shape[0]):
        write_area(states[n], max(times[n], states[n, LAST], states[n, START]), out[n])


@quick
def add_areas(state, terms, term_area):
    """Add the areas that came with an event."""
    areas = parts(state)[1]
    for c in range(term_area.size):
        areas[term_area[c]] += terms[c]


@quick
def step_area(state, t, values, out):
    """`observe_area` and `read_area` in one call: from Python, the call itself takes most of the time."""
    answer = compose_area(state, t, values)
    if answer >= 0:
        write_area(state, t, out)
    return answer


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


@quick
def fill_further(state, seen, counted, out):
    """Fill in what an event adds to letters other than values: counts, if `counted`, and squared changes.

    A row of `out` starts with the values of an event, NaN = not observed, and ends with squared changes, NaN where a
    channel has no change or no value before, as `seen` says. Counts come after the values.
    """
    d = seen.size
    first = out.shape[1] - d
    last = state[HEAD : HEAD + d].copy()
    known = seen > 0
    for n in range(out.shape[0]):
        for k in range(d):
            x = out[n, k]
            observed = x == x and not np.isinf(x)
            change = x - last[k]
            out[n, first + k] = change * change if observed and known[k] else np.nan
            if counted:
                out[n, d + k] = 1.0 if observed else np.nan
            if observed:
                last[k] = x
                known[k] = True


@kernel
def follow_area(state, times, values, channels, terms, term_area, out):
    """Compose events that have been checked one after another, and write the log-signature after each.

    The values of channels from `channels` on are changes themselves: the last one is forgotten after each event.
    """
    areas = parts(state)[1]
    for n in range(times.size):
        if compose_area(state, times[n], values[n]) > 0:
            for c in range(term_area.size):
                areas[term_area[c]] += terms[n, c]
        state[HEAD + channels : HEAD + values.shape[1]] = 0.0
        write_area(state, times[n], out[n])


@kernel
def alphabet_of(state):
    """The alphabet in the head of a state."""
    return Alphabet(
        int(state[CHANNELS]), state[COUNTED] > 0, state[TIMED] > 0, int(state[WIDTH]), int(state[DEPTH])
    )  # fmt: skip


@kernel
def push_tensor(state, t, letters, amounts, offsets, at, terms, term_map):
    """Compose the gap to `t`, then factor number `at`, at depths other than two."""
    elements = state[body(int(state[CHANNELS])) :]
    alphabet = alphabet_of(state)
    layout = depth_n.layout_of(alphabet.width, alphabet.depth, QUAD)
    workspace = depth_n.workspace_of(alphabet.width, elements.size, term_map.offsets.size > 1)
    factors = Factors(state, offsets, letters, amounts, terms)
    depth_n.advance(at, at + 1, state[NOW], t, factors, alphabet, layout, term_map, elements, workspace)
    state[NOW] = t


@quick
def observe_tensor(state, t, values, terms, term_offsets, term_position, term_coefficient):
    """Compose one event at depths other than two. NaN in `values`: not observed. The last three are a `TermMap`."""
    letters, amounts, offsets = entries(state)
    count = take(state, t, values, letters, amounts, offsets)
    if count > 0:
        rows = np.zeros((LAST + 1, terms.size))
        rows[LAST] = terms
        term_map = TermMap(term_offsets, term_position, term_coefficient)
        push_tensor(state, t, letters, amounts, offsets, LAST, rows, term_map)
    return count


@quick
def read_tensor(
    state, t, lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out
):  # fmt: skip
    """Write the log-signature of the open interval up to `t`, or up to its last event, at depths other than two.

    The five arrays after `t` are a `LogMap`.
    """
    log_map = LogMap(lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient)
    alphabet = alphabet_of(state)
    layout = depth_n.layout_of(alphabet.width, alphabet.depth, QUAD)
    elements = state[body(alphabet.channels) :].copy()
    workspace = depth_n.workspace_of(alphabet.width, elements.size, False)
    # No factors, only the gap.
    factors = Factors(state, state, state, state, np.zeros((0, 0)))
    no_terms = TermMap(np.zeros(1, np.int64), np.zeros(0, np.uint64), np.zeros(0))
    until = max(t, state[NOW])
    depth_n.advance(0, 0, state[NOW], until, factors, alphabet, layout, no_terms, elements, workspace)
    depth_n.logarithm(elements, layout, log_map, workspace.partial, np.empty(elements.size), out)


@kernel
def read_tensors(
    states, times, lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out
):  # fmt: skip
    """`read_tensor` for many series, one row each."""
    for n in range(states.shape[0]):
        read_tensor(
            states[n], times[n], lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out[n]
        )  # fmt: skip


@kernel
def follow_tensor(state, times, values, channels, terms, term_map, log_map, out):
    """As `follow_area`, at depths other than two: `observe_tensor` and `read_tensor` with the same scratch space."""
    letters, amounts, offsets = entries(state)
    alphabet = alphabet_of(state)
    layout = depth_n.layout_of(alphabet.width, alphabet.depth, QUAD)
    elements = state[body(alphabet.channels) :]
    workspace = depth_n.workspace_of(alphabet.width, elements.size, term_map.offsets.size > 1)
    old, new = scratch(elements.size), scratch(elements.size)
    rows = np.zeros((LAST + 1, terms.shape[1]))
    factors = Factors(state, offsets, letters, amounts, rows)
    for n in range(times.size):
        t = times[n]
        if take(state, t, values[n], letters, amounts, offsets) > 0:
            for c in range(terms.shape[1]):
                rows[LAST, c] = terms[n, c]
            depth_n.advance(
                LAST, LAST + 1, state[NOW], t, factors, alphabet, layout, term_map, elements, workspace
            )  # fmt: skip
            state[NOW] = t
        state[HEAD + channels : HEAD + values.shape[1]] = 0.0
        if state[NOW] == t or not alphabet.timed:
            depth_n.logarithm(elements, layout, log_map, old, new, out[n])
        else:  # nothing was observed: the gap is read, but does not change the state
            read_tensor(
                state, t, log_map.lead_position, log_map.lead_sign,
                log_map.rest_coordinate, log_map.rest_position, log_map.rest_coefficient, out[n],
            )  # fmt: skip
