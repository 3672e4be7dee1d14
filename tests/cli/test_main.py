import subprocess
import sys

import pytest

from logcde.cli import main


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("reproduce", "logcde reproduce sinusoid --quick"),
        ("embed", "--no-counts"),
        ("train", "logcde train vitals.csv --series patient --target died -o model/"),
        ("stress", "logcde stress model/ vitals.parquet --plot stress.png"),
        ("report", "logcde report model/ -o model.html"),
        ("demo", "logcde demo --out out"),
    ],
)
def test_help_needs_nothing_heavy(command, example):
    """What takes long to import is imported by the commands that need it."""
    code = (
        "import sys\n"
        "heavy = {'jax', 'numba', 'matplotlib', 'pyarrow', 'polars', 'pandas', 'narwhals', 'sklearn'}\n"
        "from logcde.cli import main\n"
        f"try: main(['{command}', '--help'])\n"
        "except SystemExit as end: print(end.code, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
    assert example in done.stdout


def test_cite_prints_bibtex(capsys):
    with pytest.raises(SystemExit) as end:
        main(["cite"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("@article{walker2026faithful,")


def test_an_error_that_a_person_can_act_on_is_a_sentence(tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "sinusoid", "--config", str(tmp_path / "none.toml"), "--out", str(tmp_path)])
    assert str(end.value.code).startswith("logcde: The configuration ")
    assert str(end.value.code).endswith("cannot be read: No such file or directory.")
