"""The store that several processes share: PostgreSQL. The only place that imports psycopg.

A process has a partition while its row in `workers` is young and its connection is there, by the clock of the database.
Another process takes over what is free, and counts `epoch` up, so a group of the one before is refused, whenever it
comes. Groups are committed by one connection; what pages read comes from a pool.
"""

import contextlib
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from logcde.errors import ArtefactError
from logcde.serve.sql import AbstractSqlStore, Run
from logcde.serve.store import Claim, Lease, Retention, StoreError
from logcde.serve.tables import FORMAT, TABLES, schema

SCHEMA = "logcde"
"""Of the database, in which all tables are."""
LEASE = 10.0
"""Seconds after which a process that does not claim its partitions again loses them."""
KEYS_AT_ONCE = 100
PREPARING, CLAIMING = 0x6C636401, 0x6C636402
"""Advisory locks."""
SESSION = (
    f"-csearch_path={SCHEMA} -csynchronous_commit=on -clock_timeout=10s -cstatement_timeout=60s "
    # A process that is stopped within a transaction must not keep the others waiting.
    "-cidle_in_transaction_session_timeout=10s"
)
WORKERS = """
CREATE TABLE workers (owner TEXT PRIMARY KEY, feed TEXT NOT NULL, wanted TEXT NOT NULL, until DOUBLE PRECISION NOT NULL,
    process BIGINT NOT NULL, began DOUBLE PRECISION NOT NULL)
"""
NOW = "extract(epoch FROM clock_timestamp())::float8"
BEGAN = "extract(epoch FROM backend_start)::float8"
CLAIMED = f"""
INSERT INTO workers SELECT ?, ?, ?, {NOW} + {LEASE}, pid, {BEGAN} FROM pg_stat_activity WHERE pid = pg_backend_pid()
ON CONFLICT (owner) DO UPDATE SET feed = excluded.feed, wanted = excluded.wanted, until = excluded.until,
    process = excluded.process, began = excluded.began
"""
ALIVE = f"""
SELECT owner, feed, wanted FROM workers WHERE until > {NOW}
    AND EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = process AND {BEGAN} = began)
"""
TAKE = """
ON CONFLICT (feed, part) DO UPDATE SET owner = excluded.owner, epoch = leases.epoch + 1
"""


