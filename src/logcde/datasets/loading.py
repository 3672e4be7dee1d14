"""Classification data sets by name: their files are found in a folder and read."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from logcde.datasets.archive import has_series, read_arff, read_npz, read_ts
from logcde.datasets.classification import Classification, pooled
from logcde.errors import DatasetError, Remedy

VARIABLE = "LOGCDE_DATA"
ARCHIVE = "https://www.timeseriesclassification.com"
READERS = {".ts": read_ts, ".arff": read_arff}


def load(name: str, path: str | Path | None = None) -> Classification:
    """Read a classification data set, the training and the test part of the archive in one.

    Args:
        name: Name of the data set. Its files are NAME.npz, or NAME_TRAIN.ts and NAME_TEST.ts, or the same with .arff.
        path: Folder of the files, or of a folder NAME with them; by default the environment variable LOGCDE_DATA.

    Raises:
        DatasetError: If the files cannot be found or read.
    """
    files = find(name, path)
    try:
        if len(files) == 1:
            train, test = read_npz(files[0])
        else:
            train, test = (READERS[file.suffix](file) for file in files)
    except OSError as error:
        raise DatasetError(
            f"{error.filename or files[0]} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    return pooled(name, train, test)


def find(name: str, path: str | Path | None = None) -> tuple[Path, ...]:
    """Return the file or the two files of a data set; arguments as those of `load`."""
    top = folder(path)
    files = _complete(top, name)
    if files is not None:
        return files
    half = [file for files in _candidates(top, name) for file in files if file.is_file()]
    incomplete = f" Of two files only {half[0]} exists." if half else ""
    raise DatasetError(
        f"The data set {name!r} is neither in {top} nor in {top / name}: there is no {name}.npz, nor {name}_TRAIN.ts "
        f"and {name}_TEST.ts, nor the same with .arff.{incomplete}",
        Remedy.DATA_FOLDER,
    )


def folder(path: str | Path | None = None, origin: str = ARCHIVE) -> Path:
    """Return the folder of data sets.

    Args:
        path: The folder; by default the environment variable LOGCDE_DATA.
        origin: Where the data can be downloaded, for the error.
    """
    given = path or os.environ.get(VARIABLE)
    if not given:
        raise DatasetError(
            f"No folder of data sets is given. They can be downloaded from {origin}.", Remedy.DATA_FOLDER
        )
    top = Path(given).expanduser()
    if not top.is_dir():
        raise DatasetError(f"The folder of data sets, {top}, does not exist.", Remedy.DATA_FOLDER)
    return top


def available(path: str | Path | None = None) -> dict[str, tuple[Path, ...]]:
    """List the data sets of a folder: their names and files. `path` as in `load`."""
    top = folder(path)
    names = {file.stem for file in _anywhere(top, ".npz") if has_series(file)}
    for ending in (f"_TRAIN{suffix}" for suffix in READERS):
        names |= {file.name.removesuffix(ending) for file in _anywhere(top, ending)}
    found = {name: _complete(top, name) for name in sorted(names)}
    return {name: files for name, files in found.items() if files is not None}


def _anywhere(top: Path, ending: str) -> Iterator[Path]:
    return itertools.chain(top.glob(f"*{ending}"), top.glob(f"*/*{ending}"))


def _complete(top: Path, name: str) -> tuple[Path, ...] | None:
    return next((files for files in _candidates(top, name) if all(file.is_file() for file in files)), None)


def _candidates(top: Path, name: str) -> Iterator[tuple[Path, ...]]:
    """Yield the files of each format in each place, in the order of preference."""
    for place in (top, top / name):
        yield (place / f"{name}.npz",)
        for suffix in READERS:
            yield tuple(place / f"{name}_{part}{suffix}" for part in ("TRAIN", "TEST"))
