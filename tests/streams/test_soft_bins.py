"""Soft bins: knots at quantiles, and what is refused. What engines make of them is in tests/embedding."""

import numpy as np
import pytest

from logcde.errors import StreamError, Where
from logcde.streams import SoftBins, Streams

NAN = np.nan


def test_knots_are_distinct_quantiles_of_observed_values():
    values = np.array([[[1.0, 4.0, NAN], [2.0, 4.0, NAN], [3.0, NAN, NAN]]])
    bins = SoftBins.fit(Streams.from_dense(values, channels=["a", "b", "never"]), (0.0, 0.5, 1.0))
    assert bins.knots == ((1.0, 2.0, 3.0), (4.0,), (0.0,))


@pytest.mark.parametrize("shares", [(), (0.5, 1.5), (-0.1,)])
def test_refused_shares(shares):
    with pytest.raises(StreamError, match="numbers from 0 to 1"):
        SoftBins.fit(Streams.from_dense(np.zeros((1, 2, 1))), shares)


@pytest.mark.parametrize("knots", [(), (1.0, 1.0), (2.0, 1.0), (np.inf,)])
def test_refused_knots(knots):
    with pytest.raises(StreamError, match="The knots of 'a' are") as caught:
        SoftBins(("a",), (knots,))
    assert caught.value.where == Where(channel="a")


def test_refused_channels():
    with pytest.raises(StreamError, match="2 channels and knots of 1"):
        SoftBins(("a", "b"), ((1.0,),))
    with pytest.raises(StreamError, match="soft bins are those of the channels 'a', but the streams have 'b'"):
        SoftBins(("a",), ((1.0,),)).check(("b",))
