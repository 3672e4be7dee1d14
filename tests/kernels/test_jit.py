"""The cache of compiled kernels: found by later processes, and stale as soon as any kernel is edited."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba as nb
import pytest

import logcde
from logcde.kernels import _jit

# Of the size that compiles fastest.
CODE = """
import jax
import numpy as np
from logcde.kernels.flow_ffi import FORWARD, target
print(target(FORWARD, 1, np.dtype(np.float32), True), jax.jit(lambda x: x + 1)(1.0))
"""


def test_second_process_compiles_nothing(tmp_path):
    """Neither kernels, which C functions and handlers of XLA consist of, nor programs of XLA."""

    def run():
        environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
        environment |= {"LOGCDE_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        files = {path.relative_to(tmp_path): path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        return done.stdout, {path: when for path, when in files.items() if path.suffix in (".nbi", ".nbc")}

    said, files = run()
    assert said == "logcde_act_f32_exact 2.0\n"
    assert {path.parts[0] for path in files} == {"kernels"}
    programs = set((tmp_path / "programs").glob("*-cache"))
    assert programs
    assert run() == (said, files)
    assert set((tmp_path / "programs").glob("*-cache")) == programs


def test_settings_of_numba_and_jax_take_precedence_over_the_folder(tmp_path):
    code = "import jax, numba, logcde.kernels._jit; print(numba.config.CACHE_DIR, jax.config.jax_compilation_cache_dir)"
    own = {"NUMBA_CACHE_DIR": str(tmp_path / "numba"), "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax")}
    environment = os.environ | own | {"LOGCDE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(own.values())


def test_cache_notices_an_edited_kernel_of_another_file(tmp_path):
    """`guess_event` is compiled into its caller, whose own file stays the same when that of `guess_event` is edited."""
    source, package = Path(logcde.__file__).parent, tmp_path / "src" / "logcde"
    shutil.copytree(source / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("__init__.py", "_cache.py", "_machine.py"):
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


def test_compiling_leaves_standard_output_alone(monkeypatch):
    """Also where colorama is installed: it would exchange it under the feet of another thread."""
    pytest.importorskip("colorama")
    exchanged = []
    monkeypatch.setattr("numba.core.errors.init", lambda: exchanged.append(sys.stdout))
    with pytest.raises(nb.TypingError, match="nothing"):
        nb.njit(lambda number: number.nothing)(1)
    assert not exchanged
