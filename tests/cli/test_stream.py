"""`logcde stream`: predictions equal those offline, and refused lines change nothing."""

from datetime import datetime, timedelta

import equinox as eqx
import jax
import numpy as np
import pytest

import logcde as lc
from logcde.streams import DatetimeClock
from tests.cli.streaming import EMBEDDING, GOOD, RULE, a_model, history, offline, predictions, written

AREA = (lc.streams.Term("area", ("pulse", "temp")),)
START = datetime(2024, 3, 1, 12)


def test_predictions_match_offline(folder, stream):
    lines = history(9)
    code, out, errors = stream(folder, lines)
    assert code == 0
    assert errors == "logcde: 9 lines accepted, 0 refused, 9 predictions, 3 series.\n"
    found = predictions(out)
    assert [(one["series"], one["time"]) for one in found] == [(one["series"], one["time"]) for one in lines]
    for one in found[-3:]:
        expected = offline(lc.load(folder), lines, one["series"], one["time"])
        np.testing.assert_allclose(one["prediction"], expected, rtol=1e-10)


def test_ensemble_streams_as_one_model(stream):
    members = [a_model(), jax.tree.map(lambda leaf: 1.1 * leaf if eqx.is_array(leaf) else leaf, a_model())]
    model, lines = lc.models.Ensemble(members, lc.models.MeanOutput()), history(9)
    code, out, _ = stream(model, lines)
    one = predictions(out)[-1]
    assert code == 0
    expected = offline(model, lines, one["series"], one["time"])
    np.testing.assert_allclose(one["prediction"], expected, rtol=1e-10)
    each = [offline(member, lines, one["series"], one["time"]) for member in members]
    np.testing.assert_allclose(expected, np.mean(each, axis=0), rtol=1e-10)


def test_when_request_answers_requests_only(folder, stream):
    lines = history(3)
    asked = [*lines, {"series": "p1", "predict": 9}, {"series": "p1", "forget": True}, {"series": "p1", "predict": 9}]
    code, out, errors = stream(folder, asked, "--when", "request", "--quiet")
    (one,) = predictions(out)
    assert (code, one["series"], one["time"]) == (1, "p1", 9.0)
    assert "line 6: There is no series 'p1'." in errors
    np.testing.assert_allclose(one["prediction"], offline(lc.load(folder), lines, "p1", 9.0), rtol=1e-10)


def test_when_interval_matches_offline_interval_ends(stream):
    model = a_model(readout=lc.PerInterval())
    lines = [GOOD | {"time": time} for time in (0.1, 0.7, 3.2)]
    found = predictions(stream(model, lines, "--when", "interval")[1])
    assert [one["time"] for one in found] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    expected = offline(model, lines, "p1", 3.0)
    np.testing.assert_allclose([one["prediction"] for one in found], expected, rtol=1e-10)


def test_close_ends_an_interval(stream):
    model = a_model(rule=lc.Partition.uniform(2))
    lines = [GOOD, {"series": "p1", "close": 1}, GOOD | {"time": 0.5}, GOOD | {"time": 2}]
    code, out, errors = stream(model, lines)
    assert code == 1
    assert "line 3: The event at 0.5 is not after what is known already" in errors
    expected = offline(model, [GOOD, lines[3]], "p1", 2.0, lc.Partition.uniform(2))
    np.testing.assert_allclose(predictions(out)[-1]["prediction"], expected, rtol=1e-10)


def test_static_features_of_the_first_line_are_kept(stream, tmp_path):
    model = a_model(static=2, initial=lc.TimeZeroInitial())
    lines = [GOOD, GOOD | {"time": 0, "static": [1.0, -2.0]}, GOOD | {"static": [1.0, -2.0]}, GOOD]
    options = ("--state", tmp_path / "state.json")
    code, out, errors = stream(model, lines[:3], *options)
    assert code == 1
    assert "line 1: The first line of series 'p1' has 0 static features, but the model takes 2." in errors
    assert "line 3: Series 'p1' has begun already" in errors
    out += stream(model, lines[3:], *options)[1]
    expected = offline(model, [lines[1], GOOD], "p1", 0.1, static=np.array([[1.0, -2.0]]))
    np.testing.assert_allclose(predictions(out)[-1]["prediction"], expected, rtol=1e-10)


