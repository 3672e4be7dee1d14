"""HTTP: statuses, forms of bodies, limits, who may ask, hostile ids, many clients at once."""

import asyncio
import json
import sqlite3

import pyarrow
import pytest

from logcde.errors import ModelError
from logcde.serve.access import Address, check_token
from logcde.serve.feed import PostFeed
from logcde.serve.http import Handlers, Limits
from logcde.serve.worker import Worker
from tests.cli.streaming import GOOD, history
from tests.serve.serving import asked, post, service_on

HOSTILE = [
    "</script><script>alert(1)</script>", "../../etc/passwd", "a/b", "a%2Fb?c=d#e", "é☃𝄞", "x\ny", "x\r\ndata: y", "\0",
    "", " ", "...", "'; DROP TABLE series; --", '"', "\\", "7", "-0", "nan", "null", "\u202e\u200b", "metrics", "%00",
    "a" * 250, "a/", "/",
]  # fmt: skip
TOKEN = "0123456789abcdef-token"


@pytest.fixture
def service(tmp_path):
    with service_on(tmp_path / "state.db") as one:
        yield one


def statuses(service, *requests, **options):
    """The answers to requests, one after another: each a method, a path and further arguments."""

    async def ask(client):
        return [await client.request(method, path, **more) for method, path, more in requests]

    return asked(service, ask, **options)


def test_one_observation_a_list_lines_and_arrow(service):
    lines = [GOOD | {"series": name, "id": "e"} for name in ("a", "b", 3)]
    table = pyarrow.table(
        {"series": ["c", "d"], "time": [0.5, 1.0], "pulse": [1.0, None], "temp": [float("nan"), 2.0], "id": [None, "e"]}
    )
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = {
        "content": sink.getvalue().to_pybytes(),
        "headers": {"content-type": "application/vnd.apache.arrow.stream"},
    }
    text = b"\n".join(json.dumps(one).encode() for one in lines) + b"\n\n"
    one, many, again, columns, mixed, none = statuses(
        service,
        ("POST", "/observations", {"json": GOOD}),
        ("POST", "/observations", {"json": lines}),
        ("POST", "/observations", {"content": text, "headers": {"content-type": "application/x-ndjson"}}),
        ("POST", "/observations", arrow),
        ("POST", "/observations", {"json": [GOOD, GOOD | {"time": 0.2}]}),
        ("POST", "/observations", {"json": GOOD | {"time": 0.2}}),
    )
    assert (one.status_code, one.json()["series"]) == (200, "p1")
    assert (many.status_code, many.json()["taken"], many.json()["refused"]) == (200, 3, 0)
    assert [answer["repeated"] for answer in again.json()["answers"]] == [True] * 3
    assert [answer["series"] for answer in columns.json()["answers"]] == ["c", "d"]
    assert service.store.history(service.store.find("d").key, 9)[0].values == {"temp": 2.0}
    assert (mixed.status_code, mixed.json()["taken"]) == (207, 1)
    assert (none.status_code, none.json()["reason"]) == (422, "repeated stamp")


def test_bodies_that_cannot_be_read_take_nothing(service):
    json_type, arrow_type = (
        {"content-type": "application/json"},
        {"content-type": "application/vnd.apache.arrow.stream"},
    )
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, pyarrow.schema([("x", pyarrow.int64())])) as writer:
        writer.write_table(pyarrow.table({"x": [1]}))
    cases = [
        (400, "not JSON", {"content": b"[{", "headers": json_type}),
        (400, "not JSON", {"content": b"\xff", "headers": json_type}),
        (400, "not JSON", {"content": b"[" * 900, "headers": json_type}),
        (400, "no observation", {"content": b"[]", "headers": json_type}),
        (400, "not an Arrow stream", {"content": b"nothing", "headers": arrow_type}),
        (422, "Name two of them 'series' and 'time'", {"content": sink.getvalue().to_pybytes(), "headers": arrow_type}),
        (415, "content type is 'text/plain'", {"content": b"{}", "headers": {"content-type": "text/plain"}}),
        (415, "Send application/json", {"content": b"{}"}),
        (413, "more than 1,000 bytes", {"content": b" " * 1001, "headers": json_type}),
        (413, "more than 1,000 bytes", {"content": parts(), "headers": json_type}),
    ]
    found = statuses(service, *[("POST", "/observations", more) for _, _, more in cases], limits=Limits(body=1000))
    for (status, words, _), reply in zip(cases, found, strict=True):
        assert (reply.status_code, words in reply.json()["error"]) == (status, True), reply.text
    assert service.store.counts()["open"] == 0


