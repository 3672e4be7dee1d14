"""One event through embedding, flow and readout: what a served model costs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from benchmarks.cases import Case, Within
from benchmarks.jobs.abstract import AbstractJob, ours, part
from benchmarks.peers import AbstractPeer
from logcde.embedding import Embedding
from logcde.models import log_slice
from logcde.online import Predictor
from logcde.streams import Partition, Schema


@dataclass(frozen=True)
class Serving(AbstractJob):
    """Asynchronous events of one series, a prediction after each; no peer has such a thing to compare with."""

    name: ClassVar[str] = "serve"
    title: ClassVar[str] = "one event and a prediction"
    target: ClassVar[Within] = Within(20e-6)
    events: int = 2_000
    channels: int = 3
    hidden: int = 64
    block: int = 8

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """A prediction after every event; beside it, events alone."""
        schema, embedding = Schema(tuple("abc"[: self.channels])), Embedding(depth=2)
        model = log_slice(embedding.basis(schema), self.hidden, 2, block=self.block, key=jax.random.key(0))
        fresh = Predictor(model, schema=schema, embedding=embedding, partition=Partition.every(1.0))
        times = np.cumsum(rng.exponential(0.1, self.events)).tolist()
        channel, value = rng.integers(0, self.channels, self.events), rng.normal(size=self.events)
        rows = [{schema.channels[k]: float(x)} for k, x in zip(channel, value, strict=True)]

        def predictions() -> list[np.ndarray]:
            predictor, found = fresh.copy(), []
            for time, row in zip(times, rows, strict=True):
                predictor.observe(time, row)
                found.append(predictor.predict())
            return found

        def events() -> None:
            predictor = fresh.copy()
            for time, row in zip(times, rows, strict=True):
                predictor.observe(time, row)

        yield Case(
            label=f"{self.channels} channels, counts and time, depth 2, hidden {self.hidden}, block {self.block}",
            unit="event",
            sizes=(2,),
            entries=(
                ours(predictions, self.events, lambda found: np.asarray(found, np.float64)),
                part("events alone", events, self.events),
            ),
            target=self.target,
        )
