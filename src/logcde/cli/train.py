"""`logcde train`: from a table of observations and targets to the folder of a trained model."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from logcde.cli.config import as_command, options_of, with_paths_relative_to
from logcde.cli.resume import ResumableWork, checksums, held_output
from logcde.cli.table import TableOptions
from logcde.cli.targets import TargetOptions
from logcde.cli.train_options import TrainOptions
from logcde.errors import ArtefactError, NonFiniteError, TrainingError

if TYPE_CHECKING:
    from logcde.cli.targets import Examples
    from logcde.cli.training import Fitted
    from logcde.train import Checkpoints

CHECKPOINT_SECONDS = 10.0
"""Training time between two checkpoints: the most that a kill can cost."""
NOT_IN_KEY = ("file", "targets", "output", "overwrite", "fresh", "config")
"""Options that do not determine the model: paths, of which the content counts, and what to do with older work."""


@dataclasses.dataclass(frozen=True)
class Train:
    """Train a model on a table of observations, and write a folder with the model and a record of its training.

    Some series are held out, and the model is scored on them. The table is read into memory. After Ctrl-C or a kill,
    the same command resumes training; once the model is saved, it says so and does nothing. Examples:

    logcde train vitals.csv --series patient --target died -o model/

    logcde train vitals.parquet --targets stays.csv --target days -o model/

    logcde train vitals.parquet --task forecast -o model/

    logcde train --config model/train.toml --steps 2000 -o longer/
    """

    table: tyro.conf.OmitArgPrefixes[TableOptions]
    target_options: Annotated[tyro.conf.OmitArgPrefixes[TargetOptions], tyro.conf.arg(name="target")]
    train_options: Annotated[tyro.conf.OmitArgPrefixes[TrainOptions], tyro.conf.arg(name="training")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Folder to write: model.json, model.safetensors, run.json (a record) and train.toml (these options)."""
    task: Literal["classify", "regress", "forecast"] | None = None
    """One class or one number for each series, or numbers at query times; by default inferred from the targets."""
    overwrite: bool = False
    """Replace an existing model in that folder."""
    fresh: bool = False
    """Start over, instead of resuming where the same command was interrupted."""
    config: Path | None = None
    """TOML file of these options, such as a train.toml; options on the command line take precedence."""

    def run(self) -> int:
        """Train and save, and return the exit code."""
        try:
            self.train_options.check()
            with held_output(self.output, lambda error: _unwritable(self.output, error)):
                if self._is_done():
                    sys.stdout.write(
                        f"This command has trained {self.output} already. Pass --overwrite to train it again.\n"
                    )
                    return 0
                self._check_output()
                self.fit()
            sys.stdout.write(f"Saved to {self.output}. To predict on new data:\n")
            sys.stdout.write(f"  logcde predict {self.output} NEW.parquet -o predictions.parquet\n")
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self._kept() or f'{self.output} was not written.'}\n")
            return 130
        return 0

    def fit(self) -> "Fitted":
        """Read the tables, train, and save. Returns the fitted estimator with its scores."""
        from logcde.cli.trained import needing_estimators

        with needing_estimators():
            import logcde.estimators  # noqa: F401
        from logcde.cli.targets import read_examples

        examples = read_examples(self.table, self.target_options, self.task)
        work = self._work()
        try:
            work.begin(fresh=self.fresh)
            return self._finish(examples, work)
        except OSError as error:
            raise _unwritable(self.output, error, self._kept()) from error

    def _finish(self, examples: "Examples", work: ResumableWork) -> "Fitted":
        """Train, from the last checkpoint if there is one, and save."""
        from logcde.cli.training import announce, fit, save

        checkpoints = self._checkpoints()
        try:
            fitted = fit(examples, self.train_options, announce, checkpoints=checkpoints)
            options = self._recorded_options(examples)
            command = as_command("train", options)
            del options["output"]
            options = with_paths_relative_to(options, Train, self.output)
            save(fitted, self.output, options, command, work.checksum, overwrite=self._replaces())
        except NonFiniteError as error:
            work.remove()  # Resuming would fail in the same way.
            raise TrainingError(
                f"Training failed at step {error.step}: the loss or a parameter is not finite. Nothing was left "
                "behind.",
                f"Try a smaller --rate than {self.train_options.rate:g}.",
            ) from error
        finally:
            if checkpoints.step() is None:
                work.remove()
        return fitted

    def _recorded_options(self, examples: "Examples") -> dict[str, Any]:
        """Options that repeat this run, with the columns and the task that were inferred."""
        command = dataclasses.replace(self, table=examples.table, task=examples.task.name)
        return options_of(dataclasses.replace(command, config=None, overwrite=False, fresh=False))

    def _is_done(self) -> bool:
        """Whether this very command has written the model that is in the folder.

        With --overwrite it is done only if a kill kept it from removing what it replaced.
        """
        from logcde.artefact.files import finish_interrupted
        from logcde.report.record import read_run

        finished = finish_interrupted(self.output)
        if self.fresh or (self.overwrite and not finished):
            return False
        try:
            run = read_run(self.output)
        except ArtefactError:  # none, or one that can only be replaced
            return False
        return run is not None and run.key == self._work().checksum

    def _check_output(self) -> None:
        """Refuse a folder that cannot be written, before any work is done."""
        from logcde.artefact.files import check_target

        check_target(self.output, self._replaces())

    def _replaces(self) -> bool:
        """Whether the folder may be replaced: an older model with --overwrite only, unfinished training always."""
        from logcde.artefact.files import MODEL_JSON, UNFINISHED

        return self.overwrite or ((self.output / UNFINISHED).exists() and not (self.output / MODEL_JSON).exists())

    def _checkpoints(self) -> "Checkpoints":
        from logcde.artefact.files import UNFINISHED
        from logcde.train import Checkpoints

        return Checkpoints(self.output / UNFINISHED, CHECKPOINT_SECONDS)

    def _work(self) -> ResumableWork:
        """The unfinished training of these options on these tables."""
        options = {name: value for name, value in options_of(self).items() if name not in NOT_IN_KEY}
        tables = {"the table": self.table.file, "the targets": self.target_options.targets}
        return ResumableWork(Path(self._checkpoints().folder), options | checksums(tables))

    def _kept(self) -> str:
        """What an interruption leaves behind, as a sentence; empty if nothing."""
        checkpoints = self._checkpoints()
        step = checkpoints.step()
        kept = f"Training up to step {step} is kept in {checkpoints.folder}: the same command resumes it."
        return kept if step else ""


def _unwritable(path: Path, error: OSError, kept: str = "") -> ArtefactError:
    return ArtefactError(
        f"{path} cannot be written: {error.strerror or error}. {kept or 'Nothing was left behind.'}",
        "Check the permissions and the free space of the folder above it, or choose another with -o.",
    )
