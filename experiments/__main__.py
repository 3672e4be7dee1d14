"""The command line: `python -m experiments NAME`, `... check NAME`, `... datasets list`."""

import dataclasses
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, Union

import tyro

from experiments.datasets import Datasets
from experiments.registry import SUMMARIES, named
from logcde.errors import DatasetError, ExperimentError, LogcdeError, Remedy

PROGRAM = "python -m experiments"
DESCRIPTION = "Rerun the experiments of the paper and beyond it, with every table and figure."


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """Run the cells that are not finished, then write tables, figures and a summary."""

    experiment: tyro.conf.Suppress[str]
    out: Path | None = None
    """Folder of results; by default experiments/results/NAME, or NAME-PRESET for a preset."""
    config: Path | None = None
    """TOML file to use instead of a preset."""
    preset: str = "full"
    """Configuration: full or quick; uea has paper (all of it) and published, nextday and sepsis validation."""
    quick: bool = False
    """The same as --preset quick: one seed, few epochs, few variants; minutes."""
    seeds: tuple[int, ...] = ()
    """Seeds to use instead of those of the configuration."""
    fresh: bool = False
    """Run finished cells again."""
    workers: int | None = None
    """Number of cells to run at once; by default one for each core."""
    budget: float | None = None
    """Minutes after which no more cells are run; the same command resumes."""
    data: Path | None = None
    """Folder of data sets, for uea, logode and physionet2012; by default the environment variable LOGCDE_DATA."""

    def run(self) -> int:
        """Reproduce the experiment."""
        from experiments.runner.reproduce import reproduce

        if self.quick and self.preset not in ("full", "quick"):
            raise ExperimentError(f"--quick and --preset {self.preset} exclude each other.", "Leave one of them out.")
        return reproduce(
            named(self.experiment),
            out=self.out,
            config=self.config,
            preset="quick" if self.quick else self.preset,
            seeds=self.seeds,
            fresh=self.fresh,
            workers=self.workers,
            budget=self.budget,
            data=self.data,
        )


@dataclasses.dataclass(frozen=True)
class Check:
    """Rerun the cheapest finished cell of an experiment and compare it with its line in the ledger.

    Prints "equal", or every number that differs; measured times are not compared. On another processor XLA may round
    differently, which training amplifies. Example: python -m experiments check brownian
    """

    experiment: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Name of the experiment."""
    preset: str = "full"
    """Preset whose results are checked."""
    label: str = ""
    """Only cells whose label contains this text, such as "printed" or "seed 1"."""
    data: Path | None = None
    """Folder of data sets; by default the environment variable LOGCDE_DATA."""

    def run(self) -> int:
        """Rerun and compare."""
        import os

        from experiments.runner.check import cheapest, differences
        from experiments.runner.reproduce import VARIABLE, results_folder

        if self.experiment not in SUMMARIES:
            raise ExperimentError(
                f"There is no experiment {self.experiment!r}.", f"Choose one of: {', '.join(SUMMARIES)}."
            )
        if self.data is not None:
            os.environ[VARIABLE] = str(self.data)
        experiment = named(self.experiment)
        try:
            record = cheapest(experiment, results_folder(experiment, self.preset), self.label)
        except DatasetError as error:
            raise ExperimentError(f"{self.experiment} needs data. {error.found}", error.remedy) from error
        sys.stdout.write(f"{experiment.name}: {record.cell.label} ({record.seconds:.0f} s before)\n")
        sys.stdout.flush()
        found = differences(experiment, record, lambda part: None)
        sys.stdout.write("".join(f"  {line}\n" for line in found) or "  equal\n")
        return 1 if found else 0


ADVICE = {
    Remedy.DATA_FOLDER: "Pass the folder of data sets with --data, or set the environment variable LOGCDE_DATA to it."
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error that a person can act on is one sentence on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    brief = not given or given[0] in ("-h", "--help")
    command = tyro.cli(_commands(brief), prog=PROGRAM, description=DESCRIPTION, args=given)
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell may ignore SIGINT for background processes
        signal.signal(number, _interrupt)
    try:
        code = command.run()
    except LogcdeError as error:
        sys.exit(f"experiments: {error.phrased(ADVICE)}")
    sys.exit(code)


def _commands(brief: bool) -> Any:
    """A union of subcommands, as tyro takes them; `brief` gives each one line of help."""
    more = "" if brief else f" {_RESUMES}"
    reproductions = (
        Annotated[Reproduce, tyro.conf.subcommand(name, default=Reproduce(name), description=summary + more)]
        for name, summary in SUMMARIES.items()
    )
    others = (
        Annotated[command, tyro.conf.subcommand(name, description=_first_line(command) if brief else None)]
        for name, command in (("check", Check), ("datasets", Datasets))
    )
    return Union[(*reproductions, *others)]


_RESUMES = "Finished cells are kept: after Ctrl-C the same command resumes."


def _first_line(command: type) -> str:
    return (command.__doc__ or "").strip().split("\n")[0]


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
