"""A service over HTTP: observations in, predictions, lists, events and numbers out."""

import asyncio
import contextlib
import dataclasses
import importlib.metadata
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from logcde.errors import LogcdeError, StreamError
from logcde.online.lines import Id, Stamp
from logcde.online.rules import UnknownSeriesError, unknown_series
from logcde.serve.access import Guard, Rate
from logcde.serve.alerts import numbers_of, risk_of
from logcde.serve.answers import answer, error_answer, refusal
from logcde.serve.bodies import BodyError, observations_in, read_body
from logcde.serve.explaining import explained
from logcde.serve.facts import feed_facts, model_facts, past_alerts, refused_by_reason
from logcde.serve.feed import BusyError, FailedError, PostFeed
from logcde.serve.openapi import description
from logcde.serve.page import page_file
from logcde.serve.store import Observation, Outgoing, Query, SeriesRecord, StoreError
from logcde.serve.worker import Worker
from logcde.streams.clock import DatetimeClock

VERSION = importlib.metadata.version("logcde")
HEARTBEAT = 15.0
"""Seconds after which subscribers are sent a sign of life."""
AT_ONCE = 500
"""Entries that are read for a subscriber at once."""
LONGEST_PAGE, LONGEST_HISTORY = 1000, 5000


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of what clients may ask.

    Attributes:
        body: Bytes of a request.
        rate: Observations in a second; None for no limit.
        subscribers: Streams of events at once.
    """

    body: int = 8 << 20
    rate: float | None = None
    subscribers: int = 100


class _Rest(Convertor[str]):
    """The rest of a path, whatever characters it has."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """The text."""
        return value

    def to_string(self, value: str) -> str:
        """The text."""
        return value


register_url_convertor("rest", _Rest())


class Handlers:
    """Answers requests.

    Args:
        worker: Runs the service.
        limits: Bounds of requests.
    """

    def __init__(self, worker: Worker, limits: Limits) -> None:
        self._worker, self._service, self._store = worker, worker.service, worker.service.store
        self._feed, self._limits = worker.feed, limits
        self._rate = None if limits.rate is None else Rate(limits.rate)
        self._subscribers = 0
        self._explaining = asyncio.Lock()

    async def observe(self, request: Request) -> Response:
        """Take observations; answered once they are durable."""
        feed = self._feed
        if not isinstance(feed, PostFeed):
            return refusal(409, f"This service takes its observations from {feed.name}.", "Publish them there.")
        body = await read_body(request, self._limits.body)
        texts = observations_in(body, request.headers.get("content-type", ""))
        if not texts:
            raise BodyError(400, "The body has no observation.", "Send one JSON object, or a list of them.")
        if len(texts) > feed.limit:
            raise BodyError(413, f"The body has {len(texts):,} observations.", f"Send at most {feed.limit:,}.")
        wait = 0.0 if self._rate is None else self._rate.wait(len(texts))
        if wait > 0.0:
            return refusal(
                429,
                f"More than {self._limits.rate:g} observations arrive in a second.",
                f"Send these again in {wait:.3g} seconds.",
                {"retry-after": str(math.ceil(wait))},
            )
        answers = await feed.post(texts)
        refused = sum("error" in one for one in answers)
        status = 200 if not refused else 422 if refused == len(answers) else 207
        single = body.lstrip()[:1] == b"{" and len(texts) == 1
        if single:
            return answer(answers[0], status)
        return answer({"taken": len(answers) - refused, "refused": refused, "answers": answers}, status)

    async def list_series(self, request: Request) -> Response:
        """A page of series."""
        given = dict(request.query_params)
        recent = _whole(given, "recent", 0, 200)
        try:
            query = msgspec.convert(
                {
                    **{name: given[name] for name in ("sort", "search", "show") if name in given},
                    "limit": _whole(given, "limit", 100, LONGEST_PAGE),
                    "offset": _whole(given, "offset", 0, 1 << 40),
                    "reverse": given.get("reverse") in ("1", "true"),
                },
                Query,
            )
        except msgspec.ValidationError as error:
            raise BodyError(400, f"The query is invalid: {error}.", "See /openapi.json.") from error
        total, records = await asyncio.to_thread(self._store.page, query)
        rows = [_summary(one) for one in records]
        if recent:
            found = await asyncio.to_thread(lambda: [self._store.history(one.key, recent) for one in records])
            for row, history in zip(rows, found, strict=True):
                row["recent"] = self._risks(history)
        return answer({"total": total, "offset": query.offset, "series": rows})

    async def one_series(self, request: Request) -> Response:
        """One series: its prediction, now or at a stamp, and its last observations."""
        record = await self._find(request)
        given = dict(request.query_params)
        history = await asyncio.to_thread(
            self._store.history, record.key, _whole(given, "history", 100, LONGEST_HISTORY)
        )
        found = _summary(record)
        if "at" in given or record.predicted is None:
            at = self._stamp(given["at"]) if "at" in given else None
            found |= await self._worker.call(self._service.predict, record.name, at)
        if given.get("attribution") in ("1", "true"):
            found["attribution"] = await self._explained(record)
        found["elapsed"] = record.time
        found["history"] = [
            _observed(one) | {"risk": risk} for one, risk in zip(history, self._risks(history), strict=True)
        ]
        return answer(found)

    async def _explained(self, record: SeriesRecord) -> dict[str, Any]:
        """On which observations a prediction rests; one series at a time, beside the engine."""
        question = await self._worker.call(self._service.question, record.name)
        async with self._explaining:
            history = await asyncio.to_thread(self._store.history, record.key, question.events)
            try:
                return await asyncio.to_thread(explained, question, history, self._service.risk)
            except LogcdeError as error:
                return {"error": str(error)}

    async def dead_letters(self, request: Request) -> Response:
        """Observations that were refused, latest first."""
        letters = await asyncio.to_thread(
            self._store.dead_letters, _whole(dict(request.query_params), "limit", 100, LONGEST_PAGE)
        )
        content = [
            {
                "received": one.received,
                "reason": one.reason,
                "error": one.error,
                "text": one.text.decode("utf-8", "replace"),
                "times": one.times,
            }
            for one in letters
        ]
        return answer({"dead_letters": content})

    async def events(self, request: Request) -> Response:
        """Predictions and alerts as server-sent events, after the last one that a client has seen."""
        if self._subscribers >= self._limits.subscribers:
            return refusal(503, f"There are {self._subscribers} subscribers already.", "Try again later.")
        given = request.query_params
        last = request.headers.get("last-event-id") or given.get("after")
        if last is not None and not (last.isascii() and last.isdigit() and len(last) < 19):
            raise BodyError(400, f"{last!r} is not the id of an event.", "Send the last id that you received.")
        after = (await asyncio.to_thread(self._store.outgoing_range))[1] if last is None else int(last)
        stream = self._events(after, given.get("kind"), given.get("series"))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def health(self, request: Request) -> Response:
        """Whether observations can be taken."""
        if (failure := self._worker.failure) is not None:
            return answer({"status": "failing", "error": failure}, 503)
        if self._worker.standby:
            return answer({"status": "standby", "version": VERSION}, 503)
        return answer({"status": "ok", "version": VERSION})

    async def metrics(self, request: Request) -> Response:
        """Numbers for Prometheus."""
        counts = await asyncio.to_thread(self._store.counts)
        gauges = {f"series_{name}": float(count) for name, count in counts.items()}
        gauges |= {
            "lag_seconds": max((self._feed.lag(one) for one in self._worker.leases), default=0.0),
            "waiting": float(sum(self._feed.waiting(one) for one in self._worker.leases)),
            "partitions": float(len(self._worker.leases)),
            "subscribers": float(self._subscribers),
            "healthy": float(self._worker.failure is None),
        }
        text = self._service.metrics.text(gauges)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def model(self, request: Request) -> Response:
        """The model: channels, outputs, clock, intervals, alerts."""
        service = self._service
        return answer(await self._worker.call(model_facts, service.models, service.options.alerts, service.risk))

    async def feeds(self, request: Request) -> Response:
        """Where observations come from, and what became of them since the service was started."""
        failure, metrics = self._worker.failure, self._service.metrics.counts
        counts = await asyncio.to_thread(self._store.counts)
        letters = await asyncio.to_thread(self._store.dead_letters, LONGEST_PAGE)
        content = {
            "feeds": feed_facts(self._worker),
            "series": counts,
            "observations": metrics["observations", ""],
            "repeated": metrics["repeated", ""],
            "refused": refused_by_reason(dict(metrics)),
            "dead_letters": len(letters),
            "not_finite": metrics["not_finite", ""],
            "outside": metrics["outside", ""],
            "failure": failure,
        }
        return answer(content)

    async def alerts(self, request: Request) -> Response:
        """Alerts of the past, of all series or of one."""
        given = dict(request.query_params)
        limit = _whole(given, "limit", 100, LONGEST_PAGE)
        return answer(await asyncio.to_thread(past_alerts, self._store, given.get("series"), limit))

    async def page(self, request: Request) -> Response:
        """The page that watches the service, and its files."""
        return page_file(**request.path_params, known=request.headers.get("if-none-match"))

    async def openapi(self, request: Request) -> Response:
        """A description of all this."""
        return answer(description(VERSION))

    async def _events(self, after: int, kind: str | None, series: str | None) -> AsyncIterator[bytes]:
        self._subscribers += 1
        try:
            oldest, _ = await asyncio.to_thread(self._store.outgoing_range)
            yield b"retry: 1000\n\n"
            told = asyncio.get_running_loop().time()
            if after + 1 < oldest:
                gap = {"first": after + 1, "last": oldest - 1}
                yield b"id: %d\nevent: gap\ndata: %s\n\n" % (oldest - 1, msgspec.json.encode(gap))
                after = oldest - 1
            while not self._worker.stopping.is_set():
                found = await asyncio.to_thread(self._store.outgoing, after, AT_ONCE)
                if found:
                    after, told = found[-1].number, asyncio.get_running_loop().time()
                    yield b"".join(_event(one) for one in found if _wanted(one, kind, series))
                elif self._store.shared or self._service.newest <= after:
                    await self._worker.news(HEARTBEAT)
                    if asyncio.get_running_loop().time() - told >= HEARTBEAT:
                        told = asyncio.get_running_loop().time()
                        yield b": here\n\n"
        finally:
            self._subscribers -= 1

    async def _find(self, request: Request) -> SeriesRecord:
        """The series that a path names: by its id as text, or else by its id as a number."""
        text = request.path_params["name"]
        kind = request.query_params.get("id")
        names: list[Id] = [] if kind == "number" else [text]
        with contextlib.suppress(ValueError):
            if kind != "text" and str(int(text)) == text and -(1 << 63) <= int(text) < 1 << 63:
                names.append(int(text))
        records = [await asyncio.to_thread(self._store.find, name) for name in names]
        found = [one for one in records if one is not None]
        if not found:
            raise unknown_series(text)
        if len(found) > 1:
            raise BodyError(
                409, f"There are a series {text!r} and a series {text}.", "Add ?id=text or ?id=number to say which."
            )
        return found[0]

    def _stamp(self, text: str) -> Stamp:
        if isinstance(self._service.clock, DatetimeClock):
            return text
        try:
            number = float(text)
        except ValueError as error:
            raise StreamError(f"The stamp {text!r} is not a number.", "Give one, as in the observations.") from error
        if not math.isfinite(number):
            raise StreamError(f"The stamp {text!r} is not finite.", "Stamps are finite.")
        return number

    def _risks(self, history: list[Observation]) -> list[float | None]:
        return [
            None if one.predicted is None else risk_of(_without_none(one.prediction), self._service.risk)
            for one in history
        ]


def application(worker: Worker, limits: Limits, token: str | None, names: tuple[str, ...]) -> Guard:
    """The application that a server runs.

    Args:
        worker: Runs the service, as long as the application answers.
        limits: Bounds of requests.
        token: What clients have to show; None for nothing.
        names: Names of this host, by which it may be called if there is no token.
    """
    handlers = Handlers(worker, limits)

    def route(path: str, handler: Callable[[Request], Any], method: str = "GET") -> Route:
        return Route(path, _counted(handler, worker), methods=[method])

    routes = [
        route("/", handlers.page),
        route("/static/{name}", handlers.page),
        route("/observations", handlers.observe, "POST"),
        route("/series", handlers.list_series),
        route("/series/{name:rest}", handlers.one_series),
        route("/events", handlers.events),
        route("/model", handlers.model),
        route("/feeds", handlers.feeds),
        route("/alerts", handlers.alerts),
        route("/dead-letters", handlers.dead_letters),
        route("/healthz", handlers.health),
        route("/metrics", handlers.metrics),
        route("/openapi.json", handlers.openapi),
    ]
    return Guard(Starlette(routes=routes), token, names)


def _counted(handler: Callable[[Request], Any], worker: Worker) -> Callable[[Request], Any]:
    """Turn errors into answers, and count answers by status."""

    async def handle(request: Request) -> Response:
        try:
            found = await handler(request)
        except BodyError as error:
            found = error_answer(error.status, error)
        except (BusyError, StoreError) as error:
            found = error_answer(503, error, {"retry-after": "1"})
        except FailedError as error:
            found = error_answer(500, error)
        except LogcdeError as error:
            found = error_answer(404 if isinstance(error, UnknownSeriesError) else 422, error)
        worker.service.metrics.add("requests", str(found.status_code))
        return found

    return handle


def _summary(record: SeriesRecord) -> dict[str, Any]:
    return {
        "series": record.name,
        "time": record.stamp if record.predicted is None else record.predicted,
        "prediction": record.prediction,
        "risk": record.risk,
        "alerts": record.alerts,
        "beside": record.beside,
        "observed": record.stamp,
        "events": record.events,
        "began": record.began,
        "updated": record.updated,
        "archived": record.archived,
    }


def _observed(one: Observation) -> dict[str, Any]:
    content = {"number": one.number, "time": one.stamp, "values": one.values, "received": one.received}
    if one.predicted is None:
        return content
    beside = {} if one.beside is None else {"beside": one.beside}
    return {**content, "predicted": one.predicted, "prediction": one.prediction, **beside}


def _event(one: Outgoing) -> bytes:
    # JSON has no line breaks, so an id of a series cannot begin another event.
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (one.number, one.kind.encode(), msgspec.json.encode(one.content))


def _wanted(one: Outgoing, kind: str | None, series: str | None) -> bool:
    return (kind is None or one.kind == kind) and (series is None or str(one.series) == series)


def _without_none(prediction: Any) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in numbers_of(prediction).items()}


def _whole(given: dict[str, str], name: str, default: int, most: int) -> int:
    """A whole number of a query."""
    text = given.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 16 and int(text) <= most):
        raise BodyError(400, f"{name}={text!r} is not possible.", f"Give a whole number up to {most:,}.")
    return int(text)
