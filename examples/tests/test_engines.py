"""Every engine that is installed gives the bits of one call of the plan."""

import warnings
from pathlib import Path

import pytest

import logcde as lc
from examples import engines


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", engines.ENGINES)
def test_engine(name, tmp_path):
    if not engines.installed(name):
        pytest.skip(f"{name} IS NOT INSTALLED: its recipe is not tested")
    frame = engines.write_hours(tmp_path)
    layout = lc.scale.Layout.long("id", "t", "name", "x")
    plan = lc.scale.plan(Path(tmp_path, "*.parquet"), layout, lc.Embedding(), lc.Partition.every(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = engines.ENGINES[name](plan, tmp_path).sort_by([("id", "ascending"), ("start", "ascending")])
    assert made.combine_chunks().equals(plan(frame.to_arrow()))
