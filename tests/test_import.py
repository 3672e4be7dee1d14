import subprocess
import sys

import pytest

import logcde


@pytest.mark.parametrize("first", ["logcde.models", "experiments"])
def test_any_part_may_be_imported_first(first):
    """Parts ask the package for each other while they are imported, which must not import everything."""
    code = f"import {first}, logcde; print(logcde.log_slice.__name__, 'Streams' in dir(logcde))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "LogSLiCE True\n", done.stderr


def test_what_is_not_there_is_said():
    with pytest.raises(AttributeError, match="module 'logcde' has no attribute 'LogSlice'"):
        _ = logcde.LogSlice


def test_what_estimators_need_is_imported_by_them_only():
    code = "import logcde, sys; logcde.Streams, logcde.fit; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_without_scikit_learn_it_is_said_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import logcde; logcde.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "logcde.estimators needs scikit-learn" in done.stderr
    assert "pip install 'logcde[sklearn]'" in done.stderr


def test_without_a_place_for_compiled_kernels_it_goes_on_and_says_so():
    """As in a container that is read-only, for a user without a home."""
    code = """
import numpy as np
from numba.core import caching
caching.CacheImpl._locator_classes = []
import logcde as lc
streams = lc.Streams.from_arrays([[0.5]], [[[3.0]]], horizon=1.0)
print(lc.Embedding(depth=1)(streams, lc.Partition.uniform(1)).values.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[[[3.0, 1.0, 1.0]]]\n", done.stderr
    assert done.stderr.count("Compiled kernels cannot be cached") == 1
    assert "Set NUMBA_CACHE_DIR" in done.stderr
