"""Services for tests: in this process, or in one of their own that is killed; and a client that repeats."""

import asyncio
import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import threading
import time

import httpx

import logcde as lc
from logcde.serve import ServedModel, Service, SqliteStore
from logcde.serve.feed import Delivery, PostFeed
from logcde.serve.http import Limits, application
from logcde.serve.worker import Worker
from tests.cli.streaming import a_model

DIGEST = "model-1"


def served(model=None, digest=DIGEST, **options):
    """A model as it is served."""
    return ServedModel(lc.Predictor(a_model() if model is None else model, **options), digest)


@contextlib.contextmanager
def service_on(path, model=None, options=None, **kept):
    """A service on a store, which is closed at the end."""
    model = served() if model is None else model
    models = model if isinstance(model, list) else [model]
    with contextlib.closing(SqliteStore(path, [one.digest for one in models], **kept)) as store:
        service = Service(models, store, *([] if options is None else [options]))
        service.hold(lease_of(service))
        yield service


def lease_of(service):
    """The only partition of the service's feed."""
    return service.store.claim("http", [0]).leases[0]


def post(service, *observations):
    """Give observations to a service as one delivery; returns its answers."""
    texts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in observations]
    lease = lease_of(service)
    return service.apply(lease, [Delivery(texts, service.store.progress(lease).position + len(texts))])[0]


def asked(service, requests, limits=Limits(), token=None, feed=None):
    """Run a coroutine function with a client of a service in this process; returns its result."""

    async def run():
        posts = PostFeed() if feed is None else feed
        worker = Worker(service, posts)
        app = application(worker, limits, token, ("127.0.0.1", "localhost"))
        transport = httpx.ASGITransport(app=app)
        async with worker.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await asyncio.wait_for(requests(client), 60)

    return asyncio.run(run())


KILLED = """
import os, signal, sys
from logcde.cli.main import main
from logcde.serve import nats, sql, worker

point, count = sys.argv[1], int(sys.argv[2])
done = 0

def kill_at(here):
    global done
    done += here == point
    if done >= count:
        os.kill(os.getpid(), signal.SIGKILL)

def before(owner, name, here, when=lambda *given, **more: True):
    method = getattr(owner, name)

    def hooked(*given, **more):
        if when(*given, **more):
            kill_at(here)
        return method(*given, **more)

    setattr(owner, name, hooked)

reserve = sql.AbstractSqlStore._reserve

def reserved(self, run, name, number):
    found = reserve(self, run, name, number)
    if name == "outgoing":
        kill_at("before commit")
    return found

sql.AbstractSqlStore._reserve = reserved
before(worker.Worker, "_settle", "after commit")
before(nats.Client, "publish", "while publishing",
       lambda *given, headers=None, **more: (headers or {}).get("Nats-Batch-Sequence") == "2")
before(sql.AbstractSqlStore, "published", "before marking sent")
main(sys.argv[3:])
"""
"""`logcde` that kills itself at a point, when it comes there for the count-th time."""
POINTS = ("before commit", "after commit", "while publishing", "before marking sent")


class Server:
    """`logcde serve` in a process of its own, on a port of its own."""

    def __init__(self, model, store, *options, kill=None, before="", environment=None):
        given = ["serve", str(model), "--store", str(store), "--http", "127.0.0.1:0", *map(str, options)]
        program = before + KILLED if kill is not None else f"{before}\nfrom logcde.cli.main import main\nmain()"
        command = [sys.executable, "-c", program, *map(str, kill or ())]
        self.process = subprocess.Popen([*command, *given], stderr=subprocess.PIPE, text=True, env=environment)
        self.messages, self.kill = [], kill
        line = self.process.stderr.readline()
        self.messages.append(line)
        self.url = next((word.rstrip(",") for word in line.split() if word.startswith("http")), None)
        if self.url is None and (self.process.wait(60) != -signal.SIGKILL or kill is None):
            raise AssertionError(f"it did not start: {line}{self.process.stderr.read()}")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.messages.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()


@dataclasses.dataclass
class Repeating:
    """A client that sends every observation until it is answered, to whatever server runs then.

    `start` starts the next server after one was killed.
    """

    start: object
    server: object = None
    answers: list = dataclasses.field(default_factory=list)
    kills: int = 0

    def send(self, texts):
        """Post observations, again and again."""
        while True:
            if self.server is None:
                self.server = self.start(self.kills)
            try:
                reply = httpx.post(f"{self.server.url}observations", json=texts, timeout=60.0)
            except httpx.TransportError:
                self.server.process.wait(60)
                self.server.__exit__()
                self.server, self.kills = None, self.kills + 1
                continue
            self.answers += reply.json()["answers"]
            return

    def close(self):
        """End the server that runs."""
        if self.server is not None:
            self.server.process.terminate()
            self.server.process.wait(60)
            self.server.__exit__()


def wait_until(condition, seconds=60.0):
    """Wait for something that happens in another process."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found
