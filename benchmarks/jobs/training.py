"""Job train: one training step on series of EigenWorms' shape, for the families of `tab:log_method_comparison_ew`.

Hyper-parameters are the paper's. Without the Log-ODE method, intervals are those between two neighbouring samples and
the depth is one. All contenders of a case start from the same parameters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import numpy as np

from benchmarks import yardsticks
from benchmarks.cases import AbstractTarget, Case, Entry, NoTarget, Role, Times
from benchmarks.jobs.abstract import AbstractJob
from benchmarks.peers import AbstractPeer
from benchmarks.steps import contender
from logcde._machine import cores
from logcde.baselines import HermiteControl, ncde
from logcde.embedding import Embedding
from logcde.models import Inputs, Mean, SequenceModel, log_ncde, log_slice
from logcde.streams import Partition, Streams

CLASSES = 5


@dataclass(frozen=True)
class Training(AbstractJob):
    """Forward, backward and update, for one series and for a batch of them."""

    name: ClassVar[str] = "train"
    title: ClassVar[str] = "one training step on series of EigenWorms' shape"
    batches: tuple[int, ...] = (1, 32)
    samples: int = 17_984
    channels: int = 6
    window: int = 12
    hidden: int = 128
    block: int = 4

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """Against the yardsticks, then each family with the Log-ODE method against itself without."""
        for batch in self.batches:
            data = _Data.random(rng, batch, self)
            log = partial(_entry, data.logs, self._slice(data.logs, self.block), "Log-BD-SLiCE")
            plain = partial(_entry, data.steps, self._slice(data.steps, self.block), "BD-SLiCE")
            dense_log = partial(_entry, data.logs, self._slice(data.logs, self.hidden), "Log-LNCDE")
            dense = partial(_entry, data.steps, self._slice(data.steps, self.hidden), "LNCDE")
            neural_log = partial(_entry, data.logs, self._log_ncde(data.logs), "Log-NCDE")
            neural = partial(_entry, data.pieces, self._ncde(data.pieces), "NCDE")
            by_tree = _entry(
                data.logs,
                self._slice(data.logs, self.block),
                "1 + A, associative scan",
                Role.BASELINE,
                yardsticks.first_order_by_tree,
            )
            by_solve = _entry(
                data.logs,
                self._log_ncde(data.logs),
                "Log-NCDE, one diffeqsolve",
                Role.BASELINE,
                yardsticks.log_ncde_by_one_solve,
            )
            yield _case(batch, "Log-BD-SLiCE", (log(Role.OURS), by_tree), Times(15))
            yield _case(batch, "Log-NCDE", (neural_log(Role.OURS), by_solve), Times(3))
            yield _case(batch, "BD-SLiCE, Log-ODE or not", (log(Role.OURS), plain(Role.BASELINE)), Times(1))
            yield _case(batch, "LNCDE, Log-ODE or not", (dense_log(Role.OURS), dense(Role.BASELINE)), Times(1))
            yield _case(batch, "NCDE, Log-ODE or not", (neural_log(Role.OURS), neural(Role.BASELINE)), Times(1))
            if batch == 1:
                solved = _entry(
                    data.pieces,
                    self._ncde(data.pieces),
                    "NCDE, one diffeqsolve",
                    Role.PART,
                    yardsticks.ncde_by_one_solve,
                )
                entries = (log(Role.OURS), neural(Role.BASELINE), solved)
                yield _case(batch, "from NCDE to Log-BD-SLiCE", entries, Times(3000))

    def _slice(self, inputs: "_Inputs", block: int) -> Callable[[], SequenceModel]:
        return lambda: log_slice(
            inputs.basis, self.hidden, CLASSES, block=block, readout=Mean(initial=True), key=jax.random.key(0)
        )

    def _log_ncde(self, inputs: "_Inputs") -> Callable[[], SequenceModel]:
        return lambda: log_ncde(inputs.basis, self.hidden, CLASSES, width=32, layers=2, key=jax.random.key(0))

    def _ncde(self, inputs: "_Inputs") -> Callable[[], SequenceModel]:
        return lambda: ncde(inputs.basis, self.hidden, CLASSES, width=128, layers=3, key=jax.random.key(0))


@dataclass(frozen=True)
class _Inputs:
    """Inputs of a model, computed when they are first needed."""

    make: Callable[[], Any]

    @cached_property
    def made(self) -> Any:
        return self.make()

    @property
    def basis(self) -> Any:
        return self.made.basis

    @cached_property
    def arrays(self) -> Inputs:
        return Inputs.of(self.made)


@dataclass(frozen=True)
class _Data:
    """The same series as log-signatures of windows, as increments, and as cubic pieces."""

    logs: _Inputs
    steps: _Inputs
    pieces: _Inputs

    @classmethod
    def random(cls, rng: np.random.Generator, batch: int, job: Training) -> "_Data":
        times = np.arange(job.samples) / job.samples
        values = np.cumsum(rng.normal(size=(batch, job.samples, job.channels)) * 0.02, axis=1)
        with_time = np.concatenate([values, np.broadcast_to(times[:, None], (batch, job.samples, 1))], axis=2)
        timed = Streams.from_dense(with_time.astype(np.float32), times)
        plain = Streams.from_dense(values.astype(np.float32), times)
        deep, flat = (Embedding(depth=depth, counts=False, time=False, dtype=np.float32) for depth in (2, 1))
        return cls(
            _Inputs(lambda: deep(timed, Partition.every_events(job.window))),
            _Inputs(lambda: flat(timed, Partition.every_events(1))),
            _Inputs(lambda: HermiteControl()(plain, Partition.uniform(1))),
        )


def _predict(model: SequenceModel, inputs: Inputs) -> Any:
    return model(inputs)


def _entry(
    inputs: _Inputs,
    model: Callable[[], SequenceModel],
    name: str,
    role: Role,
    predict: Callable[[Any, Inputs], Any] = _predict,
) -> Entry:
    make = lambda: contender(predict, model(), inputs.arrays, CLASSES, same=False)  # noqa: E731
    return Entry(name, role, cores(), 1, make)


def _case(batch: int, label: str, entries: tuple[Entry, ...], target: AbstractTarget = NoTarget()) -> Case:
    return Case(f"batch {batch}: {label}", "step", (1,), entries, target=target, rival=Role.BASELINE)
