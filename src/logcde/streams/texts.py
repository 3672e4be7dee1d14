"""Columns of text become whole numbers, numbers or datetimes, whichever fits the whole column.

Types are inferred piece by piece; when a later piece does not fit, the file is read again from the start with the next
wider type.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from logcde.errors import Remedy, StreamError, Where
from logcde.streams.frames import arrow
from logcde.streams.labels import LARGEST_WHOLE

NUMBERS = ("int64", "double")
DATETIMES = ("us", "ns")
ZONE = r"^.*?(Z|[+-]\d\d:?\d\d)?$"
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


class Restart(Exception):  # noqa: N818
    """A piece does not fit the type inferred from earlier ones: read the file again from the start."""


class Texts:
    """Converts columns of text: `labels` to whole numbers if they all are, `time` to numbers or ISO 8601 datetimes.

    With `epoch` ("s", "ms", "us" or "ns"), numbers in the time column count these since 1970, and become datetimes. It
    keeps the types inferred so far: use one for all pieces of a file, and start again when it raises `Restart`, which
    the first piece never does.

    >>> import pyarrow
    >>> first = pyarrow.table({"id": ["1", "2"], "time": ["2024-01-01", "2024-01-01 06:30"]})
    >>> second = pyarrow.table({"id": ["x7"], "time": ["2024-01-02"]})
    >>> texts = Texts(["id"], "time")
    >>> [str(one) for one in texts(first).schema.types]
    ['int64', 'timestamp[us]']
    >>> try:
    ...     texts(second)
    ... except Restart:
    ...     [str(one) for one in texts(first).schema.types]
    ['string', 'timestamp[us]']
    """

    def __init__(self, labels: Sequence[str], time: str, epoch: str | None = None) -> None:
        self._time, self._epoch = time, epoch
        self._candidates: dict[str, tuple[str, ...]] = dict.fromkeys(labels, ("int64", "text"))
        self._first = self._zone = ""
        self._guessed = self._converted = False

    @classmethod
    def merged(cls, every: "Sequence[Texts]") -> "Texts":
        """The types that fit the texts of several files, each of which has been read to its end."""
        whole = cls((), every[0]._time, every[0]._epoch)
        for one in every:
            for name, candidates in one._candidates.items():
                known = whole._candidates.setdefault(name, candidates)
                if known[-1] == candidates[-1]:  # Types are tried from the narrowest to the widest.
                    whole._candidates[name] = min(known, candidates, key=len)
            if not whole._first:
                whole._first, whole._zone = one._first, one._zone
        return whole

    def __call__(self, piece: Any) -> Any:
        """Convert a piece; raises `Restart` if earlier ones must be read again."""
        for name in (*self._candidates, self._time):
            place = piece.schema.get_field_index(name)
            types = arrow().types
            if types.is_string(piece[place].type) or types.is_large_string(piece[place].type):
                piece = piece.set_column(place, name, self._convert(name, piece[place]))
        if self._epoch is not None:
            place = piece.schema.get_field_index(self._time)
            piece = piece.set_column(place, self._time, self._since_1970(piece[place], self._epoch))
        self._converted = True
        return piece

    def _convert(self, name: str, column: Any) -> Any:
        """A column of text in the first of its candidate types that fits."""
        candidates = self._candidates.get(name) or self._time_candidates(column)
        while True:
            try:
                found = self._as_type(name, column, candidates[0])
            except arrow().ArrowInvalid as error:
                if len(candidates) == 1:
                    raise self._unfit(name, candidates[0], str(error)) from error
                found = None
            if found is not None:
                return found
            candidates = self._candidates[name] = candidates[1:]
            if self._converted:
                raise Restart

    def _as_type(self, name: str, column: Any, candidate: str) -> Any:
        """A column in one type; None or pyarrow's error where it does not fit."""
        compute = arrow().compute
        if candidate == "text":
            return column
        if candidate in DATETIMES:
            return self._moments(column, candidate)
        if name == self._time:
            trimmed = compute.utf8_trim_whitespace(column)
            found = compute.cast(trimmed, candidate)
            if candidate == "double":
                self._check_whole(trimmed, found)
            return found
        whole = compute.cast(column, candidate)
        # 007 and 7 are two names.
        same = compute.all(compute.equal(compute.cast(whole, column.type), column)).as_py()
        return None if same is False else whole

    def _check_whole(self, texts: Any, numbers: Any) -> None:
        """Refuse whole numbers that float64 may not hold exactly."""
        compute = arrow().compute
        large = compute.and_(compute.greater(compute.abs(numbers), float(LARGEST_WHOLE)), compute.is_finite(numbers))
        if not compute.any(large).as_py():
            return
        whole = compute.match_substring_regex(texts.filter(large), "^[+-]?[0-9]+$")
        found = texts.filter(large).filter(whole).slice(0, 1).to_pylist()
        if found:
            raise StreamError(
                f"The column {self._time!r} has the stamp {found[0]}, too large for float64 to hold exactly.",
                Remedy.EPOCH,
                where=Where(stamp=found[0]),
            )

    def _time_candidates(self, column: Any) -> tuple[str, ...]:
        """The candidate types of the stamps, by the first of them; while there is none, numbers are assumed."""
        first = next((item.strip() for item in column.drop_null()[:1].to_pylist()), None)
        if first is None:
            self._guessed = True
            return ("double",)
        try:
            float(first)
            candidates = NUMBERS
        except ValueError:
            candidates = DATETIMES
            self._zone = re.sub(ZONE, r"\1", first)
        self._first = first
        self._candidates[self._time] = candidates
        if self._guessed:
            raise Restart
        return candidates

    def _moments(self, column: Any, resolution: str) -> Any:
        pyarrow = arrow()
        compute = pyarrow.compute
        column = compute.utf8_trim_whitespace(column)
        zones = set(compute.unique(compute.replace_substring_regex(column.drop_null(), ZONE, r"\1")).to_pylist())
        if zones - {self._zone}:
            named = " and ".join(sorted(zone or "none" for zone in zones | {self._zone}))
            raise StreamError(
                f"The stamps of column {self._time!r} mix the time zones {named}.", "Convert them to one zone first."
            )
        return compute.cast(column, self._type(resolution))

    def _type(self, candidate: str) -> Any:
        """The pyarrow type of stamps."""
        return arrow().timestamp(candidate, _named(self._zone)) if candidate in DATETIMES else candidate

    def _unfit(self, name: str, candidate: str, message: str) -> StreamError:
        pyarrow = arrow()
        try:
            pyarrow.array([self._first]).cast(self._type(candidate))
        except pyarrow.ArrowInvalid:
            return StreamError(
                f"The column {name!r} is text such as {self._first!r}, which is neither a number nor a datetime in ISO "
                "8601, such as 2024-03-01T12:30:00.",
                "Convert it, or name another column of time.",
            )
        wrong = re.search(r"string: '(.*?)' as", message)
        found = wrong[1] if wrong else "something else"
        what = "a datetime in ISO 8601" if candidate in DATETIMES else "a number"
        return StreamError(
            f"The column {name!r} begins with {self._first!r}, {what}, but has {found!r} further on.",
            "Make all stamps alike.",
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
                    "the year 2262.",
                    "If they count something finer, such as ms, us or ns, give that as the epoch.",
                )
        if pyarrow.types.is_integer(column.type):
            return column.cast(pyarrow.int64()).cast(pyarrow.timestamp(epoch))
        if not pyarrow.types.is_floating(column.type):
            raise StreamError(
                f"The column {self._time!r} is of type {column.type}, but only numbers count since 1970.",
                Remedy.NO_EPOCH,
            )
        missing = column.is_null().to_numpy()
        ticks = np.rint(np.nan_to_num(column.fill_null(0).to_numpy()) * MICROSECONDS[epoch]).astype(np.int64)
        missing |= ~np.isfinite(column.fill_null(np.nan).to_numpy())
        return pyarrow.chunked_array([pyarrow.array(ticks, mask=missing).cast(pyarrow.timestamp("us"))])


def _named(zone: str) -> str | None:
    """The name of a time zone from its suffix in ISO 8601."""
    if zone in ("", "Z"):
        return "UTC" if zone else None
    return zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
