"""Real servers for the tests of services."""

from tests.serve.servers import nats as nats
from tests.serve.servers import postgres as postgres
