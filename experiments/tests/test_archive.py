"""Facts about data sets of the archive, and the detector of lagged channels; on real files if LOGCDE_DATA is set."""

import os

import numpy as np
import pytest

from experiments import archive
from experiments.archive import ARCHIVE, FACTS, Published, differences, lagged, load
from logcde import datasets
from logcde.datasets import available, deduplicated
from logcde.errors import DatasetError
from tests.datasets.files import small, write_npz

HERE = available() if os.environ.get("LOGCDE_DATA") else {}
LARGE = ("MotorImagery", "EigenWorms")


def copies():
    """Four series whose channels are lagged copies of one sequence."""
    sequences = np.random.default_rng(0).normal(size=(4, 40)).astype(np.float32)
    return [np.stack([one[4 * channel :][:20] for channel in range(4)]) for one in sequences]


def lags_of(folder, values):
    write_npz(folder, "Copies", values, list("abab"))
    return lagged(datasets.load("Copies", folder))


def test_lagged_counts_pairs_and_series(tmp_path):
    values, pairs = copies(), 4 * 3 * 16
    found = lags_of(tmp_path, values)
    assert (found.series, found.lagged, found.pairs, found.equal) == (4, 4, pairs, pairs)
    values[1][3, 5] += 1
    found = lags_of(tmp_path, values)
    assert (found.lagged, found.pairs, found.equal) == (3, pairs, pairs - 1)
    values[1][3, 5] = np.nan
    found = lags_of(tmp_path, values)
    assert (found.lagged, found.pairs, found.share) == (4, pairs - 1, 1)


def test_lagged_without_pairs(tmp_path):
    for channels in (1, 9):
        write_npz(tmp_path, "Few", *small(channels=channels))
        assert lagged(datasets.load("Few", tmp_path)).pairs == 0
    assert lags_of(tmp_path, [np.ones((2, 9), np.float32)] * 4).lagged == 0  # constant series say nothing


@pytest.mark.parametrize(
    ("published", "found"),
    [
        (Published((1, 1), (1, 1), 3, 6, 2, shortest=4), ()),
        (Published((2,), (2,), 3, 6, 2, shortest=4), ()),
        (Published((2, 0), (3,), 3, 6, 2, shortest=4), ("1, 1 training series in the classes", "2 test series")),
        (
            Published((2,), (2,), 2, 7, 5),
            ("3 channels", "6 steps in the longest", "4 steps in the shortest", "2 classes"),
        ),
    ],
)
def test_load_compares_with_published_sizes(tmp_path, monkeypatch, published, found):
    write_npz(tmp_path, "Small", *small())
    monkeypatch.setattr(archive, "FACTS", {"Small": published})
    parts = differences(datasets.load("Small", tmp_path))
    assert [part.startswith(start) for part, start in zip(parts, found, strict=True)] == [True] * len(found)
    if found:
        with pytest.raises(DatasetError, match=r"Small are not the published data set: .* Download them again from"):
            load("Small", tmp_path)
    else:
        assert len(load("Small", tmp_path)) == 4


def test_load_says_where_a_missing_data_set_comes_from(tmp_path):
    with pytest.raises(DatasetError, match=f"EigenWorms.npz.* It comes from .*{ARCHIVE}"):
        load("EigenWorms", tmp_path)
    with pytest.raises(DatasetError, match="It comes from .*physionet.org"):
        load("Heartbeat", tmp_path)
    with pytest.raises(DatasetError) as raised:
        load("Unheard", tmp_path)
    assert "It comes from" not in str(raised.value)


def test_facts_are_consistent():
    for name, known in FACTS.items():
        for counts in (known.train, known.test):
            assert len(counts) in (1, known.classes), name
        assert known.recorded is None or (known.lagged and known.recorded in FACTS)
    # Without the 23 copies in EigenWorms, these are the numbers of series in the paper's splits.
    pooled = {name: sum(known.train) + sum(known.test) for name, known in list(FACTS.items())[:6]}
    assert list(pooled.values()) == [236 + 23, 524, 409, 378, 561, 380]


@pytest.mark.parametrize("name", FACTS)
def test_real_data_set_has_published_sizes_and_known_defects(name):
    if name not in HERE:
        pytest.skip(f"{name} is not in LOGCDE_DATA")
    if name in LARGE:
        pytest.skip(f"{name} takes too long; `python -m experiments datasets check {name}` does the same")
    data = load(name)
    found = lagged(data)
    if FACTS[name].lagged:
        assert found.lagged == len(data)
        assert found.equal == found.pairs
    else:
        assert found.lagged == 0
        assert found.share < 0.01
    assert len(data) - len(deduplicated(data)) == (1 if name == "Epilepsy" else 0)


def test_real_selfregulation_channels_are_windows_on_the_recorded_ones():
    if not {"SelfRegulationSCP1", "BCI2_Ia_raw"} <= HERE.keys():
        pytest.skip("SelfRegulationSCP1 and BCI2_Ia_raw are not both in LOGCDE_DATA")
    published, recorded = load("SelfRegulationSCP1"), load("BCI2_Ia_raw")
    np.testing.assert_array_equal(published.labels, recorded.labels)
    windows, channels = (data.streams.value.reshape(-1, 896, 6).transpose(0, 2, 1) for data in (published, recorded))
    sequence = channels.reshape(len(channels), -1)
    for channel in range(6):
        np.testing.assert_array_equal(windows[:, channel], sequence[:, 6 * channel :][:, :896])
