import json
import re
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding
from logcde.datasets import Split, deduplicated, load, split, windows
from logcde.errors import DatasetError
from logcde.streams import PerChannel, PerEvent, Streams, drop_observations, with_time_channel
from tests.datasets.files import small, write_npz


@pytest.fixture
def data(tmp_path):
    write_npz(tmp_path, "Small", *small())
    return load("Small", tmp_path)


def test_some_series(data):
    assert repr(data) == "Classification(Small: 2 train + 2 test series, 3 channels, 4 to 6 steps, 2 classes)"
    some = data[[2, 0]]
    assert (some.labels.tolist(), some.tested.tolist(), some.streams.ids.tolist()) == ([1, 1], [True, False], [2, 0])
    assert some.streams == data.streams[[2, 0]]
    assert (some.counts(True), some.counts(False)) == ((0, 1), (0, 1))
    assert data[data.labels == 0].streams == data[1::2].streams
    assert repr(data[:0]).startswith("Classification(Small: 0 train + 0 test series, 3 channels, 6 steps")


def test_exact_copies_of_whole_series_are_left_out(tmp_path):
    values, labels = small(lengths=(6, 6, 6, 6))
    values[2] = values[0].copy()
    values[3][0, -1] = values[1][0, -1]
    write_npz(tmp_path, "Small", values, labels)
    data = deduplicated(load("Small", tmp_path))
    assert data.streams.ids.tolist() == [0, 1, 3]
    assert data.labels.tolist() == [1, 0, 0]
    values[2][1, 3] += 1
    write_npz(tmp_path, "Small", values, labels)
    assert len(deduplicated(load("Small", tmp_path))) == 4


def test_a_beginning_is_not_a_copy(tmp_path):
    values, labels = small(lengths=(6, 6, 6, 6))
    values[2] = values[0][:, :4]
    write_npz(tmp_path, "Small", values, labels)
    assert len(deduplicated(load("Small", tmp_path))) == 4


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(236, (165, 35, 36)), (524, (366, 79, 79)), (409, (286, 61, 62)), (378, (264, 57, 57)), (561, (392, 84, 85))],
)
def test_splits_have_the_sizes_of_the_paper(count, sizes):
    drawn = split(count, seed=2345)
    assert (len(drawn.train), len(drawn.validation), len(drawn.test)) == sizes


@given(st.integers(4, 60), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_a_split_is_a_partition_and_follows_from_its_seed(count, seed):
    one, same, other = split(count, seed), split(count, seed), split(count, seed + 1)
    parts = [one.train, one.validation, one.test]
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert min(map(len, parts)) > 0
    np.testing.assert_array_equal(one.train, same.train)
    if count > 30:
        assert one.train.tolist() != other.train.tolist()


def test_a_split_is_kept_in_a_file(tmp_path):
    drawn = split(20, seed=1)
    path = drawn.write(tmp_path / "splits" / "one.json")
    assert json.loads(path.read_text())["validation"] == drawn.validation.tolist()
    again = Split.read(path)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(again, part), getattr(drawn, part))
    assert repr(again) == "Split(14 train, 3 validation, 3 test)"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"train": [0, 1], "validation": [2], "test": [2]}', "The 4 indices of this split are not 0 to 3"),
        ('{"train": [0, 1], "validation": [2], "test": [4]}', "The 4 indices of this split are not 0 to 3"),
        ('{"train": [0, 1], "validation": [2]}', "missing required field `test`"),
        ('{"train": [0.5], "validation": [2], "test": []}', "Expected `int`, got `float`"),
        ('{"train": [99999999999999999999], "validation": [], "test": []}', "too large"),
        ("nonsense", "JSON is malformed"),
    ],
)
def test_a_file_that_is_no_split_is_refused(tmp_path, content, complaint):
    (tmp_path / "split.json").write_text(content)
    with pytest.raises(DatasetError, match=f"split.json is not a split: .*{re.escape(complaint)}"):
        Split.read(tmp_path / "split.json")


def test_a_split_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="split.json cannot be read: No such file"):
        Split.read(tmp_path / "split.json")
    with pytest.raises(DatasetError, match="3 series cannot be split into three parts"):
        split(3, seed=0)


def regular(length, lengths, channels=1):
    return Streams.from_arrays(
        [np.arange(steps) / length for steps in lengths],
        [np.ones((steps, channels)) for steps in lengths],
        horizon=np.array(lengths) / length,
    )


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_windows_begin_at_the_very_stamps(data):
    """The cut j s / L is the float that the stamp of step j s is, or an event would fall into the window before."""
    length = data.draw(st.integers(1, 3000))
    step = data.draw(st.integers(1, length))
    steps = data.draw(st.integers(1, length))
    cuts = windows(length, step).cuts(regular(length, [steps, length]))
    for number, own in enumerate((steps, length)):
        points = cuts.points[cuts.offsets[number] : cuts.offsets[number + 1]]
        assert len(points) - 1 == ceil(own / step)
        np.testing.assert_array_equal(points[:-1], np.arange(0, own, step) / length)
        assert points[-1] == own / length


@pytest.mark.parametrize(("length", "step"), [(17984, 12), (1751, 1), (405, 2), (3000, 16), (896, 16), (1152, 4)])
def test_windows_of_the_paper(length, step):
    cuts = windows(length, step).cuts(regular(length, [length]))
    np.testing.assert_array_equal(cuts.points, np.append(np.arange(0, length, step) / length, 1.0))


@pytest.mark.parametrize(("length", "step"), [(5, 0), (5, 6), (0, 0), (2_000_000, 5)])
def test_windows_that_cannot_be_are_refused(length, step):
    with pytest.raises(DatasetError, match=f"Windows of {step} steps of series of {length} were asked for"):
        windows(length, step)


@pytest.mark.parametrize("kind", [PerEvent(), PerChannel()])
@pytest.mark.parametrize("fraction", [0.0, 0.7, 0.95])
def test_windows_see_what_is_left_and_all_of_time(kind, fraction):
    """After dropping, the increments of each window are those of the last values seen, and of the clock as before."""
    rng = np.random.default_rng(0)
    length, step, lengths = 23, 4, [23, 13]
    values = [rng.normal(size=(steps, 2)) for steps in lengths]
    times = [np.arange(steps) / length for steps in lengths]
    whole = Streams.from_arrays(times, values, ("a", "b"), np.array(lengths) / length)
    left = drop_observations(whole, fraction, kind, seed=5)
    embedding = Embedding(depth=2, counts=False, time=False)
    logsigs = embedding(with_time_channel(left, whole), windows(length, step))
    assert logsigs.basis.letters == ("a", "b", "clock")
    assert np.asarray(logsigs.lengths).tolist() == [6, 4]
    for number, steps in enumerate(lengths):
        ends = np.minimum(np.arange(step, steps + step, step), steps) - 1
        last = np.concatenate([[0.0], times[number][ends]])
        np.testing.assert_allclose(logsigs.values[number, : len(ends), 2], np.diff(last), atol=1e-12)
        seen = np.zeros((steps + 1, 2))
        one = left[number]
        at = np.repeat(np.rint(one.times * length).astype(int), np.diff(one.obs_offsets))
        for place, channel, value in zip(at, one.channel, one.value, strict=True):
            seen[place + 1 :, channel] = value
        expected = np.diff(np.concatenate([seen[:1], seen[ends + 1]]), axis=0)
        np.testing.assert_allclose(logsigs.values[number, : len(ends), :2], expected, atol=1e-12)
