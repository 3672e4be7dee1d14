"""The options of the benchmark, which the module and the command share. Importing them imports nothing else."""

import dataclasses
from pathlib import Path
from typing import Literal, TypeAlias, get_args

JobName: TypeAlias = Literal["A", "B1", "B2", "C", "D", "D3", "scaling", "index", "train", "scans", "serve"]


@dataclasses.dataclass(frozen=True)
class Options:
    """What to measure, and for how long."""

    jobs: tuple[JobName, ...] = get_args(JobName)
    """A: log-signature of whole paths; B1: dense series, windows of equal length; B2: dense series, own windows for
    each; C: one event at a time, and blocks of events; D: asynchronous streams, counts and time; D3: asynchronous
    streams, counts and time, depth 3; scaling: how cost grows; index: arbitrary intervals of one long series; train:
    one training step on series of EigenWorms' shape; scans: ways to compose linear flows; serve: one event and a
    prediction."""
    rounds: int = 9
    """Rounds of each case."""
    patience: float = 20.0
    """Seconds for one contender of a case."""
    seed: int = 0
    """Of the generated data."""
    out: Path = Path("benchmarks")
    """Folder of the results."""
    resume: bool = False
    """Keep the jobs that results.json has already."""
