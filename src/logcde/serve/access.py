"""Who may ask, and how much: addresses, tokens, names of hosts, rates, headers of answers."""

import dataclasses
import hashlib
import hmac
import ipaddress
import time
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from logcde.errors import ModelError
from logcde.serve.answers import refusal
from logcde.serve.page import STATIC

OPEN = ("/", "/healthz")
"""Paths that need no token, besides the files of the page: the page, which asks for one, and whether the service is
there."""
LEAST_TOKEN = 16
"""Characters of a token."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclasses.dataclass(frozen=True)
class Address:
    """Where a service listens.

    >>> Address.parse("127.0.0.1:8000").loopback, Address.parse("[::]:80").loopback
    (True, False)
    """

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> "Address":
        """Read `host:port`."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise ModelError(f"{text!r} is not an address.", "Give a host and a port: 127.0.0.1:8000.")
        return Address(host.strip("[]") or "127.0.0.1", int(port))

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def check_token(token: str | None, address: Address) -> None:
    """Refuse an address that others can reach without a token, and a token that can be guessed."""
    if token is None and not address.loopback:
        raise ModelError(
            f"{address.host} can be reached from other machines.",
            "Name a file with a token by --token-file, or set LOGCDE_TOKEN; or listen on 127.0.0.1.",
        )
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ModelError(
            f"The token has {len(token)} characters.",
            f"Give at least {LEAST_TOKEN} printable ASCII characters, for example those of `openssl rand -hex 24`.",
        )


class Rate:
    """Lets so many observations through in a second, and twice as many at once.

    >>> rate = Rate(10.0)
    >>> rate.wait(20, now=0.0), rate.wait(5, now=0.0), rate.wait(5, now=0.5)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, most: float) -> None:
        self._most, self._left, self._at = most, 2 * most, 0.0

    def wait(self, count: int, now: float | None = None) -> float:
        """Seconds to wait before so many may come; 0 if they may come now, which counts them."""
        now = time.monotonic() if now is None else now
        self._left = min(2 * self._most, self._left + (now - self._at) * self._most)
        self._at = now
        # What is larger than all that is ever left passes once nothing else has for a while.
        missing = min(float(count), 2 * self._most) - self._left
        if missing > 0.0:
            return missing / self._most
        self._left -= count
        return 0.0


class Guard:
    """Refuses requests without the token, or, where there is none, those that a page of another site may have sent.

    Without a token a service listens on loopback only. A browser on the same machine could still be led there: by a
    name that points to 127.0.0.1, which the host of the request shows, or by a form, which its origin shows.

    Args:
        app: What answers the others.
        token: The token; None for none.
        names: Names of this host.
    """

    def __init__(self, app: ASGIApp, token: str | None, names: tuple[str, ...]) -> None:
        self._app = app
        self._token = None if token is None else _hash(token.encode())
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope["path"], headers)
        await (self._app if refused is None else refused)(scope, receive, with_headers)

    def _refused(self, path: str, headers: Mapping[str, str]) -> ASGIApp | None:
        if self._token is None:
            host = headers.get("host", "")
            origin = headers.get("origin")
            if host.rpartition(":")[0].strip("[]") not in self._names and host.strip("[]") not in self._names:
                return refusal(403, f"This service is not {host!r}.", f"Use one of {', '.join(self._names)}.")
            if origin is not None and origin.partition("://")[2] != host:
                return refusal(403, f"A page of {origin!r} may not use this service.", "Open the service's own page.")
            return None
        if path in OPEN or path.startswith(STATIC):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Digests have one length, so the comparison tells nothing of the token.
        if scheme.lower() == "bearer" and hmac.compare_digest(_hash(given.strip().encode("latin-1")), self._token):
            return None
        return refusal(
            401,
            "This service needs its token.",
            "Send the header Authorization: Bearer TOKEN.",
            {"www-authenticate": "Bearer"},
        )


def _hash(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
