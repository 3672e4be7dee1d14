"""Shared style of all figures: a palette for colour-blind readers and for print, and complete files."""

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from logcde._files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, without its yellow, which is hard to see on white paper."""

MARKS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ((1, 0), (5, 2), (1, 1.5), (6, 2, 1, 2))
"""Markers and dashes distinguish lines in print without colours."""


def figure_of(width: float, height: float) -> "Figure":
    """Make an empty figure with constrained layout; sizes are in inches.

    >>> figure_of(6, 3).get_size_inches().tolist()
    [6.0, 3.0]
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def without_frame(axes: "Axes", *sides: str) -> "Axes":
    """Hide these sides of the frame, by default the top and the right one. Returns the axes."""
    for side in sides or ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def save(figure: "Figure", file: str | Path) -> Path:
    """Write a figure under a temporary name and rename it; without an ending it is a PNG image. Returns its path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure_of(1, 1), Path(folder, "empty.png")).name
    'empty.png'
    """
    target = Path(file)
    with whole_file(target) as unfinished:
        # Matplotlib would add an ending to a name that has none.
        figure.savefig(unfinished, dpi=140, format=target.suffix[1:] or "png")
    return target


def as_svg(figure: "Figure", name: str) -> str:
    """Return a figure as an SVG element of a page, with text as text; `name` makes its ids unique in the page.

    >>> figure = figure_of(1, 1)
    >>> _ = figure.suptitle("a < b")
    >>> "a &lt; b" in as_svg(figure, "first")
    True
    """
    import matplotlib

    written = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # Matplotlib only measures the text; the browser has fonts with the missing glyphs.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(written, format="svg", transparent=True, dpi=160, metadata=nothing)
    text = written.getvalue()
    return re.sub(r'<g id="[^"]*">', "<g>", text[text.index("<svg") :])
