"""What is published about data sets, to tell at once whether a file is the one that others used."""

import dataclasses
from pathlib import Path
from types import MappingProxyType

from logcde import datasets
from logcde.datasets import Classification
from logcde.errors import DatasetError

ARCHIVE = "https://www.timeseriesclassification.com"


@dataclasses.dataclass(frozen=True)
class Published:
    """Sizes of a data set, and what is known about it.

    `train` and `test` are the series of each class, in the order of the sorted class names; where only their sum is
    known, that is a tuple of one. `lagged` says that the archive's channels are lagged copies of one sequence, and
    `recorded` names the data set that has the channels as they were recorded.
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
"""The six sets of the paper, the recorded channels of one of them, and some small sets of the archive."""


def load(name: str, path: str | Path | None = None) -> Classification:
    """Read a data set of the archive, and refuse it if it differs from what is published about it."""
    try:
        data = datasets.load(name, path)
    except DatasetError as error:
        if name not in FACTS:
            raise
        raise DatasetError(f"{error} It comes from {FACTS[name].origin}.") from error
    found = differences(data)
    if found:
        raise DatasetError(f"The files of {name} are not the published data set: {'; '.join(found)}. Get them anew.")
    return data


def differences(data: Classification) -> tuple[str, ...]:
    """How a data set differs from what is published about the one of its name: nothing, if all is well or unknown."""
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
