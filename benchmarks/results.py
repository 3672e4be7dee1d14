"""Measurements as plain records, and their JSON file."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Point, Role
from logcde._files import write_whole
from logcde.errors import LogcdeError

VERSION = 1
"""Version of the layout of the file; a file of another version is not resumed."""


class ResultsError(LogcdeError):
    """A file of results that cannot be read."""


@dataclass(frozen=True)
class Spread:
    """Seconds over the rounds: median, quartiles and all values."""

    median: float
    lower: float
    upper: float
    rounds: tuple[float, ...]

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        """Summarise the seconds of all rounds.

        >>> Spread.of([3.0, 1.0, 2.0]).median
        2.0
        """
        lower, median, upper = (float(quartile) for quartile in np.quantile(seconds, [0.25, 0.5, 0.75]))
        return cls(median, lower, upper, tuple(seconds))


@dataclass(frozen=True)
class Row:
    """The measurement of one contender in one case; `note` is the reason if it was not measured."""

    name: str
    role: Role
    threads: int
    items: int
    status: str
    note: str = ""
    difference: float | None = None
    first_call: float | None = None
    windows: Spread | None = None
    load: Spread | None = None
    run: Spread | None = None
    memory: int | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds for each unit, cutting and loading of windows included."""
        if self.run is None:
            return None
        return sum(part.median for part in (self.windows, self.load, self.run) if part is not None) / self.items

    @property
    def bare(self) -> float | None:
        """Seconds for each unit on windows that are already cut and loaded."""
        return None if self.run is None else self.run.median / self.items


@dataclass(frozen=True)
class CaseRecord:
    """A measured case; `met` is None if its target cannot be judged."""

    label: str
    unit: str
    target: str
    met: bool | None
    rival: Role
    reference: str
    point: Point | None
    rows: tuple[Row, ...]

    def ours(self) -> Row | None:
        """The row of this library, if it was measured."""
        return next((row for row in self.rows if row.role is Role.OURS and row.run is not None), None)

    def fastest(self, *, bare: bool = False) -> Row | None:
        """The fastest rival, by `seconds` or by `bare`."""
        rivals = [(row.bare if bare else row.seconds, row) for row in self.rows if row.role is self.rival]
        timed = [(seconds, row) for seconds, row in rivals if seconds is not None]
        return min(timed, key=lambda pair: pair[0])[1] if timed else None


@dataclass(frozen=True)
class JobRecord:
    """One finished job."""

    name: str
    title: str
    seconds: float
    cases: tuple[CaseRecord, ...]


@dataclass
class Results:
    """All results of a run: its circumstances and the finished jobs."""

    circumstances: dict[str, Any]
    jobs: dict[str, JobRecord] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the file under a temporary name and rename it, so that it is always complete."""
        content = {"version": VERSION, **self.circumstances, "jobs": [asdict(job) for job in self.jobs.values()]}
        write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Read a file written by `save`.

        Raises:
            ResultsError: If the file has another layout.
        """
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("version", None)
        if version != VERSION:
            raise ResultsError(f"{path} has layout {version}, but this benchmark reads {VERSION}.", "Move it away.")
        jobs = [_job(job) for job in content.pop("jobs")]
        return cls(content, {job.name: job for job in jobs})


def _job(content: dict[str, Any]) -> JobRecord:
    return JobRecord(**{**content, "cases": tuple(_case(case) for case in content["cases"])})


def _case(content: dict[str, Any]) -> CaseRecord:
    point = content["point"]
    rows = tuple(_row(row) for row in content["rows"])
    return CaseRecord(
        **{
            **content,
            "rival": Role(content["rival"]),
            "point": None if point is None else Point(**point),
            "rows": rows,
        }
    )


def _row(content: dict[str, Any]) -> Row:
    spreads = {
        part: None if content[part] is None else Spread(**{**content[part], "rounds": tuple(content[part]["rounds"])})
        for part in ("windows", "load", "run")
    }
    return Row(**{**content, "role": Role(content["role"]), **spreads})
