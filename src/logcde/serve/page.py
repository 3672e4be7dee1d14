"""The page that watches a service: files of this package, which ask nothing of other hosts."""

import functools
import hashlib
from importlib import resources

from starlette.responses import Response

from logcde.serve.answers import refusal

STATIC = "/static/"
"""Where the files of the page are."""
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
PAGE = "page.html"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
"""The page may run scripts of its own service only, none that is written into it, and ask its own service only."""


def page_file(name: str = PAGE, known: str | None = None) -> Response:
    """The page, or one of its files.

    Args:
        name: Name of the file.
        known: The `etag` of what a browser has already, which is not sent again.

    >>> "script-src 'self'" in page_file().headers["content-security-policy"]
    True
    >>> page_file("main.js").status_code, page_file("../page.py").status_code
    (200, 404)
    """
    content = _files().get(name)
    if content is None:
        return refusal(404, f"The page has no file {name!r}.", "Open the address of the service itself.")
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if name == PAGE:
        headers["content-security-policy"] = "; ".join(f"{what} {allowed}" for what, allowed in POLICY.items())
    if tag == known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[name.rpartition(".")[2]], headers=headers)


@functools.cache
def _files() -> dict[str, bytes]:
    """All files of the page by name: what is not among them cannot be asked for."""
    web = resources.files("logcde.serve").joinpath("web")
    files = [*web.iterdir(), *web.joinpath("uplot").iterdir()]
    return {file.name: file.read_bytes() for file in files if file.name.rpartition(".")[2] in TYPES}
