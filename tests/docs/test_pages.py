"""Every block of code on every page and in the README is run, and what pages show as output is compared."""

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from logcde.cli import main
from logcde.cli.main import COMMANDS
from tests.docs.blocks import blocks_of, same
from tests.docs.preparation import DATA, PREPARED

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))]
OTHERS = ("pip ", "make ", "export ", "python ", "#")
"""Lines of a shell that are not this package's."""


@pytest.fixture
def shell(monkeypatch, capfd):
    """Runs a command line of `logcde` in this process, or only parses it."""

    def run(line, *, parse=False):
        line = line.rpartition("| ")[2]
        words = shlex.split(line)
        files = {mark: words[words.index(mark) + 1] for mark in ("<", ">", ">>") if mark in words}
        words = [word for word in words if word not in files and word not in files.values()]
        with monkeypatch.context() as patched:
            if parse:
                for command in set(COMMANDS.values()):
                    patched.setattr(command, "run", lambda self: 0)
            with Path(os.devnull if parse else files.get("<", os.devnull)).open() as source:
                patched.setattr(sys, "stdin", source)
                with pytest.raises(SystemExit) as end:
                    main(words[1:])
        out, complaints = capfd.readouterr()
        assert end.value.code in (0, None), f"{line!r} ends with {end.value.code!r}: {complaints}"
        for mark in (">", ">>"):
            if mark in files and not parse:
                with Path(files[mark]).open("a" if mark == ">>" else "w") as file:
                    file.write(out)
                out = ""
        return out

    return run


@pytest.mark.parametrize("name", PAGES)
def test_page(name, shell, tmp_path, monkeypatch, capfd):
    if name in DATA and not any(Path(os.environ.get("LOGCDE_DATA", "nowhere")).rglob(f"{DATA[name]}*")):
        pytest.skip(f"{DATA[name]} is not at hand: LOGCDE_DATA names no folder that has it")
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
            rest = [line for line in block.lines if line and line not in block.commands]
            odd = [line for line in rest if not line.startswith(OTHERS)]
            assert not odd, f"{where}: {odd} is neither a command of logcde nor one of {OTHERS}"
            printed = "".join(shell(line, parse=block.title == "takes long") for line in block.commands)
        elif block.word == "":
            for line in block.commands:
                shell(line, parse=True)
        elif block.title:
            Path(block.title).write_text(block.text)


def script(block):
    """What a script prints, which runs as one of one process."""
    Path(block.title).write_text(block.text)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "COORDINATOR": address, "PROCESSES": "1", "PROCESS": "0"}
    done = subprocess.run([sys.executable, block.title], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
