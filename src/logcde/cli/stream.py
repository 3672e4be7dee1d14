"""Standard input as whole lines, as they come in, until it ends or somebody asks to stop.

The loop of `logcde stream`: lines in, answers out, the state on disk from time to time and at the end.

`logcde stream`: observations in, predictions out, line by line, for as long as it takes.
"""

import contextlib
import dataclasses
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.cli.stream_lines import Answer, Progress, StateFile, encode_lines
from logcde.cli.stream_session import Session
from logcde.errors import ModelError, StreamError

PIECE = 1 << 16


class Stop:
    """Whether somebody asked to stop, and by which signal. `wakes` can be read from once that is so."""

    def __init__(self, wakes: int) -> None:
        self.wakes = wakes
        self.number: int | None = None


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Within it, SIGTERM and SIGINT only ask, however often: a line that is being taken is taken completely."""
    wakes, write = os.pipe()
    os.set_blocking(write, False)
    stop = Stop(wakes)

    def ask(number: int, frame: FrameType | None) -> None:
        stop.number = number

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    woken = signal.set_wakeup_fd(write)
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wakes)
        os.close(write)


def whole_lines(source: int, stop: Stop, patience: float | None) -> Iterator[list[bytes]]:
    """As many lines as there are to read at a time, or none of them if nothing came for so many seconds.

    Once asked to stop, nothing more is read: what was read has been given, but for the beginning of a line.
    """
    rest = b""
    while stop.number is None:
        # A signal ends this wait, but never a read, whose bytes would be lost.
        ready = select.select([source, stop.wakes], [], [], patience)[0]
        if stop.number is not None or stop.wakes in ready:
            return
        if not ready:
            yield []
            continue
        piece = os.read(source, PIECE)
        if not piece:
            if rest:
                yield [rest]
            return
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield lines


LATENCY = 0.05
"""Seconds that an answer waits at most for others, while there is more input to take."""


class Filter:
    """A session between two file descriptors.

    The state is written after so many lines (`every`) or `seconds`, and never before the answers that it knows of.
    """

    def __init__(self, session: Session, file: StateFile | None, *, every: int | None, seconds: float) -> None:
        self._session, self._file = session, file
        self._every, self._seconds = every, seconds
        self._done = Progress() if file is None else file.read()
        session.restore(self._done.series)
        self._unsent = self._done.unsent.encode()
        self._answers: list[Answer] = []
        self._closed = False
        self._taken = self._refused = self._sent = 0
        self._saved, self._when = self._done.lines, time.monotonic()
        if file is not None:
            self._save()  # A file that cannot be written is found before anything is read.

    def run(self, source: int, target: int, *, replay: bool, quiet: bool) -> int:
        """Until the input ends, the output is closed or somebody asks to stop. Returns the exit code.

        In any case, lines that have been read are taken.
        """
        with stopping() as stop:
            self._follow(source, target, stop, self._done.lines if replay else 0)
            if self._file is not None:
                self._save()
        if self._refused or not (quiet or self._closed):
            sys.stderr.write(self._summary())
        if stop.number is not None:
            return 128 + stop.number
        return 1 if self._refused else 0

    def _follow(self, source: int, target: int, stop: Stop, known: int) -> None:
        number = 0
        self._send(target)
        sent = time.monotonic()
        patience = None if self._file is None else min(self._seconds, 1.0)
        for lines in whole_lines(source, stop, patience):
            for text in lines:
                number += 1
                if number <= known:
                    continue
                self._take(text, number)
                if self._every is not None and self._done.lines - self._saved >= self._every:
                    self._send(target)
                    self._save()
                if time.monotonic() - sent > LATENCY:
                    self._send(target)
                    sent = time.monotonic()
            self._send(target)
            sent = time.monotonic()
            if self._closed:
                return
            if self._file is not None and self._done.lines > self._saved and sent - self._when > self._seconds:
                self._save()

    def _take(self, text: bytes, number: int) -> None:
        self._done.lines += 1
        if not text or text.isspace():
            return
        try:
            self._answers += self._session.take(text)
            self._taken += 1
        except StreamError as error:
            self._refused += 1
            sys.stderr.write(f"logcde: line {number:,}: {error}\n")

    def _send(self, target: int) -> None:
        """Write all answers. If nobody reads them any more, keep those that were not written to their end."""
        self._gather()
        written = 0
        try:
            while written < len(self._unsent) and not self._closed:
                written += os.write(target, self._unsent[written:])
        except BrokenPipeError:
            self._closed = True
        whole = self._unsent.rfind(b"\n", 0, written) + 1
        lines = self._unsent.count(b"\n", 0, whole)
        self._done.predictions += lines
        self._sent += lines
        self._unsent = self._unsent[whole:]

    def _gather(self) -> None:
        if self._answers:
            self._unsent += encode_lines(self._answers)
            self._answers.clear()

    def _save(self) -> None:
        assert self._file is not None
        self._gather()
        self._done.unsent, self._done.series = self._unsent.decode(), self._session.state()
        self._file.write(self._done)
        self._done.series = []
        self._saved, self._when = self._done.lines, time.monotonic()

    def _summary(self) -> str:
        state = "" if self._file is None else f" State after line {self._done.lines:,} in {self._file.path}."
        return (
            f"logcde: {self._taken:,} lines taken, {self._sent:,} predictions, {len(self._session):,} series, "
            f"{self._refused:,} lines refused.{state}\n"
        )


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
            from logcde.cli.stream_lines import StateFile
            from logcde.cli.stream_session import Session, When

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
    if model.spec is None:
        raise ModelError(
            f"The model in {folder} does not say how its log-signatures were made. Save the one that logcde.fit "
            "returned."
        )
    return model, np.ndarray.tolist
