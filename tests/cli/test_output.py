"""Standard output on a full disk, into a closed pipe, or closed: a message, code 74, and no lost work."""

import io
import os
import subprocess
import sys

import pytest

from logcde.cli.output import UNWRITTEN, StandardStream
from tests.cli.streaming import GOOD, written
from tests.cli.tables import COLUMNS, long, run, write
from tests.cli.training_tables import TABLE, tables

MESSAGE = "logcde: Standard output could not be written to its end: "
FULL = f"{MESSAGE}No space left on device.\n"
GONE = f"{MESSAGE}its reader has gone.\n"
RIDGE = (*TABLE, "--learner", "ridge", "--target", "state")


@pytest.fixture
def full(monkeypatch):
    """Run a command with standard output on a full disk, buffered or not."""

    def run_on(*arguments, buffered=True):
        with open("/dev/full", "wb", 0 if not buffered else -1) as file, monkeypatch.context() as patch:  # noqa: PTH123
            patch.setattr(sys, "stdout", io.TextIOWrapper(file, write_through=not buffered))
            return run(*arguments)

    return run_on


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with tables and a trained model."""
    place = tables(tmp_path_factory.mktemp("model"))
    assert run("train", place / "vitals.parquet", *RIDGE, "-o", place / "model") == 0
    return place


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("arguments", [["cite"], ["--help"], ["embed", "--help"], ["--version"]])
def test_texts_on_a_full_disk(arguments, buffered, full, capsys):
    assert full(*arguments, buffered=buffered) == UNWRITTEN
    assert capsys.readouterr().err == FULL


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("command", ["describe", "embed", "train", "evaluate", "predict", "stress", "report"])
def test_commands_on_a_full_disk_do_their_work(command, buffered, model, full, tmp_path, capsys):
    write(long(), tmp_path / "long.parquet")
    table, trained, output = model / "vitals.parquet", model / "model", tmp_path / "output"
    arguments, made = {
        "describe": ((tmp_path / "long.parquet", *COLUMNS, "--plot", tmp_path / "plot.png"), tmp_path / "plot.png"),
        "embed": ((tmp_path / "long.parquet", *COLUMNS, "-o", output / "rows.csv"), output / "rows.csv"),
        "train": ((table, *RIDGE, "-o", output), output / "model.json"),
        "evaluate": ((trained, table, "--json"), None),
        "predict": ((trained, table, "-o", output / "rows.jsonl"), output / "rows.jsonl"),
        "stress": ((trained, "--drop", 0, "--seeds", 0, "--plot", tmp_path / "plot.svg"), tmp_path / "plot.svg"),
        "report": ((trained, "-o", output / "report.html"), output / "report.html"),
    }[command]
    assert full(command, *arguments, buffered=buffered) == UNWRITTEN
    assert capsys.readouterr().err.endswith(FULL)
    assert made is None or made.stat().st_size


def test_error_of_the_command_comes_first(full, tmp_path, capsys):
    assert "cannot be read" in full("describe", tmp_path / "nothing.csv", buffered=False)
    assert full("describe") == 2
    assert MESSAGE not in capsys.readouterr().err


def process(line, folder, unbuffered="", **streams):
    """Run a line of a shell in which $L is the command."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "L": f"{sys.executable} -m logcde"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run(["bash", "-c", line], cwd=folder, text=True, check=False, env=environment, **streams)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$L cite > /dev/full", UNWRITTEN, FULL),
        ("$L --help > /dev/full", UNWRITTEN, FULL),
        ("$L cite >&-", UNWRITTEN, f"{MESSAGE}it is closed.\n"),
        ("$L cite 2>&-", 0, ""),
        ("$L cite 2>/dev/full", 0, ""),
        ("$L cite >&- 2>&- <&-", UNWRITTEN, ""),
        ("$L cite >/dev/full 2>/dev/full", UNWRITTEN, ""),
        ("$L bench 2>/dev/full", 1, ""),
        ("$L bench 2>&-", 1, ""),
        ("$L embed 2>/dev/full", 2, ""),
    ],
)
def test_processes(line, code, said, unbuffered, tmp_path):
    """In a process of its own: nothing but the message, also at the end of the interpreter."""
    done = process(line, tmp_path, unbuffered)
    assert (done.returncode, done.stderr) == (code, said)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_readers_that_have_gone(unbuffered, tmp_path):
    read, gone = os.pipe()
    os.close(read)
    done = process("$L cite", tmp_path, unbuffered, stdout=gone)
    assert (done.returncode, done.stderr) == (UNWRITTEN, GONE)
    assert process("$L cite", tmp_path, unbuffered, stdout=gone, stderr=gone).returncode == UNWRITTEN
    assert process("$L bench", tmp_path, unbuffered, stdout=gone, stderr=gone).returncode == 1
    assert process("$L embed", tmp_path, unbuffered, stderr=gone).returncode == 2
    os.close(gone)


def test_stream_on_closed_standard_streams(folder, tmp_path):
    done = process(f"$L stream {folder} <&-", tmp_path)
    assert (done.returncode, "Standard input is closed." in done.stderr) == (1, True)
    (tmp_path / "lines").write_bytes(written([GOOD]))
    done = process(f"$L stream {folder} --quiet >&- <lines", tmp_path)
    assert (done.returncode, done.stderr) == (UNWRITTEN, f"{MESSAGE}it is closed. 1 prediction got lost.\n")


def test_characters_that_the_encoding_lacks_are_escaped():
    target = io.BytesIO()
    stream = StandardStream(io.TextIOWrapper(target, encoding="ascii"), 1)
    assert stream.write("mean ± std \udcff") == 12
    stream.flush()
    assert target.getvalue() == b"mean \\xb1 std \\udcff"
