"""Data sets for classification by name: find their files in a folder and read them."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from logcde.datasets.archive import has_series, read_arff, read_npz, read_ts
from logcde.datasets.classification import Classification, pooled
from logcde.errors import DatasetError

VARIABLE = "LOGCDE_DATA"
WHERE = f"Say where it is by path=, by --data on the command line, or by the environment variable {VARIABLE}."
ARCHIVE = "https://www.timeseriesclassification.com"
READERS = {".ts": read_ts, ".arff": read_arff}


def load(name: str, path: str | Path | None = None) -> Classification:
    """Read a data set for classification, both parts of the archive pooled.

    It is looked for in the folder `path`, by default that of the environment variable LOGCDE_DATA, and in a folder of
    its name in there: NAME.npz, or NAME_TRAIN.ts and NAME_TEST.ts, or the same with .arff.
    """
    files = find(name, path)
    try:
        if len(files) == 1:
            train, test = read_npz(files[0])
        else:
            train, test = (READERS[file.suffix](file) for file in files)
    except OSError as error:
        raise DatasetError(f"{error.filename or files[0]} cannot be read: {error.strerror or error}.") from error
    return pooled(name, train, test)


def find(name: str, path: str | Path | None = None) -> tuple[Path, ...]:
    """The file or the two files of a data set."""
    top = folder(path)
    files = _whole(top, name)
    if files is not None:
        return files
    half = [file for files in _forms(top, name) for file in files if file.is_file()]
    alone = f" Of two files only {half[0]} is there." if half else ""
    raise DatasetError(
        f"The data set {name!r} is neither in {top} nor in {top / name}.{alone} It would be {name}.npz, or "
        f"{name}_TRAIN.ts and {name}_TEST.ts, or the same with .arff. {WHERE}"
    )


def folder(path: str | Path | None = None, origin: str = ARCHIVE) -> Path:
    """The folder of data sets: the given one, or that of the environment variable. `origin`: where they come from."""
    given = path or os.environ.get(VARIABLE)
    if not given:
        raise DatasetError(f"There is no folder to look for data sets in. {WHERE} The archive is at {origin}.")
    top = Path(given).expanduser()
    if not top.is_dir():
        raise DatasetError(f"The folder of data sets, {top}, is not there. Make it, or name another one.")
    return top


def available(path: str | Path | None = None) -> dict[str, tuple[Path, ...]]:
    """The data sets of a folder and their files, by name."""
    top = folder(path)
    names = {file.stem for file in _anywhere(top, ".npz") if has_series(file)}
    for ending in (f"_TRAIN{suffix}" for suffix in READERS):
        names |= {file.name.removesuffix(ending) for file in _anywhere(top, ending)}
    found = {name: _whole(top, name) for name in sorted(names)}
    return {name: files for name, files in found.items() if files is not None}


def _anywhere(top: Path, ending: str) -> Iterator[Path]:
    return itertools.chain(top.glob(f"*{ending}"), top.glob(f"*/*{ending}"))


def _whole(top: Path, name: str) -> tuple[Path, ...] | None:
    """The first of all forms that is complete."""
    return next((files for files in _forms(top, name) if all(file.is_file() for file in files)), None)


def _forms(top: Path, name: str) -> Iterator[tuple[Path, ...]]:
    """All files that a data set may consist of, where they may be."""
    for place in (top, top / name):
        yield (place / f"{name}.npz",)
        for suffix in READERS:
            yield tuple(place / f"{name}_{part}{suffix}" for part in ("TRAIN", "TEST"))
