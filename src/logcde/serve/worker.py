"""The loop of a service: deliveries are applied in a thread of their own, one group after another.

Observations that arrive while a group is being committed wait in their feed, and are the next group. A worker has the
partitions of its feed that the store gives it, and says every few seconds that it is still there.
"""

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from logcde.errors import LogcdeError
from logcde.serve.feed import AbstractFeed, AbstractPublisher, Answer, Delivery, FailedError
from logcde.serve.service import Service
from logcde.serve.store import FencedError, Lease, StoreError

CHUNK = 256
"""Series that the clock refreshes at once, so that observations do not wait long."""
HOUSEKEEPING = 30.0
"""Seconds between two removals of what is too old, and two looks for silent series."""
CLAIMING = 3.0
"""Seconds between two claims of partitions."""
PAUSE = 0.5
"""Seconds before what could not be read or written is tried again."""
PUBLISHED = 1000
"""Entries that are published at once."""
LOOK = 1.0
"""Seconds between two looks for what other processes have written."""
T = TypeVar("T")
log = logging.getLogger(__name__)


class Worker:
    """Runs a service.

    Args:
        service: What applies observations.
        feed: Where they come from.
        publisher: Where predictions and alerts are sent; None if they are only kept for those who ask.
        tick: Seconds between two refreshes of all predictions; None for no refreshes.
        silence: Seconds without an observation after which a series is archived; None for never.
    """

    def __init__(
        self,
        service: Service,
        feed: AbstractFeed,
        publisher: AbstractPublisher | None = None,
        tick: float | None = None,
        silence: float | None = None,
    ) -> None:
        self.service, self.feed, self.publisher = service, feed, publisher
        self._tick, self._silence = tick, silence
        self._engine = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="logcde-serve")
        self.stopping = asyncio.Event()
        self._faults: dict[str, str] = {}
        self._broken: str | None = None
        self._news = asyncio.Event()
        self._held: dict[Lease, _Held] = {}

    @property
    def leases(self) -> list[Lease]:
        """The partitions that this process has."""
        return sorted(self._held, key=lambda lease: lease.partition)

    @property
    def standby(self) -> bool:
        """Whether other processes have all partitions; this one takes over when one of them ends."""
        return not self._held

    @property
    def failure(self) -> str | None:
        """Why observations cannot be taken or predictions not be published; None if they can."""
        return self._broken or next(iter(self._faults.values()), None)

    def position(self, lease: Lease) -> int:
        """How far a partition was taken."""
        return self._held[lease].position

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a method of the service in its thread, between two groups."""
        return await asyncio.get_running_loop().run_in_executor(self._engine, function, *arguments)

    async def news(self, seconds: float) -> None:
        """Wait until something was committed, at most so long; what other processes commit is seen a little later."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), min(seconds, LOOK) if self.service.store.shared else seconds)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Apply observations within this context. Those that were taken from the feed at its end are finished.

        Raises:
            LogcdeError: The store takes observations from another feed.
        """
        try:
            await self._claim()
            loops = [self._every(CLAIMING, self._claim), self._every(HOUSEKEEPING, self._keep_house)]
            if self._tick is not None:
                loops.append(self._every(self._tick, self._refresh))
            tasks = [self._task(one) for one in loops]
            try:
                yield
            finally:
                self.stop()
                await _cancelled(tasks)
                for lease in self.leases:
                    await self._end(lease)
        finally:
            await self.feed.close()
            if self.publisher is not None:
                await self.publisher.close()
            self._engine.shutdown()

    def stop(self) -> None:
        """Wake what waits for news, so that it ends."""
        self.stopping.set()
        self._tell()

    async def _claim(self) -> None:
        """Take the partitions that this process may have, and leave those that others have or are to have."""
        store, publishes = self.service.store, self.publisher is not None
        claim = await self.call(store.claim, self.feed.name, self.feed.partitions, publishes)
        for lease in self.leases:
            if lease not in claim.leases:
                log.warning("Another process has taken over partition %d of %s.", lease.partition, lease.feed)
                await self._end(lease)
        for lease in claim.leases[claim.fair :]:
            await self._end(lease)
            await self.call(store.release, lease)
        for lease in claim.leases[: claim.fair]:
            if lease not in self._held:
                await self._begin(lease)
        self._faults.pop("claim", None)

    async def _begin(self, lease: Lease) -> None:
        progress = await self.call(self.service.hold, lease)
        await self.feed.begin(lease, progress.position)
        held = self._held[lease] = _Held(progress.position)
        held.tasks.append(self._task(self._take(lease, held)))
        if len(self.service.models) > 1:
            held.tasks.append(self._task(self._follow(lease)))
        if self.publisher is not None:
            held.tasks.append(self._task(self._publish(lease, self.publisher, progress.published)))

    async def _end(self, lease: Lease) -> None:
        """Finish the group in hand, and take nothing more of a partition."""
        held = self._held.pop(lease, None)
        if held is not None:
            await _cancelled([task for task in held.tasks if task is not asyncio.current_task()])
            if held.group is not None:
                await held.group
            await self.feed.end(lease)
            await self.call(self.service.leave, lease)

    async def _take(self, lease: Lease, held: "_Held") -> None:
        while True:
            deliveries = await self.feed.take(lease)
            # A group that has begun is finished, also when the service stops.
            held.group = asyncio.ensure_future(self._apply(lease, deliveries, held))
            taken = await asyncio.shield(held.group)
            if held.fenced:
                # Given up first, so that a claim meanwhile cannot begin what has just ended.
                await self.call(self.service.store.release, lease)
                await self._end(lease)
                return
            if not taken and self.feed.replays:
                await self._rewind(lease)

    async def _apply(self, lease: Lease, deliveries: Sequence[Delivery], held: "_Held") -> bool:
        """Apply deliveries and settle them; whether all were applied."""
        try:
            answers = await self.call(self.service.apply, lease, deliveries)
        except StoreError as error:
            return self._not_kept(lease, deliveries, held, error)
        except Exception as error:
            if len(deliveries) == 1:
                return await self._fail(lease, deliveries[0], held, error)
            for delivery in deliveries:  # find the one that cannot be applied
                if not await self._apply(lease, [delivery], held) and self.feed.replays:
                    return False  # what follows comes again behind this one, and may not be taken before it
            return True
        held.position = deliveries[-1].position
        self._settle(lease, deliveries, answers)
        return True

    def _settle(self, lease: Lease, deliveries: Sequence[Delivery], answers: Sequence[list[Answer]]) -> None:
        self._faults.pop("store", None)
        for delivery, one in zip(deliveries, answers, strict=True):
            self.service.metrics.answer.add(time.monotonic() - delivery.received)
            self.feed.settle(lease, delivery, one)
        self._tell()

    def _not_kept(self, lease: Lease, deliveries: Sequence[Delivery], held: "_Held", error: StoreError) -> bool:
        held.fenced = isinstance(error, FencedError)
        if not held.fenced:
            self._failed("store", error)
        for delivery in deliveries:
            self.feed.settle(lease, delivery, error)
        return False

    async def _fail(self, lease: Lease, delivery: Delivery, held: "_Held", error: Exception) -> bool:
        """Tell of a delivery at which the engine fails. One that would come again for ever is kept and passed over."""
        log.error("A delivery of %d observations cannot be applied.", len(delivery.texts), exc_info=error)
        self.service.metrics.add("failures")
        try:
            if self.feed.replays:
                await self.call(self.service.skip, lease, delivery, error)
        except StoreError as unwritten:
            return self._not_kept(lease, [delivery], held, unwritten)
        found = FailedError(
            f"The service failed at these observations ({type(error).__name__}), and has taken none of them.",
            "Send them one by one to find the one that it fails at, and see its log.",
        )
        self.feed.settle(lease, delivery, found)
        return True

    async def _rewind(self, lease: Lease) -> None:
        """Deliver again what was not kept."""

        async def rewind() -> None:
            await self.feed.begin(lease, (await self.call(self.service.hold, lease)).position)

        await asyncio.sleep(PAUSE)
        await self._until_done("store", rewind)

    async def _follow(self, lease: Lease) -> None:
        """Let all models follow the series of a partition, those of the last session too."""
        key = 0

        async def step() -> bool:
            nonlocal key
            names = await self.call(self.service.store.unfollowed, lease, key, CHUNK)
            if names:
                await self.call(self.service.follow, lease, [name for _, name in names])
                key = names[-1][0]
            return bool(names)

        while await self._until_done("store", step):
            self._tell()

    async def _publish(self, lease: Lease, publisher: AbstractPublisher, number: int) -> None:
        """Send what goes out, as soon as it is kept; where it is read knows best what is there already."""
        store = self.service.store

        async def step() -> bool:
            nonlocal number
            number = max(number, await publisher.last(lease.partition))
            entries = await asyncio.to_thread(store.unpublished, lease, number, PUBLISHED)
            if entries:
                await publisher.publish(lease.partition, entries)
                number = entries[-1].number
                self.service.metrics.add("published", count=len(entries))
                await self.call(store.published, lease, number)
            return bool(entries)

        while True:
            if not await self._until_done("publish", step):
                await self.news(LOOK)

    async def _until_done(self, what: str, step: Callable[[], Awaitable[T]]) -> T:
        """Try something until it is done, however long the store, the feed or the publisher is away."""
        while True:
            try:
                found = await step()
            except FencedError:
                raise
            except LogcdeError as error:
                self._failed(what, error)
                await asyncio.sleep(PAUSE)
            else:
                self._faults.pop(what, None)
                return found

    async def _every(self, seconds: float, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Do something again and again; what fails is tried again the next time."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except FencedError as error:
                log.warning("%s", error)  # the next claim sees to it
            except LogcdeError as error:
                self._failed("claim" if work == self._claim else "store", error)
            except Exception:
                log.exception("%s has failed.", work.__name__)
                self.service.metrics.add("failures")

    async def _refresh(self) -> None:
        for lease in self.leases:
            key = 0
            while names := await self.call(self.service.store.open_names, lease, key, CHUNK):
                key = names[-1][0]
                await self.call(self.service.refresh, lease, [name for _, name in names])
                self._tell()

    async def _keep_house(self) -> None:
        await self.call(self.service.store.clean, time.time())
        self._faults.pop("store", None)
        if self._silence is not None:
            for lease in self.leases:
                await self.call(self.service.archive, lease, self._silence)

    def _failed(self, what: str, error: LogcdeError) -> None:
        if what not in self._faults:
            log.error("%s", error)
        self._faults[what] = str(error)
        self.service.metrics.add("failures")

    def _task(self, work: Coroutine[object, object, None]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        """Tell of a loop that has ended by a mistake; the service is no longer healthy then."""
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, FencedError):
            log.error("The service has stopped working.", exc_info=error)
            self._broken = f"{type(error).__name__}: {error}"

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


@dataclasses.dataclass
class _Held:
    """What a worker does for a partition that it has."""

    position: int
    fenced: bool = False
    tasks: "list[asyncio.Task[Any]]" = dataclasses.field(default_factory=list)
    group: asyncio.Future[bool] | None = None


async def _cancelled(tasks: "Sequence[asyncio.Task[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
