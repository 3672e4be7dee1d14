"""Commands that write a folder of files, one for each part of many tables, here or on a Ray cluster."""

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from logcde.cli.advice import ADVICE
from logcde.cli.output import SUFFIXES, progress_bar
from logcde.cli.table import TableOptions
from logcde.errors import Remedy, TableError

if TYPE_CHECKING:
    from logcde.scale.driver import Outcome
    from logcde.scale.engines import AbstractEngine
    from logcde.scale.rows import AbstractRows
    from logcde.streams import Schema, Streams
    from logcde.streams.file_scan import Scan
    from logcde.streams.locations import Location

MOST_NAMED = 20
"""Failures that are told one by one."""


@dataclasses.dataclass(frozen=True)
class FolderOptions:
    """Where a folder of files is made."""

    unsplit: bool = False
    """With a folder as output: no series is in two files. One that is in two is refused, and not gathered."""
    ray: Annotated[str | None, tyro.conf.arg(metavar="local|auto|ADDRESS")] = None
    """With a folder as output: make the parts on a Ray cluster, on a "local" one that is started for this command, on
    the one that runs here ("auto"), or on that at an address."""


def is_folder(output: Path, source: Path) -> bool:
    """Whether the output is a folder of parts: it has none of the suffixes of tables, and the input is many files."""
    from logcde.streams.locations import is_many, location

    return location(output).suffix not in SUFFIXES and is_many(source)


def check_single(options: FolderOptions) -> None:
    """Refuse options of folders where the output is one file."""
    for name, given in dataclasses.asdict(options).items():
        if given:
            raise TableError(
                f"--{name} is for a folder of files as output, and this is one file.",
                f"Leave it out, or give a folder or a pattern of tables and a folder with -o, without a suffix such as "
                f"{SUFFIXES[0]}.",
            )


def run_folder(
    table: TableOptions,
    output: Path,
    options: FolderOptions,
    rows: "Callable[[Scan, Callable[[], Streams]], AbstractRows]",
    key: dict[str, Any],
    group: int,
    schema: "Schema | None" = None,
) -> "Outcome | None":
    """Make a folder of parts. Returns None after Ctrl-C, which leaves the parts that are complete.

    Args:
        table: How to read the tables.
        output: The folder.
        options: Where to make it.
        rows: What is made of the series.
        key: What decides the content of the parts besides the tables and how they are read.
        group: About how many rows of the tables are in memory at once.
        schema: Schema of a trained model, to read the tables as that of training.
    """
    from logcde.scale.driver import Job
    from logcde.streams import NumericClock
    from logcde.streams.locations import location, tables_at

    if group < 1:
        raise TableError(f"--rows is {group}.", "Give at least 1.")
    folder, reading = location(output), table.reading(schema)
    if folder.is_file():
        raise TableError(f"The output {folder} is a file.", "Give the name of a folder.")
    source = location(table.file)
    inside = [file for file in tables_at(source) if str(file).startswith(f"{folder}/")]
    if inside:
        raise TableError(f"The output {folder} is the folder of the input {inside[0]}.", "Choose another folder.")
    if source.is_dir() and str(folder).startswith(f"{str(source).rstrip('/')}/"):
        raise TableError(f"The output {folder} is in the folder of the input, {source}.", "Choose another folder.")

    def checked(scan: "Scan", first: "Callable[[], Streams]") -> "AbstractRows":
        if isinstance(scan.schema.clock, NumericClock) and not isinstance(reading.horizon, float | None):
            raise TableError(f"--horizon is {table.horizon!r}, but the stamps are plain numbers.", "Give a number.")
        return rows(scan, first)

    job = Job(
        source=source,
        layout=lambda opened: table.layout(opened.types, trained=schema is not None),
        options=reading,
        epoch=table.epoch,
        rows=checked,
        folder=folder,
        key=key,
        whole=options.unsplit,
        group=group,
    )
    try:
        with _engine(options.ray, folder) as engine:
            return job.run(engine, progress_bar)
    except KeyboardInterrupt:
        kept = len(tables_at(folder)) if folder.is_dir() and tables_at(folder) != [folder] else 0
        done = f" {kept:,} complete parts are in {folder}: the same command makes the others." if kept else ""
        sys.stderr.write(f"logcde: stopped.{done}\n")
        return None


def tell_outcome(outcome: "Outcome", output: Path, what: str, advice: Mapping[Remedy, str] = ADVICE) -> int:
    """Say what has been made, warn, and name what could not be made. Returns the exit code."""
    from logcde.streams.locations import location

    tally, parts = outcome.tally, outcome.parts
    reused = sum(part.reused for part in parts)
    again = f", {reused:,} of them by an earlier run" if reused else ""
    gathered = " Series cross files, so they were gathered by a hash of their ids." if outcome.gathered else ""
    made = f"Wrote {tally.rows:,} {what} of {tally.series:,} series to {location(output)}"
    sys.stdout.write(f"{made}, in {len(parts):,} files{again}.{gathered}\n")
    for warning in outcome.warnings:
        warnings.warn(warning, stacklevel=2)
    for failure in outcome.failures[:MOST_NAMED]:
        sys.stderr.write(f"logcde: {failure.error().phrased(advice)}\n")
    if outcome.failures:
        count = len(outcome.failures)
        missing = "1 part is missing" if count == 1 else f"{count:,} parts are missing"
        of = f" (the first {MOST_NAMED} are named)" if count > MOST_NAMED else ""
        sys.stderr.write(
            f"logcde: {missing}{of}. Once what is wrong with its source is mended, the same command makes it, if the "
            "horizon and the channels of all files stay the same.\n"
        )
    return 1 if outcome.failures else 0


@contextlib.contextmanager
def _engine(ray: str | None, folder: "Location") -> "Iterator[AbstractEngine]":
    if ray is None:
        from logcde.scale.engines import Local

        yield Local(folder)
        return
    from logcde.scale.ray import connected

    with connected(ray) as engine:
        yield engine
