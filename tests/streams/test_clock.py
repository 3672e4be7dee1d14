"""Clocks: ticks survive float64, and what clocks refuse and show."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import StreamError
from logcde.streams import DatetimeClock, NumericClock, TimedeltaClock
from logcde.streams.clock import Stamps, Ticks, unit_name, zone_named

UNITS = [timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(minutes=7)]


@given(st.lists(st.integers(0, 10**15), min_size=1), st.sampled_from(UNITS), st.sampled_from(["ms", "us"]))
@settings(max_examples=60, deadline=None)
def test_ticks_survive_float64(ticks, unit, resolution):
    exact = Ticks.of(unit, resolution)
    array = np.array(ticks, np.int64)
    assert exact.to_ticks(exact.to_numbers(array)).tolist() == ticks


@given(st.lists(st.integers(0, 290 * 366 * 86400), min_size=1), st.sampled_from(UNITS))
@settings(max_examples=60, deadline=None)
def test_seconds_survive_centuries_of_nanoseconds(seconds, unit):
    in_seconds, in_nanoseconds = np.array(seconds, np.int64), np.array(seconds, np.int64) * 10**9
    numbers = Ticks.of(unit, "ns").to_numbers(in_nanoseconds)
    assert numbers.tolist() == Ticks.of(unit, "s").to_numbers(in_seconds).tolist()
    assert Ticks.of(unit, "ns").to_ticks(numbers).tolist() == in_nanoseconds.tolist()


def test_units_shorter_than_a_tick():
    ticks = Ticks.of(timedelta(microseconds=1), "s")
    assert ticks.to_numbers(np.array([3])).tolist() == [3e6]
    assert ticks.to_ticks(np.array([3e6])).tolist() == [3]
    with pytest.raises(StreamError, match="larger unit"):
        ticks.to_numbers(np.array([2**60]))
    with pytest.raises(StreamError, match="positive"):
        Ticks.of(timedelta(0), "s")


def test_clocks_refuse_other_stamps_and_show_times():
    moments = Stamps(np.array(["2024-01-01"], "datetime64[s]"))
    with pytest.raises(StreamError, match="plain numbers"):
        NumericClock().times(moments)
    with pytest.raises(StreamError, match="Subtract the start"):
        TimedeltaClock().times(moments)
    with pytest.raises(StreamError, match="its own origin"):
        DatetimeClock().times(moments)
    with pytest.raises(StreamError, match="lack a time zone"):
        DatetimeClock(zone="UTC", origin=np.datetime64("2024-01-01")).times(moments)
    assert TimedeltaClock(resolution="ns").show(1.5) == "1:30:00"
    assert TimedeltaClock(timedelta(seconds=1), "ns").show(1e-9) == "1 nanoseconds"
    assert NumericClock().show(0.1) == "0.1"
    assert unit_name(NumericClock()) == ""
    assert unit_name(DatetimeClock(unit=timedelta(days=1))) == "days"
    assert zone_named("-02:30").utcoffset(None) == -timedelta(hours=2, minutes=30)
