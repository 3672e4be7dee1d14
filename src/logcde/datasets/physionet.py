"""PhysioNet/CinC Challenge 2012: 12,000 stays in intensive care, 37 asynchronous variables over 48 hours."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from logcde.datasets.loading import folder
from logcde.errors import DatasetError, Remedy
from logcde.streams import Average, Keep, Schema, Streams
from logcde.streams.faults import Places
from logcde.streams.ingest import RawRows, Rules, assemble
from logcde.streams.rows import LongRows

SETS = ("a", "b", "c")
HOURS = 48.0
STATIC = ("Age", "Gender", "Height", "ICUType")
ORIGIN = "https://physionet.org/content/challenge-2012"
AGAIN = f"Download it again from {ORIGIN}."
PLAUSIBLE = MappingProxyType(
    {
        "DiasABP": (5.0, 250.0),
        "FiO2": (0.21, 1.0),
        "GCS": (3.0, 15.0),
        "HR": (5.0, 300.0),
        "K": (1.0, 15.0),
        "MAP": (5.0, 300.0),
        "Mg": (0.1, 15.0),
        "NIDiasABP": (5.0, 250.0),
        "NIMAP": (5.0, 300.0),
        "NISysABP": (10.0, 300.0),
        "Na": (90.0, 190.0),
        "PaCO2": (5.0, 200.0),
        "PaO2": (10.0, 700.0),
        "pH": (6.5, 8.0),
        "RespRate": (1.0, 100.0),
        "SaO2": (20.0, 100.0),
        "SysABP": (10.0, 300.0),
        "Temp": (25.0, 45.0),
        "Urine": (0.0, 5000.0),
        "WBC": (0.0, 500.0),
        "Weight": (20.0, 400.0),
    }
)
"""Wide bounds of plausible values, as `limits` of `ChannelScaler.fit`. Not a medical reference."""


@dataclasses.dataclass(frozen=True, eq=False)
class Stays:
    """Stays in intensive care.

    Args:
        streams: One series for each stay, times in hours since admission, horizon 48, values as recorded.
        static: Static features, NaN where unknown.
        names: Names of the static features.
        died: Whether the patient died in hospital.
        part: Set of the challenge that a stay is from: "a", "b" or "c".
    """

    streams: Streams
    static: Float64[np.ndarray, "series feature"]
    names: tuple[str, ...]
    died: Bool[np.ndarray, "series"]
    part: Shaped[np.ndarray, "series"]

    def __len__(self) -> int:
        return len(self.streams)

    def __repr__(self) -> str:
        return f"Stays({len(self):,} stays, {len(self.streams.value):,} observations, {int(self.died.sum()):,} died)"


@dataclasses.dataclass(frozen=True)
class _Set:
    """One set of the challenge as recorded: rows ordered by stay, -1 for unknown values."""

    ids: np.ndarray
    counts: np.ndarray
    hours: np.ndarray
    variable: np.ndarray
    value: np.ndarray
    static: np.ndarray
    died: np.ndarray


def physionet2012(path: str | Path | None = None) -> Stays:
    """Read the stays from `PhysioNet2012.npz`, or from the challenge's folders `set-a`, `set-b` and `set-c`.

    Several values of a variable at one stamp are averaged. A weight of -1, which means unknown, is not an observation.

    Args:
        path: Folder of the files; by default the environment variable LOGCDE_DATA.
    """
    place = where(path)
    variables, parts = _from_npz(place) if place.is_file() else _from_text(place)
    ids = np.concatenate([one.ids for one in parts.values()])
    static = np.concatenate([one.static for one in parts.values()]).astype(np.float64)
    return Stays(
        _streams(variables, list(parts.values()), ids),
        np.where(static < 0, np.nan, static),
        STATIC,
        np.concatenate([one.died for one in parts.values()]),
        np.repeat(list(parts), [len(one.ids) for one in parts.values()]),
    )


def where(path: str | Path | None = None) -> Path:
    """Return the file or the folder that `physionet2012` reads with the same `path`."""
    top = folder(path, ORIGIN)
    packed = top / "PhysioNet2012.npz"
    if packed.is_file():
        return packed
    if (top / "set-a").is_dir():
        return top
    raise DatasetError(
        f"The data set PhysioNet 2012 is not in {top}: there is neither the file {packed.name}, nor the folders set-a, "
        f"set-b, set-c with Outcomes-a.txt, Outcomes-b.txt, Outcomes-c.txt. It can be downloaded from {ORIGIN}.",
        Remedy.DATA_FOLDER,
    )


def _streams(variables: tuple[str, ...], parts: list[_Set], ids: np.ndarray) -> Streams:
    series = np.repeat(np.arange(len(ids)), np.concatenate([one.counts for one in parts]))
    channel = np.concatenate([one.variable for one in parts]).astype(np.int32)
    value = np.concatenate([one.value for one in parts]).astype(np.float64)
    hours = np.concatenate([one.hours for one in parts]).astype(np.float64)
    unknown = np.array([name == "Weight" for name in variables])[channel] & (value < 0)
    rows = LongRows(series, hours, channel, value, np.zeros((len(value), 0))).take(~unknown)
    places, rules = Places(ids, Schema(variables)), Rules(duplicates=Average(), empty=Keep())
    return assemble(Streams, RawRows(rows, places, np.full(len(ids), HOURS), rules))


def _from_npz(file: Path) -> tuple[tuple[str, ...], dict[str, _Set]]:
    try:
        with np.load(file, allow_pickle=False) as stored:
            parts = {
                name: _Set(
                    stored[f"ids_{name}"],
                    np.diff(stored[f"offsets_{name}"]),
                    stored[f"t_min_{name}"] / 60.0,
                    stored[f"var_{name}"],
                    stored[f"value_{name}"],
                    stored[f"static_{name}"],
                    stored[f"y_{name}"].astype(bool),
                )
                for name in SETS
                if f"ids_{name}" in stored
            }
            names, known = tuple(map(str, stored["static_names"])), tuple(map(str, stored["variables"]))
    except (OSError, ValueError, KeyError) as error:
        raise DatasetError(f"{file} is not the data set PhysioNet 2012: {error}.", AGAIN) from error
    if names != STATIC or not parts:
        raise DatasetError(
            f"{file} has the static features {', '.join(names)}, but {', '.join(STATIC)} are expected.", AGAIN
        )
    return known, parts


def _from_text(top: Path) -> tuple[tuple[str, ...], dict[str, _Set]]:
    """Read the challenge's own files: one for each stay, with lines "hh:mm,variable,value"."""
    stays = {
        name: [_stay(file) for file in sorted((top / f"set-{name}").glob("*.txt"))]
        for name in SETS
        if (top / f"set-{name}").is_dir()
    }
    variables = tuple(sorted({name for stay in _all(stays) for _, name, _ in stay.rows}, key=str.lower))
    code = {name: number for number, name in enumerate(variables)}
    parts = {}
    for part, found in stays.items():
        died = _outcomes(top / f"Outcomes-{part}.txt")
        for stay in found:
            if stay.record not in died:
                raise DatasetError(f"{top / f'Outcomes-{part}.txt'} has no outcome of stay {stay.record}.", AGAIN)
        rows = [row for stay in found for row in stay.rows]
        parts[part] = _Set(
            np.array([stay.record for stay in found], np.int64),
            np.array([len(stay.rows) for stay in found], np.int64),
            np.array([hours for hours, _, _ in rows]),
            np.array([code[name] for _, name, _ in rows], np.int32),
            np.array([value for _, _, value in rows]),
            np.array([[stay.static.get(name, -1.0) for name in STATIC] for stay in found]).reshape(-1, len(STATIC)),
            np.array([died[stay.record] for stay in found], bool),
        )
    return variables, parts


