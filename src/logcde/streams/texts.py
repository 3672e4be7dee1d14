"""Columns of text become whole numbers, numbers or datetimes, whichever all of the column is.

A file is read in pieces and the first may look other than the last. What a column is taken for is therefore found out
on the way: if a piece does not fit, the next wider kind is tried, from the start.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from logcde.errors import StreamError
from logcde.streams.backends import arrow

NUMBERS = ("int64", "double")
DATETIMES = ("us", "ns")
ZONE = r"^.*?(Z|[+-]\d\d:?\d\d)?$"
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


class Restart(Exception):  # noqa: N818
    """What came before was read as the wrong kind: begin again."""


class Texts:
    """How to take columns of text: `labels` as whole numbers or text, `time` as numbers or ISO 8601 datetimes.

    With `epoch` ("s", "ms", "us" or "ns"), numbers in the time column count these since 1970, and become datetimes.

    >>> import pyarrow
    >>> piece = pyarrow.table({"id": ["1", "x7"], "time": ["2024-01-01", "2024-01-01 06:30"]})
    >>> texts = Texts(["id"], "time")
    >>> try:
    ...     texts(piece)
    ... except Restart:
    ...     [str(kind) for kind in texts(piece).schema.types]
    ['string', 'timestamp[us]']
    """

    def __init__(self, labels: Sequence[str], time: str, epoch: str | None = None) -> None:
        self._time, self._epoch = time, epoch
        self._kinds: dict[str, tuple[str, ...]] = dict.fromkeys(labels, ("int64", "text"))
        self._first = self._zone = ""
        self._guessed = False

    def __call__(self, piece: Any) -> Any:
        """A piece with its columns as numbers, datetimes or text; `Restart` if earlier ones must be read again."""
        for name in (*self._kinds, self._time):
            place = piece.schema.get_field_index(name)
            types = arrow().types
            if types.is_string(piece[place].type) or types.is_large_string(piece[place].type):
                piece = piece.set_column(place, name, self._taken(name, piece[place]))
        if self._epoch is not None:
            place = piece.schema.get_field_index(self._time)
            piece = piece.set_column(place, self._time, self._since_1970(piece[place], self._epoch))
        return piece

    def _taken(self, name: str, column: Any) -> Any:
        pyarrow = arrow()
        compute = pyarrow.compute
        kinds = self._kinds.get(name) or self._kinds_of_time(column)
        if kinds[0] == "text":
            return column
        try:
            if kinds[0] in DATETIMES:
                return self._moments(column, kinds[0])
            if name == self._time:
                return compute.cast(compute.utf8_trim_whitespace(column), kinds[0])
            whole = compute.cast(column, kinds[0])
            # 007 and 7 are two names.
            if compute.all(compute.equal(compute.cast(whole, column.type), column)).as_py() is not False:
                return whole
        except pyarrow.ArrowInvalid as error:
            if len(kinds) == 1:
                raise self._unfit(name, kinds[0], str(error)) from error
        self._kinds[name] = kinds[1:]
        raise Restart

    def _kinds_of_time(self, column: Any) -> tuple[str, ...]:
        """What the first stamp looks like; while there is none, it can be anything."""
        first = next((item.strip() for item in column.drop_null()[:1].to_pylist()), None)
        if first is None:
            self._guessed = True
            return ("double",)
        try:
            float(first)
            kinds = NUMBERS
        except ValueError:
            kinds = DATETIMES
            self._zone = re.sub(ZONE, r"\1", first)
        self._first = first
        self._kinds[self._time] = kinds
        if self._guessed:
            raise Restart
        return kinds

    def _moments(self, column: Any, resolution: str) -> Any:
        pyarrow = arrow()
        compute = pyarrow.compute
        column = compute.utf8_trim_whitespace(column)
        zones = set(compute.unique(compute.replace_substring_regex(column.drop_null(), ZONE, r"\1")).to_pylist())
        if zones - {self._zone}:
            named = " and ".join(sorted(zone or "none" for zone in zones | {self._zone}))
            raise StreamError(
                f"The stamps of column {self._time!r} mix the time zones {named}. Convert them to one zone first."
            )
        return compute.cast(column, self._type(resolution))

    def _type(self, kind: str) -> Any:
        """What a kind of stamps is to pyarrow."""
        return arrow().timestamp(kind, _named(self._zone)) if kind in DATETIMES else kind

    def _unfit(self, name: str, kind: str, message: str) -> StreamError:
        pyarrow = arrow()
        try:
            pyarrow.array([self._first]).cast(self._type(kind))
        except pyarrow.ArrowInvalid:
            return StreamError(
                f"The column {name!r} is text such as {self._first!r}, which is neither a number nor a datetime in ISO "
                "8601, such as 2024-03-01T12:30:00. Convert it, or name another column of time."
            )
        wrong = re.search(r"string: '(.*?)' as", message)
        found = wrong[1] if wrong else "something else"
        what = "a datetime in ISO 8601" if kind in DATETIMES else "a number"
        return StreamError(
            f"The column {name!r} begins with {self._first!r}, {what}, but has {found!r} further on. "
            "Make all stamps alike."
        )

    def _since_1970(self, column: Any, epoch: str) -> Any:
        pyarrow = arrow()
        if pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type):
            # Datetimes are counted in nanoseconds, of which 64 bits hold 292 years before and after 1970.
            ends = pyarrow.compute.min_max(column)
            furthest = max(abs(float(ends[end].as_py() or 0)) for end in ("min", "max"))
            if np.isfinite(furthest) and furthest * MICROSECONDS[epoch] * 1000 >= 2**63:
                raise StreamError(
                    f"The column {self._time!r} has the stamp {furthest:.10g}, which as {epoch} since 1970 is beyond "
                    "the year 2262. If they count something finer, such as ms, us or ns, give that as the epoch."
                )
        if pyarrow.types.is_integer(column.type):
            return column.cast(pyarrow.int64()).cast(pyarrow.timestamp(epoch))
        if not pyarrow.types.is_floating(column.type):
            raise StreamError(
                f"The column {self._time!r} is of type {column.type}, but only numbers count since 1970. "
                "Leave out the epoch."
            )
        missing = column.is_null().to_numpy()
        ticks = np.rint(np.nan_to_num(column.fill_null(0).to_numpy()) * MICROSECONDS[epoch]).astype(np.int64)
        missing |= ~np.isfinite(column.fill_null(np.nan).to_numpy())
        return pyarrow.chunked_array([pyarrow.array(ticks, mask=missing).cast(pyarrow.timestamp("us"))])


def _named(zone: str) -> str | None:
    """The name of a zone that is written behind a stamp."""
    if zone in ("", "Z"):
        return "UTC" if zone else None
    return zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
