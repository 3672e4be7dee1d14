"""Series of one file and their labels as they stand there, and what text files of the archive have in common.

These are what readers make and `classification` takes. Nothing here knows a format.

The two text formats of the UEA archive: `.ts`, and `.arff` with all channels in one quoted string.

Data sets as NumPy `.npz` files: `X_train`, `X_test` (series, channel, step), `y_train`, `y_test`.

Series that are shorter than the array end with NaN, or `len_train`, `len_test` say how long they are.
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


def read_ts(path: Path) -> Cases:
    """A `.ts` file: lines `channel:channel:...:label`, after a head of lines such as `@classLabel true a b`."""
    head, data = head_and_data(path, "#")
    said: dict[str, tuple[int, list[str]]] = {}
    for number, text in head:
        key, *words = text.split()
        said[key.lower()] = number, words

    def says(key: str, default: str) -> tuple[int, str]:
        number, words = said.get(key, (0, []))
        return number, words[0].lower() if words else default

    number, answer = says("@timestamps", "false")
    if answer != "false":
        raise fault(path, number, "the series have stamps of their own, which are not read. Give evenly spaced series.")
    number, answer = says("@classlabel", "true")
    if answer != "true":
        raise fault(path, number, "the series have no class labels. Only data sets for classification are read.")
    number, dimensions = says("@dimensions", "1" if says("@univariate", "false")[1] == "true" else "")
    channels = _count(path, number, dimensions)
    number, answer = says("@serieslength", "")
    length = _count(path, number, answer) if says("@equallength", "false")[1] == "true" else None
    return gather(path, map(_taken_apart, data), Expected(channels, length, said.get("@classlabel", (0, []))[1][1:]))


def _taken_apart(line: Line) -> Parts:
    *channels, label = line.text.split(":")
    return Parts(line.number, channels, label.strip())


def _count(path: Path, number: int, text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise fault(path, number, f"{text!r} is not a number of channels or steps. Write a whole number above 0.")
    return int(text)


def read_arff(path: Path) -> Cases:
    r"""An `.arff` file: lines `'channel\nchannel\n...',label`, or `number,number,...,label` if there is one channel."""
    head, data = head_and_data(path, "%")
    attributes = [line for line in head if line.text.lower().startswith("@attribute")]
    if not attributes:
        return gather(path, (), Expected(None, None, ()))
    number, text = attributes[-1]
    if not text.endswith("}"):
        raise fault(
            path, number, "the last attribute is not a list of classes such as {a, b}. Only classification is read."
        )
    classes = [_bare(name) for name in text[text.index("{") + 1 : -1].split(",")]
    return gather(path, _unquoted(path, data), Expected(None, None, classes))


def _unquoted(path: Path, data: Iterator[Line]) -> Iterator[Parts]:
    for number, text in data:
        quote = text[0]
        if quote not in "'\"":
            values, _, label = text.rpartition(",")
            yield Parts(number, [values], _bare(label))
            continue
        inner, closed, label = text[1:].partition(quote)
        if not closed:
            raise fault(path, number, f"the quotation mark {quote} is not closed. The file may have been cut short.")
        yield Parts(number, inner.split("\\n"), _bare(label.lstrip().removeprefix(",")))


def _bare(label: str) -> str:
    """Without space and quotation marks around it."""
    return label.strip().strip("'\"")


ARRAYS = ("X_train", "y_train", "len_train", "X_test", "y_test", "len_test")


def read_npz(path: Path) -> tuple[Cases, Cases]:
    """Both parts of a data set. A file that holds Python objects is refused."""
    if not zipfile.is_zipfile(path):
        raise DatasetError(f"{path} is not an .npz file, or was cut short. Get it anew, or write it with numpy.savez.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ARRAYS if name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DatasetError(f"{path} cannot be read as an .npz file of plain arrays: {error}") from error
    return _part(path, arrays, "train"), _part(path, arrays, "test")


def has_series(path: Path) -> bool:
    """Whether a file has the arrays that make it a data set for classification."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return "X_train.npy" in file.namelist()


def _part(path: Path, arrays: dict[str, np.ndarray], part: str) -> Cases:
    for name in (f"X_{part}", f"y_{part}"):
        if name not in arrays:
            raise DatasetError(f"{path} has no array {name}. It needs X_train, y_train, X_test and y_test.")
    values, labels = arrays[f"X_{part}"], arrays[f"y_{part}"]
    if values.ndim != 3 or values.dtype.kind not in "fiu" or 0 in values.shape:
        raise DatasetError(
            f"{path}: X_{part} is {values.dtype} of shape {values.shape}, but it must be numbers (series, channel, "
            "step), with at least one of each."
        )
    lengths = arrays.get(f"len_{part}", np.full(len(values), values.shape[2]))
    for name, array in ((f"y_{part}", labels), (f"len_{part}", lengths)):
        if array.shape != (len(values),):
            raise DatasetError(f"{path}: {name} has shape {array.shape}, but X_{part} has {len(values)} series.")
    if lengths.dtype.kind not in "iu" or lengths.min() < 1 or lengths.max() > values.shape[2]:
        raise DatasetError(
            f"{path}: len_{part} must be whole numbers from 1 to {values.shape[2]}, the steps there are."
        )
    series = values.astype(np.float32, copy=False)
    if np.isinf(series).any():
        number, channel, step = (int(place[0]) for place in np.nonzero(np.isinf(series)))
        raise DatasetError(f"{path}: X_{part}[{number}, {channel}, {step}] is infinite. Values are finite or NaN.")
    return Cases([one[:, :length] for one, length in zip(series, lengths, strict=True)], labels.astype(str).tolist())
