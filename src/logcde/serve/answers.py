"""Answers in JSON, and errors as answers."""

from typing import Any

import msgspec
from starlette.responses import Response

from logcde.errors import LogcdeError, Where


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON; a number that is not finite is null."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def refusal(status: int, found: str, remedy: str, headers: dict[str, str] | None = None) -> Response:
    """An error: what was found, and what to do."""
    return answer({"error": f"{found} {remedy}".rstrip()}, status, headers)


def error_answer(status: int, error: LogcdeError, headers: dict[str, str] | None = None) -> Response:
    """An error of the library, with its place."""
    where = error.where or Where()
    place = {"series": where.series, "channel": where.channel, "stamp": where.stamp}
    return answer(
        {"error": str(error), **{name: one for name, one in place.items() if one is not None}}, status, headers
    )
