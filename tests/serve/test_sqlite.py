"""The embedded store: everything of a group or nothing, one model, and files that it refuses."""

import contextlib
import dataclasses
import sqlite3

import pytest

from logcde.errors import ArtefactError
from logcde.serve.sqlite import PRUNE_EVERY, SqliteStore
from logcde.serve.store import DeadLetter, Group, Observation, Outgoing, Query, Retention, SeriesRecord, StoreError

FACTS = {"model": "ab"}


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(
        SqliteStore(tmp_path / "state.db", FACTS, Retention(history=40, outgoing=3, dead=2))
    ) as one:
        yield one


def record(key, name, risk=0.5, updated=1.0, alerts=()):
    return SeriesRecord(key, name, b"state", 0.0, updated, 1, "2024-01-01", 0.5, 0.5, [risk], risk, alerts)


def everything(store):
    """All that can be read."""
    return (
        store.load("p1"),
        store.page(Query()),
        store.history(1, 100),
        store.outgoing(0, 100),
        store.dead_letters(100),
        store.position("http"),
        store.accepted(1, "e1"),
    )


def a_group():
    return Group(
        "http",
        7,
        [record(1, "p1")],
        [Observation(1, 1, 2.0, 0.5, {"pulse": 1.0, "temp": None}, 0.5, [None], "e1", b"digest")],
        [Outgoing("prediction", "p1", {"time": 0.5})],
        [DeadLetter(1.0, "late", "too late", b"\xff{")],
    )


def test_a_group_is_kept_or_nothing_of_it(store, tmp_path):
    empty = everything(store)
    # The last statement of the transaction fails: the position is no number.
    with pytest.raises(StoreError, match=r"cannot be written.*Check the permissions"):
        store.commit(dataclasses.replace(a_group(), position=object()))
    assert everything(store) == empty
    assert store.commit(a_group()) == 1
    kept = everything(store)
    assert kept[0] == record(1, "p1")
    assert kept[2] == [dataclasses.replace(a_group().observations[0], id=None, digest=b"")]
    assert kept[5] == 7
    store.close()
    with contextlib.closing(SqliteStore(tmp_path / "state.db", FACTS)) as again:
        assert everything(again) == kept
        assert again.new_key() == 2


def test_lists_are_sorted_searched_and_cut(store):
    names = ["p1", 'a"b\n', 7, "é_%", "P2"]
    risks = [0.1, None, 0.9, 0.5, 0.7]
    store.commit(
        Group(
            "http",
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
    assert found(search="' OR 1=1 --") == (0, [])
    assert found(show="alert") == (1, [7])
    assert sorted(store.archive(-2.5), key=str) == ["P2", "é_%"]
    assert found(show="archived")[0] == 2
    assert store.counts() == {"open": 3, "archived": 2, "alert": 1}
    assert [name for _, name in store.open_names(1, 5)] == ['a"b\n', 7]


def test_what_is_old_is_removed_and_numbers_go_on(store, tmp_path):
    for number in range(1, 2 * PRUNE_EVERY + 41):
        store.commit(
            Group(
                "http",
                observations=[Observation(1, number, float(number), 0.5, {}, None, None, f"e{number}", b"")],
                outgoing=[Outgoing("alert", "p1", {"number": number})],
                dead=[DeadLetter(1.0, "late", "too late", b"%d" % (number % 4))],
            )
        )
    assert [one.number for one in store.history(1, 1000)][-1] == 2 * PRUNE_EVERY + 40
    assert len(store.history(1, 1000)) == 40
    assert {one.times for one in store.dead_letters(10)} == {26}
    last = store.outgoing_range()[1]
    store.clean(now=7 * 86_400.0 + 50.5)
    assert (store.accepted(1, "e50"), store.accepted(1, "e51") is None) == (None, False)
    assert store.outgoing_range() == (last - 2, last)
    assert len(store.dead_letters(10)) == 2
    store.close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("DELETE FROM outgoing")
    connection.close()
    with contextlib.closing(SqliteStore(tmp_path / "state.db", FACTS)) as again:
        assert again.outgoing_range() == (last + 1, last)
        assert again.commit(Group("http", outgoing=[Outgoing("alert", "p1", {})])) == last + 1


def test_stores_that_are_not_its_own_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "state.db"
    SqliteStore(path, FACTS).close()
    with pytest.raises(ArtefactError, match=r"belongs to another model: ab, not cd. Serve it with the model that"):
        SqliteStore(path, {"model": "cd"})
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ArtefactError, match="has format 99"):
        SqliteStore(path, FACTS)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE accounts (name)")
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(ArtefactError, match="is a database of another program"):
        SqliteStore(tmp_path / "other.db", FACTS)
    assert (tmp_path / "other.db").read_bytes() == before
    (tmp_path / "text.db").write_text("no database, but a text that is longer than the header of one" * 9)
    for place in (tmp_path / "text.db", tmp_path):
        with pytest.raises(ArtefactError, match=r"cannot be read as the store.*Put a backup in its place"):
            SqliteStore(place, FACTS)


def test_damage_is_told(tmp_path):
    path = tmp_path / "state.db"
    with contextlib.closing(SqliteStore(path, FACTS)) as store:
        store.commit(Group("http", series=[record(key, f"p{key}") for key in range(1, 500)]))
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 12] = b"\x5a" * (4096 * 10)
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=r"cannot be read as the store.*Put a backup in its place"):
        SqliteStore(path, FACTS)
    path.write_bytes(content[: 4096 * 3 + 100])
    with pytest.raises(ArtefactError, match=r"cannot be read as the store.*Put a backup in its place"):
        SqliteStore(path, FACTS)
