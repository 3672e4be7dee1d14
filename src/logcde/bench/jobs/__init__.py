"""The jobs, by name."""

from logcde.bench.jobs.abstract import AbstractJob as AbstractJob
from logcde.bench.jobs.asynchronous import Asynchronous as Asynchronous
from logcde.bench.jobs.asynchronous import AsynchronousDeep as AsynchronousDeep
from logcde.bench.jobs.dense import EqualWindows as EqualWindows
from logcde.bench.jobs.dense import OwnWindows as OwnWindows
from logcde.bench.jobs.dense import WholePaths as WholePaths
from logcde.bench.jobs.index import Index as Index
from logcde.bench.jobs.online import OneByOne as OneByOne
from logcde.bench.jobs.scaling import Scaling as Scaling
from logcde.bench.jobs.scans import Scans as Scans
from logcde.bench.jobs.serving import Serving as Serving
from logcde.bench.jobs.training import Training as Training

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
