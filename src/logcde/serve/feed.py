"""Where observations come from: deliveries that are taken together, and settled once they are durable."""

import abc
import asyncio
import collections
import dataclasses
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from logcde.errors import LogcdeError

Answer: TypeAlias = dict[str, Any]
"""What is said of one observation, in JSON."""


@dataclasses.dataclass(frozen=True, eq=False)
class Delivery:
    """Observations that are settled together.

    Attributes:
        texts: JSON objects, one for each observation.
        position: How far the feed has been taken with this delivery.
        received: When it arrived, on the clock of `time.monotonic`.
    """

    texts: Sequence[bytes]
    position: int
    received: float = dataclasses.field(default_factory=time.monotonic)


class AbstractFeed(abc.ABC):
    """Delivers observations in order, each at least once.

    Attributes:
        name: Identifies the feed in the store, which keeps the position of the last delivery that was committed.
    """

    name: str

    @abc.abstractmethod
    async def take(self) -> list[Delivery]:
        """Wait for deliveries, and return those that are there, as many as are well committed together."""

    @abc.abstractmethod
    def settle(self, delivery: Delivery, outcome: list[Answer] | Exception) -> None:
        """Tell the sender: the answers, once they are durable; or an error, after which nothing of it was taken."""

    @property
    @abc.abstractmethod
    def lag(self) -> float:
        """Seconds for which the oldest delivery has waited that is not settled."""


class BusyError(LogcdeError):
    """More observations are waiting than a service accepts."""


class FailedError(LogcdeError):
    """Observations that broke the engine. Nothing of their delivery was taken."""


class PostFeed(AbstractFeed):
    """Observations that clients post, who wait for the answers.

    Args:
        position: The position that the store has.
        together: Observations that are committed together at most, except for those of one post.
        waiting: Observations that may wait; further posts are refused.
    """

    name = "http"

    def __init__(self, position: int = 0, together: int = 2000, waiting: int = 50_000) -> None:
        self._position, self._together, self.limit = position, together, waiting
        self._queue: collections.deque[Delivery] = collections.deque()
        self._answers: dict[Delivery, asyncio.Future[list[Answer]]] = {}
        self._waiting = 0
        self._arrived = asyncio.Event()

    async def post(self, texts: Sequence[bytes]) -> list[Answer]:
        """Deliver observations, and wait until they are durable or refused.

        Raises:
            BusyError: Too many are waiting.
        """
        if self._waiting + len(texts) > self.limit:
            raise BusyError(
                f"{self._waiting:,} observations are waiting, and at most {self.limit:,} may.",
                "Send them again in a second; fewer clients at once, or more observations in a post, are faster.",
            )
        self._position += len(texts)
        delivery = Delivery(texts, self._position)
        self._waiting += len(texts)
        self._queue.append(delivery)
        answers = self._answers[delivery] = asyncio.get_running_loop().create_future()
        self._arrived.set()
        return await answers

    async def take(self) -> list[Delivery]:
        """All posts that are waiting, up to the number of observations that are committed together."""
        await self._arrived.wait()
        taken, count = [], 0
        while self._queue and (not taken or count + len(self._queue[0].texts) <= self._together):
            taken.append(self._queue.popleft())
            count += len(taken[-1].texts)
        if not self._queue:
            self._arrived.clear()
        return taken

    def settle(self, delivery: Delivery, outcome: list[Answer] | Exception) -> None:
        """Answer the client, if it is still there."""
        self._waiting -= len(delivery.texts)
        answers = self._answers.pop(delivery)
        if answers.done():
            return
        if isinstance(outcome, Exception):
            answers.set_exception(outcome)
        else:
            answers.set_result(outcome)

    @property
    def lag(self) -> float:
        """How long the oldest post has waited."""
        oldest = next(iter(self._answers), None)
        return 0.0 if oldest is None else time.monotonic() - oldest.received
