"""Job scans: ways to compose linear flows over a series, by which the default scan was chosen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import numpy as np

from benchmarks.cases import AbstractContender, Case, Entry, Role, Times
from benchmarks.jobs.abstract import AbstractJob
from benchmarks.peers import AbstractPeer
from benchmarks.steps import contender
from logcde._machine import cores
from logcde.algebra import Basis
from logcde.embedding import LogSignatures
from logcde.models import Inputs, Mean, log_slice
from logcde.scans import AbstractScan, Associative, Auto, Chunked, MatrixFree, Sequential

CLASSES = 2


@dataclass(frozen=True)
class Shape:
    """Series, intervals, hidden size and block size of one case."""

    series: int
    intervals: int
    hidden: int
    block: int


@dataclass(frozen=True)
class Scans(AbstractJob):
    """One training step with every scan, on log-signatures of three letters at depth two."""

    name: ClassVar[str] = "scans"
    title: ClassVar[str] = "ways to compose linear flows"
    shapes: tuple[Shape, ...] = (
        Shape(32, 32, 64, 8),
        Shape(1, 2_000, 64, 8),
        Shape(8, 500, 128, 4),
        Shape(8, 500, 128, 1),
        Shape(8, 100, 64, 64),
    )

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case for each shape, with the default scan against all others."""
        basis = Basis.of_width(3, 2)
        others: tuple[AbstractScan, ...] = (MatrixFree(), Sequential(), Associative(), Chunked(128))
        for shape in self.shapes:
            values = rng.normal(size=(shape.series, shape.intervals, basis.dimension)) * 0.1
            inputs = Inputs.of(LogSignatures(values, np.full(shape.series, shape.intervals), basis))
            entries = (
                Entry("Auto()", Role.OURS, cores(), 1, partial(_step, Auto(), shape, basis, inputs)),
                *(
                    Entry(repr(scan), Role.BASELINE, cores(), 1, partial(_step, scan, shape, basis, inputs))
                    for scan in others
                ),
            )
            label = f"{shape.series} x {shape.intervals} intervals, hidden {shape.hidden}, block {shape.block}"
            yield Case(label, "step", (1,), entries, target=Times(0.8), rival=Role.BASELINE)


def _step(scan: AbstractScan, shape: Shape, basis: Basis, inputs: Inputs) -> AbstractContender:
    model = log_slice(basis, shape.hidden, CLASSES, block=shape.block, scan=scan, readout=Mean(), key=jax.random.key(0))
    return contender(lambda model, one: model(one), model, inputs, CLASSES, same=True)
