"""Both stores alike: everything of a group or nothing, one owner of a partition, models; and what each refuses."""

import contextlib
import dataclasses
import sqlite3

import psycopg
import pytest

from logcde.errors import ArtefactError
from logcde.serve.postgres import CLAIMED, LEASE, PostgresStore
from logcde.serve.sql import PRUNE_EVERY
from logcde.serve.sqlite import SqliteStore
from logcde.serve.store import (
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
    StoreError,
)
from tests.serve.servers import Postgres, running
from tests.serve.serving import wait_until

MODELS = ("ab",)
FEW = Retention(history=40, outgoing=3, dead=2)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """Opens the same store again and again, with some models."""
    url = request.getfixturevalue("postgres").new() if request.param == "postgres" else None

    @contextlib.contextmanager
    def opening(*models, **more):
        given = (models or MODELS, more.get("facts"), more.get("retention", FEW))
        store = PostgresStore(url, *given) if url else SqliteStore(tmp_path / "state.db", *given)
        with contextlib.closing(store):
            yield store

    return opening


@pytest.fixture
def store(opened):
    with opened() as one:
        yield one


def lease_of(store, partition=0):
    return next(one for one in store.claim("http", [partition]).leases if one.partition == partition)


def record(key, name, risk=0.5, updated=1.0, alerts=(), partition=0, states=(b"state",), revision=1):
    times = (0.0, updated, 1, "2024-01-01", 0.5)
    return SeriesRecord(key, name, partition, states, revision, *times, 0.5, [risk], risk, alerts, {"risk": None})


def everything(store):
    """All that can be read."""
    return (
        store.load(["p1", "p2"]),
        store.page(Query()),
        store.history(1, 100),
        store.outgoing(0, 100),
        store.outgoing_range(),
        store.dead_letters(100),
        store.progress(lease_of(store)),
        store.accepted({(1, "e1\0"), (1, "e2"), (2, "e1\0")}),
        store.counts(),
    )


def a_group(lease):
    seen = {"pulse": 1.0, "temp": None}
    return Group(
        lease,
        7,
        [record(1, "p1")],
        [Observation(1, 1, 2.0, 0.5, seen, 0.5, [None], 0.25, [1.5], {"load": 1.0}, "e1\0", b"digest\0")],
        [Outgoing("prediction", "p1", {"time": 0.5})],
        [DeadLetter(1.0, "late", "too\0late", b"\xff{\0"), DeadLetter(2.0, "late", "too late", b"\xff{\0")],
    )


def test_a_group_is_kept_or_nothing_of_it(opened):
    with opened() as store:
        lease, key, empty = lease_of(store), store.new_key(), everything(store)
        # The last statement of the transaction fails.
        with pytest.raises(StoreError, match=r"cannot be written"):
            store.commit(dataclasses.replace(a_group(lease), outgoing=[Outgoing(None, "p1", {})]))
        assert everything(store) == empty
        assert store.commit(a_group(lease)) == 1
        kept = everything(store)
        assert kept[0] == [record(1, "p1")]
        assert kept[2] == [dataclasses.replace(a_group(lease).observations[0], id=None, digest=b"")]
        assert kept[5] == [DeadLetter(2.0, "late", "too␀late", b"\xff{\0", 2)]
        assert kept[6] == Progress(7, 0)
        assert {pair: one.digest for pair, one in kept[7].items()} == {(1, "e1\0"): b"digest\0"}
        assert store.commit(Group(lease)) == 0
    with opened() as again:
        assert everything(again) == kept
        assert again.new_key() > key


def test_a_partition_has_one_owner(opened):
    with opened() as store:
        first = lease_of(store)
        assert lease_of(store) == first  # claimed again, it is the same
        store.commit(a_group(first))
    with opened() as store:
        second = lease_of(store)
        assert second == Lease("http", 0, first.epoch + 1)
        before = everything(store)
        for stale in (first, Lease("http", 1, 1), Lease("nats:x", 0, second.epoch)):
            with pytest.raises(FencedError, match="was taken over by another process"):
                store.commit(Group(stale, 9, [record(2, "p2")], outgoing=[Outgoing("prediction", "p2", {})]))
            with pytest.raises(FencedError):
                store.archive(stale, 1e9)
        assert everything(store) == before
        store.commit(Group(second, 9))
        assert store.progress(second).position == 9


