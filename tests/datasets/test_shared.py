"""The data sets themselves, where there are any: the folder is that of the environment variable LOGCDE_DATA."""

import os

import pytest

from logcde.datasets import FACTS, available, deduplicated, lagged, load

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
