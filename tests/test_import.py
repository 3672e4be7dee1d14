"""`import logcde`: lazy names, namespaces, the version, and what the package says about names of 0.1.0."""

import ast
import functools
import graphlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import logcde as lc
from logcde import _api
from logcde._renamed import RENAMED


def in_a_new_process(code, **variables):
    environment = os.environ | variables
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("first", ["logcde.models", "experiments"])
def test_any_package_can_be_imported_first(first):
    """Packages import each other through `logcde`, which must not import all of them."""
    done = in_a_new_process(f"import {first}, logcde; print(logcde.log_slice.__name__, 'Streams' in dir(logcde))")
    assert done.stdout == "log_slice True\n", done.stderr


def test_import_is_lazy():
    done = in_a_new_process(
        "import sys, logcde; logcde.__version__; print({'jax', 'numpy', 'numba'} & set(sys.modules))"
    )
    assert done.stdout == "set()\n", done.stderr


def test_version_is_that_of_the_distribution():
    assert lc.__version__ == importlib.metadata.version("logcde")


def test_dir_has_the_names_and_the_namespaces():
    names = [name for name in vars(_api) if not name.startswith("_")]
    assert len(names) == 45
    namespaces = ("algebra", "baselines", "embedding", "errors", "flows", "scaling", "scans", "streams", "train")
    assert {*names, *namespaces, "__version__"} <= set(dir(lc))
    assert not {"_api", "_files", "importlib"} & set(dir(lc))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'logcde' has no attribute 'LogSlice'$"):
        _ = lc.LogSlice
    with pytest.raises(AttributeError, match="module 'logcde' has no attribute '_unknown'$"):
        _ = lc._unknown


@pytest.mark.parametrize("old", RENAMED)
def test_renamed_name_says_its_new_name(old):
    new = RENAMED[old]
    with pytest.raises(AttributeError, match=f"has no attribute {old!r}. Since version 0.2.0 it is lc.") as error:
        getattr(lc, old)
    assert str(error.value).endswith(f" lc.{new}.")
    functools.reduce(getattr, new.partition("(")[0].split("."), lc)


def test_scikit_learn_is_imported_by_estimators_only():
    done = in_a_new_process("import logcde, sys; logcde.Streams, logcde.fit; print('sklearn' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_estimators_without_scikit_learn_say_what_to_install():
    done = in_a_new_process("import sys; sys.modules['sklearn'] = None; import logcde; logcde.estimators")
    assert "logcde.estimators needs scikit-learn" in done.stderr
    assert "pip install 'logcde[sklearn]'" in done.stderr


def test_kernels_without_a_cache_folder_run_and_warn_once():
    """A read-only container whose user has no home."""
    code = """
import numpy as np
from numba.core import caching
caching.CacheImpl._locator_classes = []
import logcde as lc
streams = lc.Streams.from_arrays([[0.5]], [[[3.0]]], horizon=1.0)
print(lc.Embedding(depth=1)(streams, lc.Partition.uniform(1)).values.tolist())
"""
    done = in_a_new_process(code, NUMBA_OPT="0")  # they are compiled for one event
    assert done.stdout == "[[[3.0, 1.0, 1.0]]]\n", done.stderr
    assert done.stderr.count("Compiled kernels cannot be cached") == 1
    assert "Set LOGCDE_CACHE_DIR" in done.stderr


def imports_of(file, modules):
    """Modules of the package that a file imports anywhere: in functions and for type checking as well."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & modules.keys()


def test_import_graph_has_no_cycle():
    root = Path(lc.__path__[0])
    files = {file: file.relative_to(root.parent).with_suffix("") for file in root.rglob("*.py")}
    modules = {".".join(path.parts).removesuffix(".__init__"): file for file, path in files.items()}
    # The top level names all packages for type checkers and imports them on first access.
    graph = {name: imports_of(file, modules) - {name, "logcde"} for name, file in modules.items()}
    try:
        order = list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))
    assert set(order) == graph.keys() | set().union(*graph.values())
