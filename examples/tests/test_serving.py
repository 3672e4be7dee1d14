"""`python -m examples.serving`: real servers, two workers, one of which is killed; and what its counts notice."""

import itertools
import os
import re

import pytest

from examples.serving import __main__ as serving
from examples.serving import ward
from examples.serving.servers import missing


@pytest.mark.skipif(missing() is not None, reason=f"THE WARD IS NOT TESTED: {missing()}")
def test_a_ward_loses_nothing_when_a_worker_is_killed(capsys):
    options = serving.Options(patients=30, rate=100.0, seconds=4.0, kill_after=1.0)
    assert serving.main(options) == 0
    shown = capsys.readouterr().out
    assert "Nothing lost, nothing doubled." in shown
    assert re.search(r"received [1-9]\d+ predictions", shown)
    assert re.search(r"kill -9 of worker 2 .*\n(.*\n)*Worker 1 has all partitions", shown)
    for process in re.findall(r"Worker \d \(process (\d+)\)", shown):
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)


def test_events_of_a_ward():
    found = [event for _, event in itertools.islice(ward.feed(100), 5000)]
    assert len({one.content["id"] for one in found}) == 5000
    assert {type(one.content["values"]) for one in found} == {dict}
    bad = [one.content for one in found if not one.good]
    assert 0 < len(bad) < 200
    assert any("mood" in one["values"] for one in bad)
    assert any("high" in one["values"].values() for one in bad)
    assert any(set(one["values"]) <= set(ward.VITALS) and "high" not in one["values"].values() for one in bad)
    pairs = itertools.pairwise(one.content["time"] for one in found if one.good and one.series == "p1")
    assert 0 < max(stamp - later for stamp, later in pairs) <= ward.REORDER


def test_a_tally_notices_what_is_lost_and_doubled():
    tally = serving.Tally()
    for good in (True, True, False):
        tally.send(ward.Event("p1", {}, good))
    tally.receive("risk.0", 1, {"kind": "prediction", "series": "p1"})
    assert (tally.missing, tally.refused, tally.doubled) == (1, 1, 0)
    tally.receive("risk.0", 1, {"kind": "prediction", "series": "p1"})  # once more
    assert (tally.missing, tally.doubled) == (1, 1)
    tally.receive("risk.0", 2, {"kind": "alert", "series": "p1"})
    tally.receive("risk.0", 3, {"kind": "prediction", "series": "p1"})
    assert (tally.missing, tally.doubled, tally.alerts) == (0, 1, 1)
    tally.receive("risk.0", 4, {"kind": "prediction", "series": "p1"})
    assert tally.doubled == 2