class PostgresStore(AbstractSqlStore):
    """A store in a PostgreSQL database, in the schema `logcde`, which it creates.

    Args:
        url: The database, as libpq takes it: `postgresql://user@host/name`.
        models: Checksums of the models that are served; a store with series of other ones is refused.
        facts: What else the states depend on; a store with other facts is refused.
        retention: How much is kept.
    """

    shared = True

    def __init__(
        self,
        url: str,
        models: Sequence[str],
        facts: dict[str, str] | None = None,
        retention: Retention = Retention(),
    ) -> None:
        self.retention, self.owner = retention, uuid.uuid4().hex
        try:
            given = conninfo_to_dict(url)
            options = f"{given.pop('options', '')} {SESSION}".strip()
            self.name = _shown(given)
            self._conninfo = make_conninfo(
                "",
                **{"connect_timeout": 5, "tcp_user_timeout": 15_000, "application_name": "logcde"} | given,
                options=options,
            )
        except psycopg.Error as error:
            raise ArtefactError(
                f"The address of the store cannot be read: {error}.", "Give postgresql://user@host:5432/database."
            ) from error
        self._writer: psycopg.Connection | None = None
        self._keys: list[int] = []
        self._pool = psycopg_pool.ConnectionPool(
            self._conninfo,
            min_size=1,
            max_size=8,
            timeout=5.0,
            open=False,
            # Connections that died with a server are replaced, not handed to readers when it is back.
            check=psycopg_pool.ConnectionPool.check_connection,
            kwargs={"autocommit": True},
        )
        try:
            with self._transaction() as run:
                self._prepare(run, models, facts or {})
        except StoreError as error:
            self.close()
            raise ArtefactError(
                f"The store {self.name} cannot be opened: {error.found}",
                "Check the address, the server, and that the user may create a schema in the database.",
            ) from error
        except BaseException:
            self.close()
            raise
        self._pool.open()

    def _prepare(self, run: Run, models: Sequence[str], facts: dict[str, str]) -> None:
        """Check the tables, or create them; one process at a time."""
        run("SELECT pg_advisory_xact_lock(?)", (PREPARING,))
        (there,) = run("SELECT to_regclass('facts') IS NOT NULL").fetchone()
        if there:
            rows = run("SELECT value FROM facts WHERE name = 'format'").fetchall()
            if rows != [(str(FORMAT),)]:
                raise ArtefactError(
                    f"The store {self.name} has format {rows[0][0] if rows else 'none'}; this version of logcde reads "
                    f"{FORMAT}.",
                    "Serve it with the version that wrote it, or name another database with --store.",
                )
        else:
            run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            for statement in (*schema("BYTEA"), WORKERS, "CREATE SEQUENCE series_keys"):
                # Ids are sorted as in SQLite, by their bytes.
                run(statement.replace("name TEXT", 'name TEXT COLLATE "C"'))
        self._adopt(run, models, {"format": str(FORMAT)} | facts)

    def claim(self, feed: str, wanted: Sequence[int], publishes: bool = False) -> Claim:
        """Register this process, and take free partitions up to a fair share."""
        with self._transaction() as run:
            run("SELECT pg_advisory_xact_lock(?)", (CLAIMING,))
            run(CLAIMED, (self.owner, feed, msgspec.json.encode(list(wanted)).decode()))
            alive = {owner: (theirs, set(msgspec.json.decode(parts))) for owner, theirs, parts in run(ALIVE).fetchall()}
            run(f"DELETE FROM workers WHERE until < {NOW} - 3600")
            if others := {theirs for theirs, _ in alive.values()} - {feed}:
                raise ArtefactError(
                    f"The store {self.name} takes observations from {', '.join(sorted(others))} at present, not from "
                    f"{feed}.",
                    "End the processes that do, or name another store.",
                )
            rivals = sum(not parts.isdisjoint(wanted) for _, parts in alive.values())
            fair = math.ceil(len(wanted) / max(rivals, 1))
            held = {
                part: (epoch, owner)
                for part, epoch, owner in run(
                    "SELECT part, epoch, owner FROM leases WHERE feed = ?", (feed,)
                ).fetchall()
                if owner in alive
            }
            mine = {part: epoch for part, (epoch, owner) in held.items() if owner == self.owner and part in wanted}
            free = [part for part in wanted if part not in held][: max(0, fair - len(mine))]
            if free:
                run("UPDATE leases SET published = NULL WHERE feed != ?", (feed,))
                self._insert(run, "leases", ((feed, part, 1, self.owner, 0, None) for part in free), TAKE)
                run(
                    "UPDATE leases SET published = CASE WHEN ? THEN coalesce(published, (SELECT value FROM counters "
                    "WHERE name = 'outgoing')) END WHERE feed = ? AND part = ANY(?)",
                    (publishes, feed, free),
                )
                taken = run("SELECT part, epoch FROM leases WHERE feed = ? AND part = ANY(?)", (feed, free))
                mine |= dict(taken.fetchall())
        return Claim([Lease(feed, part, mine[part]) for part in sorted(mine)], fair)

    def release(self, lease: Lease) -> None:
        """Leave a partition to others."""
        with self._transaction() as run:
            run(
                "UPDATE leases SET owner = NULL WHERE feed = ? AND part = ? AND owner = ?",
                (lease.feed, lease.partition, self.owner),
            )

    def new_key(self) -> int:
        """A number that no series has had."""
        if not self._keys:
            rows = self._read_own("SELECT nextval('series_keys') FROM generate_series(1, ?)", (KEYS_AT_ONCE,))
            self._keys = [key for (key,) in reversed(rows)]
        return self._keys.pop()

    def close(self) -> None:
        """Leave everything to other processes, and close all connections."""
        self._pool.close()
        if self._writer is None:
            return
        # A server that is gone knows from the connection that this process has nothing any more.
        with contextlib.suppress(psycopg.Error), self._writer:
            self._writer.execute("UPDATE leases SET owner = NULL WHERE owner = %s", (self.owner,))
            self._writer.execute("DELETE FROM workers WHERE owner = %s", (self.owner,))
        self._writer = None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Run]:
        try:
            connection = self._connected()
            with connection.transaction():
                yield lambda query, values=(): connection.execute(_marked(query), values)
        except psycopg.Error as error:
            raise self._broken("written", error) from error

    def _connected(self) -> psycopg.Connection:
        if self._writer is None or self._writer.closed:
            self._writer = psycopg.connect(self._conninfo, autocommit=True)
        return self._writer

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._pool.connection() as connection:
                return connection.execute(_marked(query), values).fetchall()
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            raise self._broken("read", error) from error

    def _read_own(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._connected().execute(_marked(query), values).fetchall()
        except psycopg.Error as error:
            raise self._broken("read", error) from error

    def _insert(self, run: Run, table: str, rows: Iterable[Sequence[Any]], clause: str = "") -> None:
        columns = list(zip(*rows, strict=True))
        if columns:
            arrays = ", ".join(f"?::{type}[]" for type in TABLES[table].values())
            run(f"INSERT INTO {table} SELECT * FROM unnest({arrays}) {clause}", list(map(list, columns)))

    def _prune(self, run: Run, keys: Sequence[int]) -> None:
        if keys:
            run(
                "DELETE FROM observations USING series WHERE series.key = observations.key AND series.key = ANY(?) "
                "AND observations.number <= series.events - ?",
                (list(keys), self.retention.history),
            )

    def _broken(self, what: str, error: Exception) -> StoreError:
        found = " ".join(str(error).split()) or type(error).__name__
        return StoreError(
            f"The store {self.name} cannot be {what}: {found}.",
            "Check that the server runs, can be reached, and has free space.",
        )


def _marked(query: str) -> bytes:
    return query.replace("?", "%s").encode()


def _shown(given: dict[str, Any]) -> str:
    """The address of a database without its password."""
    host, port = given.get("host", "local"), given.get("port", "")
    return f"postgresql://{host}{':' * bool(port)}{port}/{given.get('dbname', '')}"
