"""`logcde stream`: the same output whatever happens to the process, and states that are refused."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys

import logcde as lc
from logcde.cli.stream import stopping
from tests.cli.streaming import GOOD, a_model, answers, history, written
from tests.cli.tables import run


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
    assert "There is no folder" in stream(tmp_path / "nowhere", [GOOD])[0]
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
