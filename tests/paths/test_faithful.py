"""`check_faithful` agrees with comparing every path and log-signature with every other; `unseen` counts the losses."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.embedding import Embedding
from logcde.paths.faithful import Reason, check_faithful, unseen
from logcde.paths.realisation import realise
from logcde.paths.rounding import Rows, alike
from logcde.streams import Keep, Partition, Streams, Term
from tests.embedding import strategies

NAN = np.nan
VALUES_ONLY = Embedding(counts=False, time=False)


def groups(report, reason):
    return {frozenset(collision.series) for collision in report.collisions if collision.reason == reason}


# Every pair compared, the slow way.


@strategies.composite
def few(draw, continuous=False):
    """Series that easily coincide: few stamps, few values, few events."""
    count = draw(st.integers(2, 5))
    stamps = st.sets(st.sampled_from([0.0, 1.0, 2.0, 4.0]), min_size=1, max_size=3).map(sorted)
    times = [draw(stamps) for _ in range(count)]
    cell = st.sampled_from([0.0, 1.0, 1.0, NAN])
    tables = [np.array([[draw(cell), draw(cell)] for _ in series]) for series in times]
    for table in tables:
        table[np.isnan(table).all(axis=1), 0] = 1.0
    terms = {Term("area", ("a", "b")): [[draw(st.sampled_from([0.0, 0.0, 0.5])) for _ in series] for series in times]}
    ends = [draw(st.sampled_from([4.0, 4.0, 8.0])) for _ in range(count)]
    result = Streams.from_arrays(times, tables, ("a", "b"), ends, terms=terms if draw(st.booleans()) else None)
    if not continuous:
        return result
    paths = [draw(st.sampled_from([(0.0, 0.0, 2.0), (0.0, 1.0, 2.0), (0.0, 2.0, 1.0)])) for _ in range(count)]
    knots = [draw(st.sampled_from([(0.0, 1.0), (0.0, 3.0)])) for _ in range(count)]
    return result.with_continuous(
        ("p",), [(*inner, end) for inner, end in zip(knots, ends, strict=True)], [list(path) for path in paths]
    )


def classes(count, same):
    """Sets of series that are the same as one another."""
    return {frozenset(other for other in range(count) if same(one, other)) for one in range(count)}


def clashes(coarse, fine):
    return {group for group in coarse if group not in fine}


def same_data(streams, one, other):
    schema = dataclasses.replace(streams.schema, continuous=())
    first, second = (
        dataclasses.replace(streams[i], ids=np.array([0]), knots=None, schema=schema) for i in (one, other)
    )
    if first != second:
        return False
    if streams.knots is None:
        return True
    (t, v), (s, w) = streams.knots.of(one), streams.knots.of(other)
    union = np.union1d(t, s)
    return np.array_equal(np.interp(union, t, v[:, 0]), np.interp(union, s, w[:, 0]))


@given(st.booleans().flatmap(few), strategies.embeddings, st.sampled_from([None, 1, 2, 4]))
@settings(max_examples=80, deadline=None)
def test_check_faithful_agrees_with_comparing_every_pair(streams, embedding, intervals):
    partition = None if intervals is None else Partition.uniform(intervals)
    report = check_faithful(streams, embedding, partition)
    paths, count = realise(streams, embedding), len(streams)
    cuts = None if partition is None else partition.cuts(streams)

    def same_path(one, other):
        if not paths[one].deviation(paths[other]).max() < 1e-9:
            return False
        if embedding.time or cuts is None:
            return True
        # Without time, it also matters where the path is cut.
        first, second = (ends(paths[series], cuts, series) for series in (one, other))
        return len(first) == len(second) and np.allclose(first, second, atol=1e-9)

    data = classes(count, lambda one, other: same_data(streams, one, other))
    by_path = classes(count, same_path)
    assert groups(report, "path") == clashes(by_path, data)
    assert {frozenset(group) for group in report.duplicates} == {group for group in data if len(group) > 1}
    if partition is not None:
        values = embedding(streams, partition).values
        by_feature = classes(count, lambda one, other: np.abs(values[one] - values[other]).max() < 1e-9)
        assert groups(report, "features") == clashes(by_feature, by_path)
    assert report.faithful == (not report.collisions)
    assert report.faithful == str(report).startswith("Faithful")


def ends(path, cuts, series):
    points = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
    return np.concatenate([path.a(points[:-1]), path.b(points[1:])])


# One by one.


def test_check_faithful_without_counts_repetitions_collide():
    streams = Streams.from_arrays(
        [[0.0, 1.0, 2.0], [1.0, 2.0], [1.0]],
        [[[0.0], [3.0], [3.0]], [[3.0], [3.0]], [[3.0]]],
        horizon=2.0,
        ids=["with a zero", "repeated", "once"],
    )
    assert check_faithful(streams, Embedding(), Partition.uniform(3)).faithful
    report = check_faithful(streams, Embedding(counts=False))
    assert groups(report, Reason.PATH) == {frozenset(["with a zero", "repeated", "once"])}
    assert "do not all have the same data, but the same path" in str(report)
    assert "an observation that repeats the last value" in str(report)
    assert "Log-signatures were not compared" in str(report)


def test_check_faithful_without_time_depends_on_intervals():
    streams = Streams.from_arrays([[0.5], [0.7], [1.5]], [[[3.0]]] * 3, horizon=2.0)
    blind = Embedding(time=False)
    assert groups(check_faithful(streams, blind), "path") == {frozenset([0, 1, 2])}
    assert groups(check_faithful(streams, blind, Partition.uniform(2)), "path") == {frozenset([0, 1])}
    assert check_faithful(streams, blind, Partition.at([0.0, 0.6, 1.0, 2.0])).faithful


def test_check_faithful_without_time_compares_curves_of_continuous_channels():
    streams = Streams.from_arrays([[1.0], [2.0], [2.0]], [[[3.0]]] * 3, horizon=[4.0, 8.0, 8.0])
    knots = [[0.0, 2.0, 4.0], [0.0, 1.0, 4.0, 8.0], [0.0, 4.0, 8.0]]
    streams = streams.with_continuous(("p",), knots, [[0.1, 0.3, 0.0], [0.1, 0.15, 0.3, 0.0], [0.1, 0.4, 0.0]])
    report = check_faithful(streams, Embedding(time=False), Partition.uniform(2))
    assert groups(report, "path") == {frozenset([0, 1])}
    assert groups(report, "features") == set()


def test_check_faithful_log_signatures_collide_where_paths_do_not():
    up = [[[1.0], [3.0], [0.0]], [[3.0], [1.0], [0.0]]]
    streams = Streams.from_arrays([[0.5, 1.0, 1.5]] * 2, up, horizon=2.0)
    report = check_faithful(streams, Embedding(1), Partition.uniform(1))
    assert not report.faithful
    assert groups(report, "features") == {frozenset([0, 1])}
    assert "on this partition the same log-signatures" in str(report)
    assert check_faithful(streams, Embedding(1), Partition.uniform(4)).faithful
    # What the two have swapped was valid for equally long: to see the order, depth 2 is not enough.
    assert groups(check_faithful(streams, Embedding(2), Partition.uniform(1)), "features") == {frozenset([0, 1])}
    assert check_faithful(streams, Embedding(3), Partition.uniform(1)).faithful
    assert check_faithful(streams, Embedding(1)).faithful


def test_check_faithful_ignores_rounding_of_sums():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200, 1))
    paths = [np.cumsum(steps[rng.permutation(200)], axis=0) for _ in range(50)]
    streams = Streams.from_arrays([np.arange(200.0)] * 50, paths)
    report = check_faithful(streams, Embedding(1), Partition.uniform(1))
    assert groups(report, "features") == {frozenset(range(50))}


@pytest.mark.parametrize("distance", [1e-12, 1e-9, 1e-3])
def test_check_faithful_separates_close_values_and_stamps(distance):
    times = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0 + distance, 3.0]]
    table, close = [[1.0], [1.5], [-0.5]], [[1.0], [1.5 + distance], [-0.5]]
    streams = Streams.from_arrays(times, [table, close, table], horizon=4.0)
    for depth in (2, 3):
        assert check_faithful(streams, Embedding(depth), Partition.uniform(2)).faithful


def test_check_faithful_in_single_precision_close_values_collide():
    streams = Streams.from_arrays([[1.0, 2.0]] * 2, [[[1.0], [2.0]], [[1.0], [2.0 + 1e-9]]])
    partition = Partition.at([0.0, 1.5, 2.0])
    assert check_faithful(streams, Embedding(), partition).faithful
    report = check_faithful(streams, Embedding(dtype=np.float32), partition)
    assert groups(report, "features") == {frozenset([0, 1])}


def test_check_faithful_duplicates_are_no_collision():
    streams = Streams.from_arrays([[1.0], [1.0], [2.0]], [[[1.0]]] * 3, ids=["p", "q", "r"], horizon=2.0)
    report = check_faithful(streams, Embedding(), Partition.uniform(2))
    assert report.faithful
    assert report.duplicates == (("p", "q"),)
    assert "- Series 'p', 'q'." in repr(report)
    # A knot more on the same line makes no other path; a negative zero is no other number.
    once = streams[:2].with_continuous(("c",), [[0.0, 2.0], [0.0, 1.0, 2.0]], [[0.0, 1.0], [-0.0, 0.5, 1.0]])
    assert check_faithful(once, Embedding()).duplicates == (("p", "q"),)


def test_check_faithful_series_without_events():
    nothing = np.zeros((0, 1))
    streams = Streams.from_arrays([[], [], [1.0]], [nothing, nothing, [[0.0]]], horizon=[3.0, 2.0, 3.0], empty=Keep())
    assert check_faithful(streams, Embedding(), Partition.uniform(2)).faithful
    assert groups(check_faithful(streams, Embedding(counts=False)), "path") == {frozenset([0, 2])}
    assert groups(check_faithful(streams, VALUES_ONLY, Partition.uniform(2)), "path") == {frozenset([0, 1, 2])}


def test_check_faithful_terms_above_the_depth_collide():
    third = Term("third", ("a", ("a", "b")))
    streams = Streams.from_arrays([[1.0]] * 2, [[[1.0, 2.0]]] * 2, ("a", "b"), terms={third: [[0.5], [0.0]]})
    assert groups(check_faithful(streams, Embedding(2)), "path") == {frozenset([0, 1])}
    assert check_faithful(streams, Embedding(3), Partition.uniform(1)).faithful


def test_check_faithful_with_a_partition_for_each_series():
    streams = Streams.from_arrays([[1.0]] * 3, [[[1.0]]] * 3, horizon=[2.0, 2.0, 4.0])
    partition = Partition.at([[0.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.0, 4.0]])
    report = check_faithful(streams, VALUES_ONLY, partition)
    assert groups(report, "path") == {frozenset([1, 2])}
    part = Partition.at([[0.0, 0.5], [0.0, 0.5], [0.0, 0.5]], partial=True)
    assert groups(check_faithful(streams, Embedding(), part), "features") == {frozenset([0, 1, 2])}


def test_check_faithful_long_report_is_truncated():
    values = np.arange(40.0).repeat(2).reshape(80, 1, 1)
    times = np.arange(1.0, 81.0)[:, None]
    streams = Streams.from_arrays(times, values, horizon=100.0)
    report = check_faithful(streams, Embedding(time=False))
    assert len(report.collisions) == 40
    assert "- and 35 groups more" in str(report)
    assert report.collisions[0].series == (0, 1)


def test_check_faithful_on_thousands_of_series():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3_000, 4, 2)).round(1)
    times = np.sort(rng.uniform(0, 1, (3_000, 4)), axis=1)
    values[1_000:1_100], times[1_000:1_100] = values[:100], times[:100]
    values[2_000:2_100] = values[:100]
    streams = Streams.from_dense(values, times, horizon=1.0)
    report = check_faithful(streams, Embedding(), Partition.uniform(4))
    assert report.faithful
    assert set(report.duplicates) == {(k, k + 1_000) for k in range(100)}
    report = check_faithful(streams, Embedding(time=False), Partition.uniform(1))
    assert groups(report, "path") == {frozenset([k, k + 1_000, k + 2_000]) for k in range(100)}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30), st.data())
@settings(max_examples=100, deadline=None)
def test_alike_groups_rows_that_agree_to_rounding(rows, data):
    labels, values = np.array(rows)[:, 0], np.array(rows)[:, 1:] / 7
    noise = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=len(rows), max_size=len(rows))))[:, None] * 1e-15
    block = data.draw(st.integers(1, 5))

    def fetch(index):
        return Rows((values + noise)[index], np.full((len(index), 2), 2e-15))

    found = alike(labels, fetch, block)
    for one in range(len(rows)):
        for other in range(len(rows)):
            assert (found[one] == found[other]) == (rows[one] == rows[other])


# What would be lost without counts or time.


def three_series():
    values = [[[1.0, 0.0], [1.0, NAN], [2.0, NAN]], [[1.0, NAN], [2.0, NAN]], [[1.0, NAN], [2.0, NAN]]]
    return Streams.from_arrays([[0.0, 1.0, 4.0], [0.0, 4.0], [0.0, 3.0]], values, ("a", "b"), ids=["p", "q", "r"])


def test_unseen_counts_repeats_gaps_and_collisions():
    lost = unseen(three_series())
    # The first value of b is 0, the base point of every channel: without counts it leaves no trace.
    assert (lost.observations, lost.repeats, lost.events, lost.silent) == (8, 2, 7, 1)
    assert (lost.gaps, lost.shortest_gap, lost.longest_gap) == (4, 1.0, 4.0)
    assert lost.same_without_counts == (("p", "q"),)
    assert lost.same_without_time == (("q", "r"),)
    assert lost.compared == lost.series == 3


def test_unseen_report_in_words():
    text = str(unseen(three_series()))
    assert "2 of 8 observations (25.0%) would leave no trace" in text
    assert "In 1 group of series (2 series), such as 'p', 'q', different series" in text
    assert "4 gaps between events, from 1 to 4, would leave no trace" in text
    few = str(unseen(three_series(), most=2))
    assert "Only the first 2 of 3 series were compared" in few
    assert "No two different series would become the same." in few
