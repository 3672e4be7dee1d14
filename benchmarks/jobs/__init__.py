"""The jobs, by name."""

from benchmarks.jobs.abstract import AbstractJob as AbstractJob
from benchmarks.jobs.asynchronous import Asynchronous as Asynchronous
from benchmarks.jobs.asynchronous import AsynchronousDeep as AsynchronousDeep
from benchmarks.jobs.asynchronous import Scaling as Scaling
from benchmarks.jobs.dense import EqualWindows as EqualWindows
from benchmarks.jobs.dense import OwnWindows as OwnWindows
from benchmarks.jobs.dense import WholePaths as WholePaths
from benchmarks.jobs.index import Index as Index
from benchmarks.jobs.online import OneByOne as OneByOne
from benchmarks.jobs.online import Serving as Serving
from benchmarks.jobs.scans import Scans as Scans
from benchmarks.jobs.training import Training as Training

JOBS: dict[str, AbstractJob] = {
    job.name: job
    for job in (
        WholePaths(),
        EqualWindows(),
        OwnWindows(),
        OneByOne(),
        Asynchronous(),
        AsynchronousDeep(),
        Scaling(),
        Index(),
        Training(),
        Scans(),
        Serving(),
    )
}
"""In the order in which they run."""
