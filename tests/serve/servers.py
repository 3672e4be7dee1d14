"""Real servers on loopback for tests, each ended by its id: PostgreSQL and NATS, from wheels."""

import pytest

from examples.serving.servers import Nats as Nats
from examples.serving.servers import Postgres as Postgres
from examples.serving.servers import running as running


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A PostgreSQL server for the tests of a file."""
    with running(Postgres(tmp_path_factory.mktemp("postgres"))) as server:
        yield server


@pytest.fixture(scope="module")
def nats(tmp_path_factory):
    """A NATS server for the tests of a file."""
    with running(Nats(tmp_path_factory.mktemp("nats"))) as server:
        yield server
