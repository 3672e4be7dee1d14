"""What a service keeps, and the store that keeps it. A store knows nothing of models: states are bytes.

Everything that a group of observations changed is one `Group`, which a store takes completely or not at all. So the
states of a series, the observations that it has taken, their event ids, the position in the feed and the predictions
that go out always belong together. A group is taken only from the process that has the partition of the feed.
"""

import abc
import dataclasses
from collections.abc import Collection, Sequence
from typing import Any, Literal, TypeAlias

from logcde.errors import LogcdeError
from logcde.online.lines import Id, Stamp

Sort: TypeAlias = Literal["risk", "updated", "name"]
"""Orders of a list of series."""


class StoreError(LogcdeError):
    """A store that cannot be read or written."""


class FencedError(StoreError):
    """A group of a process whose partition another process has taken over. Nothing of it was kept."""


@dataclasses.dataclass(frozen=True)
class Lease:
    """A partition of a feed, which one process at a time has. `epoch` counts those that have had it."""

    feed: str
    partition: int
    epoch: int


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a process has of a feed, and how many partitions are its fair share among all processes that run."""

    leases: list[Lease]
    fair: int


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a partition was taken, and the number of its last outgoing entry that was published."""

    position: int
    published: int


@dataclasses.dataclass(slots=True)
class SeriesRecord:
    """A series as it is kept.

    Attributes:
        key: The number of the series in the store.
        name: Its id.
        partition: The partition of the feed that it comes from.
        states: What its predictors returned, as bytes, for each model of the store, None for one that has not followed
            it from the beginning; empty if all are as they were kept last.
        revision: How often states were kept.
        began: Seconds since 1970 at which its first observation arrived.
        updated: The same of its last one.
        events: Observations taken.
        stamp: Its latest stamp.
        time: The same as a time of the model.
        predicted: The stamp of its current prediction.
        prediction: Its current prediction in JSON.
        risk: The number by which series are sorted; None if it is not finite.
        alerts: Names of the alerts that are raised.
        beside: The prediction of the other model in JSON, if two are served.
        archived: Whether it has been silent for so long that it is no longer refreshed.
    """

    key: int
    name: Id
    partition: int
    states: tuple[bytes | None, ...]
    revision: int
    began: float
    updated: float
    events: int
    stamp: Stamp
    time: float
    predicted: Stamp | None
    prediction: Any
    risk: float | None
    alerts: tuple[str, ...]
    beside: Any = None
    archived: bool = False


@dataclasses.dataclass(slots=True)
class Observation:
    """An observation that a series has taken: the `number`-th of the series, as it was sent.

    `id` and `digest` identify it, if the client gave an event id. `prediction` is the prediction after it, for the
    stamp `predicted`, None if none was made, and `beside` that of the other model.
    """

    key: int
    number: int
    received: float
    stamp: Stamp
    values: dict[str, float | int | None]
    predicted: Stamp | None
    prediction: Any
    beside: Any = None
    terms: list[float] | None = None
    continuous: dict[str, float | int | None] | None = None
    id: str | None = None
    digest: bytes = b""


@dataclasses.dataclass(frozen=True)
class Accepted:
    """An event id that was taken: with which content, and the answer, if it is still kept."""

    digest: bytes
    predicted: Stamp | None
    prediction: Any


@dataclasses.dataclass(frozen=True)
class Outgoing:
    """Something that subscribers are told, in order of `number`, which the store gives."""

    kind: Literal["prediction", "alert"]
    series: Id
    content: dict[str, Any]
    number: int = 0


@dataclasses.dataclass(frozen=True)
class DeadLetter:
    """An observation that was refused, as it was sent. One that is sent again is counted, not kept again."""

    received: float
    reason: str
    error: str
    text: bytes
    times: int = 1


@dataclasses.dataclass
class Group:
    """Everything that a group of observations changed.

    Attributes:
        lease: The partition that the observations came from.
        position: How far it was taken; None leaves it as it is.
        series: Series that changed, each once.
        observations: Observations that were taken, in order.
        outgoing: What subscribers are told, in order.
        dead: Observations that were refused.
    """

    lease: Lease
    position: int | None = None
    series: list[SeriesRecord] = dataclasses.field(default_factory=list)
    observations: list[Observation] = dataclasses.field(default_factory=list)
    outgoing: list[Outgoing] = dataclasses.field(default_factory=list)
    dead: list[DeadLetter] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Query:
    """Which series of a list to read.

    Attributes:
        sort: By risk (highest first), by last update (latest first) or by name.
        search: Text that the id contains, in upper or lower case.
        show: Open ones, archived ones, or those with an alert.
        limit: At most so many.
        offset: From this place on.
        reverse: In the opposite order.
    """

    sort: Sort = "risk"
    search: str = ""
    show: Literal["open", "archived", "alert"] = "open"
    limit: int = 100
    offset: int = 0
    reverse: bool = False