@dataclasses.dataclass(frozen=True)
class _Stay:
    record: int
    static: dict[str, float]
    rows: list[tuple[float, str, float]]


def _all(stays: dict[str, list[_Stay]]) -> Iterator[_Stay]:
    for found in stays.values():
        yield from found


def _stay(file: Path) -> _Stay:
    static: dict[str, float] = {}
    rows: list[tuple[float, str, float]] = []
    lines = file.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        try:
            stamp, name, text = line.split(",")
            hours, minutes = stamp.split(":")
            time, value = int(hours) + int(minutes) / 60, float(text)
        except ValueError as error:
            raise DatasetError(f"{file}, line {number}, is {line!r}, not hh:mm,variable,value.", AGAIN) from error
        if time == 0 and (name in STATIC or name == "RecordID"):
            static[name] = value
        elif name:
            rows.append((time, name, value))
    if "RecordID" not in static:
        raise DatasetError(f"{file} does not identify its stay: there is no RecordID at 00:00.", AGAIN)
    return _Stay(int(static["RecordID"]), static, rows)


def _outcomes(file: Path) -> dict[int, bool]:
    """Read, for each stay, whether the patient died in hospital."""
    if not file.is_file():
        raise DatasetError(f"{file} does not exist.", f"Download it from {ORIGIN}.")
    header, *lines = file.read_text(encoding="utf-8").strip().split("\n")
    names = [name.strip() for name in header.split(",")]
    if "RecordID" not in names or "In-hospital_death" not in names:
        raise DatasetError(f"{file} has the columns {header}, but RecordID and In-hospital_death are needed.", AGAIN)
    record, death = names.index("RecordID"), names.index("In-hospital_death")
    cells = [line.split(",") for line in lines]
    return {int(row[record]): row[death].strip() == "1" for row in cells}
