"""Stamps of lines as the times of a model: plain numbers, or datetimes in ISO 8601, as the model's clock says.

The lines that `logcde stream` reads and writes, and what is said about a line that is none of these.

The file in which `logcde stream` keeps its state: JSON, whole or not there, and for one model only.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

import msgspec
import numpy as np

from logcde._files import whole_file
from logcde.artefact.files import MODEL_JSON
from logcde.errors import ArtefactError, LogcdeError, StreamError
from logcde.streams.clock import Clock, DatetimeClock, Stamps, unit_name
from logcde.streams.schema import listed, nearest
from logcde.streams.stamps import on_grid

# Python's own datetimes end at microseconds.
FINER = re.compile(r"^(.*\.\d{6})(\d{1,3})(\D.*)?$")
NANOSECOND_YEARS = range(1678, 2262)

Stamp: TypeAlias = float | str


def time_of(stamp: Stamp, clock: Clock) -> float:
    """A stamp as time.

    >>> from logcde.streams import NumericClock
    >>> time_of(0.5, NumericClock())
    0.5
    >>> time_of("2024-01-01T06:30", DatetimeClock(origin=np.datetime64("2024-01-01", "us")))
    6.5
    """
    if not isinstance(clock, DatetimeClock):
        if isinstance(stamp, str):
            unit = unit_name(clock)
            counted = f"{unit} since the start of the series" if unit else "plain numbers"
            raise StreamError(f"The stamp {stamp!r} is text, but this model counts time in {counted}. Give a number.")
        return stamp
    if not isinstance(stamp, str):
        raise StreamError(
            f"The stamp {stamp} is a number, but the stamps of this model are datetimes. Give them in ISO 8601, such "
            'as "2024-03-01T12:30:00".'
        )
    return float(clock.times(_moment(stamp, clock))[0])


def since(stamp: str, clock: DatetimeClock) -> DatetimeClock:
    """The clock of a series that counts from this stamp."""
    return from_ticks(int(on_grid(_moment(stamp, clock).array, clock.resolution).view(np.int64)[0]), clock)


def from_ticks(ticks: int, clock: DatetimeClock) -> DatetimeClock:
    """The same of a stamp as a number of ticks, which `ticks_of` gives."""
    return dataclasses.replace(clock, origin=np.datetime64(ticks, clock.resolution))  # type: ignore[call-overload]


def ticks_of(clock: Clock) -> int | None:
    """The origin of a clock, if it has one, as a number that JSON can hold."""
    dated = isinstance(clock, DatetimeClock) and clock.origin is not None
    return int(clock.origin.astype(np.int64)) if dated else None  # type: ignore[union-attr]


def _moment(text: str, clock: DatetimeClock) -> Stamps:
    finer = FINER.match(text) if len(text) > len("2024-03-01T12:30:00.123456") else None
    try:
        moment = datetime.fromisoformat(text if finer is None else f"{finer[1]}{finer[3] or ''}")
        zone = None if moment.tzinfo is None else "UTC"
        moment = moment if zone is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise StreamError(
            f"The stamp {text!r} is not a datetime in ISO 8601, such as 2024-03-01T12:30:00. ({error})"
        ) from error
    fine = finer is not None or clock.resolution == "ns"
    if fine and moment.year not in NANOSECOND_YEARS:
        raise StreamError(f"The stamp {text!r} is too far away to be counted in nanoseconds.")
    array = np.array([moment], "datetime64[us]")
    if finer is not None:
        array = array.astype("datetime64[ns]") + int(finer[2].ljust(3, "0"))
    return Stamps(array, zone)


"""A number, or a datetime in ISO 8601."""
Id: TypeAlias = str | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

EXAMPLE = '{"series": "p1", "time": 0.5, "values": {"pulse": 61.0}}'
PURPOSES = ("values", "predict", "close", "forget")


class Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One line of input. It has exactly one of `PURPOSES`."""

    series: Id
    time: Stamp | None = None
    values: dict[str, float | None] | None = None
    terms: list[float] | None = None
    static: list[float] | None = None
    origin: str | None = None
    predict: Stamp | None = None
    close: Stamp | None = None
    forget: bool = False


class Answer(msgspec.Struct, gc=False):
    """One line of output: the stamp is as it was given, a number that is not finite is null."""

    series: Id
    time: Stamp
    prediction: Any


