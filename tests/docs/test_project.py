"""Files of the project agree with each other."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_readme_has_at_most_6_kb():
    assert len((ROOT / "README.md").read_bytes()) <= 6000


def test_citation_and_changelog_have_the_version_of_the_package():
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == PROJECT["version"]


def test_pre_commit_pins_the_versions_of_constraints():
    pinned = re.findall(r"\[(\w+==[\d.]+)\]", (ROOT / ".pre-commit-config.yaml").read_text())
    assert pinned
    assert set(pinned) <= set((ROOT / "constraints.txt").read_text().splitlines())


def test_workflow_covers_the_supported_versions_of_python():
    versions = re.findall(r'"(3\.\d+)"', (ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert versions[0] == PROJECT["requires-python"].removeprefix(">=")
