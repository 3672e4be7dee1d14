"""`logcde train`: from a table of observations and what belongs to its series to a folder with a trained model."""

import dataclasses
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from logcde.cli.config import options_of
from logcde.cli.resume import Unfinished, checksums
from logcde.cli.table import Table, in_options
from logcde.cli.targets import Answers
from logcde.cli.training import Learning
from logcde.errors import ArtefactError, NonFiniteError, TrainingError

if TYPE_CHECKING:
    from logcde.cli.targets import Examples
    from logcde.cli.training import Fitted
    from logcde.train import Checkpoints

SECONDS = 10.0
"""How much training a kill may cost."""
ASIDE = ("file", "targets", "output", "overwrite", "fresh", "config")
"""Options that say where things are, and not what comes of them."""


@dataclasses.dataclass(frozen=True)
class Train:
    """Learn to predict from a table of observations, and write a folder with the model and a record of its training.

    Some series are held out, and it says how good predictions for these are. The table is read into memory. After
    Ctrl-C or a kill, the same command goes on where it was. Examples:

    logcde train vitals.csv --series patient --target died -o model/

    logcde train vitals.parquet --targets stays.csv --target days -o model/

    logcde train vitals.parquet --task forecast -o model/

    logcde train --config model/train.toml --steps 2000 -o longer/
    """

    table: tyro.conf.OmitArgPrefixes[Table]
    answers: tyro.conf.OmitArgPrefixes[Answers]
    learning: tyro.conf.OmitArgPrefixes[Learning]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The folder to write: model.json, model.safetensors, run.json (a record) and train.toml (these options)."""
    task: Literal["classify", "regress", "forecast"] | None = None
    """One class or one number for each series, or numbers at stamps; by default it is told from the targets."""
    overwrite: bool = False
    """Replace an older model of that name."""
    fresh: bool = False
    """Begin anew, instead of going on where the same command was stopped."""
    config: Path | None = None
    """A TOML file of these options, by the same names, such as a train.toml; what is given beside it counts more."""

    def run(self) -> int:
        """Do it."""
        try:
            with in_options():
                self.learning.check()
                check_place(self.output, self._replaces())
                self.fit()
                sys.stdout.write(f"{self.output}: the model. Try it on new series of the same form:\n")
                sys.stdout.write(f"  logcde predict {self.output} NEW.parquet -o predictions.parquet\n")
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self._kept() or f'{self.output} was not written.'}\n")
            return 130
        return 0

    def fit(self) -> "Fitted":
        """Read, train and save. Returns what came of it."""
        from logcde.cli.trained import needing_estimators

        with needing_estimators():
            import logcde.estimators  # noqa: F401
        from logcde.cli.targets import read_examples

        examples = read_examples(self.table, self.answers, self.task)
        unfinished = self._unfinished()
        try:
            unfinished.begin(fresh=self.fresh)
            return self._finish(examples, unfinished)
        except OSError as error:
            raise ArtefactError(_unwritable(self.output, error, self._kept())) from error

    def _finish(self, examples: "Examples", unfinished: Unfinished) -> "Fitted":
        """Train from where it is, and save."""
        from logcde.cli.training import announce, fit, save

        checkpoints = self._checkpoints()
        try:
            fitted = fit(examples, self.learning, announce, checkpoints=checkpoints)
            command = dataclasses.replace(self, table=examples.table, task=examples.task.name)
            save(fitted, dataclasses.replace(command, overwrite=self._replaces()))
        except NonFiniteError as error:
            unfinished.remove()  # It would only end there again.
            raise TrainingError(
                f"Training failed at step {error.step}: the loss or a parameter was no longer a finite number. Nothing "
                f"was left behind. Try a smaller --rate than {self.learning.rate:g}."
            ) from error
        finally:
            if checkpoints.step() is None:
                unfinished.remove()
        return fitted

    def _replaces(self) -> bool:
        """Whether what is in the folder may go: an older model if that is said, unfinished training in any case."""
        from logcde.artefact.files import MODEL_JSON, UNFINISHED

        return self.overwrite or ((self.output / UNFINISHED).exists() and not (self.output / MODEL_JSON).exists())

    def _checkpoints(self) -> "Checkpoints":
        from logcde.artefact.files import UNFINISHED
        from logcde.train import Checkpoints

        return Checkpoints(self.output / UNFINISHED, SECONDS)

    def _unfinished(self) -> Unfinished:
        """Where training can go on, if these options and these tables are given again."""
        options = options_of(self)
        decisive = {name: value for name, value in options.items() if name not in ASIDE}
        tables = {"the table": self.table.file, "the targets": self.answers.targets}
        return Unfinished(Path(self._checkpoints().folder), decisive | checksums(tables))

    def _kept(self) -> str:
        """What is left of training that was stopped, if anything is."""
        step = self._checkpoints().step()
        folder = self._checkpoints().folder
        return f"Training is kept in {folder}, up to step {step}: the same command goes on from there." if step else ""


def check_place(path: Path, overwrite: bool) -> None:
    """Refuse a place where nothing can be written, before any work is done."""
    from logcde.artefact.files import check_target

    check_target(path, overwrite)
    around = next(folder for folder in path.absolute().parents if folder.exists())
    probe = around / f".{path.name}.{uuid.uuid4().hex[:12]}.new"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise ArtefactError(_unwritable(path, error)) from error


def _unwritable(path: Path, error: OSError, kept: str = "") -> str:
    return (
        f"{path} cannot be written: {error.strerror or error}. {kept or 'Nothing was left behind.'} See whether the "
        "folder around it may be written to and has room, or choose another with -o."
    )
