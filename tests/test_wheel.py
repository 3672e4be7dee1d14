"""The wheel holds the product only: experiments, benchmarks, examples and tests stay in the repository."""

import importlib.util
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OUTSIDE = ("experiments", "benchmarks", "examples", "tests", "docs")


def test_wheel_packages_are_configured():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["build-system"]["build-backend"] == "hatchling.build"
    assert config["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/logcde"]}


def test_source_names_nothing_outside_the_package():
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        found = [name for name in OUTSIDE if f"\nfrom {name}" in text or f"\nimport {name}" in text]
        assert not found, f"{file} imports {found}"


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed")
def test_built_wheel_holds_the_product_only(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        tops = {name.split("/")[0] for name in content.namelist()}
        assert {f"logcde/serve/web/{name}" for name in ("page.html", "main.js", "uplot/LICENSE")} < set(
            content.namelist()
        )
    assert {top for top in tops if not top.endswith(".dist-info")} == {"logcde"}
