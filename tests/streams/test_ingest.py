"""Policies of the ingest gate: duplicates, empty series, order."""

import numpy as np
import polars
import pytest

from logcde.streams import Average, Drop, FirstStamp, Forbid, Keep, KeepLast, Partition, Streams

ROWS = [("p", 1.0, "a", 1.0), ("p", 1.0, "b", 7.0), ("p", 1.0, "a", 3.0), ("p", 1.0, "a", 8.0), ("p", 2.0, "a", 5.0)]


def long(rows, **options):
    frame = polars.DataFrame(rows, schema=["series", "time", "channel", "value"], orient="row")
    return Streams.from_frame(frame, **options)


def test_keep_last_and_average():
    assert long(ROWS, duplicates=KeepLast()).value.tolist() == [8.0, 7.0, 5.0]
    assert long(ROWS, duplicates=Average()).value.tolist() == [4.0, 7.0, 5.0]


def test_keep_last_is_the_last_of_the_input_even_after_sorting():
    rows = [
        ("p", 2.0, "a", 1.0),
        ("p", 1.0, "a", 2.0),
        ("p", 2.0, "a", 3.0),
        ("q", 1.0, "a", 4.0),
        ("p", 1.0, "a", 5.0),
    ]
    assert long(rows, duplicates=KeepLast(), sort=True).value.tolist() == [5.0, 3.0, 4.0]


def test_equal_duplicates_merge_under_every_policy():
    rows = [("p", 1.0, "a", 0.1)] * 3 + [("p", 2.0, "a", 0.3), ("p", 2.0, "a", 0.4)]
    for policy in (KeepLast(), Average()):
        assert long(rows, duplicates=policy).value[0] == 0.1
    assert long(rows[:3], duplicates=Forbid()).value.tolist() == [0.1]
    assert long([("p", 1.0, "a", 0.0), ("p", 1.0, "a", -0.0)]).value.tolist() == [0.0]


def test_average_of_large_values_does_not_overflow():
    rows = [("p", 1.0, "a", 1.5e308), ("p", 1.0, "a", 1.6e308)]
    assert long(rows, duplicates=Average()).value[0] == pytest.approx(1.55e308)


def test_terms_follow_the_policy():
    frame = polars.DataFrame(
        [("p", 1.0, "a", 1.0, 0.5), ("p", 1.0, "b", 1.0, 1.5), ("p", 2.0, "b", 1.0, 4.0)],
        schema=["series", "time", "channel", "value", "area"],
        orient="row",
    )
    for policy, expected in ((KeepLast(), 1.5), (Average(), 1.0)):
        streams = Streams.from_frame(frame, terms={"area": ("a", "b")}, duplicates=policy)
        assert streams.terms.tolist() == [[expected], [4.0]]


def test_wide_rows_follow_the_policy():
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    assert Streams.from_arrays([[1.0, 1.0]], [values], duplicates=Average()).value.tolist() == [2.0, 4.0]
    assert Streams.from_arrays([[1.0, 1.0]], [values], duplicates=KeepLast()).value.tolist() == [3.0, 4.0]


def test_drop_and_keep_of_empty_series():
    dense = np.array([[[1.0], [2.0]], [[np.nan], [np.nan]], [[3.0], [np.nan]]])
    dropped = Streams.from_dense(dense, ids=["p", "q", "r"], horizon=[1, 2, 3], empty=Drop())
    assert dropped.ids.tolist() == ["p", "r"]
    assert dropped.horizon.tolist() == [1.0, 3.0]
    kept = Streams.from_dense(dense, ids=["p", "q", "r"], empty=Keep())
    assert kept.offsets.tolist() == [0, 2, 2, 3]
    assert len(kept[1].times) == 0
    assert Partition.every_events(1).cuts(kept[1]).points.tolist() == [0.0, 1.0]
    days = np.array(["2024-01-02", "2024-01-03"], "datetime64[D]")
    own = Streams.from_dense(dense, days, empty=Keep(), origin=FirstStamp())
    assert own.times.tolist() == [0.0, 24.0, 0.0]
    assert len(Streams.from_dense(dense, days, empty=Drop(), origin=FirstStamp()).origins) == 2
