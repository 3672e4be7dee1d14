"""The cache of compiled kernels: found by later processes, and stale as soon as any kernel is edited."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import logcde
from logcde.kernels import _jit
from logcde.kernels.flow import WIDEST
from logcde.kernels.serve import server

# Of the size that compiles fastest.
CODE = "import numpy as np; from logcde.kernels.flow_ffi import targets; print(targets(1, np.dtype(np.float32), False))"


def test_cache_second_process_compiles_nothing_for_xla(tmp_path):
    def run():
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        return done.stdout, {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}

    said, files = run()
    assert said == "('logcde_act_f32_1_euler', 'logcde_act_back_f32_1_euler')\n"
    assert files
    assert run() == (said, files)


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (WIDEST + 1, None)])
def test_cache_server_kernels_close_over_a_size_only(rows, size):
    """Numba would not find them in its cache if they closed over another kernel; see `logcde.kernels._jit`."""
    for kernel in server(rows):
        assert inspect.getclosurevars(kernel.py_func).nonlocals == {"size": size}


def test_cache_notices_an_edited_kernel_of_another_file(tmp_path):
    """`guess_event` is compiled into its caller, whose own file stays the same when that of `guess_event` is edited."""
    source, package = Path(logcde.__file__).parent, tmp_path / "src" / "logcde"
    shutil.copytree(source / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("__init__.py", "_machine.py"):
        shutil.copy(source / file, package / file)
    (package / "kernels" / "caller.py").write_text(
        "from logcde.kernels._jit import kernel\n"
        "from logcde.kernels.events import guess_event\n\n\n"
        "@kernel\n"
        "def call(times):\n"
        "    return guess_event(times, 0, times.size, 0.5)\n"
    )
    code = (
        "import numpy as np; from logcde.kernels.caller import call; "
        "print(call(np.linspace(0, 1, 11)), sum(call.stats.cache_hits.values()))"
    )

    def run():
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert run() == ["5", "0"]
    assert run() == ["5", "1"]
    events = package / "kernels" / "events.py"
    edited = events.read_text().replace("return low + int(max(", "return 100 + low + int(max(")
    assert edited != events.read_text()
    events.write_text(edited)
    assert run() == ["105", "0"]


def test_package_locator_declines_functions_of_other_files():
    assert _jit.PackageLocator.from_function(test_package_locator_declines_functions_of_other_files, __file__) is None
