"""Two processes that write one place at the same time: the result is that of one of them, and the other is told."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

from tests.attacks.commands import call
from tests.cli.tables import COLUMNS, long
from tests.cli.training_tables import TABLE, tables


@dataclasses.dataclass
class Written:
    """How often both processes were done, and how often one was refused."""

    both: int = 0
    one: int = 0


def two_writers(place: Path, count: int, seed: int) -> Written:
    """Start pairs of commands that write one folder or one file."""
    tables(place)
    long(20).write_parquet(place / "long.parquet")
    train = ("train", place / "vitals.parquet", *TABLE, "--learner", "ridge", "--target", "state", "--seed", seed)
    embed = ("embed", place / "long.parquet", *COLUMNS)
    pairs = (
        (train, "model", "model.safetensors", ("--overwrite",), ("--overwrite",)),
        (train, "model", "model.safetensors", ("--holdout", "0.1"), ("--holdout", "0.3")),
        (embed, "rows.csv", "", ("--every", "2"), ("--every", "3")),
    )
    seen = Written()
    for number in range(count):
        for words, output, part, *ways in pairs:
            expected = []
            for way in ways:
                alone = place / "alone"
                assert call(*words, *way, "-o", alone / output)[0] == 0
                expected.append((alone / output / part).read_bytes())
                shutil.rmtree(alone)
            folder = place / f"case {number} {output} {ways[0][0]}"
            folder.mkdir()
            started = [_start(*words, *way, "-o", folder / output) for way in ways]
            said = [process.communicate()[1] for process in started]
            codes = sorted(process.returncode for process in started)
            assert codes in ([0, 0], [0, 1]), said
            if codes == [0, 1]:
                told = " ".join(said)
                assert "is in use by " in told or "exists already" in told or "is being replaced" in told, told
            assert (folder / output / part).read_bytes() in expected
            assert [path.name for path in folder.iterdir()] == [output]
            seen.both, seen.one = seen.both + (codes == [0, 0]), seen.one + (codes == [0, 1])
    return seen


def _start(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "logcde", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
