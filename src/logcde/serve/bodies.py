"""Bodies of requests: read within bounds, and split into one JSON object for each observation."""

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request

from logcde.errors import LogcdeError, StreamError

JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
PATIENCE = 30.0
"""Seconds in which a body has to arrive."""
LARGER = 16
"""How much larger than its body a table may be, which may be compressed."""


class BodyError(LogcdeError):
    """A body that cannot be read, and the status of the answer."""

    def __init__(self, status: int, found: str, remedy: str = "") -> None:
        super().__init__(found, remedy)
        self.status = status


async def read_body(request: Request, largest: int) -> bytes:
    """The body of a request, of at most so many bytes."""
    too_large = BodyError(413, f"The body has more than {largest:,} bytes.", "Send fewer observations at once.")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > largest:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                body += part
                if len(body) > largest:
                    raise too_large
    except TimeoutError as error:
        raise BodyError(408, f"The body did not arrive within {PATIENCE:g} seconds.", "Send it faster.") from error
    return bytes(body)


def observations_in(body: bytes, type: str) -> list[bytes]:
    """One JSON object for each observation in a body of this content type; objects are not looked into.

    >>> observations_in(b'[{"series": "p1"}, {"series": "p2"}]', JSON)
    [b'{"series": "p1"}', b'{"series": "p2"}']
    """
    match type.partition(";")[0].strip().lower():
        case "application/json":
            return _objects(body)
        case "application/x-ndjson":
            return [line for line in body.split(b"\n") if line.strip()]
        case "application/vnd.apache.arrow.stream":
            return _rows(body)
    raise BodyError(415, f"The content type is {type!r}.", f"Send {JSON}, {LINES} or {ARROW}.")


def _objects(body: bytes) -> list[bytes]:
    try:
        if body.lstrip()[:1] == b"[":
            return [bytes(one) for one in msgspec.json.decode(body, type=list[msgspec.Raw])]
        return [bytes(msgspec.json.decode(body, type=msgspec.Raw))]
    except (ValueError, RecursionError) as error:
        raise BodyError(
            400, f"The body is not JSON ({error}).", "Send one observation, or a list of them; JSON has no NaN."
        ) from error


def _rows(body: bytes) -> list[bytes]:
    """The rows of an Arrow stream with the columns series, time, perhaps id, and one for each channel."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise BodyError(
            415, "This service has no pyarrow, which reads Arrow.", f"Send {JSON}, or install it."
        ) from error
    found: list[bytes] = []
    try:
        with pyarrow.ipc.open_stream(body) as stream:
            size = 0
            for batch in stream:
                size += batch.nbytes
                if size > LARGER * max(len(body), 1 << 16):
                    raise BodyError(413, "The table is too large.", "Send fewer rows at once.")
                batch.validate(full=True)
                found += [msgspec.json.encode(_object(row)) for row in batch.to_pylist()]
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        if isinstance(error, LogcdeError):
            raise
        raise BodyError(
            400, f"The body is not an Arrow stream ({error}).", "Write it with pyarrow.ipc.new_stream."
        ) from error
    return found


def _object(row: dict[str, Any]) -> dict[str, Any]:
    """An observation from a row: columns that are null were not observed."""
    if "series" not in row or "time" not in row:
        raise StreamError(
            f"The table has the columns {', '.join(map(repr, row))}.", "Name two of them 'series' and 'time'."
        )
    named = {name: row.pop(name) for name in ("series", "time", "id") if row.get(name) is not None}
    return {**named, "values": {name: value for name, value in row.items() if value is not None and name != "id"}}