@dataclasses.dataclass(frozen=True)
class Retention:
    """How much is kept.

    Attributes:
        history: Observations of each series.
        outgoing: What subscribers were told, so that they can resume.
        dead: Kinds of refused observations.
        ids: Seconds for which event ids are kept.
    """

    history: int = 500
    outgoing: int = 100_000
    dead: int = 10_000
    ids: float = 7 * 86_400.0


class AbstractStore(abc.ABC):
    """Keeps series durably.

    What a page shows (`counts`, `find`, `page`, `history`, `outgoing`, `outgoing_range`, `dead_letters`) may be read
    from any thread; the rest belongs to the thread that writes.

    Attributes:
        id: Identifies it, wherever it is moved.
        name: Tells people where it is; without passwords.
        shared: Whether other processes write it at the same time.
    """

    id: str
    name: str
    shared: bool

    @abc.abstractmethod
    def claim(self, feed: str, wanted: Sequence[int], publishes: bool = False) -> Claim:
        """Keep the partitions of a feed that this process has, and take those that no running process has.

        Args:
            feed: The feed. A store has one at a time.
            wanted: Partitions that this process may have.
            publishes: Whether what goes out is published, so that it has to be kept until it was.
        """

    @abc.abstractmethod
    def release(self, lease: Lease) -> None:
        """Leave a partition to other processes."""

    @abc.abstractmethod
    def progress(self, lease: Lease) -> Progress:
        """How far a partition was taken and published."""

    @abc.abstractmethod
    def new_key(self) -> int:
        """A number that no series has had."""

    @abc.abstractmethod
    def load(self, names: Sequence[Id]) -> list[SeriesRecord]:
        """The series with these ids that there are, with their states."""

    @abc.abstractmethod
    def accepted(self, pairs: Collection[tuple[int, str]]) -> dict[tuple[int, str], Accepted]:
        """What was taken with these event ids of series, by key and id; ids that were not used are left out."""

    @abc.abstractmethod
    def commit(self, group: Group) -> int:
        """Keep everything in a group, or nothing, and return the number of its last outgoing entry, 0 if it has none.

        When it returns, the group survives a crash of the machine.

        Raises:
            FencedError: Another process has the partition now. Nothing is kept.
            StoreError: It cannot be kept. Whether it was is not known if the connection to a server broke.
        """

    @abc.abstractmethod
    def unpublished(self, lease: Lease, after: int, limit: int) -> list[Outgoing]:
        """Entries of a partition that go out after a number, oldest first."""

    @abc.abstractmethod
    def published(self, lease: Lease, number: int) -> None:
        """Note that entries were published up to a number."""

    @abc.abstractmethod
    def open_names(self, lease: Lease, after: int, limit: int) -> list[tuple[int, Id]]:
        """Keys and ids of series of a partition that are not archived, by key, beginning after one."""

    @abc.abstractmethod
    def unfollowed(self, lease: Lease, after: int, limit: int) -> list[tuple[int, Id]]:
        """The same of those that not all models of the store follow."""

    @abc.abstractmethod
    def archive(self, lease: Lease, before: float) -> list[Id]:
        """Archive the series of a partition that were last updated before a time, and return their ids."""

    @abc.abstractmethod
    def clean(self, now: float) -> None:
        """Remove what is older than is to be kept."""

    @abc.abstractmethod
    def counts(self) -> dict[str, int]:
        """Numbers of series that are open, archived, or have an alert."""

    @abc.abstractmethod
    def find(self, name: Id) -> SeriesRecord | None:
        """A series without its states; None if there is none with this id."""

    @abc.abstractmethod
    def page(self, query: Query) -> tuple[int, Sequence[SeriesRecord]]:
        """The number of series that a query selects, and those of its page, without their states."""

    @abc.abstractmethod
    def history(self, key: int, limit: int) -> list[Observation]:
        """The last observations of a series that are kept, oldest first."""

    @abc.abstractmethod
    def outgoing(self, after: int, limit: int) -> list[Outgoing]:
        """What subscribers were told after an entry, oldest first."""

    @abc.abstractmethod
    def outgoing_range(self) -> tuple[int, int]:
        """Numbers of the oldest entry that is kept and of the newest; the first is larger if there are none."""

    @abc.abstractmethod
    def dead_letters(self, limit: int) -> list[DeadLetter]:
        """The refused observations that are kept, latest first."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release the store."""
