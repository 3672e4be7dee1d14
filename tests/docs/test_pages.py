"""Run every block of code on every page and in the README, and compare the output that pages show."""

import importlib
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tyro

from logcde.cli import main
from tests.docs.blocks import blocks_of, same
from tests.docs.preparation import DATA, PREPARED

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))]
OTHERS = ("pip ", "make ", "export ", "python ", "#")
"""Beginnings of shell lines that are neither run nor parsed."""


@pytest.fixture
def parsed(monkeypatch, capfd):
    """Parses a command line of `logcde`, of the experiments or of the benchmarks, without running it."""
    parse = tyro.cli

    def stop(*arguments, **options):
        parse(*arguments, **options)
        sys.exit(0)

    def run(line):
        program, *words = shlex.split(line.rpartition("| ")[2])
        words = words[: next((place for place, word in enumerate(words) if word in ("<", ">", ">>")), None)]
        call = main if program == "logcde" else importlib.import_module(f"{words[1]}.__main__").main
        with monkeypatch.context() as patched:
            patched.setattr(tyro, "cli", stop)
            with pytest.raises(SystemExit) as end:
                call(words if program == "logcde" else words[2:])
        complaints = "".join(capfd.readouterr())
        assert end.value.code in (0, None), f"{line!r} ends with {end.value.code!r}: {complaints}"

    return run


@pytest.fixture
def shell(monkeypatch, capfd):
    """Runs a command line of `logcde` in this process, and returns what it prints."""

    def run(line):
        words = shlex.split(line.rpartition("| ")[2])
        files = {mark: words[words.index(mark) + 1] for mark in ("<", ">", ">>") if mark in words}
        words = [word for word in words if word not in files and word not in files.values()]
        with monkeypatch.context() as patched, Path(files.get("<", os.devnull)).open() as source:
            patched.setattr(sys, "stdin", source)
            with pytest.raises(SystemExit) as end:
                main(words[1:])
        out, complaints = capfd.readouterr()
        assert end.value.code in (0, None), f"{line!r} ends with {end.value.code!r}: {complaints}"
        for mark in (">", ">>"):
            if mark in files:
                with Path(files[mark]).open("a" if mark == ">>" else "w") as file:
                    file.write(out)
                out = ""
        return out

    return run


@pytest.mark.parametrize("name", PAGES)
def test_page(name, parsed, shell, tmp_path, monkeypatch, capfd):
    if name in DATA and not any(Path(os.environ.get("LOGCDE_DATA", "nowhere")).rglob(f"{DATA[name]}*")):
        pytest.skip(f"LOGCDE_DATA names no folder with {DATA[name]}")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    exec(PREPARED.get(name, ""), names)
    printed = None
    for block in blocks_of((ROOT / name).read_text()):
        where = f"{name}, line {block.line}"
        if block.title.startswith("output"):
            assert printed is not None, f"{where}: there is no code above this output"
            about = block.title == "output, about"
            assert same(printed, block.text, about), f"{where}: this was printed:\n{printed}"
            printed = None
        elif block.word == "python" and block.title.endswith(".py"):
            printed = script(block)
        elif block.word == "python":
            # Lines before the code make an error point to the line of the page.
            exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), names)
            printed = capfd.readouterr().out
        elif block.word == "sh":
            known = (*block.commands, *block.modules)
            odd = [line for line in block.lines if line and line not in known and not line.startswith(OTHERS)]
            assert not odd, f"{where}: {odd} is neither a known command nor one of {OTHERS}"
            long = block.title == "takes long"
            for line in known if long else block.modules:
                parsed(line)
            printed = "" if long else "".join(shell(line) for line in block.commands)
        elif block.word == "":
            for line in (*block.commands, *block.modules):
                parsed(line)
        elif block.title:
            Path(block.title).write_text(block.text)


def script(block):
    """What a script prints, run in a process of its own."""
    Path(block.title).write_text(block.text)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "COORDINATOR": address, "PROCESSES": "1", "PROCESS": "0"}
    done = subprocess.run([sys.executable, block.title], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