_decode = msgspec.json.Decoder(Line).decode
encode_lines = msgspec.json.Encoder().encode_lines


def read_line(text: bytes) -> Line:
    """A line of input, or a sentence about it.

    >>> read_line(b'{"series": "p1", "predict": 1}').predict
    1.0
    """
    try:
        line = _decode(text)
    except (ValueError, RecursionError) as error:
        _refuse(text, error)
    purposes = (line.values is not None) + (line.predict is not None) + (line.close is not None) + line.forget
    if purposes != 1:
        found = "has none" if purposes == 0 else "has several"
        raise StreamError(f"A line has one of {listed(PURPOSES)}; this one {found}. An example is {EXAMPLE}.")
    if line.values is None:
        for name in ("time", "terms", "static", "origin"):
            if getattr(line, name) is not None:
                raise StreamError(f'"{name}" belongs to a line with "values", and this one has none.')
    return line


def meant(name: str, names: Sequence[str]) -> str:
    """Which of the names may have been meant, and which there are.

    >>> meant("pulze", ["pulse", "temp"])
    "Did you mean 'pulse'? There are 'pulse', 'temp'."
    """
    return f"{nearest(name, names)}There are {listed(names)}."


def _refuse(text: bytes, error: Exception) -> NoReturn:
    """Say what is wrong with a line that cannot be decoded."""
    try:
        document = msgspec.json.decode(text)
    except (ValueError, RecursionError) as fault:
        numbers = any(word in text for word in (b"NaN", b"nan", b"Infinity", b"inf"))
        hint = " JSON has no NaN and no infinity: leave out what was not observed." if numbers else ""
        raise StreamError(f"This is not JSON ({fault}).{hint}") from error
    if not isinstance(document, dict):
        raise StreamError(f"This is JSON, but not a mapping such as {EXAMPLE}.") from error
    for key in document:
        if key not in Line.__struct_fields__:
            raise StreamError(f"The key {key!r} means nothing. {meant(key, Line.__struct_fields__)}") from error
    if "series" not in document:
        raise StreamError(f'"series" is missing, the name of the series. An example is {EXAMPLE}.') from error
    values = document.get("values")
    if isinstance(values, dict):
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise StreamError(
                    f"Channel {name!r} is {msgspec.json.encode(value).decode()}, which is not a number. Leave out what "
                    "was not observed."
                ) from error
    raise StreamError(f"This line cannot be taken: {error}. An example is {EXAMPLE}.") from error


FORMAT = 1


@dataclasses.dataclass
class Progress:
    """How far a stream has come: `lines` of input, `predictions` written, and `unsent` ones that were not.

    `series` is what `Session.state` says.
    """

    lines: int = 0
    predictions: int = 0
    unsent: str = ""
    series: list[Any] = dataclasses.field(default_factory=list)


class StateFile:
    """A file of the state of a stream through the model in this folder."""

    def __init__(self, path: Path, model: Path) -> None:
        self.path = path
        # It covers the numbers too, whose checksum it holds.
        self._model = hashlib.sha256((model / MODEL_JSON).read_bytes()).hexdigest()

    def read(self) -> Progress:
        """What was written last; the start of everything if there is no file yet."""
        try:
            document = json.loads(self.path.read_bytes())
            if document["format"] != FORMAT:
                raise ArtefactError(
                    f"The state in {self.path} has format {document['format']!r}; this version of logcde reads "
                    f"{FORMAT}."
                )
            if document["model"] != self._model:
                raise ArtefactError(
                    f"The state in {self.path} belongs to another model. Name the model that it was written with, or "
                    "another file."
                )
            return Progress(**document["progress"])
        except FileNotFoundError:
            return Progress()
        except LogcdeError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtefactError(
                f"{self.path} cannot be read as the state of a stream ({error}). Name another file."
            ) from error

    def write(self, progress: Progress) -> None:
        """Replace the file, once the new one is on the disk."""
        document = {"format": FORMAT, "model": self._model, "progress": vars(progress)}
        try:
            with whole_file(self.path) as temporary, temporary.open("w", encoding="utf-8") as out:
                # Numbers of a series that has overflowed need not be finite, and only this writes them all.
                out.write(json.dumps(document))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise ArtefactError(
                f"The state cannot be written to {self.path}: {error.strerror or error}. What was there before "
                "is as it was."
            ) from error
