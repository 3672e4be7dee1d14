"""The engine: offline numbers, each observation once, refusals that change nothing, memory that is never ahead."""

import json
import random
import sqlite3
import time

import jax
import numpy as np
import pytest

import logcde as lc
from logcde.errors import ArtefactError, ModelError, StreamError
from logcde.serve import ServedModel, ServiceOptions
from logcde.serve.alerts import Alert
from logcde.serve.explaining import explained
from logcde.serve.feed import Delivery
from logcde.serve.store import Query, Retention, StoreError
from logcde.streams import DatetimeClock
from tests.cli.streaming import GOOD, a_model, history, offline
from tests.serve.serving import lease_of, post, served, service_on


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.db"


def outgoing(service):
    return [one.content for one in service.store.outgoing(0, 10_000)]


def reasons(service):
    return {label: count for (name, label), count in service.metrics.counts.items() if name == "refused"}


def test_predictions_equal_offline_ones_in_any_groups_and_after_restarts(path):
    model, lines = a_model(), history(30)
    answers, place = [], 0
    for size in (1, 7, 2, 11, 9):  # a service for each group: states come from the store
        with service_on(path, served(model), ServiceOptions(cached=1)) as service:
            answers += post(service, *lines[place : place + size])
            place += size
    assert place == len(lines)
    for line, answer in zip(lines, answers, strict=True):
        assert (answer["series"], answer["time"]) == (line["series"], line["time"])
        np.testing.assert_allclose(
            answer["prediction"], offline(model, lines, line["series"], line["time"]), rtol=1e-9, atol=1e-12
        )
    with service_on(path, served(model)) as service:
        assert [one["prediction"] for one in outgoing(service)] != []
        kept = {(str(one["series"]), one["time"]): one["prediction"] for one in outgoing(service)}
        assert kept == {(str(one["series"]), one["time"]): one["prediction"] for one in answers}
        np.testing.assert_allclose(
            service.predict("p1", 9.5)["prediction"], offline(model, lines, "p1", 9.5), rtol=1e-9
        )
        assert service.store.progress(lease_of(service)).position == len(lines)


def test_event_ids_make_an_observation_idempotent(path):
    one = GOOD | {"id": "e1"}
    with service_on(path) as service:
        first, again = post(service, one, one)
        assert first == again
        assert post(service, one) == [first | {"repeated": True}]
    with service_on(path) as service:
        assert post(service, {"id": "e1", "values": {"pulse": 1.0}} | GOOD) == [first | {"repeated": True}]
        (conflict,) = post(service, one | {"values": {"pulse": 2.0}})
        assert conflict["reason"] == "conflict"
        assert "was used for another observation of series 'p1'" in conflict["error"]
        assert "error" not in post(service, one | {"series": "p2"})[0]  # ids are those of one series
        # A refused observation may be corrected under its id.
        assert post(service, GOOD | {"id": "e2"})[0]["reason"] == "repeated stamp"
        assert "error" not in post(service, GOOD | {"id": "e2", "time": 0.2})[0]
        assert len(outgoing(service)) == 3


