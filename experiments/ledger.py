"""The finished cells of a grid, one line of JSON for each, in a file that survives being cut off anywhere."""

import os
from pathlib import Path
from typing import Generic

import msgspec

from experiments.abstract import CellT, OutcomeT, Record
from logcde.errors import ExperimentError


class Ledger(Generic[CellT, OutcomeT]):
    """A file to which finished cells are added, and from which they are read when a grid goes on.

    `ignored` is how many lines the last `read` found that are of another layout: of settings that no longer exist.
    """

    def __init__(self, path: Path, cell: type[CellT], outcome: type[OutcomeT]) -> None:
        self.path, self.ignored = path, 0
        self._decoder = msgspec.json.Decoder(Record[cell, outcome])  # pyright: ignore[reportInvalidTypeArguments]

    def read(self) -> dict[CellT, Record[CellT, OutcomeT]]:
        """All records by cell, later ones of a cell in place of earlier ones. A last line that was cut off is none."""
        if not self.path.exists():
            return {}
        *lines, rest = self.path.read_bytes().split(b"\n")
        if rest:
            with self.path.open("r+b") as file:
                file.truncate(self.path.stat().st_size - len(rest))
        records = [self._decoded(line, number) for number, line in enumerate(lines, 1)]
        self.ignored = records.count(None)
        return {record.cell: record for record in records if record is not None}

    def add(self, record: Record[CellT, OutcomeT]) -> None:
        """Put one more at the end, on the disk before this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _decoded(self, line: bytes, number: int) -> Record[CellT, OutcomeT] | None:
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            return None  # of another layout
        except msgspec.DecodeError as error:
            raise ExperimentError(
                f"{self.path}, line {number}, is not JSON ({error}). Remove that line; its cell is then run again."
            ) from error
