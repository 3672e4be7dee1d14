"""The ledger of a grid: a line of JSON for each finished cell, in a file that survives an interruption at any byte."""

import os
from pathlib import Path
from typing import Generic

import msgspec

from experiments.runner.abstract import CellT, OutcomeT, Record
from logcde.errors import ExperimentError


class Ledger(Generic[CellT, OutcomeT]):
    """Appends finished cells to a file and reads them back.

    Attributes:
        path: The file.
        ignored: Number of lines in the last `read` whose settings do not exist any more.
    """

    def __init__(self, path: Path, cell: type[CellT], outcome: type[OutcomeT]) -> None:
        self.path, self.ignored = path, 0
        self._decoder = msgspec.json.Decoder(Record[cell, outcome])  # pyright: ignore[reportInvalidTypeArguments]

    def read(self) -> dict[CellT, Record[CellT, OutcomeT]]:
        """Read all records by cell; a later record of a cell replaces an earlier one, a torn last line is removed."""
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
        """Append a record; it is on disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _decoded(self, line: bytes, number: int) -> Record[CellT, OutcomeT] | None:
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            return None  # settings of another version
        except msgspec.DecodeError as error:
            raise ExperimentError(
                f"{self.path}, line {number}, is not JSON ({error}).", "Remove that line; its cell is then run again."
            ) from error