def test_refused_observations_are_told_counted_and_kept(path):
    bad = {
        b"{": "malformed",
        b'{"series": "p1", "series": "p2", "time": 1, "values": {"pulse": 1}}': "malformed",
        b"\xff": "malformed",
        json.dumps(GOOD | {"time": 0.3, "values": {"pulze": 1}}).encode(): "unreadable",
        json.dumps(GOOD | {"time": "2024-01-01"}).encode(): "unreadable",
        json.dumps(GOOD | {"time": 0.05}).encode(): "out of order",
        json.dumps(GOOD).encode(): "repeated stamp",
        json.dumps(GOOD | {"time": -1}).encode(): "before start",
        json.dumps(GOOD | {"time": 1e300}).encode(): "impossible",
        b'{"series": "p9", "predict": 1}': "unknown",
        b'{"series": "p1", "predict": 0.05}': "impossible",
        b'{"series": "p1", "close": 1}': "impossible",
        b'{"series": "p1", "forget": true}': "unsupported",
        json.dumps(GOOD | {"series": "x" * 300}).encode(): "limit",
        json.dumps(GOOD | {"time": 0.3, "id": "x" * 300}).encode(): "limit",
        json.dumps(GOOD | {"series": "new", "time": -1}).encode(): "before start",
    }
    with service_on(path) as service:
        post(service, GOOD)
        before = service.predict("p1", 2.0)
        for _ in range(2):
            answers = post(service, *bad)
        assert [one["reason"] for one in answers] == list(bad.values())
        assert all(len(one["error"]) > 20 for one in answers)
        assert answers[3]["channel"] == "pulze"
        assert answers[5] | {"error": ""} == {
            "error": "", "reason": "out of order", "series": "p1", "channel": None, "stamp": 0.05
        }  # fmt: skip
        assert service.predict("p1", 2.0) == before
        assert sum(reasons(service).values()) == 2 * len(bad)
        letters = service.store.dead_letters(100)
        assert {one.text: (one.reason, one.times) for one in letters} == {text: (why, 2) for text, why in bad.items()}
        assert service.store.counts()["open"] == 1
        assert len(outgoing(service)) == 1


