import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.datasets import Split, split
from logcde.errors import DatasetError


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(236, (165, 35, 36)), (524, (366, 79, 79)), (409, (286, 61, 62)), (378, (264, 57, 57)), (561, (392, 84, 85))],
)
def test_split_has_sizes_of_the_paper(count, sizes):
    drawn = split(count, seed=2345)
    assert (len(drawn.train), len(drawn.validation), len(drawn.test)) == sizes


@given(st.integers(4, 60), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_split_is_a_partition_determined_by_seed(count, seed):
    one, same, other = split(count, seed), split(count, seed), split(count, seed + 1)
    parts = [one.train, one.validation, one.test]
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert min(map(len, parts)) > 0
    np.testing.assert_array_equal(one.train, same.train)
    if count > 30:
        assert one.train.tolist() != other.train.tolist()


def test_split_round_trip_through_file(tmp_path):
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
        ("nonsense", "it is not JSON"),
        ('{"train": [0, 1], "train": [1, 0], "validation": [2], "test": [3]}', "the key 'train' occurs twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_invalid_split_file_is_refused(tmp_path, content, complaint):
    (tmp_path / "split.json").write_text(content)
    with pytest.raises(DatasetError, match=f"split.json is not a split: .*{re.escape(complaint)}"):
        Split.read(tmp_path / "split.json")


def test_impossible_split_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="split.json cannot be read: No such file"):
        Split.read(tmp_path / "split.json")
    with pytest.raises(DatasetError, match="3 series cannot be split into three parts"):
        split(3, seed=0)
