"""What an experiment learns from: streams, where they are asked about, and the answers."""

import dataclasses

import numpy as np
from jaxtyping import Float64

from logcde.streams import Cuts, Partition, Streams


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Streams, a partition, and targets at the end of each query interval, NaN beyond a series' last one."""

    streams: Streams
    partition: Partition
    targets: Float64[np.ndarray, "series interval output"]

    def __len__(self) -> int:
        return len(self.streams)

    def __repr__(self) -> str:
        return f"Dataset({self.streams!r}, targets {self.targets.shape})"


def by_interval(cuts: Cuts, targets: Float64[np.ndarray, "point output"]) -> Float64[np.ndarray, "series interval _"]:
    """Targets at all query points, end to end as these are, as an array with one row for each interval's end.

    >>> cuts = Cuts(np.array([0, 2, 5]), np.array([0.0, 9.0, 0.0, 4.0, 9.0]))
    >>> by_interval(cuts, cuts.points[:, None])[..., 0]
    array([[ 9., nan],
           [ 4.,  9.]])
    """
    intervals = np.diff(cuts.offsets) - 1
    filled = np.arange(intervals.max(initial=0)) < intervals[:, None]
    ends = np.ones(len(cuts.points), bool)
    ends[cuts.offsets[:-1]] = False
    rows = np.full((*filled.shape, targets.shape[1]), np.nan)
    rows[filled] = targets[ends]
    return rows
