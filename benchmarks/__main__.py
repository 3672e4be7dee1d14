"""The command line: `python -m benchmarks --jobs B1 D --rounds 9 --out benchmarks`."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import plot, report
from benchmarks.jobs import JOBS
from benchmarks.options import Options
from benchmarks.peers import PEERS
from benchmarks.results import JobRecord, Results
from benchmarks.run import run_jobs
from benchmarks.timing import Clock


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the options and measure."""
    description = "Speed, side by side with peers."
    return measure(tyro.cli(Options, prog="python -m benchmarks", description=description, args=arguments))


def measure(options: Options) -> int:
    """Measure, print tables, write results.json and scaling.png."""
    # XLA and oneDNN report their own affairs on stderr, through the progress bar.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Output that goes to a file has no width of its own; the tables need some.
    console = Console(width=None if sys.stdout.isatty() else 150)
    path = options.out / "results.json"
    _say_who(console)
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
        console.print(f"Stopped. Finished jobs are in {path}; go on with --resume.")
        return 130
    return _conclude(console, results, options.out)


def _say_who(console: Console) -> None:
    for peer in PEERS:
        state = f"{peer.version}, {peer.threads} thread(s)" if peer.installed else "not installed"
        console.print(f"{peer.role}: {peer.name} {state}")


def _conclude(console: Console, results: Results, out: Path) -> int:
    console.print(report.summary_table(results.jobs.values()))
    if importlib.util.find_spec("matplotlib") is None:
        console.print("No plot: matplotlib is not installed.")
    elif "scaling" in results.jobs:
        plot.scaling(results.jobs["scaling"].cases, out / "scaling.png")
        console.print(f"Plot in {out / 'scaling.png'}.")
    console.print(f"Raw numbers in {out / 'results.json'}.")
    differing = report.disagreements(results.jobs.values())
    for sentence in differing:
        console.print(f"[red]{sentence}[/]")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
