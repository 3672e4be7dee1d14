"""Data sets: generators of synthetic streams, and readers of public files."""

from logcde.datasets.brownian import BrownianPaths as BrownianPaths
from logcde.datasets.brownian import aligned_cuts as aligned_cuts
from logcde.datasets.brownian import brownian as brownian
from logcde.datasets.brownian import oracle as oracle
from logcde.datasets.classification import Classification as Classification
from logcde.datasets.classification import deduplicated as deduplicated
from logcde.datasets.classification import windows as windows
from logcde.datasets.loading import available as available
from logcde.datasets.loading import find as find
from logcde.datasets.loading import load as load
from logcde.datasets.physionet import PLAUSIBLE as PLAUSIBLE
from logcde.datasets.physionet import Stays as Stays
from logcde.datasets.physionet import physionet2012 as physionet2012
from logcde.datasets.sinusoid import REGIMES as REGIMES
from logcde.datasets.sinusoid import Dataset as Dataset
from logcde.datasets.sinusoid import Poisson as Poisson
from logcde.datasets.sinusoid import Regime as Regime
from logcde.datasets.sinusoid import Regular as Regular
from logcde.datasets.sinusoid import Sinusoids as Sinusoids
from logcde.datasets.sinusoid import sinusoids as sinusoids
from logcde.datasets.splits import Split as Split
from logcde.datasets.splits import split as split
