"""Where the parts of a folder are made: an engine calls functions on many items, and brings series together.

Functions of parts return their failures, so an exception is one of the engine or of the program.
"""

import abc
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from logcde._files import scratch_folder
from logcde.errors import LogcdeError
from logcde.scale.parts import Failure, Part, PartFile, bucketed, scratch_of, together, write_bucket_part, writing
from logcde.scale.plans import Plan
from logcde.streams.frames import arrow
from logcde.streams.locations import Location


class AbstractEngine(abc.ABC):
    """Calls functions, here or elsewhere. Their results come in any order."""

    @abc.abstractmethod
    def each(
        self, function: Callable[..., Any], shared: Mapping[str, Any], items: Sequence[tuple]
    ) -> Iterator[tuple[int, Any]]:
        """Call `function(*item, **shared)` for each item.

        Args:
            function: A function of a module.
            shared: Arguments by name that are the same for all items.
            items: The other arguments of each call.

        Yields:
            The number of an item, and the result.
        """

    @abc.abstractmethod
    def gathered(
        self, plan: Plan, files: Sequence[Location], buckets: int, parts: dict[int, PartFile], rows: int
    ) -> Iterator[Part | Failure]:
        """Write the parts of buckets, whose series are scattered over files.

        Args:
            plan: The plan.
            files: The files, in the order of time.
            buckets: The number of all buckets.
            parts: The part of each bucket that is to be written.
            rows: About how many rows are in memory at once.

        Yields:
            Each part, or why there is none; a failure whose source is a file ends all.
        """


class Local(AbstractEngine):
    """This process, which spreads the work of each part over its threads.

    Args:
        folder: Where rows are gathered: the folder of the output.
    """

    def __init__(self, folder: Location) -> None:
        self.folder = folder

    def each(
        self, function: Callable[..., Any], shared: Mapping[str, Any], items: Sequence[tuple]
    ) -> Iterator[tuple[int, Any]]:
        """One call after another."""
        for number, item in enumerate(items):
            yield number, function(*item, **shared)

    def gathered(
        self, plan: Plan, files: Sequence[Location], buckets: int, parts: dict[int, PartFile], rows: int
    ) -> Iterator[Part | Failure]:
        """By way of the disk: sorted runs of about `rows` rows each, of which every bucket is a stretch."""
        wanted = frozenset(parts)
        with scratch_of(self.folder) as scratch, writing(scratch), scratch_folder(scratch / "runs") as place:
            runs: list[tuple[Path, dict[int, int]]] = []
            waiting: list[tuple[Any, np.ndarray]] = []

            def write_run() -> None:
                whole, every = together([table for table, _ in waiting]), np.concatenate([of for _, of in waiting])
                waiting.clear()
                order = np.argsort(every, kind="stable")
                runs.append(_write_run(place / f"{len(runs)}.arrow", whole.take(order), every[order]))

            for file in files:
                try:
                    for table, of_rows in bucketed(plan.reader, file, buckets, wanted):
                        waiting.append((table, of_rows))
                        if sum(len(of) for _, of in waiting) >= rows:
                            write_run()
                except LogcdeError as error:
                    yield Failure.of(file, error)
                    return
            if waiting:
                write_run()
            for bucket, part in parts.items():
                stretches = [_read_stretch(file, known[bucket]) for file, known in runs if bucket in known]
                yield write_bucket_part(plan, part, *stretches)


def _write_run(path: Path, table: Any, buckets: np.ndarray) -> tuple[Path, dict[int, int]]:
    """Write rows that are sorted by bucket: a batch for each. Returns the file, and the batch of each bucket."""
    pyarrow = arrow()
    found, starts = np.unique(buckets, return_index=True)
    with pyarrow.ipc.new_file(str(path), table.schema) as writer:
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(buckets)], strict=True):
            # One batch, whatever the chunks of the table.
            writer.write_batch(table.slice(start, stop - start).combine_chunks().to_batches()[0])
    return path, {bucket: number for number, bucket in enumerate(found.tolist())}


def _read_stretch(path: Path, batch: int) -> Any:
    pyarrow = arrow()
    with contextlib.closing(pyarrow.memory_map(str(path))) as mapped:
        return pyarrow.Table.from_batches([pyarrow.ipc.open_file(mapped).get_batch(batch)])
