"""`logcde stream --state`: the same output whatever happens to the process, and states that are refused."""

import dataclasses
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile

import pytest

import logcde as lc
from logcde._documents import write_document
from logcde.cli import stream_loop
from logcde.cli.output import UNWRITTEN
from logcde.cli.stream_loop import FORMAT, LongLine, _UnfinishedLine, signals_deferred, whole_lines
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
    code, whole, errors = stream(folder, lines)
    assert code == 1
    assert errors.splitlines()[0].startswith(
        "logcde: line 2, series 'p1': The prediction for series 'p1' is not finite"
    )
    assert len(errors.splitlines()) == 2
    assert predictions(whole)[-1]["prediction"] == [None, None]
    parts = [stream(folder, part, *options)[1] for part in (lines[:3], lines[3:])]
    assert b"".join(parts) == whole


def test_state_errors(folder, stream, tmp_path):
    state = tmp_path / "state.json"
    assert stream(folder, [GOOD], "--state", state)[0] == 0
    assert "belongs to another model" in stream(a_model(rule=lc.Partition.every(1.0)), [GOOD], "--state", state)[0]
    document = json.loads(state.read_text())
    document["progress"]["series"][0].pop()
    state.write_bytes(write_document({name: document[name] for name in ("model", "progress")}, FORMAT))
    assert "The state of the series cannot be read" in stream(folder, [GOOD], "--state", state)[0]
    state.write_bytes(write_document({}, FORMAT - 1))
    assert (
        f"has format {FORMAT - 1}; this version of logcde reads {FORMAT}" in stream(folder, [GOOD], "--state", state)[0]
    )
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


def test_second_stream_on_one_state_is_told_who_has_it(folder, stream, tmp_path):
    state = tmp_path / "state.json"
    with start(folder, "--state", state) as process:
        process.stdin.write(written([GOOD]))
        process.stdin.flush()
        process.stdout.readline()
        code, out, _ = stream(folder, [GOOD], "--state", state)
        assert f"state.json is in use by process {process.pid} on " in code
        assert code.endswith("Wait for it to end, or stop it.")
        assert out == b""
        process.kill()
    assert stream(folder, [GOOD | {"time": 0.2}], "--state", state)[0] == 0
    assert {file.name for file in tmp_path.iterdir()} == {"lines.jsonl", "state.json"}


