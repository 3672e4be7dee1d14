"""From many files to a folder of parts: summaries, one plan, the parts that are missing, and last the manifest."""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from logcde._files import held
from logcde.errors import LogcdeError, LogcdeWarning, TableError
from logcde.scale.engines import AbstractEngine
from logcde.scale.parts import (
    Failure,
    Part,
    PartFile,
    bucket_of,
    bucketed,
    manifest_of,
    summarise_file,
    together,
    write_file_part,
    write_manifest,
)
from logcde.scale.plans import Plan, Reader, plan_of
from logcde.scale.rows import AbstractRows, Tally
from logcde.streams.file_scan import Scan, scan_of
from logcde.streams.file_summary import Layout, Summary, check_whole, is_crossed, labelled_alike, merged, settled
from logcde.streams.files import AbstractTable, ManyTables, open_table
from logcde.streams.ingest import ReadOptions
from logcde.streams.locations import Location, identity, location, tables_at
from logcde.streams.streams import Streams

Progress: TypeAlias = Callable[[str, int | None], contextlib.AbstractContextManager[Callable[[int], None]]]
"""From a word and a number of rows to a bar, which is called with the rows done since the last call."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run has made.

    Attributes:
        parts: All parts of the folder, those of earlier runs included.
        failures: Files and buckets without a part, and why.
        tally: What all parts hold.
        warnings: Warnings of the library.
        scan: The summary of all files that could be read.
        gathered: Whether series cross files, so that the parts are buckets.
    """

    parts: list[Part]
    failures: list[Failure]
    tally: Tally
    warnings: list[LogcdeWarning]
    scan: Scan
    gathered: bool


