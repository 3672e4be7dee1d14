"""`logcde stream`: observations in, predictions out, line by line, for as long as it takes."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.errors import ModelError

if TYPE_CHECKING:
    from logcde.models import AbstractOnlineModel


@dataclasses.dataclass(frozen=True)
class Stream:
    """Predict while observations come in: JSON lines on standard input, predictions as JSON lines on standard output.

    Example: tail -f vitals.jsonl | logcde stream model/ --state state.json >> predictions.jsonl

    Lines of input are
    {"series": "p1", "time": 0.5, "values": {"pulse": 61.0}} for what was observed at one stamp,
    {"series": "p1", "predict": 1.0} to ask for a prediction as if the series ended there,
    {"series": "p1", "close": 1.0} to end an interval, if the model was trained on no rule that ends them,
    {"series": "p1", "forget": true} to forget a series; and answers are
    {"series": "p1", "time": 1.0, "prediction": [0.25]} where null stands for a number that is not finite; those of a
    model that logcde train wrote have names, as in {"class": "ill", "probabilities": {"ill": 0.9, "well": 0.1}} or
    {"days": 4.5}.

    Stamps are numbers, or datetimes in ISO 8601 if those of the model are. A channel that was not observed is left out,
    or null. The first line of a series has its "static": [1.0, 2.0] features if the model takes some. An event may have
    higher-order "terms": [0.5] if the model takes them. If each series counts time from an origin of its own, that is
    its first stamp, or the "origin" of its first line.

    A line that cannot be taken is reported on standard error and changes nothing; in the end the exit code is 1.

    With --state, the same command goes on where it stopped. The file says how many "lines" of input it knows, and how
    many "predictions" had been written by then. After a kill -9 between two writes of it, cut the output to that number
    of lines, and send the input again from there, or all of it with --replay: nothing is lost or repeated.
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """The folder of a saved model."""
    when: Literal["event", "interval", "request"] = "event"
    """What is answered beside requests: every observation, each end of an interval of the model once time has passed
    it, or nothing."""
    state: Path | None = None
    """A file, JSON, that keeps the state of all series when the command ends, by itself, Ctrl-C or SIGTERM."""
    state_every: int | None = None
    """Write the state after so many lines as well; with 1, what a kill can make happen twice is one line."""
    state_seconds: float = 10.0
    """Write the state after about so much time as well, if there is something new."""
    replay: bool = False
    """The input begins again with its first line: skip the lines that the state knows."""
    quiet: bool = False
    """Say nothing at the end, unless lines were refused."""

    def run(self) -> int:
        """Do it."""
        if self.state is None and (self.replay or self.state_every is not None):
            option = "--replay" if self.replay else "--state-every"
            raise ModelError(f"{option} needs a file of the state. Name it with --state.")
        if (self.state_every is not None and self.state_every < 1) or not self.state_seconds > 0:
            raise ModelError("--state-every and --state-seconds are positive numbers.")
        try:
            from logcde.cli.filtering import Filter
            from logcde.cli.session import Session, When
            from logcde.cli.statefile import StateFile

            model, present = _load(self.model)
            session = Session(model, When(self.when), present=present)
            file = None if self.state is None else StateFile(self.state, self.model)
            work = Filter(session, file, every=self.state_every, seconds=self.state_seconds)
            return work.run(sys.stdin.fileno(), sys.stdout.fileno(), replay=self.replay, quiet=self.quiet)
        except KeyboardInterrupt:
            # Only while loading: nothing was read yet.
            return 130


def _load(folder: Path) -> "tuple[AbstractOnlineModel, Callable[[np.ndarray], Any]]":
    """A model that can be served, and how its outputs are written. Double precision is allowed, for models with it."""
    import jax

    from logcde.artefact import load
    from logcde.cli.trained import kind, load_trained
    from logcde.models import AbstractOnlineModel

    jax.config.update("jax_enable_x64", True)
    if kind(folder).startswith("estimators."):
        trained = load_trained(folder)
        return trained.model, trained.present()
    model = load(folder)
    if not isinstance(model, AbstractOnlineModel):
        raise ModelError(f"{folder} holds a {type(model).__name__}, which cannot be asked while a series comes in.")
    if model.source is None:
        raise ModelError(
            f"The model in {folder} does not say how its log-signatures were made. Save the one that logcde.fit "
            "returned."
        )
    return model, np.ndarray.tolist
