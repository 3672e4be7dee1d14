"""Readers of classification files: `.ts` and `.arff`, the text formats of the UEA archive, and NumPy's `.npz`.

Each returns `Cases`, values and labels as they are in the file; `classification` makes streams of them.
"""

import itertools
import zipfile
import zlib
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
    """A line of a text file that is neither empty nor a comment, and its number."""

    number: int
    text: str


class Fields(NamedTuple):
    """The fields of one line: the values of each channel as text, and the label."""

    number: int
    channels: list[str]
    label: str


class Header(NamedTuple):
    """The header's statements about the series; None or empty where it has none."""

    channels: int | None
    length: int | None
    classes: Sequence[str]


def _header_and_data(path: Path, comment: str) -> tuple[list[Line], Iterator[Line]]:
    """Split a file at the line `@data`, without comments and empty lines."""
    lines = _lines(path, comment)
    return list(itertools.takewhile(lambda line: line.text.lower() != "@data", lines)), lines


def _lines(path: Path, comment: str) -> Iterator[Line]:
    # Only names in comments are not UTF-8.
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text and not text.startswith(comment):
                yield Line(number, text)


def _cases(path: Path, rows: Iterable[Fields], header: Header) -> Cases:
    """Parse the values, and check that all series have the channels, length and classes of the header."""
    cases = Cases([], [])
    channels, length, classes = header
    for number, texts, label in rows:
        channels = channels or max(1, len(texts))
        if len(texts) != channels:
            raise _error(
                path,
                number,
                f"the series has {len(texts)} channels, but the header or the lines before have {channels}.",
                "Give all series the same channels.",
            )
        values = _numbers(path, number, texts)
        if length is not None and values.shape[1] != length:
            raise _error(
                path,
                number,
                f"the series has {values.shape[1]} steps, but the header says {length}.",
                "Correct one of them; for unequal lengths the header has the line @equalLength false.",
            )
        if classes and label not in classes:
            raise _error(
                path,
                number,
                f"the label is {label[:60]!r}, but the header has the classes {', '.join(classes)[:200]}.",
                "Correct one of them; a line ends with its label.",
            )
        cases.values.append(values)
        cases.labels.append(label)
    if not cases.values:
        raise DatasetError(f"{path} has no series.", "Write a line @data, and below it one line for each series.")
    return cases


def _numbers(path: Path, number: int, texts: Sequence[str]) -> Float32[np.ndarray, "channel step"]:
    """Parse the comma-separated values of each channel; shorter channels end with NaN."""
    rows = []
    for channel, text in enumerate(texts, 1):
        try:
            # NumPy's parser: Python floats would take longer and much more memory. It only warns of an empty text, but
            # refuses a single comma.
            text = text.replace("?", "nan").strip() or ","
            rows.append(np.loadtxt([text], np.float32, comments=None, delimiter=",", ndmin=1))
        except ValueError as error:
            found = f"channel {channel} has {_first_fault(text)}."
            raise _error(path, number, found, "Separate numbers by commas, and write ? for a missing one.") from error
        if np.isinf(rows[-1]).any():
            raise _error(path, number, f"channel {channel} has an infinite value.", "Write ? for a missing one.")
    values = np.full((len(rows), max(map(len, rows))), np.nan, np.float32)
    for row, of in zip(values, rows, strict=True):
        row[: len(of)] = of
    return values


def _first_fault(text: str) -> str:
    """Describe the first field that is not a number."""
    for field in text.split(","):
        try:
            float(field)
        except ValueError:
            return f"{field.strip()[:60]!r} where a number should be" if field.strip() else "an empty field"
    return "numbers that cannot be read"


def _error(path: Path, number: int, found: str, remedy: str) -> DatasetError:
    return DatasetError(f"{path}, line {number}: {found}", remedy)


def read_ts(path: Path) -> Cases:
    """Read a `.ts` file: lines `channel:channel:...:label` below a header of lines such as `@classLabel true a b`."""
    head, data = _header_and_data(path, "#")
    entries: dict[str, tuple[int, list[str]]] = {}
    for number, text in head:
        key, *words = text.split()
        entries[key.lower()] = number, words

    def entry(key: str, default: str) -> tuple[int, str]:
        number, words = entries.get(key, (0, []))
        return number, words[0].lower() if words else default

    number, value = entry("@timestamps", "false")
    if value != "false":
        raise _error(path, number, "the series have stamps, which are not supported.", "Give evenly spaced series.")
    number, value = entry("@classlabel", "true")
    if value != "true":
        raise _error(path, number, "the series have no class labels.", "Only classification data sets are read.")
    number, value = entry("@dimensions", "1" if entry("@univariate", "false")[1] == "true" else "")
    channels = _count(path, number, value)
    number, value = entry("@serieslength", "")
    length = _count(path, number, value) if entry("@equallength", "false")[1] == "true" else None
    return _cases(path, map(_ts_fields, data), Header(channels, length, entries.get("@classlabel", (0, []))[1][1:]))


