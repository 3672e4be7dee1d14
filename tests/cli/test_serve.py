"""`logcde serve` as a process: killed at any time it loses and doubles nothing; who may start it, and how it ends."""

import collections
import contextlib
import json
import os
import random
import shutil
import signal
import ssl
import subprocess
import threading

import httpx
import numpy as np
import pytest

import logcde as lc
from logcde.artefact.files import model_digest
from logcde.cli.serve import TOKEN
from logcde.cli.stream import predictor_and_output
from logcde.serve import Group, ServedModel, ServiceOptions, SqliteStore
from logcde.serve.alerts import Alert
from logcde.serve.store import Query, SeriesRecord
from tests.cli.streaming import GOOD, a_model, history, offline, predictions
from tests.cli.tables import run
from tests.serve.serving import Repeating, Server, post, service_on, wait_until

SECRET = "a-secret-of-the-ward"


def faults(path, lines, model):
    """What went wrong with observations that a client sent until they were answered."""
    with contextlib.closing(SqliteStore(path, [model_digest(model)])) as store:
        sent = collections.Counter((one["series"], one["time"]) for one in lines)
        told = [one.content for one in store.outgoing(0, 100_000)]
        out = collections.Counter((one["series"], one["time"]) for one in told)
        series = store.page(Query(limit=1000))[1]
        kept = collections.Counter((one.name, seen.stamp) for one in series for seen in store.history(one.key, 1000))
        assert kept == out
        assert sum(one.events for one in series) == kept.total()
        return {
            "lost": sorted((sent - kept).elements(), key=str),
            "doubled": sorted((kept - sent).elements(), key=str),
            "dead": [one.error for one in store.dead_letters(100)],
        }, told


def test_killed_at_any_time_nothing_is_lost_or_doubled(folder, tmp_path):
    lines = [one | {"id": f"e{number}"} for number, one in enumerate(history(54))]
    path, chance = tmp_path / "state.db", random.Random(3)

    def start(kills):
        named = {0: ("before commit", 6), 1: ("after commit", 5)}.get(kills)
        server = Server(folder, path, "--reorder", 0.5, kill=named)
        if kills == 2:  # anywhere
            threading.Timer(chance.uniform(0.02, 0.1), server.process.kill).start()
        return server

    client = Repeating(start)
    for place in range(0, len(lines), 3):
        client.send(lines[place : place + 3])
    client.close()
    assert client.kills >= 2
    found, told = faults(path, lines, folder)
    assert found == {"lost": [], "doubled": [], "dead": []}
    model = a_model()
    for answers in (told, client.answers):
        assert len(answers) == len(lines)
        for one in answers:
            expected = offline(model, lines, one["series"], one["time"])
            np.testing.assert_allclose(one["prediction"], expected, rtol=1e-9, atol=1e-12)


def test_without_event_ids_the_same_check_finds_doubled_observations(folder, tmp_path):
    lines, path = history(12), tmp_path / "state.db"
    client = Repeating(
        lambda kills: Server(folder, path, "--reorder", 0.5, kill=("after commit", 2) if not kills else None)
    )
    for place in range(0, len(lines), 3):
        client.send(lines[place : place + 3])
    client.close()
    assert client.kills == 1
    assert len(faults(path, lines, folder)[0]["doubled"]) == 3


def test_a_signal_ends_it_cleanly_and_it_continues(folder, tmp_path):
    path = tmp_path / "state.db"
    lines = history(12)
    with Server(folder, path) as server:
        url = server.url
        before = httpx.post(f"{url}observations", json=lines[:6]).json()["answers"]
        assert "in use by process" in run("serve", folder, "--store", path)
        with httpx.stream("GET", f"{url}events", headers={"last-event-id": "4"}, timeout=60.0) as events:
            parts = events.iter_lines()
            assert [next(parts) for _ in range(3)][2] == "id: 5"
            server.process.send_signal(signal.SIGTERM)
            rest = list(parts)  # the stream ends rather than keep the service waiting
        assert "id: 6" in rest
        assert server.process.wait(60) == 0
        wait_until(lambda: any("6 observations taken, 0 refused" in one for one in server.messages))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["state.db"]
    with Server(folder, path) as server:
        rows = httpx.get(f"{server.url}series").json()["series"]
        latest = {one["series"]: one for one in before}
        assert {one["series"]: one["prediction"] for one in rows} == {n: one["prediction"] for n, one in latest.items()}
        after = httpx.post(f"{server.url}observations", json=lines[6:]).json()["answers"]
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
    with service_on(tmp_path / "whole.db", ServedModel(*_parts(folder))) as service:
        assert post(service, *lines) == before + after


