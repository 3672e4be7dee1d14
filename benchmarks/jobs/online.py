"""Jobs C and serve: one event at a time from Python, blocks of events, and a prediction after every event."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import numpy as np

from benchmarks.cases import AbstractContender, AbstractTarget, Case, Direct, Entry, NoTarget, Times, Within
from benchmarks.data import dense
from benchmarks.jobs.abstract import AbstractJob, ours, part
from benchmarks.peers import AbstractPeer
from logcde.algebra import Basis
from logcde.embedding import Embedding, OnlineEmbedding
from logcde.models import log_slice
from logcde.online import Predictor
from logcde.streams import Partition, Schema


@dataclass(frozen=True)
class OneByOne(AbstractJob):
    """One synchronous series from the base point. Peers are given increments, which spares them the subtraction."""

    name: ClassVar[str] = "C"
    title: ClassVar[str] = "one event at a time, and blocks of events"
    single: ClassVar[dict[int, AbstractTarget]] = {2: Times(10), 3: NoTarget()}
    blocks: ClassVar[dict[int, AbstractTarget]] = {2: Within(0.3e-6), 3: Times(1)}
    events: int = 1000
    block: int = 500
    width: int = 7

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """For each depth: update only, update and log-signature, blocks."""
        path = dense(rng, 1, self.events, self.width)[0]
        for depth in self.single:
            question = _Question(path, Basis.of_width(self.width, depth))
            yield question.case("update only", peers, _updates, question.update)
            yield question.case("update and log-signature", peers, _pushes, question.push, self.single[depth])
            question = _Question(path[: self.block + 1], question.basis)
            yield question.case(f"blocks of {self.block}", peers, _blocks, question.many, self.blocks[depth])


@dataclass(frozen=True)
class _Question:
    """The same events for all contenders, and this library's computation."""

    path: np.ndarray
    basis: Basis

    def case(
        self,
        label: str,
        peers: Sequence[AbstractPeer],
        make: Callable[[AbstractPeer, Basis, np.ndarray], AbstractContender],
        call: Callable[[], Any],
        target: AbstractTarget = NoTarget(),
    ) -> Case:
        increments = np.diff(self.path, axis=0)
        items = len(increments)
        entries = (
            Entry(peer.name, peer.role, peer.threads, items, partial(make, peer, self.basis, increments))
            for peer in peers
        )
        return Case(
            label=f"d = {self.basis.width}, depth {self.basis.depth}, {label}",
            unit="event",
            sizes=self.basis.sizes,
            entries=(*entries, ours(call, items, _rows)),
            target=target,
        )

    @cached_property
    def fresh(self) -> tuple[OnlineEmbedding, np.ndarray]:
        online = Embedding(depth=self.basis.depth, counts=False, time=False).online(Schema(self.basis.letters))
        return online, online.state()

    def online(self) -> OnlineEmbedding:
        """An empty stream, without the cost of constructing it."""
        online, state = self.fresh
        return online.restore(state)

    @cached_property
    def events(self) -> list[tuple[float, np.ndarray]]:
        return list(zip(self.times.tolist(), self.values, strict=True))

    def update(self) -> None:
        online = self.online()
        for time, values in self.events:
            online.observe(time, values)

    def push(self) -> list[np.ndarray]:
        online = self.online()
        return [online.step(time, values) for time, values in self.events]

    def many(self) -> np.ndarray:
        return self.online().observe_many(self.times, self.values)

    @cached_property
    def times(self) -> np.ndarray:
        return np.arange(len(self.path) - 1.0)

    @cached_property
    def values(self) -> np.ndarray:
        return self.path[1:].astype(np.float64)


def _updates(peer: AbstractPeer, basis: Basis, increments: np.ndarray) -> AbstractContender:
    start, rows = peer.stream(basis.width, basis.depth), _owned(increments)

    def call() -> None:
        stream = start()
        for increment in rows:
            stream.update(increment)

    return Direct(call, _rows)


def _pushes(peer: AbstractPeer, basis: Basis, increments: np.ndarray) -> AbstractContender:
    start, rows = peer.stream(basis.width, basis.depth), _owned(increments)
    reader = start()

    def call() -> list[Any]:
        stream = start()
        return [stream.push(increment) for increment in rows]

    def read(logsigs: list[Any]) -> np.ndarray:
        rows = np.stack([reader.read(logsig) for logsig in logsigs]).astype(np.float64)
        return peer.coordinates.to_brackets(rows, basis)

    return Direct(call, read)


def _blocks(peer: AbstractPeer, basis: Basis, increments: np.ndarray) -> AbstractContender:
    running = peer.blocks(basis.width, basis.depth)
    return Direct(
        lambda: running(increments),
        lambda logsigs: peer.coordinates.to_brackets(np.asarray(logsigs, np.float64), basis),
    )


def _owned(increments: np.ndarray) -> list[np.ndarray]:
    """Rows with memory of their own: pysiglib copies views, and says so."""
    return [increment.copy() for increment in increments]


def _rows(logsigs: Any) -> np.ndarray | None:
    return None if logsigs is None else np.asarray(logsigs, np.float64)


@dataclass(frozen=True)
class Serving(AbstractJob):
    """Asynchronous events of one series with a prediction after each; no peer offers this."""

    name: ClassVar[str] = "serve"
    title: ClassVar[str] = "one event and a prediction"
    target: ClassVar[Within] = Within(20e-6)
    events: int = 2_000
    channels: int = 3
    hidden: int = 64
    block: int = 8

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """A prediction after every event, and events alone."""
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
