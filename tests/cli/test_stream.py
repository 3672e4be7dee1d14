"""`logcde stream`: the predictions of the model offline, whatever happens to the process or comes between the lines."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.cli.tables import run

import logcde as lc
from logcde.cli import filtering
from logcde.cli.reading import stopping
from logcde.embedding import Source
from logcde.streams import DatetimeClock, NumericClock

EMBEDDING = lc.Embedding(depth=2)
RULE = lc.Partition.every(0.5)
START = datetime(2024, 3, 1, 12)
GOOD = {"series": "p1", "time": 0.1, "values": {"pulse": 1.0}}


def a_model(clock=NumericClock(), rule=RULE, terms=(), **options):
    schema = lc.Schema(("pulse", "temp"), clock, terms)
    options = {"hidden": 4, "block": 2, "outputs": 2, "dtype": jnp.float64, "initial": lc.Learnt()} | options
    model = lc.LogSLiCE(EMBEDDING.basis(schema), key=jax.random.key(0), **options)
    return dataclasses.replace(model, source=Source(EMBEDDING.coordinates(schema), rule))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model."""
    path = tmp_path_factory.mktemp("saved") / "model"
    a_model().save(path)
    return path


@pytest.fixture
def stream(tmp_path, monkeypatch, capfdbinary):
    """Run the command on these lines; returns its exit code, its output and its complaints."""

    def run_on(model, lines, *options):
        file = tmp_path / "lines.jsonl"
        file.write_bytes(lines if isinstance(lines, bytes) else written(lines))
        if not hasattr(model, "exists"):
            saved, model = model, tmp_path / "own"
            saved.save(model, overwrite=True)
        with file.open("rb") as source:
            monkeypatch.setattr(sys, "stdin", source)
            code = run("stream", model, *options)
        out, complaints = capfdbinary.readouterr()
        return code, out, complaints.decode()

    return run_on


def written(lines):
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def answers(out):
    return [json.loads(line) for line in out.splitlines()]


