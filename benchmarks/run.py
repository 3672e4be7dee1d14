"""Run jobs one after another; each is on disk before the next starts."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import AbstractJob
from benchmarks.peers import AbstractPeer
from benchmarks.results import JobRecord, Results
from benchmarks.timing import Clock, race
from logcde._machine import machine, versions


def run_job(
    job: AbstractJob, peers: Sequence[AbstractPeer], clock: Clock, seed: int, tell: Callable[[str], None]
) -> JobRecord:
    """Measure all cases of a job; `tell` receives a line of progress."""
    start = time.perf_counter()
    cases = []
    for case in job.cases(peers, np.random.default_rng(seed)):
        cases.append(race(case, clock, lambda name, label=case.label: tell(f"{job.name}: {label}: {name}")))
    return JobRecord(job.name, job.title, time.perf_counter() - start, tuple(cases))


def run_jobs(
    jobs: Sequence[AbstractJob],
    peers: Sequence[AbstractPeer],
    clock: Clock,
    seed: int,
    path: Path,
    *,
    resume: bool,
    tell: Callable[[str], None],
    finished: Callable[[JobRecord], None],
) -> Results:
    """Measure jobs and write `path` after each; with `resume`, those in `path` are kept."""
    results = Results(circumstances(peers, seed, clock.rounds))
    if resume and path.exists():
        results.jobs = Results.load(path).jobs
    for job in jobs:
        if job.name not in results.jobs:
            results.jobs[job.name] = run_job(job, peers, clock, seed, tell)
            results.save(path)
        finished(results.jobs[job.name])
    return results


def circumstances(peers: Sequence[AbstractPeer], seed: int, rounds: int) -> dict[str, Any]:
    """Date, machine, versions, seed, and versions and threads of the peers.

    >>> sorted(circumstances((), seed=0, rounds=3))
    ['date', 'machine', 'peers', 'rounds', 'seed', 'versions']
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "rounds": rounds,
        "machine": machine(),
        "versions": versions(),
        "peers": {
            peer.name: {"distribution": peer.distribution, "version": peer.version, "threads": peer.threads}
            for peer in peers
        },
    }
