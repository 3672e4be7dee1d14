"""The experiments of the paper, rerun."""

from types import MappingProxyType

from logcde.experiments.abstract import AbstractExperiment as AbstractExperiment
from logcde.experiments.brownian import Brownian as Brownian
from logcde.experiments.logode import LogOde as LogOde
from logcde.experiments.physionet import PhysioNet2012 as PhysioNet2012
from logcde.experiments.reproduce import reproduce as reproduce
from logcde.experiments.sinusoid import Sinusoid as Sinusoid
from logcde.experiments.uea import Uea as Uea

EXPERIMENTS = MappingProxyType(
    {experiment.name: experiment for experiment in (Sinusoid(), Brownian(), Uea(), LogOde(), PhysioNet2012())}
)
