"""`logcde evaluate`: score a trained model on series with known targets."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from logcde.cli.notices import NOT_SCORED, Notices, tell
from logcde.cli.targets import TargetOptions
from logcde.cli.trained import TableOverrides
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.cli.scores import Scores
    from logcde.cli.targets import Examples
    from logcde.cli.trained import Trained


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Score a trained model on series with known targets, against the best constant prediction.

    Series whose predictions are not finite are named and left out of the scores; the exit code is then 1. Columns have
    the names of the training table, unless options say otherwise. The table is read into memory. Examples:

    logcde evaluate model/ new.parquet --targets outcomes.csv

    logcde evaluate model/ vitals.csv --held-out --json
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder that logcde train wrote."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Table of observations in the form of the training table."""
    target_options: Annotated[tyro.conf.OmitArgPrefixes[TargetOptions], tyro.conf.arg(name="target")]
    overrides: Annotated[tyro.conf.OmitArgPrefixes[TableOverrides], tyro.conf.arg(name="table")]
    held_out: bool = False
    """Score only the series that training held out."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print the scores and return the exit code."""
        from logcde.cli.trained import load_trained

        notices = Notices()
        try:
            trained = load_trained(self.model)
            examples = read_test_examples(trained, self.file, self.target_options, self.overrides, self.held_out)
            with notices.collecting():
                scores = score_examples(trained, examples)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped.\n")
            return 130
        notices.lost = scores.lost
        outside = 0 if notices.outside is None else notices.outside.series
        text = self._as_json(scores, trained, outside) if self.json else _as_text(self.file, scores, trained)
        sys.stdout.write(text + "\n")
        tell(notices.lines(len(examples.streams), NOT_SCORED))
        return 1 if scores.lost else 0

    def _as_json(self, scores: "Scores", trained: "Trained", outside: int) -> str:
        from logcde.report.record import compared

        content = {
            "model": str(self.model),
            "file": str(self.file),
            "series": scores.series,
            "predictions": len(scores.ids),
            "metrics": scores.metrics,
            "baseline": scores.baseline,
            "learners": {name: float(weight) for name, weight, _ in compared(trained.estimator.choices_)},
            "unknown_classes": {str(one): count for one, count in scores.unknown.items()},
            "outside_training": outside,
            "not_finite": scores.lost,
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False)


def read_test_examples(
    trained: "Trained", file: Path, target_options: TargetOptions, overrides: TableOverrides, held_out: bool
) -> "Examples":
    """Series with targets, read as in training; if `held_out`, only those that training held out."""
    import numpy as np

    from logcde.cli.resume import digest
    from logcde.cli.targets import read_examples

    run = trained.run
    if target_options.target is None and trained.task.name != "forecast" and run is not None:
        target_options = dataclasses.replace(target_options, target=run.outputs[0])
    outputs = trained.outputs if trained.task.name == "forecast" else ()
    table = overrides.table(file, trained.table)
    examples = read_examples(table, target_options, trained.task.name, trained.estimator.schema_, outputs)
    examples = examples.ending(trained.estimator.gap_)
    if not held_out:
        if run is not None and run.data.held_out and digest(file) == run.data.sha256:
            sys.stderr.write(
                "logcde: the model was trained on most series of this table. Pass --held-out to score only the series "
                "that training held out.\n"
            )
        return examples
    kept = set() if run is None or run.held_out is None else set(run.held_out.series)
    chosen = np.flatnonzero([one in kept for one in examples.streams.ids.tolist()])
    if not len(chosen):
        raise TableError(
            f"Training of {trained.folder} held out none of the series of {file}.",
            "Leave out --held-out, or give the training table.",
        )
    return examples[chosen]


def score_examples(trained: "Trained", examples: "Examples") -> "Scores":
    """Scores of a trained model, and of the best constant prediction on its training series if they are known."""
    from logcde.cli.scores import score

    task, classes = trained.task, trained.classes
    prior = None if trained.run is None else trained.run.prior
    if prior is None:
        prior = task.prior(task.truth(examples.targets, examples.streams)[1], classes)
    return score(task, trained.estimator, examples, prior, classes)


def _as_text(file: Path, scores: "Scores", trained: "Trained") -> str:
    from logcde.cli.scores import learner_table, score_table
    from logcde.report.record import compared

    times = f" at {len(scores.ids):,} times" if len(scores.ids) != scores.series else ""
    lines = score_table(scores, f"Scores on {scores.series:,} series of {file}{times}")
    return "\n".join(lines + learner_table(compared(trained.estimator.choices_)))
