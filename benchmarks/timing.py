"""Measure all contenders of a case in interleaved rounds, in one process.

Every contender runs once first: it compiles, and its result is compared with those of the others. In each of the
following rounds the order is rotated by one place, so that no contender always follows the same one. A run that is too
short for the clock is repeated within the round. A contender that fails is listed with its error.
"""

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.cases import AbstractContender, CannotDo, Case, Entry, NotInstalled
from benchmarks.coordinates import difference
from benchmarks.data import Windows
from benchmarks.results import CaseRecord, Row, Spread


@dataclass(frozen=True)
class Clock:
    """How long to measure.

    Attributes:
        rounds: Number of rounds.
        shortest: Shortest sample in seconds; shorter runs are repeated.
        patience: Largest number of seconds for one contender.
        rest: Seconds before each sample, in which threads of the previous one fall asleep (those of OpenMP may spin for
            a fifth of a second after their work).
    """

    rounds: int = 9
    shortest: float = 0.02
    patience: float = 20.0
    rest: float = 0.3


@dataclass
class _Runner:
    """A contender that ran once, and its samples."""

    entry: Entry
    contender: AbstractContender
    first_call: float
    repeats: int
    difference: float | None
    load: list[float] = field(default_factory=list)
    run: list[float] = field(default_factory=list)

    def spent(self) -> float:
        return (sum(self.load) + sum(self.run)) * self.repeats


def race(case: Case, clock: Clock, tick: Callable[[str], None]) -> CaseRecord:
    """Measure one case; `tick` receives the name of the running contender."""
    cutter = _Cutter(case)
    runners: dict[str, _Runner] = {}
    rows: dict[str, Row] = {}
    reference: tuple[str, np.ndarray] | None = None
    for entry in case.entries:
        tick(entry.name)
        try:
            runner, answer = _first(entry, cutter, clock)
        except Exception as reason:
            rows[entry.name] = _absent(entry, reason)
            continue
        runners[entry.name] = runner
        if answer is not None:
            reference = reference or (entry.name, answer)
            runner.difference = difference(answer, reference[1], case.sizes)
    with _no_collection():
        for turn in range(clock.rounds):
            cutter.forget()
            for runner in _turned(list(runners.values()), turn):
                tick(runner.entry.name)
                try:
                    if turn == 0 or runner.spent() < min(clock.patience, case.patience):
                        time.sleep(clock.rest)
                        _sample(runner, cutter)
                except Exception as reason:
                    rows[runner.entry.name] = _absent(runner.entry, reason)
                    del runners[runner.entry.name]
    rows |= {name: _measured(runner, cutter) for name, runner in runners.items()}
    record = CaseRecord(
        label=case.label,
        unit=case.unit,
        target=str(case.target),
        met=None,
        rival=case.rival,
        reference=reference[0] if reference else "",
        point=case.point,
        rows=tuple(rows[entry.name] for entry in case.entries),
    )
    return _judge(case, record)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Disable garbage collection, which would charge one contender for the objects of another."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _turned(runners: list[_Runner], turn: int) -> list[_Runner]:
    place = turn % len(runners) if runners else 0
    return runners[place:] + runners[:place]


class _Cutter:
    """Cuts windows once a round for each number of buckets and records the seconds."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.windows: dict[int, Windows] = {}
        self.seconds: dict[int, list[float]] = {}

    def get(self, entry: Entry, contender: AbstractContender) -> Windows | None:
        if not contender.windowed:
            return None
        assert self.case.cut is not None
        if entry.buckets not in self.windows:
            start = time.perf_counter()
            self.windows[entry.buckets] = self.case.cut(entry.buckets)
            self.seconds.setdefault(entry.buckets, []).append(time.perf_counter() - start)
        return self.windows[entry.buckets]

    def forget(self) -> None:
        self.windows.clear()


def _first(entry: Entry, cutter: _Cutter, clock: Clock) -> tuple[_Runner, np.ndarray | None]:
    contender = entry.make()
    windows = cutter.get(entry, contender)
    start = time.perf_counter()
    answer = contender.run(contender.load(windows))
    first_call = time.perf_counter() - start
    again = _seconds(contender.run, contender.load(windows), 1) if first_call < clock.patience / 4 else first_call
    repeats = max(1, math.ceil(clock.shortest / max(again, 1e-7)))
    return _Runner(entry, contender, first_call, repeats, None), contender.canonical(answer, windows)


def _sample(runner: _Runner, cutter: _Cutter) -> None:
    windows = cutter.get(runner.entry, runner.contender)
    runner.load.append(_seconds(runner.contender.load, windows, runner.repeats))
    runner.run.append(_seconds(runner.contender.run, runner.contender.load(windows), runner.repeats))


def _seconds(call: Callable[[Any], Any], argument: Any, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call(argument)
    return (time.perf_counter() - start) / repeats


def _absent(entry: Entry, reason: Exception) -> Row:
    """The row of a contender that was not measured, with the reason."""
    known = {NotInstalled: "not installed", CannotDo: "cannot"}
    status = known.get(type(reason), "failed")
    note = str(reason) if type(reason) in known else f"{type(reason).__name__}: {reason}"
    return Row(entry.name, entry.role, entry.threads, entry.items, status, note)


def _measured(runner: _Runner, cutter: _Cutter) -> Row:
    entry, windowed = runner.entry, runner.contender.windowed
    return Row(
        name=entry.name,
        role=entry.role,
        threads=entry.threads,
        items=entry.items,
        status="measured",
        difference=runner.difference,
        first_call=runner.first_call,
        windows=Spread.of(cutter.seconds[entry.buckets]) if windowed else None,
        load=Spread.of(runner.load) if windowed else None,
        run=Spread.of(runner.run),
        memory=runner.contender.memory(),
    )


def _judge(case: Case, record: CaseRecord) -> CaseRecord:
    ours, rival = record.ours(), record.fastest()
    if ours is None or ours.seconds is None:
        return record
    met = case.target.met(ours.seconds, None if rival is None else rival.seconds)
    return CaseRecord(**{**vars(record), "met": met})