def test_higher_order_terms(stream):
    model = a_model(terms=AREA)
    lines = [GOOD | {"terms": [0.5]}, GOOD | {"time": 0.2, "terms": [0.5, 1.0]}]
    code, out, errors = stream(model, lines)
    assert code == 1
    assert "line 2: The line has 2 terms, but the model takes 1." in errors
    predictor = lc.Predictor(model)
    predictor.observe(0.1, {"pulse": 1.0}, [0.5])
    np.testing.assert_array_equal([one["prediction"] for one in predictions(out)], [predictor.predict()])


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("origin", [None, np.datetime64(START - timedelta(hours=1), "us")])
def test_datetime_stamps(stream, tmp_path, zone, origin):
    model = a_model(DatetimeClock(origin=origin, zone=zone))
    first = 0.0 if origin is None else 1.0
    behind = "" if zone is None else "+00:00"
    later = START + timedelta(minutes=45)
    stamps = [
        f"{START.isoformat()}{behind}",
        f"{later.isoformat()}{behind}",
        3.0,
        "noon",
        START.isoformat() + "Z" * (not zone),
    ]
    lines = [GOOD | {"time": stamp} for stamp in stamps]
    options = ("--state", tmp_path / "state.json")
    code, out, _ = stream(model, lines[:1], *options)
    assert code == 0
    code, more, errors = stream(model, lines[1:], *options)
    assert code == 1
    assert "line 2: The stamp 3.0 is a number, but the stamps of this model are datetimes." in errors
    assert "line 3: The stamp 'noon' is not a datetime in ISO 8601" in errors
    assert "a time zone, but those of the streams" in errors
    found = predictions(out + more)
    assert [one["time"] for one in found] == stamps[:2]
    predictor = lc.Predictor(model)
    predictor.observe(first, {"pulse": 1.0})
    predictor.observe(first + 0.75, {"pulse": 1.0})
    np.testing.assert_array_equal(found[1]["prediction"], predictor.predict())


def test_nanosecond_stamps(stream):
    model = a_model(DatetimeClock(origin=np.datetime64("2024-03-01", "ns"), resolution="ns", unit=timedelta(seconds=1)))
    lines = [GOOD | {"time": f"2024-03-01T00:00:00.{digits}"} for digits in ("000000001", "000000003", "000000002")]
    code, out, errors = stream(model, [*lines, GOOD | {"time": "9999-01-01"}])
    assert (code, len(predictions(out))) == (1, 2)
    assert "goes back: the last one of series 'p1' was 2024-03-01T00:00:00.000000003." in errors
    assert "is out of the range of nanoseconds" in errors


def test_continuous_channels(stream):
    model = a_model(continuous=("load", "dose"), readout=lc.PerInterval())
    path = [{"load": 1.0, "dose": 0.0}, {"load": 3.0, "dose": 0.5}, {"load": -1.0, "dose": 2.0}]
    lines = [
        {"series": "p1", "time": 0.0, "continuous": path[0]},
        GOOD | {"time": 0.7, "continuous": path[1]},
        {"series": "p1", "time": 4, "values": {"pulse": None}, "continuous": path[2]},
        GOOD | {"time": 1.75},
        {"series": "p1", "predict": 3.5},
    ]
    code, out, _ = stream(model, lines)
    assert code == 0
    found = predictions(out)
    assert [one["time"] for one in found] == [0.7, 1.75, 3.5]
    at_ends = predictions(stream(model, lines[:-1], "--when", "interval")[1])
    assert [one["time"] for one in at_ends] == [0.5, 1.0, 1.5]
    events = [("p1", 0.7, {"pulse": 1.0}), ("p1", 1.75, {"pulse": 1.0})]

    def expected(count, at):
        streams = lc.Streams.from_events(events[:count], ["pulse", "temp"], horizon=at)
        rows = [[one["load"], one["dose"]] for one in path]
        streams = streams.with_continuous(("load", "dose"), [0.0, 0.7, 4.0], rows)
        return lc.predict(model, lc.Inputs.of(EMBEDDING(streams, RULE), dtype=np.float64))[0][-1]

    for one, count in zip(found, (1, 2, 2), strict=True):
        np.testing.assert_allclose(one["prediction"], expected(count, one["time"]), rtol=1e-10)
    np.testing.assert_allclose(at_ends[-1]["prediction"], expected(1, 1.5), rtol=1e-10)