def test_states_are_those_of_models_that_followed(opened):
    with opened("old", "new") as store:
        lease = lease_of(store)
        store.commit(Group(lease, series=[record(1, "a", states=(b"1", None)), record(2, "b", states=(b"2", b"3"))]))
        assert [one.states for one in store.load(["a", "b", "c"])] == [(b"1", None), (b"2", b"3")]
        assert store.unfollowed(lease, 0, 9) == [(1, "a")]
        store.commit(Group(lease, series=[record(1, "a", states=(), revision=1)]))
        assert store.load(["a"])[0].states == (b"1", None)
    with opened("new", "old") as store:
        assert sorted((one.name, one.states) for one in store.load(["a", "b"])) == [
            ("a", (None, b"1")), ("b", (b"3", b"2")),
        ]  # fmt: skip
        store.commit(Group(lease_of(store), series=[record(1, "a", states=(b"4", b"5"), revision=2)]))
    with opened("new") as store:  # the old one knows nothing of what comes now
        store.commit(Group(lease_of(store), series=[record(1, "a", states=(b"6",), revision=3)]))
    with opened("old", "new") as store:
        assert sorted((one.name, one.states) for one in store.load(["a", "b"])) == [
            ("a", (None, b"6")), ("b", (b"2", b"3")),
        ]  # fmt: skip
    with pytest.raises(ArtefactError, match=r"1 of its open series have no state of old.*by --beside"), opened("old"):
        pass
    with opened("old", "new") as store:
        store.archive(lease_of(store), 10.0)
    with opened("old") as store:
        assert {one.name: one.states for one in store.load(["a", "b"])} == {"a": (None,), "b": (b"2",)}


def test_lists_are_sorted_searched_and_cut(store):
    names = ["p1", 'a"b\n', 7, "é_%", "P2"]
    risks = [0.1, None, 0.9, 0.5, 0.7]
    lease = lease_of(store)
    store.commit(
        Group(
            lease,
            series=[
                record(key + 1, name, risk, updated=float(-key), alerts=("x",) * (name == 7))
                for key, (name, risk) in enumerate(zip(names, risks, strict=True))
            ],
        )
    )

    def found(**query):
        total, rows = store.page(Query(**query))
        return total, [one.name for one in rows]

    assert found() == (5, [7, "P2", "é_%", "p1", 'a"b\n'])
    assert found(reverse=True)[1] == ["p1", "é_%", "P2", 7, 'a"b\n']
    assert found(sort="updated", limit=2, offset=1) == (5, ['a"b\n', 7])
    assert found(sort="name")[1] == ["P2", 'a"b\n', "p1", "é_%", 7]
    assert found(search="p") == (2, ["P2", "p1"])
    assert found(search='"b\n')[1] == ['a"b\n']
    assert found(search="_%")[1] == ["é_%"]
    assert found(search="!")[1] == []
    assert found(search="' OR 1=1 --") == (0, [])
    assert found(show="alert") == (1, [7])
    assert sorted(store.archive(lease, -2.5), key=str) == ["P2", "é_%"]
    assert found(show="archived")[0] == 2
    assert store.counts() == {"open": 3, "archived": 2, "alert": 1}
    assert [name for _, name in store.open_names(lease, 1, 5)] == ['a"b\n', 7]


def test_what_is_old_is_removed_and_numbers_go_on(opened):
    with opened() as store:
        lease = lease_of(store)
        last = 2 * PRUNE_EVERY + 40
        for number in range(1, last + 1):
            store.commit(
                Group(
                    lease,
                    series=[dataclasses.replace(record(1, "p1"), events=number)],
                    observations=[Observation(1, number, float(number), 0.5, {}, None, None, id=f"e{number}")],
                    outgoing=[Outgoing("alert", "p1", {"number": number})],
                    dead=[DeadLetter(1.0, "late", "too late", b"%d" % (number % 4))],
                )
            )
        assert [one.number for one in store.history(1, 1000)] == list(range(last - 39, last + 1))
        assert {one.times for one in store.dead_letters(10)} == {last / 4}
        store.clean(now=7 * 86_400.0 + 50.5)
        assert set(store.accepted({(1, "e50"), (1, "e51")})) == {(1, "e51")}
        assert store.outgoing_range() == (last - 2, last)
        assert len(store.dead_letters(10)) == 2
    with opened() as again:
        assert again.commit(Group(lease_of(again), outgoing=[Outgoing("alert", "p1", {})])) == last + 1


def test_what_is_not_published_yet_is_kept(opened):
    with opened() as store:
        (lease,) = store.claim("http", [0], publishes=True).leases
        for number in range(8):
            store.commit(Group(lease, outgoing=[Outgoing("alert", "p1", {"number": number})]))
        store.published(lease, 2)
        store.published(lease, 1)  # told late
        store.clean(0.0)
        assert store.outgoing_range() == (3, 8)
        assert store.progress(lease) == Progress(0, 2)
        assert [one.content["number"] for one in store.unpublished(lease, 2, 3)] == [2, 3, 4]
    with opened() as store:  # nobody is waiting any more
        store.claim("http", [0])
        store.clean(0.0)
        assert store.outgoing_range() == (6, 8)
    with opened() as store:  # somebody begins to wait
        (lease,) = store.claim("http", [0], publishes=True).leases
        assert store.progress(lease) == Progress(0, 8)


def test_other_facts_and_formats_are_refused(opened):
    with opened(facts={"reordering": "no"}):
        pass
    with (
        pytest.raises(ArtefactError, match=r"belongs to another reordering: no, not yes. Serve it with the"),
        opened(facts={"reordering": "yes"}),
    ):
        pass


