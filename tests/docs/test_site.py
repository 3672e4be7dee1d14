"""The site: it builds without a warning, needs no other host, and its reference has every public name."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import logcde as lc

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//|<link\b[^>]*\bhref=[\"']?(?:https?:)?//"
)


MODULES = {"logcde.errors", "logcde.estimators.aeon"}
"""What the reference shows as a whole."""


def test_reference_has_every_public_name():
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^::: (logcde\.\S+)$", pages, re.MULTILINE))
    packages = {"losses", "testing", "datasets"}  # have pages of their own
    assert set(dir(lc)) - packages - {name.rpartition(".")[2] for name in shown} == set()
    # Of a function and the module that it is in, if they have one name, mkdocstrings would show the module.
    assert {name for name in shown if (ROOT / "src" / f"{name.replace('.', '/')}.py").is_file()} == MODULES


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


def test_a_page_that_loads_from_another_host_would_be_found():
    assert LOADED.search('<script async src="https://example.org/a.js"></script>')
    assert LOADED.search('<link rel="stylesheet" href="//example.org/a.css">')
    assert not LOADED.search('<a href="https://example.org">')
    assert not LOADED.search('<script src="a.js">')