async def parts():
    """A body without a length."""
    for _ in range(3):
        yield b" " * 400


def test_queries(service):
    post(service, *history(24))
    (page, one, number, at, missing, early, bad_at, bad_limit, bad_sort, deep, dead, health, numbers, described) = (
        statuses(
            service,
            ("GET", "/series?sort=name&limit=2&recent=3", {}),
            ("GET", "/series/p1?history=3", {}),
            ("GET", "/series/7", {}),
            ("GET", "/series/p1?at=100", {}),
            ("GET", "/series/none", {}),
            ("GET", "/series/p1?at=0.001", {}),
            ("GET", "/series/p1?at=soon", {}),
            ("GET", "/series?limit=-1", {}),
            ("GET", "/series?sort=luck", {}),
            ("GET", "/series?limit=1001", {}),
            ("GET", "/dead-letters", {}),
            ("GET", "/healthz", {}),
            ("GET", "/metrics", {}),
            ("GET", "/openapi.json", {}),
        )
    )
    assert page.json()["total"] == 3
    assert [row["series"] for row in page.json()["series"]] == ["p1", "p2"]
    assert len(page.json()["series"][0]["recent"]) == 3
    assert page.json()["series"][0]["recent"][-1] == page.json()["series"][0]["risk"]
    assert len(one.json()["history"]) == 3
    assert one.json()["history"][-1]["prediction"] == one.json()["prediction"]
    assert number.json()["series"] == 7
    assert (at.json()["time"], at.json()["prediction"]) == (100.0, service.predict("p1", 100.0)["prediction"])
    assert missing.status_code == 404
    assert early.status_code == 422
    assert "Predict at that time or later" in early.json()["error"]
    assert [one.status_code for one in (bad_at, bad_limit, bad_sort, deep)] == [422, 400, 400, 400]
    assert dead.json() == {"dead_letters": []}
    assert health.json()["status"] == "ok"
    assert "logcde_observations_total 24" in numbers.text
    assert 'logcde_requests_total{status="404"} 1' in numbers.text
    paths = described.json()["paths"]
    assert {"/observations", "/series", "/series/{id}", "/events"} < set(paths)


def test_hostile_ids_are_ids_like_others(service):
    names = [*HOSTILE, 7, -(2**63)]
    (posted,) = statuses(service, ("POST", "/observations", {"json": [GOOD | {"series": name} for name in names]}))
    assert [one.get("series") for one in posted.json()["answers"]] == names
    assert posted.json()["refused"] == 0

    async def ask(client):
        return [await client.get(f"/series/{quoted(name)}{'?id=number' * isinstance(name, int)}") for name in names]

    found = asked(service, ask)
    told = {name: (one.status_code, one.json().get("series")) for name, one in zip(names, found, strict=True)}
    assert {name: (200, name) for name in names if name != "7"} == {n: one for n, one in told.items() if n != "7"}
    assert told["7"][0] == 409
    (listed,) = statuses(service, ("GET", "/series?limit=1000", {}))
    assert {one["series"] for one in listed.json()["series"]} == set(names)
    refused = statuses(
        service,
        (
            "POST",
            "/observations",
            {"content": b'{"series": "\\ud800", "time": 1, "values": {"pulse": 1}}', "headers": J},
        ),
        ("POST", "/observations", {"json": GOOD | {"series": 2**63}}),
        ("POST", "/observations", {"json": GOOD | {"series": 1.5}}),
        ("POST", "/observations", {"json": GOOD | {"series": None}}),
        ("POST", "/observations", {"json": GOOD | {"series": ".."}}),  # no part of an address
    )
    assert {one.status_code for one in refused} <= {400, 422}


