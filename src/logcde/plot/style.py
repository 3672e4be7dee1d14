"""One look for all figures: colours that everybody can tell apart, in print as well, and files that are whole."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, without its yellow, which white paper swallows."""

MARKS = ("o", "s", "^", "D", "v", "P", "X")


def figure_of(width: float, height: float) -> "Figure":
    """An empty figure, in inches, whose parts make room for each other."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", file: str | Path) -> Path:
    """Write a figure under a temporary name, then give it its own."""
    target = Path(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        figure.savefig(unfinished, dpi=140)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target
