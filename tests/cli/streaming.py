"""A small model for `logcde stream`, and lines of input for it."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np

import logcde as lc
from logcde.embedding import EmbeddingSpec
from logcde.streams import NumericClock

EMBEDDING = lc.Embedding(depth=2)
RULE = lc.Partition.every(0.5)
GOOD = {"series": "p1", "time": 0.1, "values": {"pulse": 1.0}}


def a_model(clock=NumericClock(), rule=RULE, terms=(), continuous=(), **options):
    schema = lc.Schema(("pulse", "temp"), clock, terms, continuous)
    options = {"hidden": 4, "block": 2, "outputs": 2, "dtype": jnp.float64, "initial": lc.LearntInitial()} | options
    model = lc.log_slice(EMBEDDING.basis(schema), key=jax.random.key(0), **options)
    return dataclasses.replace(model, spec=EmbeddingSpec(EMBEDDING.coordinates(schema), rule))


def written(lines):
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def predictions(out):
    return [json.loads(line) for line in out.splitlines()]


def history(count=24, seed=0):
    """Events of three series in turn, some of them at interval ends."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(1, 4, count)) / 8
    seen = (("pulse",), ("temp",), ("pulse", "temp"))
    return [
        {"series": ("p1", "p2", 7)[n % 3], "time": time, "values": {name: rng.normal() for name in seen[n % 2]}}
        for n, time in enumerate(times.tolist())
    ]


def offline(model, lines, series, at, rule=RULE, static=None):
    """The offline prediction from the events of a series up to a time, with that as its horizon."""
    events = [("s", one["time"], one["values"]) for one in lines if one["series"] == series and one["time"] <= at]
    streams = lc.Streams.from_events(events, horizon=at, schema=model.spec.coordinates.schema)
    return lc.predict(model, lc.Inputs.of(EMBEDDING(streams, rule), static, dtype=np.float64))[0]
