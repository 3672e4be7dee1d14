"""`python -m experiments NAME`: rerun an experiment; `python -m experiments datasets`: check the data sets."""

import dataclasses
from pathlib import Path
from typing import Literal

import tyro

from logcde.errors import ExperimentError


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """Rerun an experiment, of the paper or beyond it, with every table and figure, into a folder of results.

    What is finished is kept: after Ctrl-C the same command goes on. Example: logcde reproduce sinusoid --quick
    """

    experiment: tyro.conf.Positional[Literal["sinusoid", "brownian", "uea", "logode", "physionet2012"]]
    """Coupled sinusoids under four observation regimes, a linear system driven by Brownian motion, classification of
    the UEA sets under dropped observations, the effect of the Log-ODE method on time, memory and accuracy, or death in
    hospital from intensive care records."""
    out: Path | None = None
    """Folder of the results; results/EXPERIMENT if not given."""
    config: Path | None = None
    """A TOML file in place of the one that comes with the package."""
    seeds: tuple[int, ...] = ()
    """Other seeds than those of the configuration."""
    quick: bool = False
    """A first look in minutes: one seed, fewer epochs, few variants. The same as --preset quick."""
    preset: str | None = None
    """Another configuration of the package: quick, or for uea also paper (all of it) and published."""
    fresh: bool = False
    """Run everything again, also what is finished."""
    workers: int | None = None
    """How many models to train at once; one for each core if not given."""
    budget: float | None = None
    """Minutes after which no more is run; what is missing is marked as not run."""
    data: Path | None = None
    """Folder of data sets, for uea, logode and physionet2012; the environment variable LOGCDE_DATA if not given."""

    def run(self) -> int:
        """Do it."""
        from experiments import EXPERIMENTS, reproduce

        if self.quick and self.preset not in (None, "quick"):
            raise ExperimentError(f"--quick and --preset {self.preset} exclude each other. Leave one of them out.")
        return reproduce(
            EXPERIMENTS[self.experiment],
            out=self.out,
            config=self.config,
            preset="quick" if self.quick else self.preset,
            seeds=self.seeds,
            fresh=self.fresh,
            workers=self.workers,
            budget=self.budget,
            data=self.data,
        )
