import numpy as np
import pytest

from benchmarks.cases import CannotDo, Case, Direct, Engine, Entry, NotInstalled, Role, Times, Windowed, Within
from benchmarks.data import Windows
from benchmarks.timing import Clock, race

QUICK = Clock(rest=0.0, rounds=3, shortest=0.0, patience=5.0)


def entry(name, role, answer, items=1):
    return Entry(name, role, 1, items, lambda: Direct(lambda: answer, lambda found: found))


def broken(error):
    def make():
        raise error

    return make


def test_race_lists_every_contender_with_its_status():
    case = Case(
        label="case",
        unit="window",
        sizes=(2,),
        entries=(
            entry("right", Role.PEER, np.array([[1.0, 4.0]])),
            Entry("absent", Role.PEER, 1, 1, broken(NotInstalled("pip install absent"))),
            Entry("unable", Role.PEER, 1, 1, broken(CannotDo("has none"))),
            Entry("broken", Role.PEER, 1, 1, broken(RuntimeError("out of order"))),
            entry("wrong", Role.PEER, np.array([[1.0, 2.0]])),
        ),
    )
    told = []
    record = race(case, QUICK, told.append)
    assert [(row.name, row.status) for row in record.rows] == [
        ("right", "measured"),
        ("absent", "not installed"),
        ("unable", "cannot"),
        ("broken", "failed"),
        ("wrong", "measured"),
    ]
    assert record.rows[3].note == "RuntimeError: out of order"
    assert record.reference == "right"
    assert record.rows[0].difference == 0.0
    assert record.rows[4].difference == pytest.approx(0.5)
    assert len(told) == 5 + 3 * 2


def test_race_lists_a_failure_in_a_later_round():
    calls = []

    def call():
        calls.append(1)
        if len(calls) > 2:
            raise RuntimeError("tired")
        return np.ones((1, 1))

    flaky = Entry("flaky", Role.PEER, 1, 1, lambda: Direct(call, lambda found: found))
    record = race(Case("case", "window", (1,), (flaky,)), QUICK, lambda name: None)
    assert record.rows[0].status == "failed"
    assert record.rows[0].note == "RuntimeError: tired"


def test_race_charges_peers_for_windows_and_loading():
    engine = Engine(load=list, run=lambda batches: [batch[:, -1] - batch[:, 0] for batch in batches])
    peer = Entry("peer", Role.PEER, 1, 2, lambda: Windowed(engine, lambda rows: rows), buckets=7)
    asked = []

    def cut(buckets):
        asked.append(buckets)
        return Windows([np.arange(8.0).reshape(2, 4, 1)], np.array([1, 0]))

    record = race(Case("case", "window", (1,), (peer,), cut=cut), QUICK, lambda name: None)
    (row,) = record.rows
    assert asked == [7] * 4
    assert row.windows is not None
    assert row.load is not None
    assert row.run is not None
    assert len(row.windows.rounds) == 4
    assert len(row.run.rounds) == 3
    assert row.seconds == pytest.approx((row.windows.median + row.load.median + row.run.median) / 2)
    assert row.bare == pytest.approx(row.run.median / 2)


def test_race_repeats_short_runs():
    calls = []
    clock = Clock(rest=0.0, rounds=2, shortest=1e-3)
    counting = Entry("peer", Role.PEER, 1, 1, lambda: Direct(lambda: calls.append(1), lambda found: None))
    race(Case("case", "event", (1,), (counting,)), clock, lambda name: None)
    assert len(calls) > 10


def test_race_stops_at_patience():
    slow = entry("slow", Role.PEER, np.ones((1, 1)))
    record = race(Case("case", "event", (1,), (slow,)), Clock(rounds=5, patience=0.0), lambda name: None)
    (row,) = record.rows
    assert row.run is not None
    assert len(row.run.rounds) == 1


@pytest.mark.parametrize(("target", "met"), [(Times(1e-9), True), (Times(1e9), False), (Within(60.0), True)])
def test_targets_are_judged_against_the_fastest_peer(target, met):
    answer = np.ones((1, 1))
    entries = (entry("peer", Role.PEER, answer), entry("logcde", Role.OURS, answer))
    record = race(Case("case", "event", (1,), entries, target=target), QUICK, lambda name: None)
    assert record.met is met
    assert record.target == str(target)


def test_ratio_without_a_peer_is_not_judged():
    case = Case("case", "event", (1,), (entry("logcde", Role.OURS, np.ones((1, 1))),), target=Times(2))
    assert race(case, QUICK, lambda name: None).met is None
