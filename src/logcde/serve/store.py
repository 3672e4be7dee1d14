"""What a service keeps, and the store that keeps it. A store knows nothing of models: states are bytes.

Everything that a group of observations changed is one `Group`, which a store takes completely or not at all. So the
state of a series, the observations that it has taken, their event ids and the predictions that went out always belong
together.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from logcde.errors import LogcdeError
from logcde.online.lines import Id, Stamp

Sort: TypeAlias = Literal["risk", "updated", "name"]
"""Orders of a list of series."""


class StoreError(LogcdeError):
    """A store that cannot be read or written."""


@dataclasses.dataclass(frozen=True)
class SeriesRecord:
    """A series as it is kept.

    Attributes:
        key: The number of the series in the store.
        name: Its id.
        state: What its predictor returned, as bytes; None if that is as it was kept last.
        began: Seconds since 1970 at which its first observation arrived.
        updated: The same of its last one.
        events: Observations taken.
        stamp: Its latest stamp.
        time: The same as a time of the model.
        predicted: The stamp of its current prediction.
        prediction: Its current prediction in JSON.
        risk: The number by which series are sorted; None if it is not finite.
        alerts: Names of the alerts that are raised.
        archived: Whether it has been silent for so long that it is no longer refreshed.
    """

    key: int
    name: Id
    state: bytes | None
    began: float
    updated: float
    events: int
    stamp: Stamp
    time: float
    predicted: Stamp | None
    prediction: Any
    risk: float | None
    alerts: tuple[str, ...]
    archived: bool = False


@dataclasses.dataclass(frozen=True)
class Observation:
    """An observation that a series has taken: the `number`-th of the series, as it was sent.

    `id` and `digest` identify it, if the client gave an event id. `prediction` is the prediction after it, for the
    stamp `predicted`, None if none was made.
    """

    key: int
    number: int
    received: float
    stamp: Stamp
    values: dict[str, float | int | None]
    predicted: Stamp | None
    prediction: Any
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
        feed: Where the observations came from.
        position: How far that feed was taken; None leaves it as it is.
        series: Series that changed, each once.
        observations: Observations that were taken, in order.
        outgoing: What subscribers are told, in order.
        dead: Observations that were refused.
    """

    feed: str
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
    """Keeps series durably. One thread of one process writes.

    What a page shows (`counts`, `find`, `page`, `history`, `outgoing`, `dead_letters`) may be read from any thread; the
    rest belongs to the thread that writes.
    """

    @abc.abstractmethod
    def new_key(self) -> int:
        """A number that no series has had."""

    @abc.abstractmethod
    def load(self, name: Id) -> SeriesRecord | None:
        """A series; None if there is none with this id."""

    @abc.abstractmethod
    def accepted(self, key: int, id: str) -> Accepted | None:
        """What was taken with an event id of a series; None if nothing was."""

    @abc.abstractmethod
    def commit(self, group: Group) -> int:
        """Keep everything in a group, or nothing, and return the number of the last outgoing entry.

        When it returns, the group survives a crash of the machine.

        Raises:
            StoreError: It cannot be kept. Nothing of it is.
        """

    @abc.abstractmethod
    def position(self, feed: str) -> int:
        """How far a feed was taken."""

    @abc.abstractmethod
    def open_names(self, after: int, limit: int) -> list[tuple[int, Id]]:
        """Keys and ids of series that are not archived, by key, beginning after one."""

    @abc.abstractmethod
    def archive(self, before: float) -> list[Id]:
        """Archive the series that were last updated before a time, and return their ids."""

    @abc.abstractmethod
    def clean(self, now: float) -> None:
        """Remove what is older than is to be kept."""

    @abc.abstractmethod
    def counts(self) -> dict[str, int]:
        """Numbers of series that are open, archived, or have an alert."""

    @abc.abstractmethod
    def find(self, name: Id) -> SeriesRecord | None:
        """A series without its state; None if there is none with this id."""

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
