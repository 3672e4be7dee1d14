"""A service on a socket, until a signal ends it."""

import asyncio
import contextlib
import dataclasses
import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from logcde.errors import ModelError
from logcde.serve.access import Address
from logcde.serve.feed import AbstractFeed, AbstractPublisher, PostFeed
from logcde.serve.http import Limits, application
from logcde.serve.service import Service
from logcde.serve.worker import Worker

PATIENCE = 10
"""Seconds in which requests that have begun may end after a signal."""
LOOK = 0.1
"""Seconds between two looks for a signal."""
CONNECTIONS = 1000
"""Connections at once."""


@dataclasses.dataclass(frozen=True)
class Listening:
    """Where and for whom a service listens.

    Attributes:
        address: The host and the port; port 0 for any that is free.
        token: What clients have to show; None for nothing.
        tls: Files of the certificate and its key; None for plain HTTP.
        body: Bytes of a request.
        rate: Observations in a second; None for no limit.
    """

    address: Address
    token: str | None = None
    tls: tuple[Path, Path] | None = None
    body: int = 8 << 20
    rate: float | None = None


@dataclasses.dataclass(frozen=True)
class Streams:
    """Streams of a broker, by their addresses.

    Attributes:
        source: Where observations come from; None if clients post them.
        sink: Where predictions and alerts are sent as well; None for nowhere.
        partitions: The partitions of the source that this process may take.
    """

    source: str | None = None
    sink: str | None = None
    partitions: tuple[int, ...] = (0,)


def serve(
    service: Service,
    listening: Listening,
    *,
    streams: Streams = Streams(),
    tick: float | None = None,
    silence: float | None = None,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGTERM or SIGINT arrives.

    Args:
        service: What takes observations.
        listening: Where it is asked.
        streams: Where observations come from, and predictions go to.
        tick: Seconds between two refreshes of all predictions.
        silence: Seconds without an observation after which series are archived.
        ready: Called with the URL once it can be opened.

    Raises:
        ModelError: The address cannot be listened on, or a broker cannot be reached.
    """
    messages = logging.StreamHandler(sys.stderr)
    messages.setFormatter(logging.Formatter("logcde: %(message)s"))
    logging.getLogger("logcde").addHandler(messages)
    if listening.token is not None and listening.tls is None and not listening.address.loopback:
        logging.getLogger("logcde").warning("The token and all data travel unencrypted: give --tls-certificate.")
    try:
        # Suppressed is the signal that ended it, which uvicorn raises again.
        with _listening(listening.address) as connection, contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(service, listening, streams, connection, tick, silence, ready))
    finally:
        logging.getLogger("logcde").removeHandler(messages)


async def _serve(
    service: Service,
    listening: Listening,
    streams: Streams,
    connection: socket.socket,
    tick: float | None,
    silence: float | None,
    ready: Callable[[str], None],
) -> None:
    feed, publisher = await _opened(streams, service.store.id)
    worker = Worker(service, feed, publisher, tick, silence)
    host, port = connection.getsockname()[:2]
    names = ("127.0.0.1", "localhost", "::1", host, listening.address.host)
    limits = Limits(body=listening.body, rate=listening.rate)
    certificate, key = (None, None) if listening.tls is None else listening.tls
    config = uvicorn.Config(
        application(worker, limits, listening.token, tuple(dict.fromkeys(names))),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=PATIENCE,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    server = uvicorn.Server(config)

    async def watch() -> None:
        while not server.started:
            await asyncio.sleep(LOOK)
        shown = f"[{host}]" if ":" in host else host
        ready(f"{'http' if listening.tls is None else 'https'}://{shown}:{port}/")
        while not server.should_exit:
            await asyncio.sleep(LOOK)
        worker.stop()

    async with worker.running():
        watching = asyncio.create_task(watch())
        try:
            await server.serve([connection])
        finally:
            watching.cancel()


async def _opened(streams: Streams, store: str) -> tuple[AbstractFeed, AbstractPublisher | None]:
    """Connect to brokers."""
    feed: AbstractFeed = PostFeed()
    publisher = None
    if streams.source is not None or streams.sink is not None:
        from logcde.serve.nats import NatsAddress, NatsPublisher
        from logcde.serve.nats_feed import NatsFeed

        if streams.source is not None:
            feed = await NatsFeed.open(NatsAddress.parse(streams.source), streams.partitions)
        if streams.sink is not None:
            try:
                publisher = await NatsPublisher.open(NatsAddress.parse(streams.sink), store)
            except BaseException:
                await feed.close()
                raise
    return feed, publisher


def _listening(address: Address) -> socket.socket:
    """A socket that listens."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind((address.host, address.port))
    except OSError as error:
        connection.close()
        raise ModelError(
            f"{address.host}:{address.port} cannot be listened on: {error.strerror or error}.",
            "Choose another one with --http; port 0 takes any that is free.",
        ) from error
    return connection
