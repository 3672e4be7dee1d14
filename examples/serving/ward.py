"""A simulated ward: patients who are quiet or deteriorate, and the events that their monitors send."""

import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import logcde as lc
from logcde.estimators import LogCDEClassifier, WindowRidge

LONGEST = 24.0
"""Hours for which a patient stays at most."""
REORDER = 0.5
"""Hours by which events may be late."""
LATE, TOO_LATE, IMPOSSIBLE = 0.03, 0.01, 0.01
"""Shares of events that are late within these hours, later than that, and of a kind that no model can take."""
Measured: TypeAlias = tuple[float, str, float]
"""Hour since the admission, vital sign, value."""


@dataclasses.dataclass(frozen=True)
class Vital:
    """A vital sign: its level and spread, where it goes as a patient deteriorates, how often an hour it is measured."""

    level: float
    spread: float
    change: float
    often: float


VITALS = {
    "pulse": Vital(80.0, 8.0, 35.0, 3.0),
    "temp": Vital(36.9, 0.3, 1.5, 0.5),
    "oxygen": Vital(97.0, 1.0, -7.0, 2.0),
}


@dataclasses.dataclass(frozen=True)
class Patient:
    """A patient, who deteriorates from an hour on, or never does."""

    end: float
    onset: float = math.inf

    @staticmethod
    def any(rng: np.random.Generator, ill: bool, shortest: float = 4.0) -> "Patient":
        """A patient with a stay of any length."""
        end = rng.uniform(shortest, LONGEST)
        return Patient(end, rng.uniform(0.0, 0.7 * end) if ill else math.inf)

    def events(self, rng: np.random.Generator) -> Iterator[Measured]:
        """Hour, vital sign and value, in order of time; those who deteriorate are measured more often."""
        due = [(rng.exponential(1.0 / vital.often), name) for name, vital in VITALS.items()]
        heapq.heapify(due)
        while due[0][0] < self.end:
            hour, name = due[0]
            vital = VITALS[name]
            worse = float(np.clip((hour - self.onset) / 4.0, 0.0, 1.0))
            yield hour, name, round(vital.level + worse * vital.change + vital.spread * rng.normal(), 2)
            often = vital.often * (3.0 if hour > self.onset else 1.0)
            heapq.heapreplace(due, (hour + rng.exponential(1.0 / often), name))


def train(folder: Path, patients: int = 60) -> float:
    """Train and save a model that tells who deteriorates. Returns its accuracy on other patients."""
    rng = np.random.default_rng(0)
    ill = np.arange(2 * patients) % 3 == 0
    rows = [
        (f"p{number}", hour, {name: value})
        for number, one in enumerate(ill)
        for hour, name, value in Patient.any(rng, bool(one)).events(rng)
    ]
    streams = lc.Streams.from_events(rows, horizon=LONGEST, sort=True, channels=sorted(VITALS))
    states = np.where(ill, "ill", "quiet")[[int(name[1:]) for name in streams.ids]]
    classifier = LogCDEClassifier(learner=WindowRidge(units=0), random_state=0).fit(
        streams[:patients], states[:patients]
    )
    classifier.save(folder)
    return float(np.mean(classifier.predict(streams[patients:]) == states[patients:]))


@dataclasses.dataclass(frozen=True)
class Event:
    """What a monitor sends, and whether a service can take it."""

    series: str
    content: dict[str, Any]
    good: bool


def feed(patients: int, seed: int = 0) -> Iterator[tuple[float, Event]]:
    """Events of a ward for ever, with the hours at which they arrive. Who leaves is replaced by a new patient."""
    rng = np.random.default_rng(seed)
    numbers = itertools.count(1)
    arriving: list[tuple[float, int, str, Measured, bool]] = []
    present: dict[str, tuple[float, Iterator[Measured]]] = {}
    newest: dict[str, float] = {}

    def admit(hour: float) -> str:
        name = f"p{next(numbers)}"
        present[name] = hour, Patient.any(rng, rng.random() < 0.2, shortest=8.0).events(rng)
        return name

    def measure(name: str, hour: float) -> None:
        """Let the next event of a patient arrive; of a new one, if this one leaves."""
        began, events = present[name]
        while (found := next(events, None)) is None:
            del present[name]
            name = admit(hour)
            began, events = present[name]
        heapq.heappush(arriving, (began + found[0], next(numbers), name, found, False))

    for _ in range(patients):
        measure(admit(0.0), 0.0)
    while True:
        hour, number, name, (stamp, vital, value), delayed = heapq.heappop(arriving)
        if not delayed:
            measure(name, hour)
            if delay := _delay(rng):
                heapq.heappush(arriving, (hour + delay, number, name, (stamp, vital, value), True))
                continue
        good = stamp >= newest.get(name, 0.0) - REORDER
        values: dict[str, Any] = {vital: value}
        if rng.random() < IMPOSSIBLE:
            values, good = ({"mood": value} if rng.random() < 0.5 else {vital: "high"}), False
        if good:
            newest[name] = max(newest.get(name, 0.0), stamp)
        yield hour, Event(name, {"series": name, "time": stamp, "values": values, "id": str(number)}, good)


def _delay(rng: np.random.Generator) -> float:
    """Hours by which an event is late."""
    kind = rng.random()
    if kind < TOO_LATE:
        return REORDER * rng.uniform(1.5, 4.0)
    return REORDER * rng.uniform(0.1, 0.9) if kind < TOO_LATE + LATE else 0.0
