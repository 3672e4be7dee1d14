"""`logcde evaluate`: how good a trained model is on series whose answers are known."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from logcde.cli.targets import Answers
from logcde.cli.trained import Columns

if TYPE_CHECKING:
    from logcde.cli.targets import Examples
    from logcde.cli.tasks import Scored
    from logcde.cli.trained import Trained


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Say how good a trained model is on series whose answers are known, beside always giving the same answer.

    Columns are named as in training, unless it is said otherwise. The table is read into memory. Examples:

    logcde evaluate model/ new.parquet --targets outcomes.csv

    logcde evaluate model/ vitals.csv --held-out --json
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """The folder that logcde train wrote."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """A table of observations like that of training."""
    answers: tyro.conf.OmitArgPrefixes[Answers]
    columns: tyro.conf.OmitArgPrefixes[Columns]
    held_out: bool = False
    """Look only at those series that training has held out."""
    json: bool = False
    """Print JSON, for machines."""

    def run(self) -> int:
        """Do it."""
        from logcde.cli.trained import as_trained, load_trained

        try:
            with as_trained():
                trained = load_trained(self.model)
                examples = known_examples(trained, self.file, self.answers, self.columns, self.held_out)
                scored = scored_by(trained, examples)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped.\n")
            return 130
        sys.stdout.write((self._as_json(scored) if self.json else _as_text(self.file, scored)) + "\n")
        return 0

    def _as_json(self, scored: "Scored") -> str:
        content = {
            "model": str(self.model),
            "file": str(self.file),
            "series": scored.series,
            "predictions": len(scored.ids),
            "metrics": scored.metrics,
            "baseline": scored.baseline,
            "unknown_classes": {str(one): count for one, count in scored.unknown.items()},
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False)


def known_examples(trained: "Trained", file: Path, answers: Answers, columns: Columns, held_out: bool) -> "Examples":
    """Series with answers, read and ended as in training; those only that were held out if that is wanted."""
    import numpy as np

    from logcde.cli.resume import digest
    from logcde.cli.targets import read_examples
    from logcde.errors import TableError

    run = trained.run
    if answers.target is None and trained.task.name != "forecast" and run is not None:
        answers = dataclasses.replace(answers, target=run.outputs[0])
    outputs = trained.outputs if trained.task.name == "forecast" else ()
    table = columns.table(file, trained.table)
    examples = read_examples(table, answers, trained.task.name, trained.estimator.schema_, outputs)
    examples = examples.ended(trained.estimator.gap_)
    if not held_out:
        if run is not None and run.data.held_out and digest(file) == run.data.sha256:
            sys.stderr.write(
                "logcde: this is the table that the model was trained on, so it knows most of the answers. Pass "
                "--held-out to look only at series that it has never seen.\n"
            )
        return examples
    kept = set() if run is None or run.held_out is None else set(run.held_out.series)
    chosen = np.flatnonzero([one in kept for one in examples.streams.ids.tolist()])
    if not len(chosen):
        raise TableError(
            f"None of the series of {file} was held out when {trained.folder} was trained. Leave out --held-out, or "
            "give the table of the training."
        )
    return examples[chosen]


def scored_by(trained: "Trained", examples: "Examples") -> "Scored":
    """The scores of a model, beside those of the answer that is the best without looking; of training, if known."""
    from logcde.cli.tasks import score

    task, classes = trained.task, trained.classes
    prior = None if trained.run is None else trained.run.prior
    if prior is None:
        prior = task.prior(task.truth(examples.answers, examples.streams)[1], classes)
    return score(task, trained.estimator, examples, prior, classes)


def _as_text(file: Path, scored: "Scored") -> str:
    from logcde.cli.tasks import table_of

    rows = f" at {len(scored.ids):,} times" if len(scored.ids) != scored.series else ""
    return "\n".join(table_of(scored, f"On {scored.series:,} series of {file}{rows}"))
