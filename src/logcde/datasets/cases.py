"""Series of one file and their labels as they stand there, and what text files of the archive have in common.

These are what readers make and `classification` takes. Nothing here knows a format.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from logcde.errors import DatasetError


class Cases(NamedTuple):
    """Values (channel, step) of each series in single precision, NaN where nothing is observed, and its label."""

    values: list[np.ndarray]
    labels: list[str]


class Line(NamedTuple):
    """A line of a text file that says something, with its number in the file."""

    number: int
    text: str


class Parts(NamedTuple):
    """A line taken apart: the numbers of each channel, still text, and the label."""

    number: int
    channels: list[str]
    label: str


class Expected(NamedTuple):
    """What the head of a file says about its cases, None or empty where it says nothing."""

    channels: int | None
    length: int | None
    classes: Sequence[str]


def head_and_data(path: Path, comment: str) -> tuple[list[Line], Iterator[Line]]:
    """The lines before and after the line `@data`, without comments and empty ones."""
    lines = _lines(path, comment)
    return list(itertools.takewhile(lambda line: line.text.lower() != "@data", lines)), lines


def _lines(path: Path, comment: str) -> Iterator[Line]:
    # What is not UTF-8 are names in comments.
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text and not text.startswith(comment):
                yield Line(number, text)


def gather(path: Path, rows: Iterable[Parts], expected: Expected) -> Cases:
    """Lines that were taken apart become cases, all with the same channels."""
    cases = Cases([], [])
    channels, length, classes = expected
    for number, texts, label in rows:
        channels = channels or max(1, len(texts))
        if len(texts) != channels:
            raise fault(
                path,
                number,
                f"the series has {len(texts)} channels where {channels} are expected, from the head of the file or the "
                "lines before. Give every series the same channels.",
            )
        values = _numbers(path, number, texts)
        if length is not None and values.shape[1] != length:
            raise fault(
                path,
                number,
                f"the series is {values.shape[1]} long, but the head of the file says {length}. "
                "Correct one of them; for unequal lengths the head says @equalLength false.",
            )
        if classes and label not in classes:
            raise fault(
                path,
                number,
                f"the label is {label[:60]!r}, but the head of the file has the classes {', '.join(classes)[:200]}. "
                "Correct one of them; a line ends with its label.",
            )
        cases.values.append(values)
        cases.labels.append(label)
    if not cases.values:
        raise DatasetError(f"{path} has no series: a line @data and then one line for each series are expected.")
    return cases


def _numbers(path: Path, number: int, texts: Sequence[str]) -> Float32[np.ndarray, "channel step"]:
    """Channels of numbers with commas between them; shorter channels end with NaN."""
    rows = []
    for channel, text in enumerate(texts, 1):
        try:
            # NumPy's own parser: a Python float for each number would take longer and much more memory. It warns of a
            # text without numbers; a comma between nothing it refuses.
            text = text.replace("?", "nan").strip() or ","
            rows.append(np.loadtxt([text], np.float32, comments=None, delimiter=",", ndmin=1))
        except ValueError as error:
            raise fault(
                path, number, f"channel {channel} has {_culprit(text)}. Numbers are separated by commas, ? is missing."
            ) from error
        if np.isinf(rows[-1]).any():
            raise fault(path, number, f"channel {channel} has an infinite value. Values are finite, ? is missing.")
    values = np.full((len(rows), max(map(len, rows))), np.nan, np.float32)
    for row, of in zip(values, rows, strict=True):
        row[: len(of)] = of
    return values


def _culprit(text: str) -> str:
    """The first thing that is not a number."""
    for field in text.split(","):
        try:
            float(field)
        except ValueError:
            return f"{field.strip()[:60]!r} where a number should be" if field.strip() else "an empty place"
    return "numbers that cannot be read"


def fault(path: Path, number: int, what: str) -> DatasetError:
    """An error that names the place."""
    return DatasetError(f"{path}, line {number}: {what}")
