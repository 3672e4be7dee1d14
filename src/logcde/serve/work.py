"""What a group of observations has changed so far, before it is committed."""

import collections
import dataclasses

from logcde.errors import StreamError
from logcde.online.lines import Id
from logcde.serve.feed import Answer
from logcde.serve.live import LiveSeries
from logcde.serve.store import Accepted, DeadLetter, Group, Lease, Observation, Outgoing


@dataclasses.dataclass(eq=False)
class Due:
    """A prediction that is still to be made, and where it belongs."""

    live: LiveSeries
    observation: Observation | None
    answer: Answer
    by: str


class Work:
    """Changes of a group of a partition that begins `now`, in seconds since 1970."""

    def __init__(self, lease: Lease, now: float) -> None:
        self.lease, self.now = lease, now
        self.changed: dict[Id, LiveSeries] = {}
        self.due: dict[Id, Due] = {}
        self.damaged: dict[Id, StreamError] = {}
        self.accepted: dict[tuple[int, str], Accepted] = {}
        self.ids: dict[tuple[int, str], tuple[bytes, Answer]] = {}
        self.observations: list[Observation] = []
        self.outgoing: list[Outgoing] = []
        self.dead: list[DeadLetter] = []
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.begun = 0

    def group(self, position: int | None) -> Group:
        """All of it but the series, for the store."""
        return Group(self.lease, position, [], self.observations, self.outgoing, self.dead)


class RefusedError(Exception):
    """An observation that is refused, with a short reason for counting; it has changed nothing."""

    def __init__(self, reason: str, error: StreamError) -> None:
        super().__init__(reason)
        self.reason, self.error = reason, error