def test_files_that_are_not_its_own_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "state.db"
    SqliteStore(path, MODELS).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ArtefactError, match="has format 99"):
        SqliteStore(path, MODELS)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE accounts (name)")
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(ArtefactError, match="is a database of another program"):
        SqliteStore(tmp_path / "other.db", MODELS)
    assert (tmp_path / "other.db").read_bytes() == before
    (tmp_path / "text.db").write_text("no database, but a text that is longer than the header of one" * 9)
    for place in (tmp_path / "text.db", tmp_path):
        with pytest.raises(ArtefactError, match=r"cannot be read as the store.*Put a backup in its place"):
            SqliteStore(place, MODELS)


def test_damage_is_told(tmp_path):
    path = tmp_path / "state.db"
    with contextlib.closing(SqliteStore(path, MODELS)) as store:
        store.commit(Group(lease_of(store), series=[record(key, f"p{key}") for key in range(1, 500)]))
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 12] = b"\x5a" * (4096 * 10)
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=r"cannot be read as the store.*Put a backup in its place"):
        SqliteStore(path, MODELS)
    path.write_bytes(content[: 4096 * 3 + 100])
    with pytest.raises(ArtefactError, match=r"cannot be read as the store.*Put a backup in its place"):
        SqliteStore(path, MODELS)


def test_databases_that_cannot_be_used_are_told(postgres):
    for url, words in {
        "postgresql://me:secret@127.0.0.1:1/x": r"postgresql://127.0.0.1:1/x cannot be opened.*Check the address",
        postgres.url("none"): 'database "none" does not exist',
        "postgresql://[": "The address of the store cannot be read",
    }.items():
        with pytest.raises(ArtefactError, match=words) as caught:
            PostgresStore(url, MODELS)
        assert "secret" not in str(caught.value)
    url = postgres.new()
    PostgresStore(url, MODELS).close()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE logcde.facts SET value = '99' WHERE name = 'format'")
    with pytest.raises(ArtefactError, match="has format 99"):
        PostgresStore(url, MODELS)


def test_processes_share_partitions_fairly(postgres):
    url = postgres.new()
    with contextlib.ExitStack() as until_done:
        one, two = (until_done.enter_context(contextlib.closing(PostgresStore(url, MODELS))) for _ in range(2))
        wanted = [0, 1, 2]
        claim = one.claim("nats:x", wanted)
        assert [lease.partition for lease in claim.leases] == wanted
        assert two.claim("nats:x", wanted).leases == []
        again = one.claim("nats:x", wanted)
        assert (again.leases, again.fair) == (claim.leases, 2)
        one.release(claim.leases[2])
        assert two.claim("nats:x", wanted).leases == [Lease("nats:x", 2, 2)]
        assert one.claim("nats:x", wanted).leases == claim.leases[:2]
        # A worker whose connection is gone is gone, and so are its groups when it comes back.
        one._writer.close()
        wait_until(lambda: len(two.claim("nats:x", wanted).leases) == 3)
        with pytest.raises(FencedError):
            one.commit(Group(claim.leases[0], 5))
        assert one.claim("nats:x", wanted).leases == []
        with pytest.raises(ArtefactError, match="takes observations from nats:x at present, not from http"):
            one.claim("http", [0])
    with contextlib.closing(PostgresStore(url, MODELS)) as three:  # the others have left
        assert [lease.epoch for lease in three.claim("nats:x", wanted).leases] == [3, 3, 3]


def test_a_worker_that_stands_still_loses_its_partitions(postgres, monkeypatch):
    monkeypatch.setattr("logcde.serve.postgres.CLAIMED", CLAIMED.replace(f"+ {LEASE}", "- 1.0"))
    url = postgres.new()
    with (
        contextlib.closing(PostgresStore(url, MODELS)) as still,
        contextlib.closing(PostgresStore(url, MODELS)) as other,
    ):
        (lease,) = still.claim("http", [0]).leases
        monkeypatch.undo()
        assert other.claim("http", [0]).leases == [Lease("http", 0, lease.epoch + 1)]
        with pytest.raises(FencedError):
            still.commit(Group(lease, 1))


def test_the_store_comes_back_with_its_server(tmp_path_factory):
    with (
        running(Postgres(tmp_path_factory.mktemp("killed"))) as server,
        contextlib.closing(PostgresStore(server.new(), MODELS)) as store,
    ):
        (lease,) = store.claim("http", [0]).leases
        store.commit(a_group(lease))
        kept = store.load(["p1"]), store.outgoing(0, 9), store.counts()
        with store._pool.connection(), store._pool.connection(), store._pool.connection():
            pass  # readers of several pages, whose connections all die with the server
        server.kill()
        with pytest.raises(StoreError, match="cannot be written"):
            store.commit(Group(lease, 8))
        with pytest.raises(StoreError, match="cannot be read"):
            store.counts()
        server.start()
        assert (store.load(["p1"]), store.outgoing(0, 9), store.counts()) == kept
        store.commit(Group(lease, 8))
        assert store.progress(lease).position == 8
