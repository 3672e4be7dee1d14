"""`logcde train`: from a table of observations and what belongs to its series to a folder with a trained model."""

import dataclasses
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from logcde.cli.answers import Answers
from logcde.cli.learning import Learning
from logcde.cli.table import Table, in_options
from logcde.errors import ArtefactError

if TYPE_CHECKING:
    from logcde.cli.fitting import Fitted


@dataclasses.dataclass(frozen=True)
class Train:
    """Learn to predict from a table of observations, and write a folder with the model and a record of its training.

    Some series are held out, and it says how good predictions for these are. The table is read into memory. Examples:

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
    config: Path | None = None
    """A TOML file of these options, by the same names, such as a train.toml; what is given beside it counts more."""

    def run(self) -> int:
        """Do it."""
        try:
            with in_options():
                self.learning.check()
                check_place(self.output, self.overwrite)
                self.fit()
                sys.stdout.write(f"{self.output}: the model. Try it on new series of the same form:\n")
                sys.stdout.write(f"  logcde predict {self.output} NEW.parquet -o predictions.parquet\n")
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        return 0

    def fit(self) -> "Fitted":
        """Read, train and save. Returns what came of it."""
        from logcde.cli.trained import needing_estimators

        with needing_estimators():
            from logcde.cli.fitting import announce, fit, save
        from logcde.cli.examples import read_examples

        examples = read_examples(self.table, self.answers, self.task)
        fitted = fit(examples, self.learning, announce)
        try:
            save(fitted, dataclasses.replace(self, table=examples.table, task=examples.task.name))
        except OSError as error:
            raise ArtefactError(_unwritable(self.output, error)) from error
        return fitted


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


def _unwritable(path: Path, error: OSError) -> str:
    return (
        f"{path} cannot be written: {error.strerror or error}. Nothing was left behind. See whether the folder around "
        "it may be written to and has room, or choose another with -o."
    )