def history(count=24, seed=0):
    """Events of three series in turn, some of them at the ends of intervals."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(1, 4, count)) / 8
    seen = (("pulse",), ("temp",), ("pulse", "temp"))
    return [
        {"series": ("p1", "p2", 7)[n % 3], "time": time, "values": {name: rng.normal() for name in seen[n % 2]}}
        for n, time in enumerate(times.tolist())
    ]


def offline(model, lines, series, at, rule=RULE, static=None):
    """The model on what is known of a series up to a time, with that as its horizon."""
    events = [("s", one["time"], one["values"]) for one in lines if one["series"] == series and one["time"] <= at]
    streams = lc.Streams.from_events(events, horizon=at, schema=model.source.coordinates.schema)
    return lc.predict_all(model, lc.Inputs.of(EMBEDDING(streams, rule), static, dtype=np.float64))[0]


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
    model = a_model(readout=lc.EachInterval())
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
    model = a_model(static=2, initial=lc.StartValues())
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
    model = a_model(terms=(lc.Term("area", ("pulse", "temp")),))
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


def test_going_on_is_as_if_nothing_had_happened(folder, stream, tmp_path):
    text, options = written(history()), ("--state", tmp_path / "state.json")
    whole = stream(folder, text)[1]
    lines = text.splitlines(keepends=True)
    parts = [stream(folder, b"".join(lines[part]), *options)[1] for part in (slice(5), slice(5, 6), slice(6, None))]
    assert b"".join(parts) == whole
    assert json.loads(options[1].read_text())["progress"]["lines"] == len(lines)
    assert [file.name for file in tmp_path.glob("*state*")] == ["state.json"]
    assert stream(folder, text, *options, "--replay")[:2] == (0, b"")


def test_overflow_is_null_and_survives(folder, stream, tmp_path):
    lines = [GOOD, GOOD | {"time": 0.2, "values": {"pulse": 1e308}}, GOOD | {"time": 0.7}, GOOD | {"time": 1.2}]
    options = ("--state", tmp_path / "state.json")
    code, whole, _ = stream(folder, lines)
    assert code == 0
    assert answers(whole)[-1]["prediction"] == [None, None]
    parts = [stream(folder, part, *options)[1] for part in (lines[:3], lines[3:])]
    assert b"".join(parts) == whole


def test_states_that_do_not_fit_are_refused(folder, stream, tmp_path):
    state = tmp_path / "state.json"
    assert stream(folder, [GOOD], "--state", state)[0] == 0
    assert "belongs to another model" in stream(a_model(rule=lc.Partition.every(1.0)), [GOOD], "--state", state)[0]
    document = json.loads(state.read_text())
    document["progress"]["series"][0].pop()
    state.write_text(json.dumps(document))
    assert "The state of the series cannot be read" in stream(folder, [GOOD], "--state", state)[0]
    state.write_text("{}")
    assert "cannot be read as the state of a stream" in stream(folder, [GOOD], "--state", state)[0]
    assert "--replay needs a file" in stream(folder, [GOOD], "--replay")[0]
    assert "positive" in stream(folder, [GOOD], "--state", state, "--state-every", 0)[0]
    assert "cannot be read" in stream(tmp_path / "nowhere", [GOOD])[0]
    silent = dataclasses.replace(a_model(), source=None)
    assert "does not say how its log-signatures were made" in stream(silent, [GOOD])[0]


def test_a_full_disk_is_a_sentence_and_leaves_the_state_as_it_was(folder, stream, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    state = tmp_path / "state.json"
    stream(folder, [GOOD], "--state", state)
    before = state.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    code, _, _ = stream(folder, [GOOD | {"time": 0.2}], "--state", state)
    assert code.startswith(f"logcde: The state cannot be written to {state}: No space left on device.")
    assert state.read_bytes() == before
    assert [file.name for file in tmp_path.glob("*state*")] == ["state.json"]


def begun(folder, *options):
    """The command as a process of its own."""
    command = [sys.executable, "-m", "logcde", "stream", str(folder), *map(str, options)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_asked_to_stop_it_has_saved_everything(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with begun(folder, *options) as process:
        process.stdin.write(b"".join(lines[:3]) + lines[3][:9])
        process.stdin.flush()
        out = b"".join(process.stdout.readline() for _ in range(3))  # which come while the input goes on
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert b"State after line 3 in" in process.stderr.read()
    assert out + stream(folder, b"".join(lines[3:]), *options)[1] == stream(folder, b"".join(lines))[1]


def test_killed_it_goes_on_from_the_line_that_the_state_knows(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with begun(folder, *options, "--state-every", 3) as process:
        process.stdin.write(b"".join(lines[:5]))
        process.stdin.flush()
        out = [process.stdout.readline() for _ in range(5)]
        process.kill()
    progress = json.loads(options[1].read_text())["progress"]
    assert (progress["lines"], progress["predictions"]) == (3, 3)
    rest = stream(folder, b"".join(lines), *options, "--replay")[1]
    assert b"".join(out[:3]) + rest == stream(folder, b"".join(lines))[1]


def test_it_ends_quietly_when_nobody_reads_any_more(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with begun(folder, *options) as process:
        process.stdin.write(lines[0])
        process.stdin.flush()
        out = process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"".join(lines[1:4]))
        process.stdin.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""
    assert out + stream(folder, b"".join(lines[4:]), *options)[1] == stream(folder, b"".join(lines))[1]


def test_what_was_read_is_taken_even_if_nobody_reads_any_more(folder, stream, tmp_path, monkeypatch):
    monkeypatch.setattr(filtering, "LATENCY", -1.0)  # every answer is written by itself
    lines, state = written(history(8)).splitlines(keepends=True), tmp_path / "state.json"
    file, (read, write) = tmp_path / "first.jsonl", os.pipe()
    file.write_bytes(b"".join(lines[:5]))
    os.close(read)
    with file.open("rb") as source, os.fdopen(write, "wb") as target:
        monkeypatch.setattr(sys, "stdin", source)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", target)
            assert run("stream", folder, "--state", state) == 0
    progress = json.loads(state.read_text())["progress"]
    assert (progress["lines"], progress["predictions"], progress["unsent"].count("\n")) == (5, 0, 5)
    assert stream(folder, b"".join(lines[5:]), "--state", state)[1] == stream(folder, b"".join(lines))[1]


def test_signals_have_their_meaning_back_afterwards():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with stopping() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.number == signal.SIGINT
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
