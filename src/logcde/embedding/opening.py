"""What a series begins with, for initial states that depend on it (`app:sinusoid` of the paper)."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float

from logcde.kernels import events
from logcde.streams import Streams


class Opening(eqx.Module):
    """The first value of each channel, 0 where there is none.

    `seen` says which channels are observed at all, `at_start` which of the first values are stamped 0 and so are known
    from the start; the others are known only later.
    """

    first: Float[Array | np.ndarray, "*series channel"]
    seen: Bool[Array | np.ndarray, "*series channel"]
    at_start: Bool[Array | np.ndarray, "*series channel"]


def opening_of(streams: Streams) -> Opening:
    """The openings of many series.

    >>> opening = opening_of(Streams.from_arrays([[0.0, 1.0]], [[[5.0, np.nan], [6.0, 7.0]]]))
    >>> opening.first, opening.at_start
    (array([[5., 7.]]), array([[ True, False]]))
    """
    shape = (len(streams), len(streams.schema.channels))
    opening = Opening(np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool))
    columns = (streams.offsets, streams.times, streams.obs_offsets, streams.channel, streams.value)
    events.openings(*columns, opening.first, opening.seen, opening.at_start)
    return opening
