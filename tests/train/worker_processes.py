"""Starts `worker.py` in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import logcde

ROOT = Path(__file__).parents[2]


def start(*arguments: object) -> subprocess.Popen:
    paths = [str(ROOT), str(Path(logcde.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(ROOT / "tests" / "train" / "worker.py"), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> tuple[int, str]:
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors
