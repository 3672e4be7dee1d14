"""The clock of one growing series."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from logcde.errors import StreamError
from logcde.streams import DatetimeClock, NumericClock
from logcde.streams.clock import Time
from logcde.streams.series_clock import begun_by, origin_number, time_on, with_origin_number


def test_times_of_single_stamps():
    own, noon = DatetimeClock(), datetime(2024, 3, 1, 12)
    for length in (2, 2.0, np.float32(2), timedelta(hours=2), np.timedelta64(2, "h")):
        assert time_on(own, length) == 2.0
        assert begun_by(own, length) == own
    with pytest.raises(StreamError, match="Observe an event first"):
        time_on(own, noon)
    begun = begun_by(own, noon)
    assert (time_on(begun, noon), time_on(begun, noon + timedelta(hours=2))) == (0.0, 2.0)
    assert with_origin_number(own, origin_number(begun)) == begun
    assert begun_by(NumericClock(None), Time(3.0)) == NumericClock(None)
    with pytest.raises(StreamError, match="Observe an event first"):
        time_on(NumericClock(None), 3)
    assert time_on(begun_by(NumericClock(None), 3), 5) == 2.0
    with pytest.raises(StreamError, match="is finer than"):
        begun_by(DatetimeClock(resolution="s"), np.datetime64("2024-03-01T12:00:00.5"))
