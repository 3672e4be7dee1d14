"""One look for all figures: colours that everybody can tell apart, in print as well, and files that are whole."""

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from logcde._files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, without its yellow, which white paper swallows."""

MARKS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ((1, 0), (5, 2), (1, 1.5), (6, 2, 1, 2))
"""What tells lines apart where there are no colours."""


def figure_of(width: float, height: float) -> "Figure":
    """An empty figure, in inches, whose parts make room for each other.

    >>> figure_of(6, 3).get_size_inches().tolist()
    [6.0, 3.0]
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", file: str | Path) -> Path:
    """Write a figure under a temporary name, then give it its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure_of(1, 1), Path(folder, "empty.png")).name
    'empty.png'
    """
    target = Path(file)
    with whole_file(target) as unfinished:
        figure.savefig(unfinished, dpi=140)
    return target


def as_svg(figure: "Figure", name: str) -> str:
    """A figure as an SVG element to stand in a page among others. Its texts stay texts; `name` keeps its ids apart.

    >>> figure = figure_of(1, 1)
    >>> _ = figure.suptitle("a < b")
    >>> "a &lt; b" in as_svg(figure, "first")
    True
    """
    import matplotlib

    written = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # The browser has the letters that the font for measuring lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(written, format="svg", transparent=True, dpi=160, metadata=nothing)
    text = written.getvalue()
    return re.sub(r'<g id="[^"]*">', "<g>", text[text.index("<svg") :])
