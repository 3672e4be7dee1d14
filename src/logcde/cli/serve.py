"""`logcde serve`: predictions for many live series over HTTP and NATS, kept in a store that survives crashes."""

import contextlib
import dataclasses
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from logcde._files import read_regular
from logcde.cli.resume import held_output
from logcde.cli.stream import predictor_and_output
from logcde.cli.trained import needing
from logcde.errors import ArtefactError, LogcdeError, ModelError

if TYPE_CHECKING:
    from logcde.serve.access import Address
    from logcde.serve.live import ServedModel
    from logcde.serve.running import Streams
    from logcde.serve.service import Service
    from logcde.serve.store import AbstractStore
    from logcde.streams import Clock

TOKEN = "LOGCDE_TOKEN"
"""The environment variable with the token."""
LARGEST_TOKEN_FILE = 4096
MOST_PARTITIONS = 10_000


@dataclasses.dataclass(frozen=True)
class Serve:
    """Serve a model: observations over HTTP in, predictions out, everything durable; and a page to watch.

    Example: logcde serve model/ --store state.db

    Clients post the objects that logcde stream reads, one or a list of them, and are answered once these are on the
    disk: curl -H 'content-type: application/json' -d '{"series": "p1", "time": 0.5, "values": {"pulse": 61.0}}'
    http://127.0.0.1:8000/observations. With "id", an event id of their choice, an observation that is sent again is
    taken once.

    After a crash the same command continues with all that was answered. A second process on the same file is refused,
    and so is a store of another model. SIGTERM or Ctrl-C finish what has begun, and end the command.

    Several processes may share a store in PostgreSQL. With --from they share the partitions of a stream of NATS, and
    take over those of a process that ends; without it, one of them takes posts and the others wait.

    Only programs on this machine can reach the service. On another address, clients need a token, from the file of
    --token-file or the environment variable LOGCDE_TOKEN, which they send as "Authorization: Bearer TOKEN".
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved model."""
    store: str
    """What keeps everything: an SQLite file, or a database as postgresql://user@host/name."""
    beside: Path | None = None
    """Folder of another model that takes the same observations. It predicts the series that MODEL has not followed from
    their beginning; for the others its predictions are shown beside those of MODEL. Exchange the two to switch."""
    source: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Stream that observations come from, as nats://host:4222/name, with one subject name.0, name.1 ... a partition."""
    sink: Annotated[str | None, tyro.conf.arg(name="to")] = None
    """Stream that predictions and alerts are sent to as well, as nats://host:4222/name."""
    partitions: str | None = None
    """Partitions of the stream that this process may take, such as 0-3 or 0,2."""
    http: str = "127.0.0.1:8000"
    """Address to listen on; port 0 for any that is free."""
    when: Literal["event", "request"] = "event"
    """event: predict after every observation; request: on request only, and by the clock of --tick."""
    reorder: float | None = None
    """How late observations may arrive, in units of time of the model. By default they arrive in order."""
    tick: float | None = None
    """Predict all open series every so many seconds, though nothing is observed."""
    rate: float | None = None
    """Units of time of the model in a second, by which time goes on between observations. Known where stamps are
    datetimes or durations."""
    alert: tuple[str, ...] = ()
    """Alerts as OUTPUT:RAISED:CLEARED, such as ill:0.8:0.6; several may follow one another. A second number that is
    higher makes an alert of low values."""
    risk: str | None = None
    """Output by which series are sorted; by default that of the first alert, or else the last."""
    archive_after: float | None = None
    """Archive series after so many seconds without an observation; their next one opens them again."""
    history: int = 500
    """Observations of each series that are kept: for display, to say what a prediction rests on, and for a new model
    beside this one."""
    keep_ids: float = 7.0
    """Days for which event ids are kept."""
    max_series: int = 100_000
    """Series that may exist."""
    max_body: int = 8 << 20
    """Bytes of a request."""
    max_rate: float | None = None
    """Observations in a second."""
    token_file: Path | None = None
    """File with the token that clients send."""
    tls_certificate: Path | None = None
    """Certificate in PEM, to serve HTTPS."""
    tls_key: Path | None = None
    """Its key in PEM."""

    def run(self) -> int:
        """Serve until a signal arrives, and return the exit code."""
        with needing("starlette", "A service needs starlette and uvicorn", "serve"):
            import starlette  # noqa: F401
        with needing("uvicorn", "A service needs starlette and uvicorn", "serve"):
            import uvicorn  # noqa: F401
        from logcde.serve.access import Address, check_token

        self._check()
        address, token = Address.parse(self.http), self._token()
        check_token(token, address)
        streams = self._streams()
        try:
            if self._database:
                return self._serve(address, token, streams)
            file = Path(self.store)
            with held_output(file, lambda error: _unwritable(file, error)):
                return self._serve(address, token, streams)
        except KeyboardInterrupt:
            return 130  # while loading, before anything was served

    @property
    def _database(self) -> bool:
        return self.store.startswith(("postgresql://", "postgres://"))

    def _streams(self) -> "Streams":
        from logcde.serve.running import Streams

        if (self.source is None) != (self.partitions is None):
            raise ModelError(
                "Only one of --from and --partitions was given.",
                "Name the stream, and those of its partitions that this process may take: --partitions 0-3.",
            )
        if self.source is not None or self.sink is not None:
            with needing("nats", "Streams of NATS need nats-py", "nats"):
                from logcde.serve.nats import NatsAddress
            for address in (self.source, self.sink):
                if address is not None:
                    NatsAddress.parse(address)
        return Streams(self.source, self.sink, (0,) if self.partitions is None else _numbers(self.partitions))

    def _check(self) -> None:
        positive = ("tick", "rate", "archive_after", "history", "keep_ids", "max_series", "max_body", "max_rate")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ModelError(f"--{name.replace('_', '-')} is {value}.", "Give a positive number.")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ModelError("Only one of --tls-certificate and --tls-key was given.", "Give both or neither.")
        if self.tls_certificate is not None and self.tls_key is not None:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.tls_certificate, self.tls_key)
            except OSError as error:  # ssl.SSLError is one
                raise ArtefactError(
                    f"{self.tls_certificate} and {self.tls_key} cannot be used: {error.strerror or error}.",
                    "Name a certificate and its key, both in PEM.",
                ) from error

    def _token(self) -> str | None:
        if self.token_file is None:
            return os.environ.get(TOKEN)
        try:
            return read_regular(self.token_file, LARGEST_TOKEN_FILE).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ArtefactError(
                f"The token cannot be read from {self.token_file}: {reason}.", "Name a file with one line of text."
            ) from error

    def _served(self, folder: Path) -> "ServedModel":
        from logcde.artefact.files import model_digest
        from logcde.serve.live import ServedModel

        predictor, statics, to_json = predictor_and_output(folder, self.reorder)
        return ServedModel(predictor, model_digest(folder), statics, to_json)

    def _store(self, models: "list[ServedModel]") -> "AbstractStore":
        from logcde.serve.sqlite import SqliteStore
        from logcde.serve.store import Retention

        digests = [model.digest for model in models]
        facts = {"reordering": "no" if self.reorder is None else "yes"}
        retention = Retention(history=self.history, ids=86_400.0 * self.keep_ids)
        if not self._database:
            return SqliteStore(Path(self.store), digests, facts, retention)
        with needing("psycopg", "A store in PostgreSQL needs psycopg", "postgres"):
            from logcde.serve.postgres import PostgresStore
        return PostgresStore(self.store, digests, facts, retention)

    def _service(self, models: "list[ServedModel]", store: "AbstractStore") -> "Service":
        from logcde.serve.alerts import Alert
        from logcde.serve.service import Service, ServiceOptions

        options = ServiceOptions(
            each=self.when == "event",
            alerts=tuple(map(Alert.parse, self.alert)),
            risk=self.risk,
            rate=_rate(models[0].predictor.schema.clock) if self.rate is None else self.rate,
            most_series=self.max_series,
        )
        if self.tick is not None and options.rate is None:
            raise ModelError(
                "The stamps of this model are plain numbers, so --tick does not know what time it is.",
                "Give --rate, the units of time in a second: 0.000278 for hours.",
            )
        return Service(models, store, options)

    def _serve(self, address: "Address", token: str | None, streams: "Streams") -> int:
        from logcde.serve.running import Listening, serve

        models = [self._served(folder) for folder in (self.model, self.beside) if folder is not None]
        if len({model.digest for model in models}) < len(models):
            raise ModelError(f"{self.model} and {self.beside} hold the same model.", "Leave out --beside.")
        with contextlib.closing(self._store(models)) as store:
            service = self._service(models, store)
            tls = None if self.tls_certificate is None or self.tls_key is None else (self.tls_certificate, self.tls_key)
            with _told(service):
                serve(
                    service,
                    Listening(address, token, tls, self.max_body, self.max_rate),
                    streams=streams,
                    tick=self.tick,
                    silence=self.archive_after,
                    ready=lambda url: _tell(f"serving {self.model} on {url}, store {store.name}. Ctrl-C ends it."),
                )
            counts = service.metrics.counts
            refused = sum(count for (name, _), count in counts.items() if name == "refused")
            _tell(f"stopped. {counts['observations', '']:,} observations taken, {refused:,} refused.")
        return 0


