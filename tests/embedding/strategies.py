"""Random observation streams that visit every corner of the contract, and query points that meet them.

Values repeat, also across series and also the base point 0; channels are observed together, apart or never; events are
at 0, at query points and at T; series have few events or one; intervals are often empty.
"""

import functools
import random

import numpy as np
from hypothesis import strategies as st

from logcde.embedding import Embedding
from logcde.streams import Partition, Streams, Term

CHANNELS = ("a", "b", "c")
CONTINUOUS = ("p", "q")
TERMS = (
    Term("area", ("a", "b")),
    Term("third", ("b", ("a", "b"))),  # not a Lyndon bracket
    Term("mixed", (("a", "c"), "b")),
)

values = st.sampled_from([0.0, 1.0, -2.5, 0.1]) | st.floats(-8, 8, allow_subnormal=False)
horizons = st.sampled_from([1.0, 4.0, 2.3, 30.0])
# Shares of the horizon. Many are drawn more than once: they are where events, knots and query points meet.
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.integers(0, 1000).map(lambda k: k / 1000)


def composite(build):
    """As `st.composite`, for strategies that make streams: the random numbers that type checks draw are put back."""

    @functools.wraps(build)
    def restoring(*args, **kwargs):
        state = random.getstate()
        try:
            return build(*args, **kwargs)
        finally:
            random.setstate(state)

    return st.composite(restoring)


@composite
def streams(draw, most_series=3, channels=None, continuous=False, terms=False):
    """Streams of 1 to `most_series` series; with `continuous` or `terms` there may be such channels and columns."""
    names = CHANNELS[: draw(st.integers(1, 3)) if channels is None else channels]
    usable = [term for term in TERMS if terms and set(term.letters) <= set(names)]
    chosen = draw(st.lists(st.sampled_from(usable), unique=True)) if usable else []
    count = draw(st.integers(1, most_series))
    ends = [draw(horizons)] * count if draw(st.booleans()) else [draw(horizons) for _ in range(count)]
    stamps = [np.unique(draw(st.lists(shares, min_size=1, max_size=6))) * end for end in ends]
    tables = [np.stack([draw(events(len(names))) for _ in times]) for times in stamps]
    # Terms are zero at every other event or so.
    amount = st.just(0.0) | st.floats(-2, 2, allow_subnormal=False)
    columns = {term: [np.array([draw(amount) for _ in times]) for times in stamps] for term in chosen}
    result = Streams.from_arrays(stamps, tables, names, ends, terms=columns)
    return draw(with_continuous(result)) if continuous and draw(st.booleans()) else result


@composite
def events(draw, channels):
    """One row of values, not all missing."""
    seen = draw(st.sets(st.integers(0, channels - 1), min_size=1))
    return np.array([draw(values) if channel in seen else np.nan for channel in range(channels)])


@composite
def with_continuous(draw, streams):
    """These streams with one or two continuous channels, some of their knots at events."""
    names = CONTINUOUS[: draw(st.integers(1, 2))]
    knots = [draw(points(series)) for series in streams]
    paths = [np.array([[draw(values) for _ in names] for _ in times]) for times in knots]
    return streams.with_continuous(names, knots, paths)


@composite
def points(draw, series):
    """Increasing times from 0 to the horizon of one series, some of them stamps of its events."""
    end = series.horizon[0]
    inner = [share * end for share in draw(st.lists(shares, max_size=3))]
    stamps = draw(st.lists(st.sampled_from(series.times.tolist()), max_size=2))
    return np.unique([0.0, *inner, *stamps, end])


@composite
def partitions(draw, streams):
    """Query points of every series' own."""
    return Partition.at([draw(points(series)) for series in streams])


embeddings = st.builds(Embedding, depth=st.integers(1, 3), counts=st.booleans(), time=st.booleans())
