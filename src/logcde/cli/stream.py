"""`logcde stream`: observations in, predictions out, line by line."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.cli.resume import held_output
from logcde.errors import ArtefactError, ModelError

if TYPE_CHECKING:
    from logcde.online import AbstractPredictor


@dataclasses.dataclass(frozen=True)
class Stream:
    """Predict online: observations as JSON lines on standard input, predictions as JSON lines on standard output.

    Example: tail -f vitals.jsonl | logcde stream model/ --state state.json >> predictions.jsonl

    Lines of input:
    {"series": "p1", "time": 0.5, "values": {"pulse": 61.0}} observes channels at one stamp,
    {"series": "p1", "predict": 1.0} requests a prediction as if the series ended there,
    {"series": "p1", "close": 1.0} ends an interval, if the model's partition is not a rule that ends them,
    {"series": "p1", "forget": true} forgets a series.

    Lines of output:
    {"series": "p1", "time": 1.0, "prediction": [0.25]} where null is a number that is not finite. Models that logcde
    train wrote name their outputs: {"class": "ill", "probabilities": {"ill": 0.9, "well": 0.1}} or {"days": 4.5}.

    Stamps are numbers, or datetimes in ISO 8601 if those of the model are. Leave out channels that were not observed,
    or set them to null. If the model takes static features, the first line of a series has "static": [1.0, 2.0]. If it
    takes higher-order terms, an event may have "terms": [0.5]. If it has continuous channels, a line with or without
    "values" has "continuous": {"load": 0.3}, all of them, which they reach along a straight line; the first is at the
    start of the series, and events and predictions need them at their stamp or later. If each series has its own
    origin of time, that is its first stamp, or the "origin" of its first line.

    A line that is refused is reported on standard error and changes nothing; the exit code is then 1. So it is if a
    prediction was not finite, which is reported once for each series. For models that logcde train wrote, a series far
    outside of what they were trained on is reported, once for each reason. If standard output cannot be written, the
    command ends with code 74; predictions that were not written are part of the state.

    With --state, the same command continues where it stopped. The state file counts "lines" read and "predictions"
    written. After a kill -9 between two writes of it, truncate the output to that number of predictions and send the
    input again from there, or all of it with --replay: nothing is lost or repeated. An input that does not begin with
    the lines that the state has seen is then refused, and so is a second process on the same state.
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved model."""
    when: Literal["event", "interval", "request"] = "event"
    """event: predict after every event; interval: at every interval end, once an event after it arrives.
    request: on request only. Requests are always answered."""
    state: Path | None = None
    """JSON file that keeps the state of all series when the command ends, also by Ctrl-C or SIGTERM."""
    state_every: int | None = None
    """Write the state also after this many lines; with 1, a kill can repeat at most one line."""
    state_seconds: float = 10.0
    """Write the state also after about this many seconds, if there were new lines."""
    longest_line: int = 1 << 20
    """Bytes that a line may have. Longer ones are refused without being kept in memory."""
    replay: bool = False
    """The input starts again at its first line: skip the lines that the state has seen."""
    json_errors: bool = False
    """Report refused lines on standard error as JSON lines, with the keys line, error, series, channel and stamp; other
    reports have the keys line, warning and series."""
    quiet: bool = False
    """Print no summary at the end, unless lines were refused."""

    def run(self) -> int:
        """Read until the input ends, and return the exit code."""
        if self.state is None and (self.replay or self.state_every is not None):
            option = "--replay" if self.replay else "--state-every"
            raise ModelError(f"{option} needs a state file.", "Name it with --state.")
        if (self.state_every is not None and self.state_every < 1) or not self.state_seconds > 0:
            raise ModelError("--state-every and --state-seconds must be positive.")
        if self.longest_line < 1:
            raise ModelError(f"--longest-line is {self.longest_line}.", "Give at least 1.")
        if sys.stdin is None:
            raise ModelError("Standard input is closed.", "Send observations to it, one JSON object in each line.")
        try:
            if self.state is None:
                return self._run()
            state = self.state
            with held_output(state, lambda error: _unwritable(state, error)):
                return self._run()
        except KeyboardInterrupt:
            # Only while loading, before anything was read: the loop handles signals itself.
            return 130

    def _run(self) -> int:
        from logcde.cli.stream_loop import Reports, StateFile, StreamLoop
        from logcde.cli.stream_session import Session, When

        predictor, statics, to_json = predictor_and_output(self.model)
        session = Session(predictor, When(self.when), statics=statics, to_json=to_json)
        file = None if self.state is None else StateFile(self.state, self.model)
        reports = Reports(json=self.json_errors, quiet=self.quiet)
        loop = StreamLoop(
            session,
            file,
            reports,
            every=self.state_every,
            seconds=self.state_seconds,
            longest=self.longest_line,
        )
        return loop.run(sys.stdin.fileno(), sys.stdout.fileno(), replay=self.replay)


def _unwritable(path: Path, error: OSError) -> ArtefactError:
    return ArtefactError(
        f"The state cannot be written to {path}: {error.strerror or error}.",
        "Check the permissions and the free space of its folder, or name another file with --state.",
    )


def predictor_and_output(
    folder: Path, reorder: float | None = None
) -> "tuple[AbstractPredictor, int, Callable[[np.ndarray], Any]]":
    """A predictor, its number of static features, and the function from its outputs to a prediction in JSON.

    Args:
        folder: The folder of a saved model.
        reorder: How late events may arrive, in units of time of the model.
    """
    import jax

    from logcde.artefact import load
    from logcde.cli.trained import load_trained, saved_type
    from logcde.models import AbstractOnlineModel
    from logcde.online import Predictor

    jax.config.update("jax_enable_x64", True)  # For models in double precision.
    if saved_type(folder).startswith("estimators."):
        trained = load_trained(folder)
        return trained.estimator.online(reorder), 0, trained.to_json()
    model = load(folder)
    if not isinstance(model, AbstractOnlineModel):
        raise ModelError(f"{folder} holds a {type(model).__name__}, which cannot predict online.")
    if model.spec is None:
        raise ModelError(
            f"The model in {folder} does not record how its log-signatures were made.",
            "Save the model that logcde.fit returned.",
        )
    return Predictor(model, static=np.zeros(model.statics), reorder=reorder), model.statics, np.ndarray.tolist