def test_refused_values_of_continuous_channels(folder, stream):
    first = {"series": "p1", "time": 0, "continuous": {"load": 1}}
    bad = {
        "'load' are not known yet, but must be known up to 0.1": GOOD | {"series": "p2"},
        "'load' are known up to 0.0 only": GOOD,
        "There is no continuous channel 'lode'. Did you mean 'load'?": GOOD | {"continuous": {"lode": 1}},
        "The continuous channel 'load' has no value. Give those of 'load' together.": GOOD | {"continuous": {}},
        "Channel 'load' is true, which is not a number": GOOD | {"continuous": {"load": True}},
        "Channel 'load' has a number beyond the range of float64": GOOD | {"continuous": {"load": 10**400}},
        "have the values [1.0] at 0.0 already": first | {"continuous": {"load": 2}},
        "The line has no observation": first | {"terms": [0.5]},
        '"continuous" belongs to a line with "values"': {"series": "p1", "predict": 1, "continuous": {"load": 1}},
        "this one has none": {"series": "p1", "continuous": {"load": 1}},
        "knot of the continuous channels 'load' is at 0.5": first | {"series": "p2", "time": 0.5},
    }
    code, out, errors = stream(a_model(continuous=("load",), terms=AREA), [first, *bad.values()])
    assert (code, out) == (1, b"")
    for sentence, found in zip(bad, errors.splitlines(), strict=False):
        assert sentence in found
    twice = b'{"series": "p1", "time": 0.5, "continuous": {"load": 1.0, "load": 2.0}}\n'
    assert "The line is ambiguous" in stream(a_model(continuous=("load",)), twice)[2]
    assert "This model has no continuous channels." in stream(folder, [first])[2]


BAD = {
    b"{": "The line is not JSON",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": NaN}}': "JSON has no NaN",
    b'{"series": "p\xff"}': "The line is not JSON",
    b"[" * 100_000: "The line is not JSON",
    b"[1]": "The line is JSON, but not an object. An example is",
    b'{"time": 0.2, "values": {"pulse": 1}}': '"series", the id of the series, is missing.',
    b'{"series": "p1", "values": {"pulse": 1}}': '"time", the stamp of these values, is missing.',
    b'{"series": "p1", "time": 0.2}': "this one has none",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": 1}, "predict": 1}': "this one has several",
    b'{"series": "p1", "time": 0.2, "predict": 1}': '"time" belongs to a line with "values"',
    b'{"series": "p1", "tiem": 0.2, "values": {"pulse": 1}}': "Did you mean 'time'?",
    b'{"series": "p1", "time": 0.2, "values": {"pulze": 1}}': "Did you mean 'pulse'?",
    b'{"series": "p1", "time": 0.2, "pulse": 1.5}': 'Put the values of channels under "values": {"pulse":1.5}.',
    b'{"series": "p1", "time": 0.2, "values": {"pulse": "61"}}': "Channel 'pulse' is \"61\", which is not a number.",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": true}}': "Channel 'pulse' is true",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": 1e999}}': "The line is not JSON",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": 1%s}}' % (b"0" * 400): "beyond the range of float64",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": 1}, "id": "e"}': '"id" makes an observation of logcde serve',
    b'{"series": "p1", "time": 0.2, "values": {"pulse": null}}': "The line has no observation.",
    b'{"series": "p1", "time": 0.2, "values": {"temp": 1}, "static": ["a"]}': "The line is invalid: Expected",
    b'{"series": "p1", "time": 0.05, "values": {"pulse": 1}}': "The stamp 0.05 goes back: the last one of series 'p1'",
    b'{"series": "p1", "time": 0.1, "values": {"temp": 1}}': "already has the stamp 0.1.",
    b'{"series": "p2", "time": -1, "values": {"temp": 1}}': "The stamp -1.0 is before the start of series",
    b'{"series": "p1", "time": 1e15, "values": {"temp": 1}}': "More than 1,000,000 intervals",
    b'{"series": "p1", "time": "noon", "values": {"temp": 1}}': "the time of this model is in plain numbers",
    b'{"series": "p1", "time": 0.2, "values": {"temp": 1}, "terms": [1]}': "has 1 terms, but the model takes 0",
    b'{"series": "p2", "time": 0.2, "values": {"temp": 1}, "origin": "2024-01-01"}': "the same origin",
    b'{"series": 123456789012345678901234567890, "predict": 1}': "The line is invalid",
    b'{"series": "p2", "predict": 1}': "There is no series 'p2'.",
    b'{"series": "p1", "predict": 0.05}': "known up to 0.1 already",
    b'{"series": "p1", "close": 1}': "end by the rule Partition.every(0.5).",
}


