"""Seconds until the first online prediction of the README's example: `python -m benchmarks.first_seconds`.

Every run is a new process. "new machine": nothing is cached. "kernels": Numba finds its kernels on disk, as in every
process after the first. "programs": XLA's programs are kept as well, in the folder that LOGCDE_CACHE_DIR names.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from logcde._files import write_whole
from logcde._machine import machine, versions

STATES = ("new machine", "kernels", "programs")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the measurement."""

    rounds: int = 3
    """Processes for each state of the caches; the table has medians over them."""
    out: Path = Path(__file__).parent / "first_seconds.json"
    """File of all measurements."""
    stages: bool = False
    """Run the example in this process, and print the seconds of each stage as JSON."""


def measure(rounds: int) -> dict[str, list[dict[str, dict[str, float]]]]:
    """The seconds of each stage, in `rounds` processes for each state of the caches."""
    found: dict[str, list[dict[str, dict[str, float]]]] = {state: [] for state in STATES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in track(range(rounds), "measuring", console=Console(stderr=True)):
            kernels = {"NUMBA_CACHE_DIR": str(folder / f"kernels-{number}")}
            found["new machine"].append(_process(kernels))
            found["kernels"].append(_process(kernels))
            programs = {"LOGCDE_CACHE_DIR": str(folder / f"all-{number}")}
            _process(programs)
            found["programs"].append(_process(programs))
    return found


def _process(caches: dict[str, str]) -> dict[str, dict[str, float]]:
    kept = {name: value for name, value in os.environ.items() if "CACHE" not in name and name != "XLA_FLAGS"}
    command = [sys.executable, "-m", "benchmarks.first_seconds", "--stages"]
    begin = time.time()
    done = subprocess.run(command, env=kept | caches, stdout=subprocess.PIPE, text=True, check=True)
    stages = json.loads(done.stdout)
    stages["start of Python"]["seconds"] = stages.pop("at")["seconds"] - begin
    return stages


def run_stages() -> dict[str, dict[str, float]]:
    """Run the example; the seconds and the seconds of all cores for each stage."""
    found = {"at": {"seconds": time.time()}, "start of Python": {"seconds": 0.0, "cores": time.process_time()}}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        start, busy = time.perf_counter(), time.process_time()
        yield
        found[name] = {"seconds": time.perf_counter() - start, "cores": time.process_time() - busy}

    with stage("import"):
        import jax
        import numpy as np

        import logcde as lc
        import logcde._api

    rng = np.random.default_rng(0)
    rising = rng.random(200) < 0.5
    events = [
        (patient, hour, {vital: (0.2 if rising[patient] else -0.2) * hour + rng.normal()})
        for patient in range(200)
        for vital, count in (("pulse", 30), ("lactate", 5))
        for hour in rng.uniform(0, 24, count)
    ]
    with stage("ingest"):
        streams = lc.Streams.from_events(events, horizon=24.0, sort=True)
    with stage("embedding"):
        logsigs = lc.Embedding(depth=2)(streams, lc.Partition.every(4.0))
    scaling, key = lc.IncrementRMSScaling(), jax.random.key
    with stage("model"):
        model = lc.log_slice(logsigs.basis, hidden=32, outputs=2, scaling=scaling, key=key(0))
    with stage("fit"):
        labels, loss, epochs = rising.astype(int), lc.losses.cross_entropy, lc.Epochs(20)
        result = lc.fit(model, logsigs, labels, loss=loss, duration=epochs, key=key(1))
    with tempfile.TemporaryDirectory() as folder, stage("save and load"):
        result.model.save(Path(folder) / "model")
        loaded = lc.load(Path(folder) / "model")
    with stage("Predictor"):
        predictor = lc.Predictor(loaded)
    with stage("observe"):
        predictor.observe(0.5, {"pulse": 0.2})
        predictor.observe(7.5, {"lactate": 1.7})
    with stage("predict"):
        jax.nn.softmax(predictor.predict(at=8.0)).block_until_ready()
    return found


def table(found: dict[str, list[dict[str, dict[str, float]]]]) -> Table:
    """Median seconds, and in brackets those of all cores together."""
    shown = Table("", *STATES, title="From the start of Python to the first online prediction, seconds")
    stages = next(iter(found.values()))[0]
    for stage in stages:
        shown.add_row(stage, *(_cell([run[stage] for run in found[state]]) for state in STATES))
    totals = {
        state: [
            {unit: sum(stage[unit] for stage in run.values()) for unit in ("seconds", "cores")} for run in found[state]
        ]
        for state in STATES
    }
    shown.add_row("all", *(_cell(totals[state]) for state in STATES), style="bold")
    return shown


def _cell(runs: list[dict[str, float]]) -> str:
    seconds, cores = (statistics.median(run[unit] for run in runs) for unit in ("seconds", "cores"))
    return f"{seconds:.2f} ({cores:.2f})"


def main() -> None:
    """Measure, print the table and write the file."""
    options = tyro.cli(Options, description=__doc__)
    if options.stages:
        sys.stdout.write(json.dumps(run_stages()))
        return
    found = measure(options.rounds)
    content = {"machine": machine(), "versions": versions(), "rounds": found}
    write_whole(options.out, json.dumps(content, indent=1) + "\n")
    Console().print(table(found))


if __name__ == "__main__":
    main()
