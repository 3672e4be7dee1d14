"""The experiments by name. Importing this imports none of them, so that `--help` answers at once.

To add an experiment: a package `experiments/NAME` with `presets/full.toml`, `presets/quick.toml`, and a module
`experiment.py` that has `EXPERIMENT`, an `AbstractExperiment`; then a line here.
"""

import importlib
from types import MappingProxyType

from experiments.runner.abstract import AbstractExperiment

SUMMARIES = MappingProxyType(
    {
        "sinusoid": "Coupled sinusoids: train under one observation regime, test under all four.",
        "brownian": "A linear system driven by Brownian motion: the value of Levy areas.",
        "uea": "Classification of the UEA data sets with dropped observations.",
        "logode": "Time, memory and accuracy with and without the Log-ODE method.",
        "physionet2012": "In-hospital mortality from 48 hours of intensive care records.",
        "choices": "The study that the defaults of the estimators come from.",
        "mortality": "Death in hospital on the published splits of PhysioNet 2012, beside published models.",
        "nextday": "Forecasts of the next 24 hours in intensive care, beside published models.",
        "sepsis": "Sepsis hour by hour, between hospitals and in random splits (PhysioNet 2019).",
        "defaults": "Default estimators beside Rocket, forests, boosting, signatures and GRU-D.",
    }
)
"""One line of help for each experiment."""


def named(name: str) -> AbstractExperiment:
    """Import the experiment `name`.

    >>> named("sinusoid").name
    'sinusoid'
    """
    return importlib.import_module(f"experiments.{name}.experiment").EXPERIMENT
