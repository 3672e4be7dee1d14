"""`logcde`: help without heavy imports, phrasing of remedies, commands that moved."""

import subprocess
import sys

import pytest

import logcde as lc
from logcde.cli.advice import ADVICE, TRAINED_ADVICE
from logcde.cli.main import COMMANDS, MOVED, Cite, main
from logcde.errors import Remedy
from tests.cli.tables import run


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("", "• describe "),
        ("embed", "--no-counts"),
        ("train", "logcde train vitals.csv --series patient --target died -o model/"),
        ("stress", "logcde stress model/ vitals.parquet --plot stress.png"),
        ("stream", '{"series": "p1", "predict": 1.0}'),
        ("report", "logcde report model/ -o model.html"),
    ],
)
def test_help_imports_nothing_heavy(command, example):
    code = (
        "import sys\n"
        "heavy = {'jax', 'numba', 'matplotlib', 'pyarrow', 'polars', 'pandas', 'narwhals', 'sklearn'}\n"
        "from logcde.cli import main\n"
        f"try: main('{command} --help'.split())\n"
        "except SystemExit as end: print(end.code, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
    assert example in done.stdout


def test_help_lists_every_command_briefly(capsys):
    assert run("--help") == 0
    shown = capsys.readouterr().out
    assert all(f"• {name} " in shown for name in COMMANDS)
    assert "kill -9" not in shown


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"logcde {lc.__version__}\n"


def test_cite_prints_bibtex(capsys):
    assert run("cite") == 0
    assert capsys.readouterr().out.startswith("@article{walker2026faithful,")


@pytest.mark.parametrize("command", MOVED)
def test_moved_command_says_what_to_run_instead(command):
    message = run(command, "--anything")
    assert message.startswith(f"logcde: {command!r} is no longer a command of logcde. Run `")
    assert message.endswith("` in a clone of the repository.")


@pytest.mark.parametrize("advice", [ADVICE, TRAINED_ADVICE])
def test_every_remedy_is_phrased_in_options(advice):
    assert set(advice) == set(Remedy)
    assert not [text for text in advice.values() if "=" in text or "()" in text]
    assert all(text.endswith(".") for text in advice.values())


def test_lack_of_memory_is_one_message(capsys, monkeypatch):
    def run(self):
        raise MemoryError("Unable to allocate 7 TiB.")

    monkeypatch.setattr(Cite, "run", run)
    with pytest.raises(SystemExit) as ended:
        main(["cite"])
    assert ended.value.code == 1
    said = "logcde: there is not enough memory for this. Unable to allocate 7 TiB. Choose smaller options, or fewer "
    assert capsys.readouterr().err == said + "rows.\n"
