"""What stores in SQL databases have in common: statements and queries. Placeholders are `?` here."""

import abc
import contextlib
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from logcde.errors import ArtefactError
from logcde.online.lines import Id
from logcde.serve.store import (
    AbstractStore,
    Accepted,
    DeadLetter,
    FencedError,
    Group,
    Lease,
    Observation,
    Outgoing,
    Progress,
    Query,
    Retention,
    SeriesRecord,
)
from logcde.serve.tables import (
    TABLES,
    dead_rows,
    id_digest,
    observation,
    observation_row,
    outgoing_entry,
    parsed,
    record,
    series_row,
    to_text,
)

PRUNE_EVERY = 32
"""Observations of a series between two removals of its oldest ones."""
AT_ONCE = 500
"""Values that are looked up in one query."""

FIELDS = ", ".join(f"series.{name}" for name in TABLES["series"])
ORDERS = {"risk": "risk {down} NULLS LAST, key", "updated": "updated {down}, key", "name": "name {up}"}
SHOWN = {"open": "archived = 0", "archived": "archived = 1", "alert": "archived = 0 AND alerts != '[]'"}
CHANGING = [name for name in TABLES["series"] if name not in ("key", "name", "part", "began")]
SAVE_SERIES = f"ON CONFLICT (key) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in CHANGING)}"
SAVE_STATE = "ON CONFLICT (key, model) DO UPDATE SET revision = excluded.revision, state = excluded.state"
SAVE_DEAD = "ON CONFLICT (digest) DO UPDATE SET times = dead.times + excluded.times, received = excluded.received"
FOLLOWED = (
    "(SELECT count(*) FROM states WHERE states.key = series.key AND states.revision = series.revision "
    "AND model IN ({}))"
)
"""How many models follow a series."""

Run: TypeAlias = Callable[..., Any]
"""Executes a statement with its values, and returns a cursor."""


