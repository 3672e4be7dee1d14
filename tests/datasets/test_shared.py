"""The data sets themselves, where there are any: the folder is that of the environment variable LOGCDE_DATA."""

import os

import numpy as np
import pytest

from experiments.facts import FACTS
from experiments.lags import lagged
from logcde.datasets import available, deduplicated, load

HERE = available() if os.environ.get("LOGCDE_DATA") else {}
LARGE = ("MotorImagery", "EigenWorms")


@pytest.mark.parametrize("name", FACTS)
def test_a_set_is_as_published_and_has_the_defect_that_is_known(name):
    if name not in HERE:
        pytest.skip(f"{name} is not in LOGCDE_DATA")
    if name in LARGE:
        pytest.skip(f"{name} takes too long; `logcde datasets check {name}` does the same")
    data = load(name)
    found = lagged(data)
    if FACTS[name].lagged:
        assert found.lagged == len(data)
        assert found.equal == found.pairs
    else:
        assert found.lagged == 0
        assert found.share < 0.01
    assert len(data) - len(deduplicated(data)) == (1 if name == "Epilepsy" else 0)


def test_the_archive_has_windows_on_the_recorded_channels_one_after_another():
    if not {"SelfRegulationSCP1", "BCI2_Ia_raw"} <= HERE.keys():
        pytest.skip("SelfRegulationSCP1 and BCI2_Ia_raw are not both in LOGCDE_DATA")
    archive, recorded = load("SelfRegulationSCP1"), load("BCI2_Ia_raw")
    np.testing.assert_array_equal(archive.labels, recorded.labels)
    windows, channels = (data.streams.value.reshape(-1, 896, 6).transpose(0, 2, 1) for data in (archive, recorded))
    sequence = channels.reshape(len(channels), -1)
    for channel in range(6):
        np.testing.assert_array_equal(windows[:, channel], sequence[:, 6 * channel :][:, :896])
