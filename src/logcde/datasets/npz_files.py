"""Data sets as NumPy `.npz` files: `X_train`, `X_test` (series, channel, step), `y_train`, `y_test`.

Series that are shorter than the array end with NaN, or `len_train`, `len_test` say how long they are.
"""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from logcde.datasets.cases import Cases
from logcde.errors import DatasetError

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