J = {"content-type": "application/json"}


def quoted(name):
    """An id as a part of a path."""
    return "".join(f"%{byte:02x}" for byte in str(name).encode())


def test_many_clients_at_once(service):
    """Each series in its own order, from clients whose posts are committed together."""
    lines = [history(30, seed) for seed in range(12)]
    for seed, own in enumerate(lines):
        for line in own:
            line["series"] = f"{seed}-{line['series']}"

    async def ask(client):
        async def send(own):
            return [(await client.post("/observations", json=line)).json() for line in own]

        return await asyncio.gather(*map(send, lines))

    found = asked(service, ask)
    assert not any("error" in answer for own in found for answer in own)
    groups = service.metrics.counts["groups", ""]
    assert service.metrics.counts["observations", ""] == 360
    assert groups < 180  # committed together
    with service_on(service.store._path.with_name("alone.db")) as alone:
        assert [post(alone, *own) for own in lines] == found


def test_rates_and_waiting_posts_are_limited(service):
    late, soon = statuses(
        service,
        ("POST", "/observations", {"json": [GOOD | {"time": n / 100 + 0.01} for n in range(20)]}),
        ("POST", "/observations", {"json": GOOD}),
        limits=Limits(rate=0.01),
    )
    assert late.status_code == 200
    assert (soon.status_code, int(soon.headers["retry-after"]) > 1000) == (429, True)
    assert "Send these again" in soon.json()["error"]
    (many,) = statuses(service, ("POST", "/observations", {"json": [GOOD] * 3}), feed=PostFeed(waiting=2))
    assert (many.status_code, "at most 2" in many.json()["error"]) == (413, True)

    async def ask(client):
        posts = [client.post("/observations", json=[GOOD | {"series": f"s{n}"}] * 2) for n in range(2)]
        return sorted((await asyncio.gather(*posts)), key=lambda one: one.status_code)

    taken, busy = asked(service, ask, feed=PostFeed(waiting=3))
    assert (taken.status_code, busy.status_code) == (207, 503)
    assert "observations are waiting" in busy.json()["error"]


def test_a_store_that_fails_is_told_and_recovers(service, monkeypatch):
    def failing(*given):
        raise sqlite3.OperationalError("database or disk is full")

    async def ask(client):
        with monkeypatch.context() as patched:
            patched.setattr("logcde.serve.sql.series_row", failing)
            refused = await client.post("/observations", json=GOOD)
        ill = await client.get("/healthz")
        taken = await client.post("/observations", json=GOOD)
        return refused, ill, taken, await client.get("/healthz")

    refused, ill, taken, well = asked(service, ask)
    assert refused.status_code == 503
    assert "database or disk is full. Check the permissions and the free space" in refused.json()["error"]
    assert (ill.status_code, taken.status_code, well.status_code) == (503, 200, 200)


def test_an_observation_that_breaks_the_engine_stops_no_other(service, monkeypatch):
    observe = type(service.models[0].rules).observe

    def poisoned(self, line, event):
        observe(self, line, event)
        if line.series == "poison":
            raise ZeroDivisionError

    monkeypatch.setattr("logcde.online.rules.SeriesRules.observe", poisoned)

    async def ask(client):
        names = ["a", "poison", "b", "c"]
        posts = [client.post("/observations", json=GOOD | {"series": name}) for name in names]
        return await asyncio.gather(*posts)

    a, poison, b, c = asked(service, ask)
    assert (poison.status_code, "(ZeroDivisionError)" in poison.json()["error"]) == (500, True)
    assert {one.status_code for one in (a, b, c)} == {200}
    assert service.store.find("poison") is None


