"""The embedded store: one SQLite file with a write-ahead log."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from logcde.errors import ArtefactError
from logcde.serve.sql import AbstractSqlStore, Run
from logcde.serve.store import Claim, Lease, Retention, StoreError
from logcde.serve.tables import FORMAT, TABLES, schema

APPLICATION = 0x6C636465
"""Identifies the file, as `PRAGMA application_id`."""
SETTINGS = ("synchronous = FULL", "cache_size = -65536", "wal_autocheckpoint = 8192", "temp_store = MEMORY")
"""Every commit is on the disk. With the default sizes, large groups are written twice at once, and read again."""


class SqliteStore(AbstractSqlStore):
    """A store in one file, which one process has open. A group is durable once its transaction is on the disk.

    Args:
        path: The file, which is created if it is missing.
        models: Checksums of the models that are served; a store with series of other ones is refused.
        facts: What else the states depend on; a store with other facts is refused.
        retention: How much is kept.

    >>> import tempfile
    >>> from logcde.serve.store import Group, SeriesRecord
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteStore(Path(folder, "state.db"), ["ab"])
    ...     (lease,) = store.claim("http", [0]).leases
    ...     record = SeriesRecord(
    ...         store.new_key(), "p1", 0, (b"state",), 1, 0.0, 1.0, 1, 0.5, 0.5, 0.5, [0.25], 0.25, ()
    ...     )
    ...     _ = store.commit(Group(lease, position=1, series=[record]))
    ...     store.load(["p1"]) == [record], store.progress(lease).position
    ...     store.close()
    (True, 1)
    """

    shared = False

    def __init__(
        self,
        path: Path,
        models: Sequence[str],
        facts: dict[str, str] | None = None,
        retention: Retention = Retention(),
    ) -> None:
        self._path, self.name, self.retention = path, str(path), retention
        self._lock = threading.Lock()
        self._leases: dict[tuple[str, int], Lease] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as unless_opened:
            try:
                self._writer = unless_opened.enter_context(contextlib.closing(self._open()))
                self._prepare(models, facts or {})
                self._reader = self._open()
                self._last_key = self._one("SELECT coalesce(max(key), 0) FROM series")
            except (sqlite3.Error, OSError, ValueError) as error:
                raise self._unreadable(error) from error
            unless_opened.pop_all()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10.0)
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        return connection

    def _prepare(self, models: Sequence[str], facts: dict[str, str]) -> None:
        """Check the file, or fill a new one."""
        writer = self._writer
        (application,) = writer.execute("PRAGMA application_id").fetchone()
        (format,) = writer.execute("PRAGMA user_version").fetchone()
        if application == 0 and not writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            writer.execute("PRAGMA journal_mode = WAL")
            with self._transaction() as run:
                for statement in schema("BLOB", " WITHOUT ROWID"):
                    run(statement)
                self._adopt(run, models, facts)
                run(f"PRAGMA application_id = {APPLICATION}")
                run(f"PRAGMA user_version = {FORMAT}")
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
        with self._transaction() as run:
            self._adopt(run, models, facts)

    def _unreadable(self, error: Exception) -> ArtefactError:
        if isinstance(error, ArtefactError):
            return error
        return ArtefactError(
            f"{self._path} cannot be read as the store of a service: {error}.",
            "Put a backup in its place, or move it away (with its -wal and -shm files) to begin anew.",
        )

    def claim(self, feed: str, wanted: Sequence[int], publishes: bool = False) -> Claim:
        """All that is wanted: no other process has the file open."""
        if missing := [part for part in wanted if (feed, part) not in self._leases]:
            newest = "CASE WHEN ? THEN coalesce(published, (SELECT value FROM counters WHERE name = 'outgoing')) END"
            with self._transaction() as run:
                run("UPDATE leases SET published = NULL WHERE feed != ?", (feed,))
                for part in missing:
                    clause = "ON CONFLICT (feed, part) DO UPDATE SET epoch = leases.epoch + 1"
                    self._insert(run, "leases", [(feed, part, 1, None, 0, None)], clause)
                    place = (feed, part)
                    run(f"UPDATE leases SET published = {newest} WHERE feed = ? AND part = ?", (publishes, *place))
                    (epoch,) = run("SELECT epoch FROM leases WHERE feed = ? AND part = ?", place).fetchone()
                    self._leases[place] = Lease(feed, part, epoch)
        return Claim([self._leases[feed, part] for part in wanted], len(wanted))

    def release(self, lease: Lease) -> None:
        """Let this process claim the partition anew."""
        self._leases.pop((lease.feed, lease.partition), None)

    def new_key(self) -> int:
        """A number that no series has had."""
        self._last_key += 1
        return self._last_key

    def close(self) -> None:
        """Close both connections; the log becomes part of the file."""
        with self._lock:
            self._reader.close()
        self._writer.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Run]:
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
        try:
            return self._writer.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._broken("read", error) from error

    def _insert(self, run: Run, table: str, rows: Iterable[Sequence[Any]], clause: str = "") -> None:
        marks = ", ".join("?" * len(TABLES[table]))
        self._writer.executemany(f"INSERT INTO {table} VALUES ({marks}) {clause}", rows)

    def _prune(self, run: Run, keys: Sequence[int]) -> None:
        self._writer.executemany(
            "DELETE FROM observations WHERE key = ?1 AND number <= (SELECT events FROM series WHERE key = ?1) - ?2",
            ((key, self.retention.history) for key in keys),
        )

    def _broken(self, what: str, error: Exception) -> StoreError:
        return StoreError(
            f"The store {self._path} cannot be {what}: {error}.",
            "Check the permissions and the free space of its folder; if the file is damaged, restore a backup.",
        )