def test_late_observations_are_taken_within_the_window(path):
    model = a_model()
    lines = [GOOD | {"time": time, "values": {"pulse": time}} for time in (1.0, 2.0, 1.5, 0.5, 2.25)]
    for name in ("whole", "parts"):
        place = path.with_name(name)
        answers = []
        for part in [lines] if name == "whole" else [[one] for one in lines]:
            with service_on(place, served(model, reorder=1.0)) as service:
                answers += post(service, *part)
        assert answers[3]["reason"] == "out of order"
        assert [one.get("time") for one in answers] == [1.0, 2.0, 2.0, None, 2.25]
        taken = sorted((line for line in lines if line["time"] != 0.5), key=lambda line: line["time"])
        np.testing.assert_allclose(answers[2]["prediction"], offline(model, taken, "p1", 2.0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(answers[4]["prediction"], offline(model, taken, "p1", 2.25), rtol=1e-9, atol=1e-12)


def test_memory_is_not_ahead_of_a_store_that_fails(path, monkeypatch):
    with service_on(path) as service, service_on(path.with_name("other.db")) as other:
        post(service, GOOD)
        post(other, GOOD)
        before = service.predict("p1", 2.0)
        with monkeypatch.context() as patched:
            patched.setattr("logcde.serve.sql.series_row", fail(sqlite3.OperationalError("disk I/O error")))
            with pytest.raises(StoreError, match="disk I/O error"):
                post(service, GOOD | {"time": 0.3}, GOOD | {"series": "new"})
        assert service.predict("p1", 2.0) == before
        assert service.store.find("new") is None
        line = GOOD | {"time": 0.2}  # before the one that was not taken
        assert post(service, line) == post(other, line)
        with monkeypatch.context() as patched:
            patched.setattr("logcde.online.rules.SeriesRules.observe", then_fail(service))
            with pytest.raises(ZeroDivisionError):
                post(service, GOOD | {"time": 0.4})
        assert service.predict("p1", 2.0) == other.predict("p1", 2.0)


def fail(error):
    def failing(*given):
        raise error

    return failing


def then_fail(service):
    """Observe, and fail afterwards."""
    observe = type(service.models[0].rules).observe

    def failing(self, *given):
        observe(self, *given)
        raise ZeroDivisionError

    return failing


def test_few_series_in_memory_give_the_same_as_many(path):
    lines = history(60)
    found = []
    for cached in (1, 100):
        with service_on(path.with_name(f"{cached}.db"), None, ServiceOptions(cached=cached)) as service:
            found.append([post(service, *lines[:30]), post(service, *lines[30:]), service.predict(7, 30.0)])
    assert found[0] == found[1]


def test_a_damaged_state_stops_its_own_series_only(path):
    with service_on(path) as service:
        post(service, GOOD, GOOD | {"series": "p2"})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE states SET state = (SELECT state FROM states WHERE key = 2) WHERE key = 1")
    connection.close()
    with service_on(path, None, ServiceOptions(rate=1.0)) as service:
        damaged, well = post(service, GOOD | {"time": 0.2}, GOOD | {"series": "p2", "time": 0.2})
        assert damaged["reason"] == "damaged"
        assert "The state of series 'p1' cannot be read: its checksum differs" in damaged["error"]
        assert "Restore a backup" in damaged["error"]
        assert "error" not in well
        service.refresh(lease_of(service), ["p1", "p2"])
        assert service.metrics.counts["unrefreshed", ""] == 1
        assert [one["series"] for one in outgoing(service)][-1] == "p2"


def test_alerts_have_hysteresis_and_survive_restarts(path):
    options = ServiceOptions(alerts=(Alert("0", 0.5, 0.2), Alert("0", -0.5, -0.2)))
    changes = []
    with service_on(path, None, options) as service:
        to_json = iter([0.4, 0.5, 0.3, 0.6, 0.2, -0.6, float("nan"), -0.3, -0.1])
        values = list(to_json)
    for number, value in enumerate(values):
        model = served()
        told = [value, 0.0]
        model = type(model)(model.predictor, model.digest, 0, lambda outputs, told=told: list(told))
        with service_on(path, model, options) as service:
            post(service, GOOD | {"time": number + 1.0})
            sent = outgoing(service)
    changes = [(one["time"], one["change"], one["value"]) for one in sent if "change" in one]
    assert changes == [
        (2.0, "raised", 0.5), (5.0, "cleared", 0.2), (6.0, "raised", -0.6), (9.0, "cleared", -0.1)
    ]  # fmt: skip
    with (
        pytest.raises(ModelError, match=r"no output 'ill'. It has '0', '1'"),
        service_on(path, None, ServiceOptions(alerts=(Alert("ill", 0.5, 0.2),))),
    ):
        pass


def test_the_clock_moves_predictions_and_nothing_else(path, monkeypatch):
    model = a_model()
    options = ServiceOptions(rate=2.0)
    now = [1_700_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    lines = [GOOD, GOOD | {"series": 7, "time": 0.3}]
    with service_on(path, served(model), options) as service:
        post(service, *lines)
        now[0] += 1.25
        service.refresh(lease_of(service), [name for _, name in service.store.open_names(lease_of(service), 0, 10)])
        (total, rows) = service.store.page(Query(sort="name"))
        assert total == 2
        for row, line in zip(rows, lines, strict=True):
            assert row.predicted == line["time"] + 2.5
            np.testing.assert_allclose(
                row.prediction, offline(model, lines, line["series"], row.predicted), rtol=1e-9, atol=1e-12
            )
            assert row.stamp == line["time"]
        assert len(outgoing(service)) == 4
    with service_on(path, served(model), options) as service:  # no state was written by the clock
        (answer,) = post(service, GOOD | {"time": 0.4})
        np.testing.assert_allclose(
            answer["prediction"], offline(model, [*lines, GOOD | {"time": 0.4}], "p1", 0.4), rtol=1e-9, atol=1e-12
        )
        now[0] += 100.0
        post(service, GOOD | {"time": 0.45})
        assert service.archive(lease_of(service), 50.0) == 1
        assert service.store.counts() == {"open": 1, "archived": 1, "alert": 0}
        assert "error" not in post(service, GOOD | {"series": 7, "time": 0.4})[0]
        assert service.store.counts() == {"open": 2, "archived": 0, "alert": 0}


def test_the_clock_of_datetimes_is_the_wall(path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_704_110_400.0)  # noon
    model = a_model(DatetimeClock(origin=np.datetime64("2024-01-01", "us")))
    with service_on(path, served(model)) as service:
        post(service, GOOD | {"time": "2024-01-01T11:30"}, GOOD | {"series": "ahead", "time": "2024-01-01T12:30"})
        service.refresh(lease_of(service), ["p1", "ahead"])
        assert service.store.find("p1").predicted == "2024-01-01T12:00:00"
        assert service.store.find("ahead").predicted == "2024-01-01T12:30"


def test_no_more_series_than_allowed(path):
    options = ServiceOptions(most_series=2)
    with service_on(path, None, options) as service:
        answers = post(service, *[GOOD | {"series": name} for name in ("a", "b", "c")])
        assert [one.get("reason") for one in answers] == [None, None, "limit"]
        assert "allow more with --max-series" in answers[2]["error"]
    with service_on(path, None, options) as service:
        answers = post(service, GOOD | {"series": "d"}, GOOD | {"series": "b", "time": 0.2})
        assert [one.get("reason") for one in answers] == ["limit", None]


def test_numbers_that_are_not_finite_are_null(path):
    with service_on(path) as service:
        post(service, GOOD, GOOD | {"time": 0.2, "values": {"pulse": 1e308}})
        post(service, GOOD | {"time": 0.7}, GOOD | {"series": "well"})
        assert service.store.find("p1").prediction == [None, None]
        assert service.store.find("p1").risk is None
        assert service.metrics.counts["not_finite", ""] >= 1
    with service_on(path) as service:
        assert "error" not in post(service, GOOD | {"time": 0.9})[0]


def test_on_request_only(path):
    with service_on(path, None, ServiceOptions(each=False), retention=Retention(history=5)) as service:
        answers = post(service, GOOD, GOOD | {"time": 0.2, "id": "e"}, {"series": "p1", "predict": 0.5})
        assert [one["prediction"] is None for one in answers] == [True, True, False]
        assert outgoing(service) == []
        assert post(service, GOOD | {"time": 0.2, "id": "e"})[0]["time"] == 0.2


def test_static_features_and_closed_intervals(path):
    model = a_model(rule=lc.Partition.uniform(1), static=2, initial=lc.TimeZeroInitial())
    predictor = lc.Predictor(model, static=np.zeros(2))
    served_model = type(served())(predictor, "m", statics=2)
    with service_on(path, served_model) as service:
        assert "takes 2" in post(service, GOOD)[0]["error"]
        post(service, GOOD | {"static": [0.5, 1.0]}, {"series": "p1", "close": 0.5})
        assert service.predict("p1")["time"] == 0.5  # the series is known up to there
    with service_on(path, served_model) as service:
        (answer,) = post(service, GOOD | {"time": 0.6})
    alone = lc.Predictor(model, static=[0.5, 1.0])
    alone.observe(0.1, {"pulse": 1.0})
    alone.close(0.5)
    alone.observe(0.6, {"pulse": 1.0})
    np.testing.assert_array_equal(answer["prediction"], alone.predict(at=0.6))


def test_a_delivery_is_taken_as_a_whole(path):
    with service_on(path) as service:
        answers = service.apply(
            lease_of(service),
            [Delivery([json.dumps(GOOD).encode()], 1), Delivery([b"{", json.dumps(GOOD | {"time": 0.2}).encode()], 3)],
        )
        assert [len(one) for one in answers] == [1, 2]
        assert service.store.progress(lease_of(service)).position == 3


def test_damaged_observations_are_refused_each_by_itself(path):
    """Bytes that are changed, added and removed: every observation has an answer, and the good ones are taken."""
    chance = random.Random(0)
    whole = "1" + "0" * 40
    lines = [json.dumps(one | {"id": f"e{n}"}).encode() for n, one in enumerate(history(40))]
    lines += [
        f'{{"series": "p1", "time": {time}, "values": {{"pulse": {value}}}}}'.encode()
        for time, value in ((1, whole * 10), (2.125, whole), (whole, 1), (-0.0, 1), ("null", 1), (900_000, 1e308))
    ]
    with service_on(path, served(reorder=1.0)) as service:
        for _ in range(150):
            texts = []
            for line in chance.choices(lines, k=4):
                text = bytearray(line)
                for _ in range(chance.choice([0, 1, 3])):
                    place = chance.randrange(len(text) - 5)
                    end = place + chance.choice([0, 0, 1, 4])
                    text[place:end] = bytes([chance.choice([chance.randrange(256), *b"0eE-+.{}[]"])])
                texts.append(bytes(text))
            answers = post(service, *texts)
            assert len(answers) == 4
            assert all(("error" in one) != ("prediction" in one) for one in answers)
        counts = service.metrics.counts
        taken = sum(one.events for one in service.store.page(Query())[1])
        assert 10 < counts["observations", ""] == taken
        assert sum(reasons(service).values()) == sum(one.times for one in service.store.dead_letters(10_000))


def test_what_a_prediction_rests_on_is_what_changes_it(path):
    model, lines = a_model(), history(30)
    with service_on(path, served(model), ServiceOptions(risk="1")) as service:
        post(service, *lines)
        record = service.store.find("p1")
        found = explained(service.question("p1"), service.store.history(record.key, 500), "1")
        assert found["output"] == "1"
        mine = [one for one in lines if one["series"] == "p1"]
        seen = sorted((one["time"], name) for one in mine for name in one["values"])
        assert sorted((part["begin"], part["channel"]) for part in found["parts"]) == seen
        for part in found["parts"]:
            left = [
                one
                | {
                    "values": {
                        n: v for n, v in one["values"].items() if (one["time"], n) != (part["begin"], part["channel"])
                    }
                }
                for one in mine
            ]
            without = offline(model, [one for one in left if one["values"]], "p1", record.predicted)
            np.testing.assert_allclose(part["amount"], record.prediction[1] - without[1], rtol=1e-9, atol=1e-9)
    with service_on(path, served(model), ServiceOptions(risk="1"), retention=Retention(history=5)) as service:
        with pytest.raises(StreamError, match=r"5 of the 10 observations of this series are kept.*--history"):
            explained(service.question("p1"), service.store.history(record.key, 500), "1")
        with pytest.raises(StreamError, match="There is no series 'none'"):
            service.question("none")


def test_two_models_follow_the_same_series_and_are_exchanged(path):
    """Old, old beside new, new beside old, new: every prediction is that of a model that has seen the whole series."""
    rule = lc.Partition.every(1.0)
    models = {"old": a_model(), "new": a_model(rule=rule)}
    one, two = (served(models[name], name) for name in ("old", "new"))
    lines = history(48)
    few = Retention(history=5)

    def expected(name, line):
        kind = {"rule": rule} if name == "new" else {}
        return offline(models[name], lines, line["series"], line["time"], **kind)

    with service_on(path, [one], retention=few) as service:
        post(service, *lines[:12])  # four of each series
    with service_on(path, [one, two], retention=few) as service:
        lease = lease_of(service)
        post(service, *[line for line in lines[12:18] if line["series"] == 7])  # more than are kept
        service.follow(lease, [name for _, name in service.store.unfollowed(lease, 0, 10)])
        assert [name for _, name in service.store.unfollowed(lease, 0, 10)] == [7]
        rest = [line for line in lines[12:24] if line["series"] != 7] + [GOOD | {"series": "fresh"}]
        for line, answer in zip(rest, post(service, *rest), strict=True):
            if line["series"] != "fresh":
                np.testing.assert_allclose(answer["prediction"], expected("old", line), rtol=1e-9, atol=1e-12)
        latest = {line["series"]: line for line in rest}
        for name in ("p1", "p2"):
            record = service.store.find(name)
            assert record.beside["model"] == "new"
            np.testing.assert_allclose(
                record.beside["prediction"], expected("new", latest[name]), rtol=1e-9, atol=1e-12
            )
            assert record.beside["risk"] == record.beside["prediction"][1]
            assert service.store.history(record.key, 1)[0].beside == record.beside["risk"]
        assert service.store.find(7).beside is None
    with pytest.raises(ArtefactError, match="1 of its open series have no state of new"), service_on(path, [two]):
        pass
    with service_on(path, [two, one], retention=few) as service:
        rest = lines[24:36]
        for line, answer in zip(rest, post(service, *rest), strict=True):
            by = "old" if line["series"] == 7 else "new"
            known = [one for one in lines if one["series"] != 7 or one not in lines[18:24]]
            kind = {"rule": rule} if by == "new" else {}
            found = offline(models[by], known, line["series"], line["time"], **kind)
            np.testing.assert_allclose(answer["prediction"], found, rtol=1e-9, atol=1e-12)
        assert service.store.find("p1").beside["model"] == "old"
        assert post(service, GOOD | {"series": "fresh", "time": 0.9})[0]["prediction"] is not None
        service.store.archive(lease_of(service), time.time() + 1)
        assert "error" not in post(service, *[one for one in lines[36:] if one["series"] != 7])[0]
    with service_on(path, [two]) as service:  # series 7 is archived, so nothing open needs the old one
        (answer,) = post(service, GOOD | {"series": 7, "time": 99.0})
        assert answer["reason"] == "damaged"
        assert (
            "was archived with another model, and has no state of this one. Serve that one as well" in answer["error"]
        )


def test_a_model_beside_that_cannot_take_an_observation_leaves_the_series(path):
    narrow = lc.Schema(("pulse",))
    model = lc.log_slice(lc.Embedding(depth=2).basis(narrow), hidden=4, outputs=2, key=jax.random.key(0))
    predictor = lc.Predictor(model, schema=narrow, embedding=lc.Embedding(depth=2), partition=lc.Partition.every(0.5))
    with service_on(path, [served(), ServedModel(predictor, "narrow")]) as service:
        post(service, GOOD)
        assert service.store.find("p1").beside is not None
        (answer,) = post(service, GOOD | {"time": 0.2, "values": {"temp": 1.0}})
        assert "error" not in answer
        assert service.store.find("p1").beside is None
        assert service.metrics.counts["unfollowed", ""] == 1
        post(service, GOOD | {"series": "p2", "values": {"temp": 1.0}})
        assert service.store.find("p2").beside is None
    with service_on(path, [served()]) as service:
        assert "error" not in post(service, GOOD | {"time": 0.3})[0]


def test_an_observation_in_the_wrong_partition_is_refused(path):
    with service_on(path) as service:
        post(service, GOOD)
        other = next(one for one in service.store.claim("http", [0, 1]).leases if one.partition == 1)
        service.hold(other)
        text = json.dumps(GOOD | {"time": 0.2}).encode()
        ((again, twice),) = service.apply(other, [Delivery([text, text], 1)])
        assert again["reason"] == twice["reason"] == "misplaced"
        assert "belongs to partition 0 of the feed, and this observation came in partition 1" in again["error"]
        assert service.store.find("p1").events == 1


def test_continuous_channels_are_served(path):
    schema, embedding = lc.Schema(("pulse",), continuous=("load",)), lc.Embedding(depth=2)
    model = lc.log_slice(embedding.basis(schema), hidden=4, outputs=2, key=jax.random.key(0))
    fresh = lc.Predictor(model, schema=schema, embedding=embedding, partition=lc.Partition.every(0.5))
    lines = [
        {"series": "p1", "time": 0.0, "continuous": {"load": 1.0}},
        {"series": "p1", "time": 0.25, "values": {"pulse": 60.0}, "continuous": {"load": 2.0}},
        {"series": "p1", "time": 1.25, "values": {"pulse": 70.0}, "continuous": {"load": 0.0}},
    ]
    alone = fresh.copy()
    alone.knot(0.0, {"load": 1.0})
    for line in lines[1:]:
        alone.observe(line["time"], line["values"], continuous=line["continuous"])
    for size in (1, 3):
        place = path.with_name(f"{size}.db")
        for begin in range(0, 3, size):
            with service_on(place, ServedModel(fresh, "m")) as service:
                answers = post(service, *lines[begin : begin + size])
        np.testing.assert_array_equal(answers[-1]["prediction"], alone.predict(at=1.25))
    with service_on(place, [ServedModel(fresh, "m"), ServedModel(fresh, "n")]) as service:
        service.follow(lease_of(service), ["p1"])
        (answer,) = post(service, {"series": "p1", "time": 1.5, "continuous": {"load": 3.0}})
        assert (answer["time"], answer["prediction"]) == (1.25, answers[-1]["prediction"])
        assert service.store.find("p1").beside["prediction"] == answer["prediction"]
