"""Which series to train, validate and test with, drawn once and kept in a file that every model and tool can read."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from jaxtyping import Int64

from logcde._files import write_whole
from logcde.errors import DatasetError


class _Indices(msgspec.Struct):
    train: list[int]
    validation: list[int]
    test: list[int]


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Positions of series: together every one of them, and each once."""

    train: Int64[np.ndarray, "_"]
    validation: Int64[np.ndarray, "_"]
    test: Int64[np.ndarray, "_"]

    def __post_init__(self) -> None:
        everything = np.sort(np.concatenate([self.train, self.validation, self.test]))
        if not np.array_equal(everything, np.arange(len(everything))):
            raise DatasetError(
                f"The {len(everything)} indices of this split are not 0 to {len(everything) - 1}, each of them once."
            )

    def write(self, path: str | Path) -> Path:
        """Write the indices as JSON."""
        indices = _Indices(self.train.tolist(), self.validation.tolist(), self.test.tolist())
        return write_whole(Path(path), msgspec.json.encode(indices).decode() + "\n")

    @classmethod
    def read(cls, path: str | Path) -> "Split":
        """Read what `write` wrote. Indices that are not 0 to N - 1, each of them once, are refused."""
        try:
            indices = msgspec.json.decode(Path(path).read_bytes(), type=_Indices)
            return cls(*(np.array(part, np.int64) for part in (indices.train, indices.validation, indices.test)))
        except OSError as error:
            raise DatasetError(f"The split {path} cannot be read: {error.strerror}.") from error
        except (msgspec.DecodeError, OverflowError, DatasetError) as error:
            raise DatasetError(f"{path} is not a split: {error} Draw it again and write it anew.") from error

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.validation)} validation, {len(self.test)} test)"


def split(count: int, seed: int | Sequence[int], train: float = 0.7, validation: float = 0.15) -> Split:
    """Of `count` series in random order these shares to train and to validate, the rest to test.

    Classes are not balanced.

    >>> split(561, seed=2345)
    Split(392 train, 84 validation, 85 test)
    """
    if min(train, validation) <= 0 or train + validation >= 1:
        raise DatasetError(f"Shares of {train} and {validation} leave nothing for one of the three parts.")
    if count < 4:
        raise DatasetError(f"{count} series cannot be split into three parts. There must be at least 4.")
    order = np.random.default_rng(seed).permutation(count)
    return Split(*np.split(order, [int(train * count), int((train + validation) * count)]))
