"""A defect of the archive: channels that are lagged copies of one sequence.

In some files of the UEA archive X[c, t] = s[C c + t], with C channels and one sequence s, so that each channel is the
one before it, C steps later: X[c + 1, t] = X[c, t + C]. They hold little of what was recorded.
"""

import dataclasses

import numpy as np

from logcde.datasets.classification import Classification


@dataclasses.dataclass(frozen=True)
class Lags:
    """How many pairs of values X[c + 1, t] and X[c, t + C] are equal, and in how many series all of them are.

    A series that never changes is not counted as lagged: nothing can be told from it.
    """

    series: int
    lagged: int
    pairs: int
    equal: int

    @property
    def share(self) -> float:
        """The share of pairs that are equal; 0 where there are none."""
        return self.equal / max(self.pairs, 1)


def lagged(data: Classification) -> Lags:
    """Compare every channel of every series with the one before it, as many steps later as there are channels.

    >>> from logcde.datasets.archive import Cases
    >>> from logcde.datasets.classification import pooled
    >>> sequence = np.random.default_rng(0).normal(size=30).astype(np.float32)
    >>> copies = np.stack([sequence[3 * channel :][:20] for channel in range(3)])
    >>> lagged(pooled("copies", Cases([copies], ["a"]), Cases([copies[::-1]], ["b"])))
    Lags(series=2, lagged=1, pairs=68, equal=34)
    """
    channels = len(data.streams.schema.channels)
    pairs = equal = whole = 0
    for one in data.streams:
        values = np.full((data.length, channels), np.nan, one.value.dtype)
        step = np.rint(one.times * data.length).astype(np.int64)
        values[np.repeat(step, np.diff(one.obs_offsets)), one.channel] = one.value
        this, later = values[: max(data.length - channels, 0), 1:], values[channels:, :-1]
        both, same = int((~np.isnan(this) & ~np.isnan(later)).sum()), int((this == later).sum())
        whole += int(same == both > 0 and one.value.min() < one.value.max())
        pairs, equal = pairs + both, equal + same
    return Lags(len(data), whole, pairs, equal)
