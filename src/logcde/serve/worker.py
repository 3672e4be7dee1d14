"""The loop of a service: deliveries are applied in a thread of their own, one group after another.

Observations that arrive while a group is being committed wait in their feed, and are the next group.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import TypeVar

from logcde.serve.feed import AbstractFeed, Answer, Delivery, FailedError
from logcde.serve.service import Service
from logcde.serve.store import StoreError

CHUNK = 256
"""Series that the clock refreshes at once, so that observations do not wait long."""
HOUSEKEEPING = 30.0
"""Seconds between two removals of what is too old, and two looks for silent series."""
T = TypeVar("T")
log = logging.getLogger(__name__)


class Worker:
    """Runs a service.

    Args:
        service: What applies observations.
        feed: Where they come from.
        tick: Seconds between two refreshes of all predictions; None for no refreshes.
        silence: Seconds without an observation after which a series is archived; None for never.
    """

    def __init__(
        self, service: Service, feed: AbstractFeed, tick: float | None = None, silence: float | None = None
    ) -> None:
        self.service, self.feed = service, feed
        self._tick, self._silence = tick, silence
        self._engine = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="logcde-serve")
        self.stopping = asyncio.Event()
        self._unwritten: str | None = None
        self._broken: str | None = None
        self._news = asyncio.Event()
        self._group: asyncio.Future[None] | None = None

    @property
    def failure(self) -> str | None:
        """Why observations cannot be taken; None if they can."""
        return self._broken or self._unwritten

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a method of the service in its thread, between two groups."""
        return await asyncio.get_running_loop().run_in_executor(self._engine, function, *arguments)

    async def news(self, seconds: float) -> None:
        """Wait until something was committed, at most so long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Apply observations within this context. Those that were taken from the feed at its end are finished."""
        tasks = [asyncio.create_task(self._take())]
        tasks.append(asyncio.create_task(self._every(HOUSEKEEPING, self._keep_house)))
        if self._tick is not None:
            tasks.append(asyncio.create_task(self._every(self._tick, self._refresh)))
        for task in tasks:
            task.add_done_callback(self._ended)
        try:
            yield
        finally:
            self.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._group is not None:
                await self._group
            self._engine.shutdown()

    def stop(self) -> None:
        """Let subscribers end."""
        self.stopping.set()
        self._tell()

    async def _take(self) -> None:
        while True:
            deliveries = await self.feed.take()
            # A group that has begun is finished, also when the service stops.
            self._group = asyncio.ensure_future(self._apply(deliveries))
            await asyncio.shield(self._group)

    async def _apply(self, deliveries: Sequence[Delivery]) -> None:
        try:
            answers = await self.call(self.service.apply, self.feed.name, deliveries)
        except StoreError as error:
            self._failed(error)
            for delivery in deliveries:
                self.feed.settle(delivery, error)
            return
        except Exception as error:
            if len(deliveries) > 1:  # find the one that cannot be applied
                for delivery in deliveries:
                    await self._apply([delivery])
                return
            log.exception("A delivery of %d observations cannot be applied.", len(deliveries[0].texts))
            self.service.metrics.add("failures")
            found = FailedError(
                f"The service failed at these observations ({type(error).__name__}), and has taken none of them.",
                "Send them one by one to find the one that it fails at, and see its log.",
            )
            self.feed.settle(deliveries[0], found)
            return
        self._settle(deliveries, answers)

    def _settle(self, deliveries: Sequence[Delivery], answers: Sequence[list[Answer]]) -> None:
        self._unwritten = None
        for delivery, one in zip(deliveries, answers, strict=True):
            self.service.metrics.answer.add(time.monotonic() - delivery.received)
            self.feed.settle(delivery, one)
        self._tell()

    async def _every(self, seconds: float, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Do something again and again; what fails is tried again the next time."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except StoreError as error:
                self._failed(error)
            except Exception:
                log.exception("%s has failed.", work.__name__)
                self.service.metrics.add("failures")

    async def _refresh(self) -> None:
        key = 0
        while names := await self.call(self.service.store.open_names, key, CHUNK):
            key = names[-1][0]
            await self.call(self.service.refresh, [name for _, name in names])
            self._tell()

    async def _keep_house(self) -> None:
        await self.call(self.service.store.clean, time.time())
        self._unwritten = None
        if self._silence is not None:
            await self.call(self.service.archive, self._silence)

    def _failed(self, error: StoreError) -> None:
        if self._unwritten is None:
            log.error("%s", error)
        self._unwritten = str(error)
        self.service.metrics.add("failures")

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Tell of a loop that has ended by a mistake; the service is no longer healthy then."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("The service has stopped working.", exc_info=error)
            self._broken = f"{type(error).__name__}: {error}"

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