def _ts_fields(line: Line) -> Fields:
    *channels, label = line.text.split(":")
    return Fields(line.number, channels, label.strip())


def _count(path: Path, number: int, text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise _error(path, number, f"{text!r} is not a number of channels or steps.", "Write a positive integer.")
    return int(text)


def read_arff(path: Path) -> Cases:
    r"""Read an `.arff` file: lines `'channel\nchannel\n...',label`, or `number,number,...,label` for one channel."""
    head, data = _header_and_data(path, "%")
    attributes = [line for line in head if line.text.lower().startswith("@attribute")]
    if not attributes:
        return _cases(path, (), Header(None, None, ()))
    number, text = attributes[-1]
    if not text.endswith("}"):
        raise _error(
            path,
            number,
            "the last attribute is not a list of classes such as {a, b}.",
            "Only classification data sets are read.",
        )
    classes = [_unquoted(name) for name in text[text.index("{") + 1 : -1].split(",")]
    return _cases(path, _arff_fields(path, data), Header(None, None, classes))


def _arff_fields(path: Path, data: Iterator[Line]) -> Iterator[Fields]:
    for number, text in data:
        quote = text[0]
        if quote not in "'\"":
            values, _, label = text.rpartition(",")
            yield Fields(number, [values], _unquoted(label))
            continue
        inner, closed, label = text[1:].partition(quote)
        if not closed:
            raise _error(path, number, f"the quotation mark {quote} is not closed.", "The file may be truncated.")
        yield Fields(number, inner.split("\\n"), _unquoted(label.lstrip().removeprefix(",")))


def _unquoted(label: str) -> str:
    return label.strip().strip("'\"")


ARRAYS = ("X_train", "y_train", "len_train", "X_test", "y_test", "len_test")


def read_npz(path: Path) -> tuple[Cases, Cases]:
    """Read both parts of a data set, `X_train`, `X_test` (series, channel, step) and `y_train`, `y_test`.

    Series that are shorter than the array end with NaN, or have their lengths in `len_train` and `len_test`. Pickled
    Python objects are refused.
    """
    if not zipfile.is_zipfile(path):
        raise DatasetError(
            f"{path} is not an .npz file, or is truncated.", "Download it again, or write it with numpy.savez."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ARRAYS if name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DatasetError(
            f"{path} cannot be read as an .npz file of plain arrays: {error}", "Write it with numpy.savez."
        ) from error
    return _part(path, arrays, "train"), _part(path, arrays, "test")


def has_series(path: Path) -> bool:
    """Return whether an `.npz` file holds a classification data set, by the name of its first array."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return "X_train.npy" in file.namelist()


def _part(path: Path, arrays: dict[str, np.ndarray], part: str) -> Cases:
    for name in (f"X_{part}", f"y_{part}"):
        if name not in arrays:
            raise DatasetError(f"{path} has no array {name}.", "It needs X_train, y_train, X_test and y_test.")
    values, labels = arrays[f"X_{part}"], arrays[f"y_{part}"]
    if values.ndim != 3 or values.dtype.kind not in "fiu" or 0 in values.shape:
        raise DatasetError(
            f"{path}: X_{part} is {values.dtype} of shape {values.shape}.",
            "It must be numbers of shape (series, channel, step), with at least one of each.",
        )
    lengths = arrays.get(f"len_{part}", np.full(len(values), values.shape[2]))
    for name, array in ((f"y_{part}", labels), (f"len_{part}", lengths)):
        if array.shape != (len(values),):
            raise DatasetError(
                f"{path}: {name} has shape {array.shape}, but X_{part} has {len(values)} series.",
                "Give one entry for each series.",
            )
    if lengths.dtype.kind not in "iu" or lengths.min() < 1 or lengths.max() > values.shape[2]:
        raise DatasetError(
            f"{path}: len_{part} has values other than integers from 1 to {values.shape[2]}, the number of steps.",
            f"Correct them, or leave out len_{part}.",
        )
    series = values.astype(np.float32, copy=False)
    if np.isinf(series).any():
        number, channel, step = (int(place[0]) for place in np.nonzero(np.isinf(series)))
        raise DatasetError(
            f"{path}: X_{part}[{number}, {channel}, {step}] is infinite.", "Write NaN for missing values."
        )
    return Cases([one[:, :length] for one, length in zip(series, lengths, strict=True)], labels.astype(str).tolist())
