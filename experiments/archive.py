"""Facts about the data sets of the UEA archive, and a detector of a defect in some of them.

The facts are published sizes, which tell whether a file is the data set that others used. The defect: in some files
X[c, t] = s[C c + t], with C channels and one sequence s, so that each channel is the previous one C steps later,
X[c + 1, t] = X[c, t + C], and holds little of what was recorded. The readers themselves are in `logcde.datasets`.
"""

import dataclasses
from pathlib import Path
from types import MappingProxyType

import numpy as np

from logcde import datasets
from logcde.datasets import Classification
from logcde.errors import DatasetError

ARCHIVE = "https://www.timeseriesclassification.com"


@dataclasses.dataclass(frozen=True)
class Published:
    """Published sizes of a data set, and its known defects.

    Attributes:
        train: Training series of each class, in the order of the sorted class names; one number if only their sum is
            known.
        test: Test series, likewise.
        channels: Number of channels.
        length: Steps of the longest series.
        classes: Number of classes.
        shortest: Steps of the shortest series; None if all have the same length.
        origin: Where the data set comes from.
        lagged: Whether the archive's channels are lagged copies of one sequence.
        recorded: Name of the data set that has the channels as they were recorded.
    """

    train: tuple[int, ...]
    test: tuple[int, ...]
    channels: int
    length: int
    classes: int
    shortest: int | None = None
    origin: str = f"the UEA archive, {ARCHIVE}"
    lagged: bool = False
    recorded: str | None = None


_BCI2 = "BCI Competition II, data set Ia, https://www.bbci.de/competition/ii (then written as an .npz file)"
_HEARTBEAT = (
    f"the UEA archive, {ARCHIVE}, which made it of PhysioNet/CinC 2016, https://physionet.org/content/challenge-2016"
)

FACTS = MappingProxyType(
    {
        "EigenWorms": Published((128,), (131,), 6, 17984, 5),
        "EthanolConcentration": Published((261,), (263,), 3, 1751, 4),
        "Heartbeat": Published((147, 57), (148, 57), 61, 405, 2, origin=_HEARTBEAT),
        "MotorImagery": Published((139, 139), (50, 50), 64, 3000, 2, lagged=True),
        "SelfRegulationSCP1": Published((135, 133), (147, 146), 6, 896, 2, lagged=True, recorded="BCI2_Ia_raw"),
        "SelfRegulationSCP2": Published((100, 100), (90, 90), 7, 1152, 2, lagged=True),
        "BCI2_Ia_raw": Published((135, 133), (147, 146), 6, 896, 2, origin=_BCI2),
        "BasicMotions": Published((10,) * 4, (10,) * 4, 6, 100, 4),
        "Cricket": Published((9,) * 12, (6,) * 12, 6, 1197, 12),
        "Epilepsy": Published((34, 36, 30, 37), (34, 37, 30, 37), 3, 206, 4),
        "JapaneseVowels": Published((30,) * 9, (31, 35, 88, 44, 29, 24, 40, 50, 29), 12, 29, 9, shortest=7),
        "NATOPS": Published((30,) * 6, (30,) * 6, 24, 51, 6),
        "RacketSports": Published((43, 39, 34, 35), (43, 40, 34, 35), 6, 30, 4),
        "UWaveGestureLibrary": Published((15,) * 8, (40,) * 8, 3, 315, 8),
    }
)
"""The six data sets of the paper, the recorded channels of one of them, and some small sets of the archive."""


def load(name: str, path: str | Path | None = None) -> Classification:
    """Read a data set of the archive and check its sizes.

    Raises:
        DatasetError: If it cannot be found or read, or if it differs from the published one.
    """
    try:
        data = datasets.load(name, path)
    except DatasetError as error:
        if name not in FACTS:
            raise
        raise DatasetError(f"{error.found} It comes from {FACTS[name].origin}.", error.remedy) from error
    found = differences(data)
    if found:
        message = f"The files of {name} are not the published data set: {'; '.join(found)}."
        raise DatasetError(message, f"Download them again from {FACTS[name].origin}.")
    return data


def differences(data: Classification) -> tuple[str, ...]:
    """How a data set differs from the published one of its name; empty if it does not, or if none is known."""
    if data.name not in FACTS:
        return ()
    facts, parts = FACTS[data.name], []
    lengths, channels = data.lengths, len(data.streams.schema.channels)
    for what, found, published in (
        ("channels", channels, facts.channels),
        ("steps in the longest series", data.length, facts.length),
        ("steps in the shortest series", int(lengths.min(initial=data.length)), facts.shortest or facts.length),
        ("classes", len(data.classes), facts.classes),
    ):
        if found != published:
            parts.append(f"{found} {what}, published are {published}")
    for what, tested, published in (("training", False, facts.train), ("test", True, facts.test)):
        found = data.counts(tested)
        if sum(found) != sum(published):
            parts.append(f"{sum(found)} {what} series, published are {sum(published)}")
        elif len(published) > 1 and found != published:
            parts.append(f"{_listed(found)} {what} series in the classes, published are {_listed(published)}")
    return tuple(parts)


def _listed(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))


@dataclasses.dataclass(frozen=True)
class Lags:
    """Counts of equal pairs of values X[c + 1, t] and X[c, t + C].

    Attributes:
        series: Number of series.
        lagged: Number of series in which all pairs are equal; constant series, which say nothing, are not counted.
        pairs: Number of pairs.
        equal: Number of equal pairs.
    """

    series: int
    lagged: int
    pairs: int
    equal: int

    @property
    def share(self) -> float:
        """Share of pairs that are equal; 0 if there are no pairs."""
        return self.equal / max(self.pairs, 1)


def lagged(data: Classification) -> Lags:
    """Count how often a channel equals the previous one, as many steps later as there are channels.

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