@contextlib.contextmanager
def _told(service: "Service") -> Iterator[None]:
    """Count warnings about series, and write them to standard error."""
    from logcde.cli.notices import warnings_to
    from logcde.errors import LogcdeWarning, OutOfRangeWarning

    def take(warning: LogcdeWarning) -> None:
        if isinstance(warning, OutOfRangeWarning):
            service.metrics.add("outside")
        _tell(f"series {service.current!r}: {warning}")

    with warnings_to(take):
        yield


def _rate(clock: "Clock") -> float | None:
    """Units of time in a second; None if they are plain numbers."""
    from logcde.streams import NumericClock

    return None if isinstance(clock, NumericClock) else 1.0 / clock.unit.total_seconds()


def _numbers(text: str) -> tuple[int, ...]:
    """The partitions that an option names.

    >>> _numbers("0-2,7")
    (0, 1, 2, 7)
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = [one.strip() for one in (first, last or first)]
        if (
            not all(one.isascii() and one.isdigit() for one in ends)
            or not int(ends[0]) <= int(ends[1]) < MOST_PARTITIONS
        ):
            raise ModelError(
                f"--partitions is {text!r}.", f"Give numbers below {MOST_PARTITIONS:,}, such as 0-3 or 0,2."
            )
        found.update(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(found))


def _tell(text: str) -> None:
    sys.stderr.write(f"logcde: {text}\n")
    sys.stderr.flush()


def _unwritable(path: Path, error: OSError) -> LogcdeError:
    return ArtefactError(
        f"The store cannot be written to {path}: {error.strerror or error}.",
        "Check the permissions and the free space of its folder, or name another file with --store.",
    )
