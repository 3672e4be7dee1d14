"""The experiments of the paper, rerun."""

from types import MappingProxyType

from experiments.abstract import AbstractExperiment as AbstractExperiment
from experiments.brownian import Brownian as Brownian
from experiments.logode import LogOde as LogOde
from experiments.physionet import PhysioNet2012 as PhysioNet2012
from experiments.reproduce import reproduce as reproduce
from experiments.sinusoid import Sinusoid as Sinusoid
from experiments.uea import Uea as Uea

EXPERIMENTS = MappingProxyType(
    {experiment.name: experiment for experiment in (Sinusoid(), Brownian(), Uea(), LogOde(), PhysioNet2012())}
)