def test_replay_of_another_input_is_refused(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    assert stream(folder, b"".join(lines[:5]), *options)[0] == 0
    before = options[1].read_bytes()
    for given, said in (
        (lines[:3], "has 3 lines and the state has seen 5"),
        ([], "has 0 lines and the state has seen 5"),
        (lines[3:], "begins with 5 lines that are not those that the state has seen"),
        ([*lines[:4], lines[5]], "begins with 5 lines that are not those"),
        ([lines[1], lines[0], *lines[2:]], "begins with 5 lines that are not those"),
    ):
        code, out, _ = stream(folder, b"".join(given), *options, "--replay")
        assert code.startswith("logcde: --replay needs the input that the state belongs to, but this one ")
        assert said in code
        assert out == b""
        assert options[1].read_bytes() == before
    rest = [stream(folder, b"".join(lines[:end]), *options, "--replay")[1] for end in (5, 6, 8)]
    assert b"".join(rest) == stream(folder, b"".join(lines))[1][-len(b"".join(rest)) :]


def test_state_without_end_is_refused(folder, stream, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("pipe", "zeros"):
        said = stream(folder, [GOOD], "--state", tmp_path / name)[0]
        assert "cannot be read as the state of a stream: it is not a regular file." in said


def test_what_a_killed_stream_left_is_removed(folder, stream, tmp_path):
    (tmp_path / ".logcde-0123456789abcdef-state.json").write_text("half")
    assert stream(folder, [GOOD], "--state", tmp_path / "state.json")[0] == 0
    assert {file.name for file in tmp_path.iterdir()} == {"lines.jsonl", "state.json"}


def test_forged_states_are_refused(folder, stream, tmp_path):
    """Whoever writes a state can seal it, so that what is in it is checked as well."""
    state = tmp_path / "state.json"
    stream(folder, [GOOD], "--state", state)
    document = json.loads(state.read_text())
    series, progress = document["progress"]["series"][0], document["progress"]
    for changed in (
        {"series": [[*series[:3], {**series[3], "model": [[1e400]]}]]},
        {"series": [[*series[:3], {**series[3], "prefix": None}]]},
        {"series": [[*series[:3], 1]]},
        {"series": 1},
        {"lines": "1"},
        {"series": [[[], *series[1:]]]},
    ):
        content = {"model": document["model"], "progress": progress | changed}
        state.write_bytes(write_document(content, FORMAT))
        assert "cannot be re" in stream(folder, [GOOD], "--state", state)[0]


def test_closed_output_ends_the_command(folder, stream, tmp_path):
    options, lines = ("--state", tmp_path / "state.json"), written(history(8)).splitlines(keepends=True)
    with start(folder, *options) as process:
        process.stdin.write(lines[0])
        process.stdin.flush()
        out = process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"".join(lines[1:4]))
        process.stdin.close()
        assert process.wait() == UNWRITTEN
        assert process.stderr.read() == (
            b"logcde: Standard output could not be written to its end: its reader has gone. 3 predictions will come "
            b"first when the command continues.\n"
        )
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
            assert run("stream", folder, "--state", state) == UNWRITTEN
    progress = json.loads(state.read_text())["progress"]
    assert (progress["lines"], progress["predictions"], progress["unsent"].count("\n")) == (5, 0, 5)
    assert stream(folder, b"".join(lines[5:]), "--state", state)[1] == stream(folder, b"".join(lines))[1]


def test_full_disk_for_predictions_leaves_no_half_line(folder, stream, tmp_path, monkeypatch):
    """A file takes some bytes of the predictions, and then no more: what it has of the last line is taken back."""
    whole = stream(folder, history(8))[1]
    room, write = [len(whole) // 2], os.write

    def filling(target, content):
        if not target > 2 or not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = write(target, content[: room[0]])
        room[0] -= count
        return count

    lines, state, output = written(history(8)).splitlines(keepends=True), tmp_path / "state.json", tmp_path / "out"
    for some, disk in ((lines[:6], filling), (lines[6:], write)):
        (tmp_path / "lines").write_bytes(b"".join(some))
        with (tmp_path / "lines").open("rb") as source, output.open("ab") as target, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", source)
            patch.setattr(sys, "stdout", target)
            patch.setattr(os, "write", disk)
            assert run("stream", folder, "--state", state) == (UNWRITTEN if disk is filling else 0)
        found = output.read_bytes()
        assert found.endswith(b"\n")
        assert whole.startswith(found)
    assert found == whole


def test_output_that_does_not_wait_is_waited_for(folder, stream, tmp_path, monkeypatch):
    """A pipe in non-blocking mode, as some shells and runtimes leave behind."""
    write, refusals = os.write, [True, False]

    def busy(target, content):
        if refusals.pop() if refusals else False:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return write(target, content[:100])

    expected = stream(folder, history(8))[1]
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", busy)
        assert stream(folder, history(8))[:2] == (0, expected)


def lines_of(content, longest, pieces=(1, 7, 1 << 16)):
    """Lines read from a file in pieces of each of these sizes, which must not matter."""
    found = []
    for size in pieces:
        with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch, signals_deferred() as stop:
            file.write(content)
            file.seek(0)
            patch.setattr(stream_loop, "READ_SIZE", size)
            found.append([line for lines in whole_lines(file.fileno(), stop, None, longest) for line in lines])
    assert all(one == found[0] for one in found)
    return found[0]


def test_lines_beyond_the_limit_are_not_kept():
    long = LongLine(5, hashlib.sha256(b"abcde").digest())
    assert lines_of(b"abcd\nabcde\n\nab", 4) == [b"abcd", long, b"", b"ab"]
    assert lines_of(b"abcde", 4) == [long]
    assert lines_of(b"abcde\n", 5) == [b"abcde"]
    assert lines_of(b"", 4) == lines_of(b"\n", 4)[1:] == []


def test_long_line_is_refused_and_the_next_is_served(folder, stream, tmp_path):
    lines, state = written(history(4)).splitlines(keepends=True), tmp_path / "state.json"
    for options in ((), ("--state", state)):
        text = lines[0] + b'{"series": "' + b"p" * 10_000_000 + b'"}\n' + b"".join(lines[1:])
        code, out, errors = stream(folder, text, *options, "--longest-line", 1000)
        assert code == 1
        assert out == stream(folder, b"".join(lines))[1]
        assert errors.startswith("logcde: line 2: The line has 10,000,014 bytes, more than 1,000. Check that lines end")
        assert "4 lines accepted, 1 refused, 4 predictions" in errors
    assert stream(folder, text, *options, "--replay", "--longest-line", 99)[:2] == (0, b"")
    assert "--longest-line is 0." in stream(folder, [GOOD], "--longest-line", 0)[0]


def test_memory_and_time_of_a_long_line_are_linear():
    """Each byte of a line without end is seen once: what is read of it is not kept."""
    reader, piece = _UnfinishedLine(1000), b"x" * (1 << 16)
    for _ in range(200):
        reader.add(piece)
        assert not reader._pieces
    assert reader.take().size == 200 << 16


def test_signal_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with signals_deferred() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.number == signal.SIGINT
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