def _parts(folder):
    predictor, statics, to_json = predictor_and_output(folder)
    return predictor, "m", statics, to_json


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_token_and_certificate(folder, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *subject]
    subprocess.run(made, check=True, capture_output=True)
    options = ("--tls-certificate", certificate, "--tls-key", key)
    with Server(folder, tmp_path / "s.db", *options, environment={**os.environ, TOKEN: SECRET}) as server:
        assert server.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=certificate)
        with httpx.Client(verify=trusted, base_url=server.url) as client:
            assert client.get("/series").status_code == 401
            assert client.get("/series", headers={"authorization": f"Bearer {SECRET}"}).json()["total"] == 0
        assert not any(SECRET in one for one in server.messages)


def test_what_it_refuses_to_begin(folder, tmp_path, monkeypatch):
    monkeypatch.delenv(TOKEN, raising=False)
    store = ("--store", tmp_path / "state.db")
    secret = tmp_path / "token"
    secret.write_text("short\n")
    cases = {
        ("--http", "0.0.0.0:0"): "can be reached from other machines. Name a file with a token by --token-file",
        ("--http", "nonsense"): "'nonsense' is not an address",
        ("--token-file", tmp_path / "none"): "The token cannot be read",
        ("--token-file", secret): "The token has 5 characters",
        ("--tick", "1"): "Give --rate",
        ("--tick", "0"): "--tick is 0.0. Give a positive number.",
        ("--alert", "0:0.5"): "'0:0.5' is not an alert",
        ("--alert", "ill:0.5:0.2"): "The model has no output 'ill'. It has '0', '1'.",
        ("--risk", "ill"): "The model has no output 'ill'",
        ("--tls-key", secret): "Only one of --tls-certificate and --tls-key",
        ("--tls-key", secret, "--tls-certificate", secret): "Name a certificate and its key, both in PEM",
        ("--reorder", "-1"): "window for reordering is -1.0",
        ("--from", "nats://127.0.0.1:1/x"): "Only one of --from and --partitions was given",
        ("--from", "nats://127.0.0.1:1/x", "--partitions", "3-1"): "Give numbers below 10,000, such as 0-3 or 0,2.",
        ("--from", "127.0.0.1:1/x", "--partitions", "0"): "is not the address of a stream",
        ("--from", "nats://127.0.0.1:1/x", "--partitions", "0"): "nats://127.0.0.1:1/x cannot be reached",
        ("--to", "nats://127.0.0.1:1/x"): "nats://127.0.0.1:1/x cannot be reached",
        ("--store", "postgresql://127.0.0.1:1/x"): "postgresql://127.0.0.1:1/x cannot be opened",
    }
    for options, words in cases.items():
        assert words in run("serve", folder, *store, "--http", "127.0.0.1:0", *options), options
    assert "There is no folder" in run("serve", tmp_path / "none", *store)
    assert run("serve", folder, *store, "--alert", "0:0.5:0.5").startswith("logcde: An alert cannot be raised at 0.5")
    other = tmp_path / "other"
    a_model(rule=lc.Partition.every(1.0)).save(other)
    with contextlib.closing(SqliteStore(store[1], [model_digest(folder)])) as one:
        (lease,) = one.claim("http", [0]).leases
        record = SeriesRecord(1, "p1", 0, (b"",), 1, 0.0, 0.0, 1, 0.5, 0.5, None, None, None, ())
        one.commit(Group(lease, series=[record]))
    refused = run("serve", other, *store)
    assert "belongs to another model: 1 of its open series" in refused
    assert "Serve it with the model that it was made with" in refused
    assert "hold the same model. Leave out --beside" in run("serve", folder, *store, "--beside", folder)
    assert "belongs to another reordering: no, not yes" in run("serve", folder, *store, "--reorder", "1")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other", "state.db", "token"]


def test_a_trained_classifier_is_served_as_it_is_streamed(trained, stream, tmp_path):
    model = trained / "model"
    lines = [GOOD | {"time": time, "values": {"pulse": time}} for time in (0.5, 1.25, 2.0)]
    code, out, _ = stream(model, lines)
    assert code == 0
    streamed = predictions(out)
    classes = list(streamed[0]["prediction"]["probabilities"])
    options = ServiceOptions(alerts=(Alert(classes[0], 0.0, -1.0),))
    for part in ([lines], [[one] for one in lines]):
        path = tmp_path / f"{len(part)}.db"
        answers = []
        for some in part:
            with service_on(path, ServedModel(*_parts(model)), options) as service:
                answers += post(service, *some)
                record = service.store.find("p1")
        assert json.loads(json.dumps(answers)) == streamed
        assert record.alerts == (f"{classes[0]}:0:-1",)
        assert record.risk == streamed[-1]["prediction"]["probabilities"][classes[0]]
