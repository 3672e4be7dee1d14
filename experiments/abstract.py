"""What an experiment is: a grid of cells, each trained on its own, and what is concluded from all of them."""

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from experiments.claims import Conclusion

Tell: TypeAlias = Callable[[float], None]
"""To be told how much of a cell is done, from 0 to 1."""


class AbstractCell(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the grid, with all that its result depends on: a cell with other settings is another cell."""

    variant: str
    seed: int

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """A few words for people."""


CellT = TypeVar("CellT", bound=AbstractCell)
OutcomeT = TypeVar("OutcomeT", bound=msgspec.Struct)
ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)


class Record(msgspec.Struct, Generic[CellT, OutcomeT], frozen=True):
    """A finished cell: what came out, how long it took, and with which versions."""

    cell: CellT
    outcome: OutcomeT
    seconds: float
    versions: dict[str, str]


class AbstractExperiment(abc.ABC, Generic[ConfigT, CellT, OutcomeT]):
    """One experiment of the paper. Cells of one that measures time run `alone`, one after another."""

    alone: ClassVar[bool] = False
    name: ClassVar[str]
    title: ClassVar[str]
    config: ClassVar[Any]
    cell: ClassVar[Any]
    outcome: ClassVar[Any]

    @abc.abstractmethod
    def cells(self, config: ConfigT, done: Mapping[CellT, OutcomeT]) -> Sequence[CellT]:
        """All cells that are known to be needed by now. There may be more when these are done."""

    @abc.abstractmethod
    def can_run(self, cell: CellT) -> bool:
        """Whether the data that a cell needs are there."""

    @abc.abstractmethod
    def run(self, cell: CellT, tell: Tell, scratch: Path) -> OutcomeT:
        """Do one of them. What it keeps in the folder `scratch`, it finds there again after an interruption."""

    @abc.abstractmethod
    def conclude(self, config: ConfigT, records: Mapping[CellT, Record], folder: Path) -> Conclusion:
        """Write tables and figures, and judge the claims."""
