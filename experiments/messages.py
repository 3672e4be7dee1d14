"""What a worker says: lines of JSON, each one of these."""

from typing import TypeAlias

import msgspec


class Progress(msgspec.Struct, frozen=True, tag=True):
    """So much of the cell is done, from 0 to 1."""

    part: float


class Done(msgspec.Struct, frozen=True, tag=True):
    """The cell is finished; its record is JSON in itself."""

    record: msgspec.Raw


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The cell raised an exception."""

    trace: str


Message: TypeAlias = Progress | Done | Failed
