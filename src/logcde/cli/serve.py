"""`logcde serve`: predictions for many live series over HTTP, kept in a store that survives crashes."""

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
    from logcde.serve.service import Service
    from logcde.serve.sqlite import SqliteStore
    from logcde.streams import Clock

TOKEN = "LOGCDE_TOKEN"
"""The environment variable with the token."""
LARGEST_TOKEN_FILE = 4096


@dataclasses.dataclass(frozen=True)
class Serve:
    """Serve a model: observations over HTTP in, predictions out, everything durable; and a page to watch.

    Example: logcde serve model/ --store state.db

    Clients post the objects that logcde stream reads, one or a list of them, and are answered once these are on the
    disk: curl -H 'content-type: application/json' -d '{"series": "p1", "time": 0.5, "values": {"pulse": 61.0}}'
    http://127.0.0.1:8000/observations. With "id", an event id of their choice, an observation that is sent again is
    taken once.

    After a crash the same command continues with all that was answered. A second process on the same store is refused,
    and so is a store of another model. SIGTERM or Ctrl-C finish what has begun, and end the command.

    Only programs on this machine can reach the service. On another address, clients need a token, from the file of
    --token-file or the environment variable LOGCDE_TOKEN, which they send as "Authorization: Bearer TOKEN".
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved model."""
    store: Path
    """SQLite file that keeps everything."""
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
    """Observations of each series that are kept for display."""
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
        try:
            with held_output(self.store, lambda error: _unwritable(self.store, error)):
                return self._serve(address, token)
        except KeyboardInterrupt:
            return 130  # while loading, before anything was served

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

    def _served(self) -> "ServedModel":
        from logcde.artefact.files import model_digest
        from logcde.serve.live import ServedModel

        predictor, statics, to_json = predictor_and_output(self.model, self.reorder)
        return ServedModel(predictor, model_digest(self.model), statics, to_json)

    def _service(self, model: "ServedModel", store: "SqliteStore") -> "Service":
        from logcde.serve.alerts import Alert
        from logcde.serve.service import Service, ServiceOptions

        options = ServiceOptions(
            each=self.when == "event",
            alerts=tuple(map(Alert.parse, self.alert)),
            risk=self.risk,
            rate=_rate(model.predictor.schema.clock) if self.rate is None else self.rate,
            most_series=self.max_series,
        )
        if self.tick is not None and options.rate is None:
            raise ModelError(
                "The stamps of this model are plain numbers, so --tick does not know what time it is.",
                "Give --rate, the units of time in a second: 0.000278 for hours.",
            )
        return Service(model, store, options)

    def _serve(self, address: "Address", token: str | None) -> int:
        from logcde.serve.running import Listening, serve
        from logcde.serve.sqlite import SqliteStore
        from logcde.serve.store import Retention

        model = self._served()
        facts = {"model": model.digest, "reordering": "no" if self.reorder is None else "yes"}
        retention = Retention(history=self.history, ids=86_400.0 * self.keep_ids)
        with contextlib.closing(SqliteStore(self.store, facts, retention)) as store:
            service = self._service(model, store)
            tls = None if self.tls_certificate is None or self.tls_key is None else (self.tls_certificate, self.tls_key)
            with _told(service):
                serve(
                    service,
                    Listening(address, token, tls, self.max_body, self.max_rate),
                    tick=self.tick,
                    silence=self.archive_after,
                    ready=lambda url: _tell(f"serving {self.model} on {url}, store {self.store}. Ctrl-C ends it."),
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


def _tell(text: str) -> None:
    sys.stderr.write(f"logcde: {text}\n")
    sys.stderr.flush()


def _unwritable(path: Path, error: OSError) -> LogcdeError:
    return ArtefactError(
        f"The store cannot be written to {path}: {error.strerror or error}.",
        "Check the permissions and the free space of its folder, or name another file with --store.",
    )
