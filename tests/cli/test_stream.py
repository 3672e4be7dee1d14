"""`logcde stream`: the predictions of the model offline, whatever comes between the lines."""

from datetime import datetime, timedelta

import numpy as np
import pytest

import logcde as lc
from logcde.streams import DatetimeClock
from tests.cli.streaming import GOOD, a_model, answers, history, offline, written

START = datetime(2024, 3, 1, 12)


def test_predictions_are_those_of_the_model_offline(folder, stream):
    lines = history(9)
    code, out, complaints = stream(folder, lines)
    assert code == 0
    assert complaints == "logcde: 9 lines taken, 9 predictions, 3 series, 0 lines refused.\n"
    found = answers(out)
    assert [(one["series"], one["time"]) for one in found] == [(one["series"], one["time"]) for one in lines]
    for one in found[-3:]:
        expected = offline(lc.load(folder), lines, one["series"], one["time"])
        np.testing.assert_allclose(one["prediction"], expected, rtol=1e-10)


def test_on_request_only_requests_are_answered(folder, stream):
    lines = history(3)
    asked = [*lines, {"series": "p1", "predict": 9}, {"series": "p1", "forget": True}, {"series": "p1", "predict": 9}]
    code, out, complaints = stream(folder, asked, "--when", "request", "--quiet")
    (one,) = answers(out)
    assert (code, one["series"], one["time"]) == (1, "p1", 9.0)
    assert "line 6: There is no series 'p1' yet." in complaints
    np.testing.assert_allclose(one["prediction"], offline(lc.load(folder), lines, "p1", 9.0), rtol=1e-10)


def test_the_ends_of_intervals_are_those_of_training(stream):
    model = a_model(readout=lc.PerInterval())
    lines = [GOOD | {"time": time} for time in (0.1, 0.7, 3.2)]
    found = answers(stream(model, lines, "--when", "interval")[1])
    assert [one["time"] for one in found] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    expected = offline(model, lines, "p1", 3.0)
    np.testing.assert_allclose([one["prediction"] for one in found], expected, rtol=1e-10)


def test_intervals_end_where_a_line_says(stream):
    model = a_model(rule=lc.Partition.uniform(2))
    lines = [GOOD, {"series": "p1", "close": 1}, GOOD | {"time": 0.5}, GOOD | {"time": 2}]
    code, out, complaints = stream(model, lines)
    assert code == 1
    assert "line 3: The event at 0.5 is not after what is known already" in complaints
    expected = offline(model, [GOOD, lines[3]], "p1", 2.0, lc.Partition.uniform(2))
    np.testing.assert_allclose(answers(out)[-1]["prediction"], expected, rtol=1e-10)


def test_static_features_come_with_the_first_line_and_stay(stream, tmp_path):
    model = a_model(static=2, initial=lc.TimeZeroInitial())
    lines = [GOOD, GOOD | {"time": 0, "static": [1.0, -2.0]}, GOOD | {"static": [1.0, -2.0]}, GOOD]
    options = ("--state", tmp_path / "state.json")
    code, out, complaints = stream(model, lines[:3], *options)
    assert code == 1
    assert "line 1: The first line of series 'p1' has 0 static features, but the model takes 2." in complaints
    assert "line 3: Series 'p1' has begun already" in complaints
    out += stream(model, lines[3:], *options)[1]
    expected = offline(model, [lines[1], GOOD], "p1", 0.1, static=np.array([[1.0, -2.0]]))
    np.testing.assert_allclose(answers(out)[-1]["prediction"], expected, rtol=1e-10)


def test_higher_order_terms(stream):
    model = a_model(terms=(lc.streams.Term("area", ("pulse", "temp")),))
    lines = [GOOD | {"terms": [0.5]}, GOOD | {"time": 0.2, "terms": [0.5, 1.0]}]
    code, out, complaints = stream(model, lines)
    assert code == 1
    assert "line 2: The line has 2 terms, but the model takes 1." in complaints
    predictor = lc.Predictor(model)
    predictor.observe(0.1, {"pulse": 1.0}, [0.5])
    np.testing.assert_array_equal([one["prediction"] for one in answers(out)], [predictor.predict()])


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("origin", [None, np.datetime64(START - timedelta(hours=1), "us")])
def test_stamps_of_a_calendar_clock(stream, tmp_path, zone, origin):
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
    code, more, complaints = stream(model, lines[1:], *options)
    assert code == 1
    assert "line 2: The stamp 3.0 is a number, but the stamps of this model are datetimes." in complaints
    assert "line 3: The stamp 'noon' is not a datetime in ISO 8601" in complaints
    assert "a time zone, but those of the streams" in complaints
    found = answers(out + more)
    assert [one["time"] for one in found] == stamps[:2]
    predictor = lc.Predictor(model)
    predictor.observe(first, {"pulse": 1.0})
    predictor.observe(first + 0.75, {"pulse": 1.0})
    np.testing.assert_array_equal(found[1]["prediction"], predictor.predict())


