"""Every test runs in double precision, with strict promotion and with array types checked at run time."""

import gc
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests compile much and compute little: XLA need not make the best of it, nor compile a program once for each process.
# One job of .github/workflows sets LOGCDE_TEST_OPTIMISED, so that the programs of users are tested as well.
# XLA's emitters of fusions by MLIR take about as long as all of the rest.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
)
if "LOGCDE_TEST_OPTIMISED" not in os.environ:
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}"
# Processes share the cores: threads of scikit-learn's trees that wait for each other would take most of the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent / ".pytest_cache" / "xla")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# Kernels are left out: Numba compiles their plain Python source.
CHECKED = [
    "algebra",
    "streams",
    "embedding",
    "features",
    "paths",
    "artefact",
    "flows",
    "models",
    "baselines",
    "train",
    "online",
    "testing",
    "datasets",
    "report",
]
# The process that hands out tests to others (-n) runs none, and they wait for it.
HANDS_OUT = "-n" in sys.argv and sys.argv[sys.argv.index("-n") + 1] != "0"
if "PYTEST_XDIST_WORKER" in os.environ or not HANDS_OUT:
    import jax
    from jaxtyping import install_import_hook

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    with install_import_hook([f"logcde.{name}" for name in CHECKED], "beartype.beartype"):
        import logcde._api  # noqa: F401

MAPPINGS = Path("/proc/self/maps")
MOST = 8000
"""Mappings of memory, above which a process lets go of compiled programs."""


@pytest.fixture(autouse=True, scope="module")
def released() -> Iterator[None]:
    """Let go of compiled programs after a file: Linux allows a process 65,530 mappings, without which XLA crashes."""
    yield
    if MAPPINGS.is_file() and MAPPINGS.read_bytes().count(b"\n") > MOST:
        jax.clear_caches()
        gc.collect()


# Examples in docstrings are collected by importing every module.
collect_ignore = [] if importlib.util.find_spec("aeon") else ["src/logcde/estimators/aeon.py"]
