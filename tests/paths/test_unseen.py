"""What would be lost without counts or time, in numbers."""

import numpy as np

from logcde.streams import Streams


def example():
    nan = np.nan
    values = [[[1.0, 0.0], [1.0, nan], [2.0, nan]], [[1.0, nan], [2.0, nan]], [[1.0, nan], [2.0, nan]]]
    return Streams.from_arrays([[0.0, 1.0, 4.0], [0.0, 4.0], [0.0, 3.0]], values, ("a", "b"), ids=["p", "q", "r"])


def test_numbers():
    lost = unseen(example())
    # The first value of b is 0, where every channel starts: without counts that is nothing new.
    assert (lost.observations, lost.repeats, lost.events, lost.silent) == (8, 2, 7, 1)
    assert (lost.gaps, lost.shortest_gap, lost.longest_gap) == (4, 1.0, 4.0)
    assert lost.same_without_counts == (("p", "q"),)
    assert lost.same_without_time == (("q", "r"),)
    assert lost.compared == lost.series == 3


def test_words():
    text = str(unseen(example()))
    assert "2 of 8 observations (25.0%) would leave no trace" in text
    assert "In 1 group of series (2 series), such as 'p', 'q', those that differ" in text
    assert "4 gaps between events, from 1 to 4, would leave no trace" in text
    few = str(unseen(example(), most=2))
    assert "Only the first 2 of 3 series were compared" in few
    assert "No two series that differ would become the same." in few
