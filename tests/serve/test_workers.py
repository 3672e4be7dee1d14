"""Two workers on PostgreSQL and NATS that are killed at every named point; and without what prevents doubles."""

from tests.serve.chaos import Faults, attempt, events_of


def test_workers_that_are_killed_take_and_send_every_event_once(tmp_path):
    found = attempt(tmp_path, events_of(600, 20), Faults(kills=0), seconds=3.0)
    assert found.well, found
    assert found.deaths >= 4


def test_workers_that_forget_how_far_they_are_double_events(tmp_path):
    faults = Faults(points=("after commit",), kills=0, postgres=0, nats=0, doubling=True)
    found = attempt(tmp_path, events_of(200, 5), faults, seconds=2.0)
    assert found.doubled
    assert found.resent
