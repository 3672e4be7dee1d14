"""`logcde stream --state`: the same output whatever happens to the process, and states that are refused."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys

import logcde as lc
from logcde.cli import stream_loop
from logcde.cli.stream_loop import signals_deferred
from tests.cli.streaming import GOOD, a_model, history, predictions, written
from tests.cli.tables import run


def test_continued_stream_equals_uninterrupted_stream(folder, stream, tmp_path):
    text, options = written(history()), ("--state", tmp_path / "state.json")
    whole = stream(folder, text)[1]
    lines = text.splitlines(keepends=True)
    parts = [stream(folder, b"".join(lines[part]), *options)[1] for part in (slice(5), slice(5, 6), slice(6, None))]
    assert b"".join(parts) == whole
    assert json.loads(options[1].read_text())["progress"]["lines"] == len(lines)
    assert [file.name for file in tmp_path.glob("*state*")] == ["state.json"]
    assert stream(folder, text, *options, "--replay")[:2] == (0, b"")


def test_overflow_is_null_and_is_kept_in_the_state(folder, stream, tmp_path):
    lines = [GOOD, GOOD | {"time": 0.2, "values": {"pulse": 1e308}}, GOOD | {"time": 0.7}, GOOD | {"time": 1.2}]
    options = ("--state", tmp_path / "state.json")
    code, whole, _ = stream(folder, lines)
    assert code == 0
    assert predictions(whole)[-1]["prediction"] == [None, None]
    parts = [stream(folder, part, *options)[1] for part in (lines[:3], lines[3:])]
    assert b"".join(parts) == whole


def test_state_errors(folder, stream, tmp_path):
    state = tmp_path / "state.json"
    assert stream(folder, [GOOD], "--state", state)[0] == 0
    assert "belongs to another model" in stream(a_model(rule=lc.Partition.every(1.0)), [GOOD], "--state", state)[0]
    document = json.loads(state.read_text())
    document["progress"]["series"][0].pop()
    state.write_text(json.dumps(document))
    assert "The state of the series cannot be read" in stream(folder, [GOOD], "--state", state)[0]
    state.write_text("{}")
    assert "cannot be read as the state of a stream" in stream(folder, [GOOD], "--state", state)[0]
    assert "--replay needs a state file. Name it with --state." in stream(folder, [GOOD], "--replay")[0]
    assert "positive" in stream(folder, [GOOD], "--state", state, "--state-every", 0)[0]
    assert "There is no folder" in stream(tmp_path / "nowhere", [GOOD])[0]
    silent = dataclasses.replace(a_model(), spec=None)
    assert "does not record how its log-signatures were made" in stream(silent, [GOOD])[0]


def test_full_disk_leaves_the_older_state(folder, stream, tmp_path, monkeypatch):
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


def start(folder, *options):
    """Start the command in a process of its own."""
    command = [sys.executable, "-m", "logcde", "stream", str(folder), *map(str, options)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_sigterm_saves_the_state(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with start(folder, *options) as process:
        process.stdin.write(b"".join(lines[:3]) + lines[3][:9])
        process.stdin.flush()
        out = b"".join(process.stdout.readline() for _ in range(3))  # which come while the input goes on
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert b"State after line 3 in" in process.stderr.read()
    assert out + stream(folder, b"".join(lines[3:]), *options)[1] == stream(folder, b"".join(lines))[1]


def test_killed_stream_continues_with_replay(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with start(folder, *options, "--state-every", 3) as process:
        process.stdin.write(b"".join(lines[:5]))
        process.stdin.flush()
        out = [process.stdout.readline() for _ in range(5)]
        process.kill()
    progress = json.loads(options[1].read_text())["progress"]
    assert (progress["lines"], progress["predictions"]) == (3, 3)
    rest = stream(folder, b"".join(lines), *options, "--replay")[1]
    assert b"".join(out[:3]) + rest == stream(folder, b"".join(lines))[1]


def test_closed_output_ends_quietly(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with start(folder, *options) as process:
        process.stdin.write(lines[0])
        process.stdin.flush()
        out = process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"".join(lines[1:4]))
        process.stdin.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""
    assert out + stream(folder, b"".join(lines[4:]), *options)[1] == stream(folder, b"".join(lines))[1]


def test_closed_output_keeps_unsent_predictions(folder, stream, tmp_path, monkeypatch):
    monkeypatch.setattr(stream_loop, "LATENCY", -1.0)  # every prediction is written by itself
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


def test_signal_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with signals_deferred() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.number == signal.SIGINT
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
