"""Classification data sets: labelled streams, removal of duplicates, and partitions into windows."""

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from logcde.datasets.archive import Cases
from logcde.errors import DatasetError, Where
from logcde.streams import Partition, Streams

LONGEST = 1_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Classification:
    """Streams with one class each. `data[index]` selects series.

    Step i of a series has the stamp i / `length`, and a series of n steps has the horizon n / `length`.

    Args:
        name: Name of the data set.
        streams: The series.
        labels: Class of each series, as an index into `classes`.
        classes: Names of the classes, sorted.
        tested: Whether a series is in the test part of the archive.
        length: Number of steps of the longest series.
    """

    name: str
    streams: Streams
    labels: Int64[np.ndarray, "series"]
    classes: tuple[str, ...]
    tested: Bool[np.ndarray, "series"]
    length: int

    def __len__(self) -> int:
        return len(self.streams)

    def __getitem__(self, index: slice | Sequence | Shaped[np.ndarray, "_"]) -> "Classification":
        index = np.arange(len(self))[index]
        return dataclasses.replace(
            self, streams=self.streams[index], labels=self.labels[index], tested=self.tested[index]
        )

    @property
    def lengths(self) -> Int64[np.ndarray, "series"]:
        """The number of steps of each series, observed or not."""
        return np.rint(self.streams.horizon * self.length).astype(np.int64)

    def counts(self, tested: bool) -> tuple[int, ...]:
        """Count the series of each class in the test part of the archive, or in its training part."""
        counts = np.bincount(self.labels[self.tested == tested], minlength=len(self.classes))
        return tuple(counts.tolist())

    def __repr__(self) -> str:
        test, channels = int(self.tested.sum()), len(self.streams.schema.channels)
        shortest = self.lengths.min(initial=self.length)
        steps = f"{self.length}" if shortest == self.length else f"{shortest} to {self.length}"
        return (
            f"Classification({self.name}: {len(self) - test} train + {test} test series, "
            f"{channels} channel{'s' * (channels > 1)}, {steps} steps, {len(self.classes)} classes)"
        )


def pooled(name: str, train: Cases, test: Cases) -> Classification:
    """Make one data set of the training part and the test part. A series ends with its last observation.

    >>> ramp = np.arange(4, dtype=np.float32)[None]
    >>> pooled("ramps", Cases([ramp], ["up"]), Cases([-ramp], ["down"]))
    Classification(ramps: 1 train + 1 test series, 1 channel, 4 steps, 2 classes)
    """
    values, labels = [*train.values, *test.values], np.array([*train.labels, *test.labels])
    width = len(values[0])
    lengths = np.empty(len(values), np.int64)
    for number, one in enumerate(values):
        part = f"series {number} of the training part"
        if number >= len(train.values):
            part = f"series {number - len(train.values)} of the test part"
        if len(one) != width:
            raise DatasetError(
                f"{name}: {part}, counted from 0, has {len(one)} channels, but others have {width}.",
                "Give all series the same channels.",
                where=Where(series=number),
            )
        observed = np.flatnonzero(~np.isnan(one).all(axis=0))
        if not observed.size:
            raise DatasetError(
                f"{name}: {part}, counted from 0, has no observation.",
                "Remove it from the file.",
                where=Where(series=number),
            )
        lengths[number] = observed[-1] + 1
    length = int(lengths.max())
    streams = Streams.from_arrays(
        [np.arange(steps) / length for steps in lengths],
        [one[:, :steps].T for one, steps in zip(values, lengths, strict=True)],
        [f"channel {channel + 1}" for channel in range(width)],
        lengths / length,
    )
    classes, codes = np.unique(labels, return_inverse=True)
    tested = np.arange(len(values)) >= len(train.values)
    return Classification(name, streams, codes.astype(np.int64), tuple(classes.tolist()), tested, length)


def deduplicated(data: Classification) -> Classification:
    """Remove exact copies of whole series, whatever their labels; the first of them stays.

    >>> ramp = np.arange(4, dtype=np.float32)[None]
    >>> deduplicated(pooled("ramps", Cases([ramp, -ramp], ["up", "down"]), Cases([ramp], ["up"])))
    Classification(ramps: 2 train + 0 test series, 1 channel, 4 steps, 2 classes)
    """
    first: dict[bytes, int] = {}
    for number, one in enumerate(data.streams):
        content = hashlib.blake2b()
        for array in (one.times, one.obs_offsets, one.channel, one.value, one.horizon):
            content.update(array.data)
        first.setdefault(content.digest(), number)
    return data[list(first.values())]


def windows(length: int, step: int) -> Partition:
    """Return the partition into windows of `step` steps, for series with stamps i / `length`.

    A series of n steps has ceil(n / step) windows, whatever is observed in them. The cuts 0, step / length,
    2 step / length, ... equal the stamps to the bit, so that an event at a cut belongs to the window that begins there.

    >>> windows(896, 16)
    Partition.every(0.017857142857142856)
    """
    if not 1 <= step <= length <= LONGEST:
        raise DatasetError(
            f"step={step} and length={length} define no windows.",
            f"Choose 1 <= step <= length <= {LONGEST:,}.",
        )
    return Partition.every(step / length)