class AbstractSqlStore(AbstractStore):
    """A store in tables. Subclasses say how statements are executed.

    Attributes:
        retention: How much is kept.
    """

    retention: Retention
    _numbers: tuple[int, ...]

    @abc.abstractmethod
    def _transaction(self) -> contextlib.AbstractContextManager[Run]:
        """A transaction that is durable at the end of the context, or is undone."""

    @abc.abstractmethod
    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows, from any thread."""

    @abc.abstractmethod
    def _read_own(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows, from the thread that writes, which no page keeps waiting."""

    @abc.abstractmethod
    def _insert(self, run: Run, table: str, rows: Iterable[Sequence[Any]], clause: str = "") -> None:
        """Insert rows with all columns of a table."""

    @abc.abstractmethod
    def _prune(self, run: Run, keys: Sequence[int]) -> None:
        """Remove the oldest observations of these series."""

    def _adopt(self, run: Run, models: Sequence[str], facts: dict[str, str]) -> None:
        """Fill a new store, or check that one fits to models and facts, and add the models that it does not know."""
        kept = dict(run("SELECT name, value FROM facts").fetchall())
        if not kept:
            kept = {"id": uuid.uuid4().hex} | facts
            self._insert(run, "facts", kept.items())
            self._insert(run, "counters", [("outgoing", 0), ("dead", 0)])
        for name, value in facts.items():
            if kept.get(name, value) != value:
                raise ArtefactError(
                    f"The store {self.name} belongs to another {name}: {kept.get(name)}, not {value}.",
                    f"Serve it with the {name} that it was made with, or name another one with --store and send the "
                    "observations again.",
                )
        self.id = kept["id"]
        known = {digest: number for number, digest in run("SELECT number, digest FROM models").fetchall()}
        numbers = [known.get(digest, 0) for digest in models]
        for place, digest in enumerate(models):
            if not numbers[place]:
                numbers[place] = max([*known.values(), *numbers]) + 1
                self._insert(run, "models", [(numbers[place], digest)])
        self._numbers = tuple(numbers)
        unknown = f"{FOLLOWED.format(self._models)} = 0"
        (others,) = run(f"SELECT count(*) FROM series WHERE archived = 0 AND {unknown}").fetchone()
        if others:
            raise ArtefactError(
                f"The store {self.name} belongs to another model: {others:,} of its open series have no state of "
                f"{' or of '.join(one[:16] for one in models) or 'none'}.",
                "Serve it with the model that it was made with, also together with a new one, by --beside; or name "
                "another store with --store and send the observations again.",
            )

    @property
    def _models(self) -> str:
        return ", ".join(map(str, self._numbers)) or "NULL"

    def progress(self, lease: Lease) -> Progress:
        """How far a partition was taken and published."""
        query = "SELECT position, coalesce(published, 0) FROM leases WHERE feed = ? AND part = ?"
        return Progress(*self._read_own(query, (lease.feed, lease.partition))[0])

    def load(self, names: Sequence[Id]) -> list[SeriesRecord]:
        """Series with their states."""
        found: dict[int, list[Any]] = {}
        states: dict[int, dict[int, bytes]] = {}
        for some in _pieces(list(map(to_text, names))):
            rows = self._read_own(
                f"SELECT {FIELDS}, states.model, states.state FROM series LEFT JOIN states ON states.key = series.key "
                f"AND states.revision = series.revision WHERE name IN ({_marks(some)})",
                some,
            )
            for *row, model, state in rows:
                found[row[0]] = row
                if model is not None:
                    states.setdefault(row[0], {})[model] = bytes(state)
        return [record(row, tuple(map(states.get(key, {}).get, self._numbers))) for key, row in found.items()]

    def accepted(self, pairs: Collection[tuple[int, str]]) -> dict[tuple[int, str], Accepted]:
        """What was taken with event ids."""
        asked = {id_digest(*pair): pair for pair in pairs}
        found = {}
        for some in _pieces(list(asked)):
            rows = self._read_own(
                "SELECT ids.id, ids.digest, predicted, prediction FROM ids LEFT JOIN observations ON "
                f"observations.key = ids.key AND observations.number = ids.number WHERE ids.id IN ({_marks(some)})",
                some,
            )
            for id, digest, predicted, prediction in rows:
                found[asked[bytes(id)]] = Accepted(bytes(digest), parsed(predicted), parsed(prediction))
        return found

    def commit(self, group: Group) -> int:
        """Keep a group in one transaction."""
        lease = group.lease
        with self._transaction() as run:
            self._hold(run, lease, group.position)
            self._insert(run, "series", map(series_row, group.series), SAVE_SERIES)
            self._insert(
                run,
                "states",
                (
                    (one.key, number, one.revision, state)
                    for one in group.series
                    for number, state in zip(self._numbers, one.states, strict=False)
                    if state is not None
                ),
                SAVE_STATE,
            )
            self._insert(run, "observations", map(observation_row, group.observations))
            self._insert(
                run,
                "ids",
                (
                    (id_digest(one.key, one.id), one.digest, one.key, one.number, one.received)
                    for one in group.observations
                    if one.id is not None
                ),
            )
            self._prune(run, [one.key for one in group.observations if one.number % PRUNE_EVERY == 0])
            if group.dead:
                letters = dead_rows(group.dead)
                first = self._reserve(run, "dead", len(letters)) + 1
                self._insert(run, "dead", ((first + n, *row) for n, row in enumerate(letters)), SAVE_DEAD)
            # Last: processes that write at the same time wait for each other from here on.
            last = self._reserve(run, "outgoing", len(group.outgoing)) if group.outgoing else 0
            self._insert(
                run,
                "outgoing",
                (
                    (last + number, lease.partition, one.kind, to_text(one.series), to_text(one.content))
                    for number, one in enumerate(group.outgoing, 1)
                ),
            )
        return last + len(group.outgoing)

    def unpublished(self, lease: Lease, after: int, limit: int) -> list[Outgoing]:
        """What goes out next."""
        query = f"{OUTGOING} WHERE part = ? AND number > ? ORDER BY number LIMIT ?"
        return list(map(outgoing_entry, self._read(query, (lease.partition, after, limit))))

    def published(self, lease: Lease, number: int) -> None:
        """Note what was published."""
        with self._transaction() as run:
            run(
                "UPDATE leases SET published = ? WHERE feed = ? AND part = ? AND published < ?",
                (number, lease.feed, lease.partition, number),
            )

    def open_names(self, lease: Lease, after: int, limit: int) -> list[tuple[int, Id]]:
        """Series that are not archived."""
        return self._names(lease, after, limit, "TRUE")

    def unfollowed(self, lease: Lease, after: int, limit: int) -> list[tuple[int, Id]]:
        """Series that not all models follow."""
        return self._names(lease, after, limit, f"{FOLLOWED.format(self._models)} < {len(self._numbers)}")

    def _names(self, lease: Lease, after: int, limit: int, where: str) -> list[tuple[int, Id]]:
        query = (
            f"SELECT key, name FROM series WHERE part = ? AND key > ? AND archived = 0 AND {where} ORDER BY key LIMIT ?"
        )
        rows = self._read_own(query, (lease.partition, after, limit))
        return [(key, parsed(name)) for key, name in rows]

    def archive(self, lease: Lease, before: float) -> list[Id]:
        """Mark series without an observation since `before`, and return their names."""
        with self._transaction() as run:
            self._hold(run, lease, None)
            rows = run(
                "UPDATE series SET archived = 1 WHERE part = ? AND archived = 0 AND updated < ? RETURNING name",
                (lease.partition, before),
            )
            return [parsed(name) for (name,) in rows.fetchall()]

    def clean(self, now: float) -> None:
        """Remove old event ids, outgoing entries and dead letters."""
        kept = self.retention
        with self._transaction() as run:
            run("DELETE FROM ids WHERE received < ?", (now - kept.ids,))
            run(
                "DELETE FROM outgoing WHERE number <= (SELECT max(number) FROM outgoing) - ? AND NOT EXISTS (SELECT 1 "
                "FROM leases WHERE leases.part = outgoing.part AND published < number)",
                (kept.outgoing,),
            )
            run(
                "DELETE FROM dead WHERE number <= (SELECT number FROM dead ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (kept.dead,),
            )

    def counts(self) -> dict[str, int]:
        """How many series there are in each list of the page."""
        return {name: self._one(f"SELECT count(*) FROM series WHERE {where}") for name, where in SHOWN.items()}

    def find(self, name: Id) -> SeriesRecord | None:
        """A series without its states."""
        rows = self._read(f"SELECT {FIELDS} FROM series WHERE name = ?", (to_text(name),))
        return record(rows[0]) if rows else None

    def page(self, query: Query) -> tuple[int, Sequence[SeriesRecord]]:
        """A page of series, without their states."""
        where, values = SHOWN[query.show], []
        if query.search:
            where += " AND lower(name) LIKE lower(?) ESCAPE '!'"
            text = to_text(query.search)[1:-1]
            values.append(f"%{text.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%")
        down, up = ("ASC", "DESC") if query.reverse else ("DESC", "ASC")
        order = ORDERS[query.sort].format(down=down, up=up)
        rows = self._read(
            f"SELECT {FIELDS} FROM series WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",
            (*values, query.limit, query.offset),
        )
        return self._one(f"SELECT count(*) FROM series WHERE {where}", *values), list(map(record, rows))

    def history(self, key: int, limit: int) -> list[Observation]:
        """The last observations of a series."""
        query = "SELECT * FROM observations WHERE key = ? ORDER BY number DESC LIMIT ?"
        rows = self._read(query, (key, min(limit, self.retention.history)))
        return [observation(row) for row in reversed(rows)]

    def outgoing(self, after: int, limit: int) -> list[Outgoing]:
        """What subscribers were told."""
        return list(
            map(outgoing_entry, self._read(f"{OUTGOING} WHERE number > ? ORDER BY number LIMIT ?", (after, limit)))
        )

    def outgoing_range(self) -> tuple[int, int]:
        """Numbers of the oldest and the newest entry."""
        newest = self._one("SELECT value FROM counters WHERE name = 'outgoing'")
        return self._one("SELECT coalesce(min(number), ?) FROM outgoing", newest + 1), newest

    def dead_letters(self, limit: int) -> list[DeadLetter]:
        """The latest observations that were refused, with the reason of each."""
        query = "SELECT received, reason, error, content, times FROM dead ORDER BY received DESC, number DESC LIMIT ?"
        rows = self._read(query, (limit,))
        return [DeadLetter(received, why, error, bytes(text), times) for received, why, error, text, times in rows]

    def _hold(self, run: Run, lease: Lease, position: int | None) -> None:
        """Refuse a process that no longer has a partition; nobody can take it over until the transaction has ended."""
        held = run(
            "UPDATE leases SET position = coalesce(?, position) WHERE feed = ? AND part = ? AND epoch = ?",
            (position, lease.feed, lease.partition, lease.epoch),
        )
        if not held.rowcount:
            raise FencedError(
                f"Partition {lease.partition} of {lease.feed} was taken over by another process.",
                "It goes on there; this one takes partitions that are free.",
            )

    def _reserve(self, run: Run, name: str, count: int) -> int:
        """Take the next numbers of a counter, and return the last one before them."""
        return (
            run("UPDATE counters SET value = value + ? WHERE name = ? RETURNING value", (count, name)).fetchone()[0]
            - count
        )

    def _one(self, query: str, *values: Any) -> int:
        return self._read(query, values)[0][0]


OUTGOING = "SELECT kind, series, content, number FROM outgoing"


def _pieces(values: list[Any]) -> Iterator[list[Any]]:
    for begin in range(0, len(values), AT_ONCE):
        yield values[begin : begin + AT_ONCE]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
