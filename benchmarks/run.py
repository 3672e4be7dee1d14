"""Run jobs one after another; what is finished is on disk before the next one starts."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.jobs import AbstractJob
from benchmarks.machine import circumstances
from benchmarks.peers import AbstractPeer
from benchmarks.results import JobRecord, Results
from benchmarks.timing import Clock, race


def run_job(
    job: AbstractJob, peers: Sequence[AbstractPeer], clock: Clock, seed: int, tell: Callable[[str], None]
) -> JobRecord:
    """Measure all cases of one job; `tell` is told what is going on."""
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
    """Measure these jobs and write `path` after each; with `resume`, keep those that it has already."""
    results = Results(circumstances(peers, seed, clock.rounds))
    if resume and path.exists():
        results.jobs = Results.load(path).jobs
    for job in jobs:
        if job.name not in results.jobs:
            results.jobs[job.name] = run_job(job, peers, clock, seed, tell)
            results.save(path)
        finished(results.jobs[job.name])
    return results
