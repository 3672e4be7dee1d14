"""The embedded store: one SQLite file with a write-ahead log."""

import contextlib
import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from logcde.errors import ArtefactError
from logcde.online.lines import Id
from logcde.serve.store import (
    AbstractStore,
    Accepted,
    DeadLetter,
    Group,
    Observation,
    Outgoing,
    Query,
    Retention,
    SeriesRecord,
    StoreError,
)

APPLICATION = 0x6C636465
"""Identifies the file, as `PRAGMA application_id`."""
FORMAT = 1
PRUNE_EVERY = 32
"""Observations of a series between two removals of its oldest ones."""

SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE positions (feed TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE series (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, began REAL NOT NULL, updated REAL NOT NULL,
    events INTEGER NOT NULL, stamp TEXT NOT NULL, time REAL NOT NULL, predicted TEXT, prediction TEXT, risk REAL,
    alerts TEXT NOT NULL, archived INTEGER NOT NULL);
CREATE INDEX series_by_risk ON series (archived, risk);
CREATE INDEX series_by_update ON series (archived, updated);
CREATE TABLE states (key INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE observations (
    key INTEGER NOT NULL, number INTEGER NOT NULL, received REAL NOT NULL, stamp TEXT NOT NULL, seen TEXT NOT NULL,
    predicted TEXT, prediction TEXT, PRIMARY KEY (key, number)) WITHOUT ROWID;
CREATE TABLE ids (
    key INTEGER NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL, number INTEGER NOT NULL, received REAL NOT NULL,
    PRIMARY KEY (key, id)) WITHOUT ROWID;
CREATE INDEX ids_by_age ON ids (received);
CREATE TABLE outgoing (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, series TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE dead (
    number INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, received REAL NOT NULL, reason TEXT NOT NULL,
    error TEXT NOT NULL, content BLOB NOT NULL, times INTEGER NOT NULL);
"""
FIELDS = "series.key, name, {state}, began, updated, events, stamp, time, predicted, prediction, risk, alerts, archived"
ORDERS = {"risk": "risk {down} NULLS LAST, key", "updated": "updated {down}, key", "name": "name {up}"}
SHOWN = {"open": "archived = 0", "archived": "archived = 1", "alert": "archived = 0 AND alerts != '[]'"}
SAVE_SERIES = """
INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET updated = excluded.updated, events = excluded.events, stamp = excluded.stamp,
    time = excluded.time, predicted = excluded.predicted, prediction = excluded.prediction, risk = excluded.risk,
    alerts = excluded.alerts, archived = excluded.archived
"""
SAVE_DEAD = """
INSERT INTO dead (digest, received, reason, error, content, times) VALUES (?, ?, ?, ?, ?, 1)
ON CONFLICT (digest) DO UPDATE SET times = times + 1, received = excluded.received
"""


def to_text(value: Any) -> str:
    """JSON as text, without the characters that it escapes."""
    return msgspec.json.encode(value).decode()


class SqliteStore(AbstractStore):
    """A store in one file, for one model. A group is durable once its transaction is on the disk.

    Args:
        path: The file, which is created if it is missing.
        facts: What the states depend on, such as the checksum of the model; a store with other facts is refused.
        retention: How much is kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteStore(Path(folder, "state.db"), {"model": "ab"})
    ...     record = SeriesRecord(store.new_key(), "p1", b"state", 0.0, 1.0, 1, 0.5, 0.5, 0.5, [0.25], 0.25, ())
    ...     _ = store.commit(Group("http", position=1, series=[record]))
    ...     store.load("p1") == record, store.position("http")
    ...     store.close()
    (True, 1)
    """

    def __init__(self, path: Path, facts: dict[str, str], retention: Retention = Retention()) -> None:
        self._path, self._retention = path, retention
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as unless_opened:
            try:
                self._writer = unless_opened.enter_context(contextlib.closing(self._open()))
                self._prepare(facts)
                self._reader = self._open()
                self._last_key = self._one("SELECT coalesce(max(key), 0) FROM series")
            except (sqlite3.Error, OSError, ValueError) as error:
                raise self._unreadable(error) from error
            unless_opened.pop_all()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10.0)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _prepare(self, facts: dict[str, str]) -> None:
        """Check the file, or fill a new one."""
        writer = self._writer
        (application,) = writer.execute("PRAGMA application_id").fetchone()
        (format,) = writer.execute("PRAGMA user_version").fetchone()
        if application == 0 and not writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA.split(";"):
                writer.execute(statement)
            writer.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            writer.execute(f"PRAGMA application_id = {APPLICATION}")
            writer.execute(f"PRAGMA user_version = {FORMAT}")
            writer.execute("COMMIT")
            return
        if application != APPLICATION:
            raise ArtefactError(
                f"{self._path} is a database of another program.", "Name another file with --store; this one is kept."
            )
        if format != FORMAT:
            raise ArtefactError(
                f"The store {self._path} has format {format}; this version of logcde reads {FORMAT}.",
                "Serve it with the version that wrote it, or name another file with --store.",
            )
        found = "; ".join(row[0] for row in writer.execute("PRAGMA quick_check(3)"))
        if found != "ok":
            raise sqlite3.DatabaseError(" ".join(found.split()))
        kept = dict(writer.execute("SELECT name, value FROM facts"))
        for name, value in facts.items():
            if kept.get(name) != value:
                raise ArtefactError(
                    f"The store {self._path} belongs to another {name}: {kept.get(name)}, not {value}.",
                    f"Serve it with the {name} that it was made with, or name another file with --store and send the "
                    "observations again.",
                )

    def _unreadable(self, error: Exception) -> ArtefactError:
        if isinstance(error, ArtefactError):
            return error
        return ArtefactError(
            f"{self._path} cannot be read as the store of a service: {error}.",
            "Put a backup in its place, or move it away (with its -wal and -shm files) to begin anew.",
        )

    def new_key(self) -> int:
        """A number that no series has had."""
        self._last_key += 1
        return self._last_key

    def load(self, name: Id) -> SeriesRecord | None:
        """A series with its state."""
        fields = FIELDS.format(state="state")
        query = f"SELECT {fields} FROM series LEFT JOIN states USING (key) WHERE name = ?"
        rows = self._read_own(query, (to_text(name),))
        return _record(rows[0]) if rows else None

    def accepted(self, key: int, id: str) -> Accepted | None:
        """What was taken with an event id."""
        rows = self._read_own(
            "SELECT digest, predicted, prediction FROM ids LEFT JOIN observations USING (key, number) "
            "WHERE ids.key = ? AND id = ?",
            (key, id),
        )
        return Accepted(rows[0][0], _parsed(rows[0][1]), _parsed(rows[0][2])) if rows else None

    def commit(self, group: Group) -> int:
        """Keep a group in one transaction."""
        with self._transaction() as run:
            many = self._writer.executemany
            many(SAVE_SERIES, map(_series_row, group.series))
            many(
                "INSERT OR REPLACE INTO states VALUES (?, ?)",
                ((one.key, one.state) for one in group.series if one.state is not None),
            )
            many("INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?, ?)", map(_observation_row, group.observations))
            many(
                "INSERT INTO ids VALUES (?, ?, ?, ?, ?)",
                (
                    (one.key, one.id, one.digest, one.number, one.received)
                    for one in group.observations
                    if one.id is not None
                ),
            )
            many(
                "DELETE FROM observations WHERE key = ? AND number <= ?",
                (
                    (one.key, one.number - self._retention.history)
                    for one in group.observations
                    if one.number % PRUNE_EVERY == 0
                ),
            )
            many(
                "INSERT INTO outgoing (kind, series, content) VALUES (?, ?, ?)",
                ((one.kind, to_text(one.series), to_text(one.content)) for one in group.outgoing),
            )
            many(SAVE_DEAD, map(_dead_row, group.dead))
            if group.position is not None:
                run("INSERT OR REPLACE INTO positions VALUES (?, ?)", (group.feed, group.position))
            (last,) = run("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outgoing'").fetchone()
        return last

    def position(self, feed: str) -> int:
        """How far a feed was taken."""
        return self._read_own("SELECT coalesce(max(position), 0) FROM positions WHERE feed = ?", (feed,))[0][0]

    def open_names(self, after: int, limit: int) -> list[tuple[int, Id]]:
        """Series that are not archived."""
        query = "SELECT key, name FROM series WHERE key > ? AND archived = 0 ORDER BY key LIMIT ?"
        return [(key, _parsed(name)) for key, name in self._read_own(query, (after, limit))]

    def archive(self, before: float) -> list[Id]:
        """Archive silent series."""
        with self._transaction() as run:
            rows = run("UPDATE series SET archived = 1 WHERE archived = 0 AND updated < ? RETURNING name", (before,))
            return [_parsed(name) for (name,) in rows.fetchall()]

    def clean(self, now: float) -> None:
        """Remove old event ids, outgoing entries and dead letters."""
        kept = self._retention
        with self._transaction() as run:
            run("DELETE FROM ids WHERE received < ?", (now - kept.ids,))
            run("DELETE FROM outgoing WHERE number <= (SELECT max(number) FROM outgoing) - ?", (kept.outgoing,))
            run("DELETE FROM dead WHERE number <= (SELECT max(number) FROM dead) - ?", (kept.dead,))

    def counts(self) -> dict[str, int]:
        """Numbers of series."""
        return {name: self._one(f"SELECT count(*) FROM series WHERE {where}") for name, where in SHOWN.items()}

    def find(self, name: Id) -> SeriesRecord | None:
        """A series without its state."""
        rows = self._read(f"SELECT {FIELDS.format(state='NULL')} FROM series WHERE name = ?", (to_text(name),))
        return _record(rows[0]) if rows else None

    def page(self, query: Query) -> tuple[int, Sequence[SeriesRecord]]:
        """A page of series, without their states."""
        where, values = SHOWN[query.show], []
        if query.search:
            where += " AND instr(lower(name), lower(?))"
            values.append(to_text(query.search)[1:-1])
        down, up = ("ASC", "DESC") if query.reverse else ("DESC", "ASC")
        order, fields = ORDERS[query.sort].format(down=down, up=up), FIELDS.format(state="NULL")
        rows = self._read(
            f"SELECT {fields} FROM series WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",
            (*values, query.limit, query.offset),
        )
        return self._one(f"SELECT count(*) FROM series WHERE {where}", *values), [_record(row) for row in rows]

    def history(self, key: int, limit: int) -> list[Observation]:
        """The last observations of a series."""
        query = "SELECT * FROM observations WHERE key = ? ORDER BY number DESC LIMIT ?"
        rows = self._read(query, (key, min(limit, self._retention.history)))
        return [Observation(*row[:3], *map(_parsed, row[3:])) for row in reversed(rows)]

    def outgoing(self, after: int, limit: int) -> list[Outgoing]:
        """What subscribers were told."""
        query = "SELECT kind, series, content, number FROM outgoing WHERE number > ? ORDER BY number LIMIT ?"
        rows = self._read(query, (after, limit))
        return [Outgoing(kind, _parsed(series), _parsed(content), number) for kind, series, content, number in rows]

    def outgoing_range(self) -> tuple[int, int]:
        """Numbers of the oldest and the newest entry."""
        newest = self._one("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outgoing'")
        return self._one("SELECT coalesce(min(number), ?) FROM outgoing", newest + 1), newest

    def dead_letters(self, limit: int) -> list[DeadLetter]:
        """Refused observations."""
        query = "SELECT received, reason, error, content, times FROM dead ORDER BY received DESC, number DESC LIMIT ?"
        return [DeadLetter(*row) for row in self._read(query, (limit,))]

    def close(self) -> None:
        """Close both connections; the log becomes part of the file."""
        with self._lock:
            self._reader.close()
        self._writer.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A transaction that is on the disk at the end of the context, or is undone."""
        run = self._writer.execute
        try:
            run("BEGIN IMMEDIATE")
            try:
                yield run
                run("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    run("ROLLBACK")
                raise
        except (sqlite3.Error, OSError) as error:
            raise self._broken("written", error) from error

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._lock:
                return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._broken("read", error) from error

    def _read_own(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Read by the connection that writes, which no page keeps waiting."""
        try:
            return self._writer.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._broken("read", error) from error

    def _one(self, query: str, *values: Any) -> int:
        return self._read(query, values)[0][0]

    def _broken(self, what: str, error: Exception) -> StoreError:
        return StoreError(
            f"The store {self._path} cannot be {what}: {error}.",
            "Check the permissions and the free space of its folder; if the file is damaged, restore a backup.",
        )


def _series_row(one: SeriesRecord) -> tuple[Any, ...]:
    prediction = None if one.predicted is None else to_text(one.prediction)
    predicted = None if one.predicted is None else to_text(one.predicted)
    place = (one.events, to_text(one.stamp), one.time, predicted, prediction, one.risk)
    alerts = to_text(list(one.alerts))
    return (one.key, to_text(one.name), one.began, one.updated, *place, alerts, int(one.archived))


def _observation_row(one: Observation) -> tuple[Any, ...]:
    predicted = (None, None) if one.predicted is None else (to_text(one.predicted), to_text(one.prediction))
    return one.key, one.number, one.received, to_text(one.stamp), to_text(one.values), *predicted


def _dead_row(one: DeadLetter) -> tuple[Any, ...]:
    digest = hashlib.sha256(one.reason.encode() + b"\0" + one.text).digest()
    return digest, one.received, one.reason, one.error, one.text


def _record(row: Sequence[Any]) -> SeriesRecord:
    key, name, state, began, updated, events, stamp, time, predicted, prediction, risk, alerts, archived = row
    parsed = (_parsed(stamp), time, _parsed(predicted), _parsed(prediction), risk, tuple(_parsed(alerts)))
    return SeriesRecord(key, _parsed(name), state, began, updated, events, *parsed, bool(archived))


def _parsed(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