@dataclasses.dataclass(frozen=True)
class Job:
    """Files, how to read them, what to make of them, and where to write it.

    Attributes:
        source: A folder, a pattern, or a URL of these.
        layout: From an opened table to the meaning of the columns.
        options: How to read the files.
        epoch: The unit of stamps that are numbers since 1970.
        rows: From the summary of all files, as a `Scan`, and a reader of the first series, to what is made of them.
        folder: The folder of the parts.
        key: What else decides the content of the parts: options and models, as plain values.
        whole: Every series is said to be in one file.
        group: About how many rows of the files are in memory at once, in each process.
    """

    source: str | Location
    layout: Callable[[AbstractTable], Layout]
    options: ReadOptions
    epoch: str | None
    rows: Callable[[Scan, Callable[[], Streams]], AbstractRows]
    folder: Location
    key: dict[str, Any]
    whole: bool = False
    group: int = 500_000

    def run(self, engine: AbstractEngine, progress: Progress) -> Outcome:
        """Make the parts that are missing. Any number of runs, whole or interrupted, make the same folder.

        Raises:
            TableError: Nothing can be made: of no file, of series that cross files although they were said not to, of
                damaged files whose rows belong to series of others, or in this folder.
            InUseError: Another process is writing the folder.
        """
        files = tables_at(self.source)
        with held(self.folder) if isinstance(self.folder, Path) else contextlib.nullcontext():
            return self._run(files, engine, progress)

    def _run(self, files: list[Location], engine: AbstractEngine, progress: Progress) -> Outcome:
        first, layout = self._first(files)
        summaries: dict[int, Summary] = {}
        failures: dict[int, Failure] = {}
        with progress("scanning", None) as report:
            shared = {"layout": layout, "first": first, "epoch": self.epoch}
            items = [(file,) for file in files]
            for number, found in engine.each(summarise_file, shared, items):
                if isinstance(found, Failure):
                    failures[number] = found
                else:
                    summaries[number] = found
                    report(found.rows)
        if not summaries:
            raise next(iter(failures.values())).error()
        known = sorted(summaries)
        each = labelled_alike([summaries[number] for number in known])
        if self.whole:
            check_whole(each)
        crossed = is_crossed(each)
        if crossed and failures:
            worst = failures[min(failures)].error()
            raise TableError(
                f"{worst.found} Series cross these files, so that all of them would lack its rows.",
                worst.remedy or "Mend it, or take it away.",
            )
        seen = merged(each)
        options = settled(seen, layout, self.options)
        whole = ManyTables(location(self.source), first.types, seen.rows, first.categories, first.untyped, ())
        scan = scan_of(whole, layout, seen, options)
        used = [files[number] for number in known]
        buckets = max(1, min(round(seen.rows / self.group), len(seen.numbers))) if crossed else 0
        reader = Reader(layout, seen.texts, options)
        fitted_to: list[tuple[str, int, str]] = []

        def first_series() -> Streams:
            fitted_to.extend(identity(file) for file in used)
            return self._first_series(reader, used, each, buckets)

        plan = plan_of(reader, seen, self.rows(scan, first_series))
        base = self._key(plan, fitted_to)
        names = part_names(files)
        parts = self._parts(base, used, [names[number] for number in known], buckets)
        done = {number: one for number, part in parts.items() if (one := part.done()) is not None}
        self._check_foreign(parts, base)
        missing = {number: part for number, part in parts.items() if number not in done}
        with progress("writing", seen.rows) as report:
            made = self._made(engine, plan, used, each, missing, buckets, report)
        for number, one in made.items():
            if isinstance(one, Failure):
                failures[known[number] if not crossed else number] = one
            else:
                done[number] = one
        return self._finish(base, [done[number] for number in sorted(done)], failures, scan, crossed)

    def _first(self, files: list[Location]) -> tuple[AbstractTable, Layout]:
        """The first file that can be opened, and the layout of all."""
        failed: LogcdeError | None = None
        for file in files:
            try:
                table = open_table(file)
            except LogcdeError as error:
                failed = failed or error
                continue
            return table, self.layout(table)
        assert failed is not None
        raise failed

    def _first_series(self, reader: Reader, files: list[Location], each: list[Summary], buckets: int) -> Streams:
        """About as many series as fit into memory, whole: those of the first files, or of the first one's bucket."""
        pieces: list[Any] = []
        first = frozenset(bucket_of(list(each[0].numbers)[:1], max(1, buckets)).tolist())
        for file, seen in zip(files, each, strict=True):
            if buckets:
                pieces += [table for table, _ in bucketed(reader, file, buckets, first)]
            elif sum(map(len, pieces)) < self.group:
                pieces += [piece.table for piece in reader.scan(file, seen).pieces()]
        return reader.layout.read(together(pieces), reader.options)

    def _key(self, plan: Plan, fitted_to: list[tuple[str, int, str]]) -> str:
        """A checksum of all that decides the content of a part besides its own file."""
        content = {
            **self.key,
            "fitted to": fitted_to,
            "version": importlib.metadata.version("logcde"),
            "options": repr(plan.reader.options),
            "layout": repr(plan.reader.layout),
            "columns": str(plan.columns),
        }
        return _checksum(content)

    def _parts(self, base: str, files: list[Location], names: list[str], buckets: int) -> dict[int, PartFile]:
        """The parts: one for each file, with its name, or one for each bucket."""
        if buckets:
            key = _checksum({"plan": base, "files": [identity(file) for file in files], "buckets": buckets})
            names = [f"part-{number:05}-of-{buckets:05}.parquet" for number in range(buckets)]
            words = [f"bucket {number} of {buckets}" for number in range(buckets)]
            keys = [f"{key}-{number}" for number in range(buckets)]
        else:
            words = [str(file) for file in files]
            keys = [_checksum({"plan": base, "file": identity(file)}) for file in files]
        made = zip(names, keys, words, strict=True)
        return {number: PartFile(self.folder, *one) for number, one in enumerate(made)}

    def _check_foreign(self, parts: dict[int, PartFile], base: str) -> None:
        """Refuse a folder with files of other runs, which would be read together with those of this one."""
        remedy = f"Remove {self.folder}, or choose another folder with -o."
        known = {part.name for part in parts.values()}
        there = tables_at(self.folder) if self.folder.exists() else []
        foreign = [file for file in there if file.name not in known and file.is_file()]
        if foreign:
            raise TableError(f"{self.folder} has a file {foreign[0].name}, which is not of this command.", remedy)
        before = manifest_of(self.folder)
        if before is not None and before.get("key") != base:
            raise TableError(f"{self.folder} was written by another command or of other files.", remedy)

    def _made(
        self,
        engine: AbstractEngine,
        plan: Plan,
        files: list[Location],
        each: list[Summary],
        missing: dict[int, PartFile],
        buckets: int,
        report: Callable[[int], None],
    ) -> dict[int, Part | Failure]:
        made: dict[int, Part | Failure] = {}
        if not missing:
            return made
        if buckets:
            number_of = {part.source: number for number, part in missing.items()}
            for one in engine.gathered(plan, files, buckets, missing, self.group):
                if isinstance(one, Failure) and (one.fatal or one.source not in number_of):
                    raise one.error()
                made[number_of[one.source]] = one
                report(sum(summary.rows for summary in each) // buckets)
            return made
        items = [(files[number], each[number], part) for number, part in missing.items()]
        for place, one in engine.each(write_file_part, {"plan": plan, "rows": self.group}, items):
            if isinstance(one, Failure) and one.fatal:
                raise one.error()
            made[list(missing)[place]] = one
            report(items[place][1].rows)
        return made

    def _finish(self, base: str, parts: list[Part], failures: dict[int, Failure], scan: Scan, crossed: bool) -> Outcome:
        tally = Tally()
        for part in parts:
            tally.add(part.tally)
        lost = [failures[number] for number in sorted(failures)]
        content = {
            "key": base,
            "parts": [
                {"file": part.name, "source": part.source, "rows": part.tally.rows, "series": part.tally.series}
                for part in parts
            ],
            "failed": [{"source": one.source, "error": one.error().found} for one in lost],
            "rows": tally.rows,
            "series": tally.series,
        }
        if manifest_of(self.folder) != content:
            write_manifest(self.folder, content)
        warned = [warning for part in parts for warning in part.warnings]
        return Outcome(parts, lost, tally, warned, scan, crossed)


def part_names(files: Sequence[Location]) -> list[str]:
    """The name of the part of each file: its own, after those of the folders in which it is, if files differ in these.

    >>> part_names([Path("v/2024/a.csv"), Path("v/2025/a.csv")]), part_names([Path("v/a.csv"), Path("v/b.csv.gz")])
    (['2024-a.parquet', '2025-a.parquet'], ['a.parquet', 'b.parquet'])
    """
    folders = [Path(str(file)).parts[:-1] for file in files]
    same = 0
    while all(len(one) > same and one[same] == folders[0][same] for one in folders):
        same += 1
    names = ["-".join((*folder[same:], file.name)) for folder, file in zip(folders, files, strict=True)]
    short = [name.removesuffix(".gz").rpartition(".")[0] for name in names]
    distinct = len(set(short)) == len(short)
    return [f"{name}.parquet" for name in (short if distinct else names)]


def _checksum(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
