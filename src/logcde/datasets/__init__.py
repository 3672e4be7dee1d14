"""Data sets: streams, where they are asked about, and the answers."""

from logcde.datasets.brownian import BrownianPaths as BrownianPaths
from logcde.datasets.brownian import aligned_cuts as aligned_cuts
from logcde.datasets.brownian import brownian as brownian
from logcde.datasets.brownian import oracle as oracle
from logcde.datasets.dataset import Dataset as Dataset
from logcde.datasets.sinusoid import REGIMES as REGIMES
from logcde.datasets.sinusoid import Poisson as Poisson
from logcde.datasets.sinusoid import Regime as Regime
from logcde.datasets.sinusoid import Regular as Regular
from logcde.datasets.sinusoid import Sinusoids as Sinusoids
from logcde.datasets.sinusoid import sinusoids as sinusoids
