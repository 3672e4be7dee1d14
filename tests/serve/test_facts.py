"""What is told of a service as a whole: model, feeds, past alerts, and the files of the page."""

import logcde as lc
from logcde.serve import Group, ServiceOptions
from logcde.serve.alerts import Alert
from logcde.serve.facts import ENTRIES_AT_ONCE, past_alerts
from logcde.serve.store import Outgoing
from logcde.streams import DatetimeClock
from tests.cli.streaming import GOOD, a_model, history
from tests.serve.serving import asked, lease_of, post, served, service_on

ALERTS = ServiceOptions(alerts=(Alert("1", -1.1, -1.2),))


def got(service, *paths, token=None, **headers):
    """Answers to GET requests, one after another."""

    async def ask(client):
        return [await client.get(path, headers=headers) for path in paths]

    return asked(service, ask, token=token)


def test_the_model_is_described(tmp_path):
    with service_on(tmp_path / "state.db", options=ALERTS) as service:
        found = got(service, "/model")[0].json()
    assert found == {
        "model": "model-1",
        "beside": None,
        "channels": ["pulse", "temp"],
        "outputs": ["0", "1"],
        "risk": "1",
        "clock": {"stamps": "numbers", "unit": None, "seconds": None, "zone": None},
        "interval": {"length": 0.5, "events": None},
        "alerts": [{"alert": "1:-1.1:-1.2", "output": "1", "raised": -1.1, "cleared": -1.2}],
    }


def test_times_of_a_series_have_an_origin(tmp_path):
    """Stamp minus elapsed time is where intervals are counted from."""
    model = served(a_model(DatetimeClock(zone="UTC"), lc.Partition.every_events(3)))
    stamps = ["2026-03-01T08:00:00+00:00", "2026-03-01T10:30:00+00:00"]
    with service_on(tmp_path / "state.db", model) as service:
        post(service, *[GOOD | {"time": stamp} for stamp in stamps])
        about, one = (reply.json() for reply in got(service, "/model", "/series/p1"))
    assert about["clock"] == {"stamps": "datetimes", "unit": "hours", "seconds": 3600.0, "zone": "UTC"}
    assert about["interval"] == {"length": None, "events": 3}
    assert (one["observed"], one["elapsed"]) == (stamps[1], 2.5)


def test_feeds_tell_what_became_of_observations(tmp_path):
    with service_on(tmp_path / "state.db", options=ALERTS) as service:
        post(service, *history(12), GOOD | {"time": "soon"}, b"{", b"[")
        found = got(service, "/feeds")[0].json()
    assert found == {
        "feeds": [
            {
                "name": "http",
                "partition": 0,
                "position": 15,
                "lag_seconds": 0.0,
                "waiting": 0,
                "owner": "this process",
                "state": "taking",
            }
        ],
        "series": {"open": 3, "archived": 0, "alert": found["series"]["alert"]},
        "observations": 12,
        "repeated": 0,
        "refused": {"malformed": 2, "unreadable": 1},
        "dead_letters": 3,
        "not_finite": 0,
        "outside": 0,
        "failure": None,
    }


def test_alerts_of_the_past(tmp_path):
    with service_on(tmp_path / "state.db", options=ALERTS) as service:
        post(service, *history(60))
        everything, own, one = (
            reply.json() for reply in got(service, "/alerts?limit=1000", "/alerts?series=p1", "/alerts?limit=1")
        )
        told = [entry for entry in service.store.outgoing(0, 1000) if entry.kind == "alert"]
        assert everything["complete"]
        assert everything["alerts"] == [{"number": entry.number, **entry.content} for entry in reversed(told)]
        assert own["alerts"] == [alert for alert in everything["alerts"] if alert["series"] == "p1"] != []
        assert (one["alerts"], one["complete"]) == (everything["alerts"][:1], False)
        # Older than what is read at once.
        silence = [Outgoing("prediction", "p1", {}) for _ in range(2 * ENTRIES_AT_ONCE)]
        service.store.commit(Group(lease_of(service), outgoing=silence))
        assert past_alerts(service.store, None, 1000) == everything


def test_files_of_the_page_need_no_token_and_are_sent_once(tmp_path):
    token = "0123456789abcdef"
    with service_on(tmp_path / "state.db") as service:
        page, script, plots = got(service, "/", "/static/main.js", "/static/uPlot.iife.min.js", token=token)
        paths = ("/static/../page.py", "/static/README.md", "/static/", "/static/uplot/LICENSE", "/static/page.py")
        others = got(service, *paths, "/static/%2e%2e/series", token=token)
        (known,) = got(service, "/static/main.js", token=token, **{"if-none-match": script.headers["etag"]})
    assert [one.status_code for one in (page, script, plots)] == [200] * 3
    assert "script-src 'self'; style-src 'self'" in page.headers["content-security-policy"]
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["x-content-type-options"] == "nosniff"
    assert {one.status_code for one in others} <= {401, 404}
    assert (known.status_code, known.content) == (304, b"")
