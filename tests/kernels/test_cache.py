"""What one process has compiled, the next ones find on the disk."""

import inspect
import os
import subprocess
import sys

import pytest

from logcde.kernels.flow import WIDEST
from logcde.kernels.serve import server

# Those of the size that takes least to compile.
CODE = "import numpy as np; from logcde.kernels.flow_ffi import targets; print(targets(1, np.dtype(np.float32), False))"


def test_a_second_process_compiles_nothing_for_xla(tmp_path):
    def run():
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        return done.stdout, {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}

    said, files = run()
    assert said == "('logcde_act_f32_1_euler', 'logcde_act_back_f32_1_euler')\n"
    assert files
    assert run() == (said, files)


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (WIDEST + 1, None)])
def test_kernels_that_serve_close_over_nothing_but_a_size(rows, size):
    """Numba would find them in its cache no more if they closed over another kernel; see `logcde.kernels._jit`."""
    for kernel in server(rows):
        assert inspect.getclosurevars(kernel.py_func).nonlocals == {"size": size}
