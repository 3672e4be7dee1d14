"""The command line: `python -m benchmarks --jobs B1 D --rounds 9`."""

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.jobs import JOBS
from benchmarks.peers import PEERS
from benchmarks.results import JobRecord, Results
from benchmarks.run import run_jobs
from benchmarks.timing import Clock

JobName: TypeAlias = Literal["A", "B1", "B2", "C", "D", "D3", "scaling", "index", "train", "scans", "serve"]


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    jobs: tuple[JobName, ...] = get_args(JobName)
    """Jobs to run. A: log-signature of whole paths; B1: dense series, windows of equal length; B2: dense series, own
    windows for each; C: one event at a time, and blocks of events; D: asynchronous streams, counts and time; D3:
    asynchronous streams, counts and time, depth 3; scaling: how cost grows; index: arbitrary intervals of one long
    series; train: one training step on series of EigenWorms' shape; scans: ways to compose linear flows; serve: one
    event and a prediction."""
    rounds: int = 9
    """Rounds of each case; times are medians over them."""
    patience: float = 20.0
    """Largest number of seconds for one contender of a case."""
    seed: int = 0
    """Seed of the generated data."""
    out: Path = Path("out/benchmarks")
    """Folder of results.json and scaling.png. To show a machine on the page of speed, copy its results to
    benchmarks/measured/NAME.json and run `python -m benchmarks.page`."""
    resume: bool = False
    """Keep the jobs that are already in results.json."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the options and measure. Returns an exit code."""
    description = "Time this library against every peer that is installed."
    return measure(tyro.cli(Options, prog="python -m benchmarks", description=description, args=arguments))


def measure(options: Options) -> int:
    """Measure, print tables, and write results.json and scaling.png. Returns an exit code."""
    # XLA and oneDNN log to stderr, which would break the progress bar.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # A file has no width, and the default of 80 is too narrow for the tables.
    console = Console(width=None if sys.stdout.isatty() else 150)
    path = options.out / "results.json"
    _list_peers(console)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("", total=len(options.jobs))

            def finished(job: JobRecord) -> None:
                for case in job.cases:
                    console.print(report.case_table(job, case), *report.absences(case), sep="\n")
                progress.advance(task)

            results = run_jobs(
                [JOBS[name] for name in options.jobs],
                PEERS,
                Clock(options.rounds, patience=options.patience),
                options.seed,
                path,
                resume=options.resume,
                tell=lambda what: progress.update(task, description=what),
                finished=finished,
            )
    except KeyboardInterrupt:
        console.print(f"Stopped. Finished jobs are in {path}; --resume runs the others.")
        return 130
    return _conclude(console, results, options.out)


def _list_peers(console: Console) -> None:
    for peer in PEERS:
        state = f"{peer.version}, {peer.threads} thread(s)" if peer.installed else "not installed"
        console.print(f"{peer.role}: {peer.name} {state}")


def _conclude(console: Console, results: Results, out: Path) -> int:
    console.print(report.summary_table(results.jobs.values()))
    if importlib.util.find_spec("matplotlib") is None:
        console.print("No plot: matplotlib is not installed.")
    elif "scaling" in results.jobs:
        report.scaling_plot(results.jobs["scaling"].cases, out / "scaling.png")
        console.print(f"Plot in {out / 'scaling.png'}.")
    console.print(f"Raw numbers in {out / 'results.json'}.")
    differing = report.disagreements(results.jobs.values())
    for sentence in differing:
        console.print(f"[red]{sentence}[/]")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
