"""The site builds without a warning, loads nothing from other hosts, and its reference has every public name."""

import functools
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//|<link\b[^>]*\bhref=[\"']?(?:https?:)?//"
)
NAMESPACES = (
    "algebra",
    "streams",
    "scaling",
    "scans",
    "embedding",
    "features",
    "paths",
    "flows",
    "models",
    "baselines",
    "train",
    "online",
    "artefact",
    "estimators",
    "scale",
    "datasets",
    "plot",
    "testing",
)
MODULES = {"logcde.errors", "logcde.estimators.aeon"}
"""Modules that the reference shows as a whole."""


def shown_names():
    """Names with their modules, as the pages of the reference list them."""
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    return set(re.findall(r"^::: (logcde\.\S+)$", pages, re.MULTILINE))


def public_names(module):
    """Classes and functions of this package that a namespace offers."""
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    ours = {name: value for name, value in names.items() if inspect.isclass(value) or inspect.isroutine(value)}
    return {name for name, value in ours.items() if re.match(r"logcde\.(?!errors$)", value.__module__)}


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_reference_lists_every_public_name(namespace):
    offered = public_names(importlib.import_module(f"logcde.{namespace}"))
    assert offered - {name.rpartition(".")[2] for name in shown_names()} == set()


def test_reference_lists_every_name_of_the_top_level():
    offered = public_names(importlib.import_module("logcde._api"))
    assert offered - {name.rpartition(".")[2] for name in shown_names()} == set()


def test_every_name_of_the_reference_exists():
    absent = set()
    for name in shown_names() - MODULES:
        module, *rest = name.removeprefix("logcde.").split(".")
        found = importlib.import_module(f"logcde.{module}")
        if rest[:-1] and importlib.util.find_spec(f"logcde.{module}.{rest[0]}"):
            found, rest = importlib.import_module(f"logcde.{module}.{rest[0]}"), rest[1:]
        if functools.reduce(lambda value, part: getattr(value, part, None), rest, found) is None:
            absent.add(name)
    assert absent == set()


def test_reference_names_no_function_by_the_path_of_its_module():
    # mkdocstrings would show the module instead.
    assert {name for name in shown_names() if (ROOT / "src" / f"{name.replace('.', '/')}.py").is_file()} == MODULES


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="the site needs the extra 'docs'")
def test_site_builds_without_a_warning_and_loads_nothing_from_other_hosts(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert LOADED.search(page.read_text()) is None, page
    for sheet in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text()), sheet


def test_pattern_finds_resources_of_other_hosts():
    assert LOADED.search('<script async src="https://example.org/a.js"></script>')
    assert LOADED.search('<link rel="stylesheet" href="//example.org/a.css">')
    assert not LOADED.search('<a href="https://example.org">')
    assert not LOADED.search('<script src="a.js">')
