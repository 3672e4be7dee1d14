"""Fixtures that commands on many files share with others."""

from tests.cli.conftest import untrained as untrained
