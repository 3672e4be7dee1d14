"""Occlusion: by how much a prediction changes if some observations had not been made."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from logcde.errors import ModelError
from logcde.streams import Streams
from logcde.streams.ragged import owners
from logcde.streams.transforms import keep_observations


def occlude(
    predict: Callable[[Streams], Float64[np.ndarray, "series"]], streams: Streams, parts: int
) -> Float64[np.ndarray, "series channel part"]:
    """The prediction minus that without the observations of one channel in one of equal parts of the series.

    Args:
        predict: From streams to one number for each series.
        streams: The series.
        parts: Number of parts of each series.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], horizon=4.0)
    >>> occlude(lambda some: np.array([some.value.sum()]), streams, parts=2)
    array([[[11.,  4.]]])
    """
    if parts < 1:
        raise ModelError(f"A series cannot be cut into {parts} parts.", "Give at least 1.")
    whole, channels = predict(streams), len(streams.schema.channels)
    horizon = np.maximum(streams.horizon, np.finfo(float).tiny)[owners(streams.offsets)]
    part = np.minimum((streams.times / horizon * parts).astype(np.int64), parts - 1)[owners(streams.obs_offsets)]
    found = np.zeros((len(streams), channels, parts))
    for channel in range(channels):
        for number in range(parts):
            hidden = (streams.channel == channel) & (part == number)
            if hidden.any():
                found[:, channel, number] = whole - predict(keep_observations(streams, ~hidden))
    return found