def test_refused_lines_change_nothing(folder, stream):
    first, last = written([GOOD]), written([GOOD | {"time": 0.3}])
    code, out, errors = stream(folder, first + b"".join(line + b"\n" for line in BAD) + b"\n \n" + last)
    assert code == 1
    said = errors.splitlines()
    assert len(said) == len(BAD) + 1
    for number, (sentence, found) in enumerate(zip(BAD.values(), said, strict=False), 2):
        assert found.startswith(f"logcde: line {number}: ")
        assert sentence in found
    assert said[-1] == f"logcde: 2 lines accepted, {len(BAD)} refused, 2 predictions, 1 series."
    assert out == stream(folder, first + last)[1]


def test_json_errors_name_series_channel_and_stamp(folder, stream):
    lines = [
        GOOD,
        GOOD | {"time": 0.05},
        {"series": "p1", "time": 0.2, "values": {"pulze": 1.0}},
        {"series": "p1", "time": 0.3, "values": {"pulse": "61"}},
        {"series": 7, "predict": 1.0},
    ]
    code, _, errors = stream(folder, written(lines) + b"{\n", "--json-errors")
    *refused, summary = predictions(errors)
    assert code == 1
    assert [(one["line"], one["series"], one["channel"], one["stamp"]) for one in refused] == [
        (2, "p1", None, 0.05),
        (3, "p1", "pulze", 0.2),
        (4, "p1", "pulse", 0.3),
        (5, 7, None, 1.0),
        (6, None, None, None),
    ]
    assert refused[0]["error"].startswith("The stamp 0.05 goes back")
    assert summary == {"accepted": 1, "refused": 5, "predictions": 1, "series": 1}


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"series": "p1", "time": 0.5, "values": {"pulse": 1.0, "pulse": 2.0}}', "pulse"),
        (b'{"series": "p1", "time": 0.5, "time": 0.6, "values": {"pulse": 1.0}}', "time"),
        (b'{"series": "p1", "series": "p2", "time": 0.5, "values": {"pulse": 1.0}}', "series"),
        (b'{"series": "p1", "predict": 0.5, "predict": 0.5}', "predict"),
        (b'{"series": "\\u003a\\u003a", "time": 0.5, "time": 0.6, "values": {"pulse": 1.0}}', "time"),
        (b'{"series": "p1", "time": 0.5, "values": {"pulse": 1.0, "p\\u0075lse": 2.0}}', "pulse"),
    ],
)
def test_key_that_occurs_twice_is_refused(folder, stream, line, key):
    code, out, errors = stream(folder, line + b"\n")
    assert (code, out) == (1, b"")
    assert errors.startswith(f"logcde: line 1: The line is ambiguous: the key {key!r} occurs twice.")


def test_texts_with_colons_and_escapes_are_no_keys(stream):
    colons = {"series": "a:b", "time": 0.5, "values": {"pulse": 1.0}, "origin": None, "predict": None}
    code, out, _ = stream(a_model(), [colons, {"series": 'a "é\n', "time": 0.5, "values": {"temp": None, "pulse": 1}}])
    assert code == 0
    assert [one["series"] for one in predictions(out)] == ["a:b", 'a "é\n']
