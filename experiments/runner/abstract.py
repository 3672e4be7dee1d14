"""The interface of an experiment: a grid of cells, each run by itself, and a conclusion from all of them.

Nothing here knows how cells are scheduled, or what any experiment trains.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

Tell: TypeAlias = Callable[[float], None]
"""Reports the progress of a cell, from 0 to 1."""


class AbstractCell(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the grid, with every setting that its result depends on.

    Cells are the keys of the ledger: a cell with another setting is another cell. Never change the fields, tags or
    defaults of a cell whose results are committed; add a field with a default that means what was done before.
    """

    variant: str
    seed: int

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """A short name for progress bars and logs."""


CellT = TypeVar("CellT", bound=AbstractCell)
OutcomeT = TypeVar("OutcomeT", bound=msgspec.Struct)
ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)


class Record(msgspec.Struct, Generic[CellT, OutcomeT], frozen=True):
    """A finished cell: its outcome, how long it took, and the versions of the libraries that computed it."""

    cell: CellT
    outcome: OutcomeT
    seconds: float
    versions: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement about the results, whether it held, and the numbers that decide it."""

    text: str
    held: bool
    evidence: str


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """The result of an experiment: `summary` (JSON), `text` (Markdown) and the claims in both."""

    summary: dict
    text: str
    claims: tuple[Claim, ...]


class AbstractExperiment(abc.ABC, Generic[ConfigT, CellT, OutcomeT]):
    """One experiment.

    Attributes:
        name: Name of its package under `experiments` and of its folder of results.
        title: Heading of its output.
        config: Type of its presets, with a field `seeds`.
        cell: Type of its cells.
        outcome: Type of the outcome of a cell.
        alone: Whether cells run one at a time by default, because they measure time.
        timings: Names of the fields of an outcome that differ from run to run, at any depth.
        environment: Further environment variables of its worker processes, such as limits on threads.
    """

    alone: ClassVar[bool] = False
    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})
    timings: ClassVar[frozenset[str]] = frozenset({"train_seconds"})
    name: ClassVar[str]
    title: ClassVar[str]
    config: ClassVar[Any]
    cell: ClassVar[Any]
    outcome: ClassVar[Any]

    @abc.abstractmethod
    def cells(self, config: ConfigT, done: Mapping[CellT, OutcomeT]) -> Sequence[CellT]:
        """All cells known to be needed, given those that are done; there may be more once these are done."""

    @abc.abstractmethod
    def can_run(self, cell: CellT) -> bool:
        """Whether the data that a cell needs are available."""

    @abc.abstractmethod
    def run(self, cell: CellT, tell: Tell, scratch: Path) -> OutcomeT:
        """Run one cell. Files kept in the folder `scratch` are there again when an interrupted cell is resumed."""

    @abc.abstractmethod
    def conclude(self, config: ConfigT, records: Mapping[CellT, Record], folder: Path) -> Conclusion:
        """Write tables and figures to `folder` and judge the claims."""
