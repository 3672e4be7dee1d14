"""The page that watches a service: one file with its own script and style, which asks nothing of other hosts."""

import base64
import hashlib
import re
from importlib import resources

from starlette.responses import Response


def page() -> Response:
    """The page. It may run its own script and style only, and ask its own service only.

    >>> "script-src 'sha256-" in page().headers["content-security-policy"]
    True
    """
    text = resources.files("logcde.serve").joinpath("page.html").read_text(encoding="utf-8")
    allowed = {
        "default-src": "'none'",
        "script-src": _digest(text, "script"),
        "style-src": _digest(text, "style"),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    policy = "; ".join(f"{name} {value}" for name, value in allowed.items())
    return Response(text, media_type="text/html", headers={"content-security-policy": policy})


def _digest(text: str, tag: str) -> str:
    """The checksum by which a browser knows the only script, or style, of a page."""
    (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
