"""HTML elements. Text is escaped unless it is `Markup`, so that names of the user cannot inject markup."""

import html
import math
from collections.abc import Sequence

LONG = 20
"""Longer tables are folded."""


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


def tag(name: str, *content: str, kind: str = "", style: str = "") -> Markup:
    """Make an element.

    Args:
        name: Name of the tag.
        content: Text or markup.
        kind: CSS class.
        style: CSS style.

    >>> tag("p", "a < b, ", tag("b", "really"), kind="note")
    '<p class="note">a &lt; b, <b>really</b></p>'
    """
    given = {"class": kind, "style": style}
    attributes = "".join(f' {key}="{html.escape(value)}"' for key, value in given.items() if value)
    return Markup(f"<{name}{attributes}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """Concatenate text and markup.

    >>> joined("1 < 2, ", tag("b", "really"))
    '1 &lt; 2, <b>really</b>'
    """
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in content))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> Markup:
    """Make a table; a long one is folded.

    Args:
        head: Column headings.
        rows: Cells, row by row.
        texts: Number of text columns, which come before the columns of numbers.

    >>> table(["name", "size"], [["a", "1"]])
    '<table><thead><tr><th>name</th><th class="n">size</th></tr></thead><tbody><tr><td>a</td><td class="n">1</td></tr></tbody></table>'
    """  # noqa: E501

    def row(cell: str, parts: Sequence[str]) -> Markup:
        cells = (tag(cell, part, kind="" if place < texts else "n") for place, part in enumerate(parts))
        return tag("tr", *cells)

    made = tag("table", tag("thead", row("th", head)), tag("tbody", *(row("td", parts) for parts in rows)))
    return made if len(rows) <= LONG else tag("details", tag("summary", f"All {len(rows):,} rows"), made)


def number(value: float | None) -> str:
    """Format a number; a missing or non-finite one is a dash.

    >>> number(0.123456), number(1234567), number(12345.678), number(None), number(float("nan"))
    ('0.1235', '1,234,567', '12,350', '–', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{float(f'{value:.4g}'):,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
