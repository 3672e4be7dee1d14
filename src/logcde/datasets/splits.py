"""Random splits into training, validation and test series, which can be stored as JSON."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from jaxtyping import Int64

from logcde._documents import parse
from logcde._files import read_regular, write_whole
from logcde.errors import DatasetError


class _Indices(msgspec.Struct):
    train: list[int]
    validation: list[int]
    test: list[int]


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Indices of the training, validation and test series; together they are 0 to N - 1, each once."""

    train: Int64[np.ndarray, "_"]
    validation: Int64[np.ndarray, "_"]
    test: Int64[np.ndarray, "_"]

    def __post_init__(self) -> None:
        everything = np.sort(np.concatenate([self.train, self.validation, self.test]))
        if not np.array_equal(everything, np.arange(len(everything))):
            raise DatasetError(
                f"The {len(everything)} indices of this split are not 0 to {len(everything) - 1}, each once.",
                "Draw it again with logcde.datasets.split.",
            )

    def write(self, path: str | Path) -> Path:
        """Write the indices as JSON."""
        indices = _Indices(self.train.tolist(), self.validation.tolist(), self.test.tolist())
        return write_whole(Path(path), msgspec.json.encode(indices).decode() + "\n")

    @classmethod
    def read(cls, path: str | Path) -> "Split":
        """Read a split that `write` wrote, and check its indices."""
        try:
            indices = msgspec.convert(parse(read_regular(Path(path))), _Indices)
            return cls(*(np.array(part, np.int64) for part in (indices.train, indices.validation, indices.test)))
        except OSError as error:
            raise DatasetError(f"The split {path} cannot be read: {error.strerror}.", "Check its path.") from error
        except (ValueError, OverflowError) as error:
            found = error.found if isinstance(error, DatasetError) else f"{error}."
            raise DatasetError(f"{path} is not a split: {found}", "Draw and write it again.") from error

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.validation)} validation, {len(self.test)} test)"


def split(count: int, seed: int | Sequence[int], train: float = 0.7, validation: float = 0.15) -> Split:
    """Draw a random split. Classes are not stratified.

    Args:
        count: Number of series.
        seed: Seed of the random order.
        train: Fraction of the series for training.
        validation: Fraction of the series for validation; the rest is for testing.

    >>> split(561, seed=2345)
    Split(392 train, 84 validation, 85 test)
    """
    if min(train, validation) <= 0 or train + validation >= 1:
        raise DatasetError(
            f"The fractions {train} and {validation} leave one of the three parts empty.",
            "Give positive fractions with a sum below 1.",
        )
    if count < 4:
        raise DatasetError(f"{count} series cannot be split into three parts.", "Give at least 4.")
    order = np.random.default_rng(seed).permutation(count)
    return Split(*np.split(order, [int(train * count), int((train + validation) * count)]))