def test_without_a_token_pages_of_other_sites_are_refused(service):
    found = statuses(
        service,
        ("GET", "/series", {"headers": {"host": "evil.example"}}),
        ("GET", "/series", {"headers": {"host": "127.0.0.1.evil.example:8000"}}),
        ("POST", "/observations", {"json": GOOD, "headers": {"origin": "https://evil.example"}}),
        ("POST", "/observations", {"json": GOOD, "headers": {"origin": "null"}}),
        ("GET", "/series", {"headers": {"host": "localhost:8000", "origin": "http://localhost:8000"}}),
    )
    assert [one.status_code for one in found] == [403, 403, 403, 403, 200]
    assert all(one.headers["x-content-type-options"] == "nosniff" for one in found)


def test_with_a_token_nobody_else_is_answered(service):
    bearer = {"authorization": f"Bearer {TOKEN}"}
    paths = ("/series", "/series/p1", "/events", "/dead-letters", "/metrics", "/openapi.json", "/nowhere")
    wrong = [
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Basic {TOKEN}"},
    ]
    refused = statuses(service, *[("GET", path, {"headers": one}) for path in paths for one in wrong], token=TOKEN)
    assert {one.status_code for one in refused} == {401}
    taken = statuses(
        service,
        ("POST", "/observations", {"json": GOOD}),
        ("POST", "/observations", {"json": GOOD, "headers": bearer | {"host": "ward.example"}}),
        ("GET", "/healthz", {}),
        token=TOKEN,
    )
    assert [one.status_code for one in taken] == [401, 200, 200]


def test_addresses_that_others_reach_need_a_good_token():
    for text in ("127.0.0.1:1", "localhost:1", "[::1]:1", "127.9.9.9:1", ":1"):
        check_token(None, Address.parse(text))
    for text in ("0.0.0.0:1", "[::]:1", "10.0.0.1:1", "ward.example:1", "localhost.example:1"):
        with pytest.raises(ModelError, match=r"can be reached from other machines.*--token-file"):
            check_token(None, Address.parse(text))
        check_token(TOKEN, Address.parse(text))
    for token in ("", "short", "ab" * 8 + "\n", "é" * 20):
        with pytest.raises(ModelError, match="openssl rand"):
            check_token(token, Address.parse("127.0.0.1:1"))
    for text in ("8000", "host:", "host:x", "host:99999", "host:-1", ""):
        with pytest.raises(ModelError, match="is not an address"):
            Address.parse(text)


def test_events_resume_and_tell_of_gaps(service):
    post(service, GOOD, GOOD | {"series": "x\ny"}, GOOD | {"time": 0.2})

    async def first(count, *given):
        handlers = Handlers(Worker(service, PostFeed()), Limits())
        stream, found = handlers._events(*given), b""
        while found.count(b"data: ") < count:
            found += await asyncio.wait_for(anext(stream), 10)
        await stream.aclose()
        return [dict(line.split(": ", 1) for line in one.splitlines()) for one in found.decode().split("\n\n")[1:-1]]

    everything = asyncio.run(first(3, 0, None, None))
    assert [(one["id"], one["event"], json.loads(one["data"])["series"]) for one in everything] == [
        ("1", "prediction", "p1"), ("2", "prediction", "x\ny"), ("3", "prediction", "p1")
    ]  # fmt: skip
    assert asyncio.run(first(1, 2, None, None)) == everything[2:]
    assert asyncio.run(first(2, 0, "prediction", "p1")) == [everything[0], everything[2]]
    service.store._writer.execute("DELETE FROM outgoing WHERE number < 3")
    gap, rest = asyncio.run(first(2, 0, None, None))
    assert (gap["event"], json.loads(gap["data"])) == ("gap", {"first": 1, "last": 2})
    assert rest == everything[2]