def test_nanoseconds_are_not_lost(stream):
    model = a_model(DatetimeClock(origin=np.datetime64("2024-03-01", "ns"), resolution="ns", unit=timedelta(seconds=1)))
    lines = [GOOD | {"time": f"2024-03-01T00:00:00.{digits}"} for digits in ("000000001", "000000003", "000000002")]
    code, out, complaints = stream(model, [*lines, GOOD | {"time": "9999-01-01"}])
    assert (code, len(answers(out))) == (1, 2)
    assert "goes back: the last one of series 'p1' was 2024-03-01T00:00:00.000000003." in complaints
    assert "too far away" in complaints


BAD = {
    b"{": "This is not JSON",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": NaN}}': "JSON has no NaN",
    b'{"series": "p\xff"}': "This is not JSON",
    b"[" * 100_000: "This is not JSON",
    b"[1]": "not a mapping such as",
    b'{"time": 0.2, "values": {"pulse": 1}}': '"series" is missing',
    b'{"series": "p1", "values": {"pulse": 1}}': '"time" is missing',
    b'{"series": "p1", "time": 0.2}': "this one has none",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": 1}, "predict": 1}': "this one has several",
    b'{"series": "p1", "time": 0.2, "predict": 1}': '"time" belongs to a line with "values"',
    b'{"series": "p1", "tiem": 0.2, "values": {"pulse": 1}}': "Did you mean 'time'?",
    b'{"series": "p1", "time": 0.2, "values": {"pulze": 1}}': "Did you mean 'pulse'?",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": "61"}}': "Channel 'pulse' is \"61\", which is not a number.",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": true}}': "Channel 'pulse' is true",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": 1e999}}': "This is not JSON",
    b'{"series": "p1", "time": 0.2, "values": {"pulse": null}}': "Nothing is observed",
    b'{"series": "p1", "time": 0.2, "values": {"temp": 1}, "static": ["a"]}': "cannot be taken: Expected",
    b'{"series": "p1", "time": 0.05, "values": {"pulse": 1}}': "The stamp 0.05 goes back: the last one of series 'p1'",
    b'{"series": "p1", "time": 0.1, "values": {"temp": 1}}': "has had the stamp 0.1 already",
    b'{"series": "p2", "time": -1, "values": {"temp": 1}}': "The stamp -1.0 is before the time",
    b'{"series": "p1", "time": 1e15, "values": {"temp": 1}}': "More than 1,000,000 intervals",
    b'{"series": "p1", "time": "noon", "values": {"temp": 1}}': "this model counts time in plain numbers",
    b'{"series": "p1", "time": 0.2, "values": {"temp": 1}, "terms": [1]}': "has 1 terms, but the model takes 0",
    b'{"series": "p2", "time": 0.2, "values": {"temp": 1}, "origin": "2024-01-01"}': "the same origin",
    b'{"series": 123456789012345678901234567890, "predict": 1}': "cannot be taken",
    b'{"series": "p2", "predict": 1}': "There is no series 'p2' yet",
    b'{"series": "p1", "predict": 0.05}': "known up to 0.1 already",
    b'{"series": "p1", "close": 1}': "end by a rule of their own",
}


def test_lines_that_cannot_be_taken_change_nothing(folder, stream):
    first, last = written([GOOD]), written([GOOD | {"time": 0.3}])
    code, out, complaints = stream(folder, first + b"".join(line + b"\n" for line in BAD) + b"\n \n" + last)
    assert code == 1
    said = complaints.splitlines()
    assert len(said) == len(BAD) + 1
    for number, (sentence, found) in enumerate(zip(BAD.values(), said, strict=False), 2):
        assert found.startswith(f"logcde: line {number}: ")
        assert sentence in found
    assert said[-1] == f"logcde: 2 lines taken, 2 predictions, 1 series, {len(BAD)} lines refused."
    assert out == stream(folder, first + last)[1]
