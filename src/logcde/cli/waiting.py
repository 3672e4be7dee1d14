"""A bar for people who wait, on standard error. Quiet where nobody looks."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def bar(doing: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over so many rows, or one without an end if that is not known; it is told how many more are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=rows)
        yield lambda more: progress.advance(task, more)
