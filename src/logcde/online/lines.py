"""Observations as JSON objects, as commands take them: format, stamps, errors about malformed ones."""

import dataclasses
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn, TypeAlias

import msgspec
import numpy as np

from logcde._documents import parse
from logcde.errors import StreamError, Where
from logcde.streams.clock import Clock, DatetimeClock, Stamps, Time, unit_name
from logcde.streams.schema import listed, nearest
from logcde.streams.series_clock import with_origin_number
from logcde.streams.stamps import on_grid

Stamp: TypeAlias = float | str
"""A number, or a datetime in ISO 8601."""
Id: TypeAlias = str | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The id of a series."""

LARGEST_WHOLE = 2**63 - 1
EXAMPLE = '{"series": "p1", "time": 0.5, "values": {"pulse": 61.0}}'
PURPOSES = ("values", "predict", "close", "forget")
"""Keys of a line of which it has exactly one."""


class Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One line of input."""

    series: Id
    time: Stamp | None = None
    values: dict[str, float | int | None] | None = None
    terms: list[float] | None = None
    continuous: dict[str, float | int | None] | None = None
    static: list[float] | None = None
    origin: Stamp | None = None
    predict: Stamp | None = None
    close: Stamp | None = None
    forget: bool = False
    id: str | None = None

    @property
    def stamp(self) -> Stamp | None:
        """The stamp of the line, whatever its purpose."""
        return next((stamp for stamp in (self.time, self.predict, self.close) if stamp is not None), None)


class PredictionLine(msgspec.Struct, gc=False):
    """One line of output. The stamp is as in the input; a number that is not finite is null."""

    series: Id
    time: Stamp
    prediction: Any


_decode = msgspec.json.Decoder(Line).decode
encode_lines = msgspec.json.Encoder().encode_lines


def read_line(text: bytes) -> Line:
    """Parse a line of input. Values of continuous channels alone are those of a line that observes nothing.

    Raises:
        StreamError: If the line is not one of the documented forms.

    >>> read_line(b'{"series": "p1", "predict": 1}').predict
    1.0
    """
    try:
        line = _decode(text)
    except (ValueError, RecursionError) as error:
        _explain(text, error)
    if b"\\" in text or text.count(b":") > _colons(line):
        _check_keys(text, line)
    for values in (line.values or {}, line.continuous or {}):
        for name, value in values.items():
            if type(value) is int and abs(value) > LARGEST_WHOLE:
                values[name] = _whole(line, name, value)
    if line.continuous is not None and line.values is None and line.time is not None:
        line.values = {}
    purposes = (line.values is not None) + (line.predict is not None) + (line.close is not None) + line.forget
    if purposes != 1:
        found = "has none" if purposes == 0 else "has several"
        raise StreamError(
            f"A line has exactly one of {listed(PURPOSES)}; this one {found}.",
            f"An example is {EXAMPLE}.",
            where=Where(series=line.series, stamp=line.stamp),
        )
    if line.values is None:
        for name in ("time", "terms", "continuous", "static", "origin", "id"):
            if getattr(line, name) is not None:
                raise StreamError(
                    f'"{name}" belongs to a line with "values", which this line does not have.',
                    where=Where(series=line.series, stamp=line.stamp),
                )
    return line


def _whole(line: Line, channel: str, value: int) -> float:
    """A whole number beyond 64 bits as a decimal one, if it is one."""
    try:
        return float(value)
    except OverflowError as error:
        raise StreamError(
            f"Channel {channel!r} has a number beyond the range of float64.",
            "Leave out channels that were not observed.",
            where=Where(series=line.series, channel=channel, stamp=line.stamp),
        ) from error


def _colons(line: Line) -> int:
    """At most as many colons as a text without escapes has, if no key of it occurs twice: of keys, ids and stamps."""
    texts = (line.series, line.time, line.predict, line.close, line.origin, line.id)
    given = sum(text is not None for text in (*texts, line.terms, line.static)) + line.forget
    channels = sum(1 + len(values) for values in (line.values, line.continuous) if values is not None)
    return given + channels + sum(text.count(":") for text in texts if isinstance(text, str))


def _check_keys(text: bytes, line: Line) -> None:
    """Refuse a key that occurs twice, of which the decoder takes the last value."""
    try:
        parse(text)
    except ValueError as error:
        raise StreamError(
            f"The line is ambiguous: {error}.",
            "Give each key, and each channel, once.",
            where=Where(series=line.series, stamp=line.stamp),
        ) from error


