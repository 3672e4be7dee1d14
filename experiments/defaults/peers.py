"""Methods of other libraries, which run in a process of their own and may need another environment.

`make peers` creates that environment from `peers.txt` in `.peers`; the environment variable LOGCDE_PEERS names another
one, by its folder or its interpreter. See `experiments.defaults.peer_process` for the protocol.
"""

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from jaxtyping import Float64, Int

from logcde.errors import ExperimentError

VARIABLE = "LOGCDE_PEERS"
ROOT = Path(__file__).parents[2]
OF_AEON = frozenset({"minirocket", "multirocket", "signature"})
OF_SKLEARN = frozenset({"rf", "boosting"})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Predictions for the test part, process seconds, and versions of libraries.

    `refit_seconds` is the time of a second fit, which compiles nothing; None if there was none.
    """

    predictions: np.ndarray
    fit_seconds: float
    predict_seconds: float
    refit_seconds: float | None = None
    versions: dict[str, str] = {}


def interpreter(method: str) -> Path | None:
    """The Python that runs a method; None if it needs aeon and there is no environment with it."""
    if method in OF_SKLEARN:
        return Path(sys.executable)
    given = os.environ.get(VARIABLE)
    found = Path(given).expanduser() if given else ROOT / ".peers"
    if found.is_dir():
        found = found / "bin" / "python"
    return found if found.is_file() else None


def classify(
    method: str,
    seed: int,
    train: Float64[np.ndarray, "series channel step"],
    labels: Int[np.ndarray, "series"],
    test: Float64[np.ndarray, "more channel step"],
) -> Answer:
    """Fit a method on training series without gaps and return its probabilities of the test series."""
    python = interpreter(method)
    if python is None:
        raise ExperimentError(
            f"{method} needs aeon.", f"Run `make peers`, or set {VARIABLE} to an environment with aeon."
        )
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "series.npz", train=train, labels=labels, test=test)
        told = ask(python, {"method": method, "seed": seed, "folder": folder})
        with np.load(Path(folder) / "answer.npz", allow_pickle=False) as found:
            return Answer(predictions=found["probabilities"], **told)


def ask(python: Path, request: dict[str, str | int]) -> dict[str, Any]:
    """Send a request to the process of an interpreter, starting it if necessary, and wait for the answer."""
    process = _PROCESSES.get(python) or _start(python)
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        code = process.wait()
        _end(python)
        raise ExperimentError(f"The process of {request['method']} ended with code {code}.")
    found = json.loads(line)
    if "error" in found:
        raise ExperimentError(f"{request['method']} failed.\n{found['error']}")
    return found


_PROCESSES: dict[Path, subprocess.Popen[str]] = {}


def _start(python: Path) -> subprocess.Popen[str]:
    """Start a process; it does not see the packages of this environment."""
    _PROCESSES[python] = subprocess.Popen(
        [str(python), "-m", "experiments.defaults.peer_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return _PROCESSES[python]


def _end(python: Path) -> None:
    process = _PROCESSES.pop(python)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.terminate()
    process.wait(timeout=10)


@atexit.register
def end_all() -> None:
    """End all processes."""
    for python in list(_PROCESSES):
        _end(python)