def _explain(text: bytes, error: Exception) -> NoReturn:
    """Raise an error that says why a line cannot be decoded."""
    try:
        document = msgspec.json.decode(text)
    except (ValueError, RecursionError) as fault:
        numbers = any(word in text for word in (b"NaN", b"nan", b"Infinity", b"inf"))
        remedy = "JSON has no NaN and no infinity: leave out channels that were not observed." if numbers else ""
        raise StreamError(f"The line is not JSON ({fault}).", remedy) from error
    if not isinstance(document, dict):
        raise StreamError("The line is JSON, but not an object.", f"An example is {EXAMPLE}.") from error
    where = _place(document)
    for key, value in document.items():
        if key not in Line.__struct_fields__:
            remedy = did_you_mean(key, Line.__struct_fields__)
            if isinstance(value, int | float) and "values" not in document:
                remedy = f'Put the values of channels under "values": {msgspec.json.encode({key: value}).decode()}.'
            raise StreamError(f"The key {key!r} is unknown.", remedy, where=where) from error
    if "series" not in document:
        raise StreamError('"series", the id of the series, is missing.', f"An example is {EXAMPLE}.") from error
    for values in (document.get("values"), document.get("continuous")):
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise StreamError(
                    f"Channel {name!r} is {msgspec.json.encode(value).decode()}, which is not a number.",
                    "Leave out channels that were not observed.",
                    where=dataclasses.replace(where, channel=name),
                ) from error
    raise StreamError(f"The line is invalid: {error}.", f"An example is {EXAMPLE}.", where=where) from error


def _place(document: dict[str, Any]) -> Where:
    """Series and stamp of a line that is not valid, where they are."""
    stamps = (document.get(key) for key in ("time", "predict", "close"))
    return Where(series=document.get("series"), stamp=next((stamp for stamp in stamps if stamp is not None), None))


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The nearest of the known names as a question, and the list of them.

    >>> did_you_mean("pulze", ["pulse", "temp"])
    "Did you mean 'pulse'? There are 'pulse', 'temp'."
    """
    return f"{nearest(name, names)}There are {listed(names)}."


def time_of(stamp: Stamp, clock: Clock) -> Time:
    """The time of a stamp on the clock of a series.

    >>> from logcde.streams import NumericClock
    >>> time_of(0.5, NumericClock()), time_of(500.5, NumericClock(500.0))
    (0.5, 0.5)
    >>> time_of("2024-01-01T06:30", DatetimeClock(origin=np.datetime64("2024-01-01", "us")))
    6.5
    """
    if not isinstance(clock, DatetimeClock):
        if isinstance(stamp, str):
            unit = unit_name(clock)
            counted = f"{unit} since the start of the series" if unit else "plain numbers"
            raise StreamError(
                f"The stamp {stamp!r} is text, but the time of this model is in {counted}.", "Give a number."
            )
        return Time(stamp - clock.zero)
    if not isinstance(stamp, str):
        raise StreamError(
            f"The stamp {stamp} is a number, but the stamps of this model are datetimes.",
            'Give them in ISO 8601, such as "2024-03-01T12:30:00".',
        )
    return Time(clock.times(_parse_datetime(stamp, clock))[0])


def with_origin(stamp: Stamp, clock: Clock) -> Clock:
    """The clock of a series that starts at this stamp."""
    if isinstance(clock, DatetimeClock) and isinstance(stamp, str):
        ticks = on_grid(_parse_datetime(stamp, clock).array, clock.resolution).view(np.int64)[0]
        return with_origin_number(clock, int(ticks))
    time_of(stamp, clock)  # refuses stamps of the wrong type
    assert not isinstance(stamp, str)
    return with_origin_number(clock, stamp)


# Python's datetimes end at microseconds.
NANOSECONDS = re.compile(r"^(.*\.\d{6})(\d{1,3})(\D.*)?$")
NANOSECOND_YEARS = range(1678, 2262)


def _parse_datetime(text: str, clock: DatetimeClock) -> Stamps:
    finer = NANOSECONDS.match(text) if len(text) > len("2024-03-01T12:30:00.123456") else None
    try:
        moment = datetime.fromisoformat(text if finer is None else f"{finer[1]}{finer[3] or ''}")
        zone = None if moment.tzinfo is None else "UTC"
        moment = moment if zone is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise StreamError(
            f"The stamp {text!r} is not a datetime in ISO 8601 ({error}).", "An example is 2024-03-01T12:30:00."
        ) from error
    fine = finer is not None or clock.resolution == "ns"
    if fine and moment.year not in NANOSECOND_YEARS:
        raise StreamError(f"The stamp {text!r} is out of the range of nanoseconds, the years 1678 to 2261.")
    array = np.array([moment], "datetime64[us]")
    if finer is not None:
        array = array.astype("datetime64[ns]") + int(finer[2].ljust(3, "0"))
    return Stamps(array, zone)
