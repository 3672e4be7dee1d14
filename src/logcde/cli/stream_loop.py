"""The loop of `logcde stream`: lines in, predictions out, the state on disk from time to time and at the end.

Exactly once: a line that was read is processed completely, the state never runs ahead of the predictions that were
written, and predictions that could not be written are part of the state.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from logcde._files import whole_file
from logcde.artefact.files import MODEL_JSON
from logcde.cli.advice import ADVICE
from logcde.cli.stream_lines import PredictionLine, encode_lines
from logcde.cli.stream_session import Session
from logcde.errors import ArtefactError, LogcdeError, StreamError, Where

READ_SIZE = 1 << 16
LATENCY = 0.05
"""Seconds that a prediction waits at most for others, while there is more input to process."""
FORMAT = 1


@dataclasses.dataclass
class Progress:
    """How far a stream has come: `lines` of input, `predictions` written, and `unsent` ones that were not.

    `series` is what `Session.state` returns.
    """

    lines: int = 0
    predictions: int = 0
    unsent: str = ""
    series: list[Any] = dataclasses.field(default_factory=list)


class StateFile:
    """The state of a stream on disk: JSON, complete or absent, and for one model only."""

    def __init__(self, path: Path, model: Path) -> None:
        self.path = path
        # It covers the parameters too, whose checksum it holds.
        self._model = hashlib.sha256((model / MODEL_JSON).read_bytes()).hexdigest()

    def read(self) -> Progress:
        """The state that was written last; a new one if there is no file."""
        try:
            document = json.loads(self.path.read_bytes())
            if document["format"] != FORMAT:
                raise ArtefactError(
                    f"The state in {self.path} has format {document['format']!r}; this version of logcde reads "
                    f"{FORMAT}."
                )
            if document["model"] != self._model:
                raise ArtefactError(
                    f"The state in {self.path} belongs to another model.",
                    "Name the model that it was written with, or another state file.",
                )
            return Progress(**document["progress"])
        except FileNotFoundError:
            return Progress()
        except LogcdeError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtefactError(
                f"{self.path} cannot be read as the state of a stream ({error}).", "Name another file with --state."
            ) from error

    def write(self, progress: Progress) -> None:
        """Replace the file, once the new one is on the disk."""
        document = {"format": FORMAT, "model": self._model, "progress": vars(progress)}
        try:
            with whole_file(self.path) as temporary, temporary.open("w", encoding="utf-8") as out:
                # The state of a series that overflowed is not finite, which msgspec would write as null.
                out.write(json.dumps(document))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise ArtefactError(
                f"The state cannot be written to {self.path}: {error.strerror or error}. The older state is unchanged."
            ) from error


@dataclasses.dataclass(frozen=True)
class Reports:
    """What is said on standard error: refused lines, and a summary at the end."""

    json: bool = False
    quiet: bool = False

    def refused(self, line: int, error: LogcdeError) -> None:
        """Report a refused line."""
        message, where = error.phrased(ADVICE), error.where or Where()
        if self.json:
            place = {"series": where.series, "channel": where.channel, "stamp": where.stamp}
            self._write_json({"line": line, "error": message, **place})
        else:
            sys.stderr.write(f"logcde: line {line:,}: {message}\n")

    def summary(self, counts: dict[str, int], state: str) -> None:
        """Report how many lines were accepted and refused; nothing if quiet, unless some were refused."""
        if self.quiet and not counts["refused"]:
            return
        if self.json:
            self._write_json(counts)
        else:
            sys.stderr.write(
                f"logcde: {counts['accepted']:,} lines accepted, {counts['refused']:,} refused, "
                f"{counts['predictions']:,} predictions, {counts['series']:,} series.{state}\n"
            )

    def _write_json(self, content: dict[str, Any]) -> None:
        sys.stderr.write(msgspec.json.encode(content).decode() + "\n")


class StreamLoop:
    """A session between two file descriptors.

    The state is written after `every` lines or after `seconds`, and never before the predictions that it counts.
    """

    def __init__(
        self, session: Session, file: StateFile | None, reports: Reports, *, every: int | None, seconds: float
    ) -> None:
        self._session, self._file, self._reports = session, file, reports
        self._every, self._seconds = every, seconds
        self._progress = Progress() if file is None else file.read()
        session.restore(self._progress.series)
        self._unsent = self._progress.unsent.encode()
        self._predictions: list[PredictionLine] = []
        self._closed = False
        self._accepted = self._refused = self._sent = 0
        self._saved_lines, self._saved_at = self._progress.lines, time.monotonic()
        if file is not None:
            self._save()  # An unwritable file is found before anything is read.

    def run(self, source: int, target: int, *, replay: bool) -> int:
        """Process lines until the input ends, the output is closed or a signal arrives. Returns the exit code."""
        with signals_deferred() as stop:
            self._process(source, target, stop, skip=self._progress.lines if replay else 0)
            if self._file is not None:
                self._save()
        if self._refused or not self._closed:
            state = "" if self._file is None else f" State after line {self._progress.lines:,} in {self._file.path}."
            self._reports.summary(self._counts(), state)
        if stop.number is not None:
            return 128 + stop.number
        return 1 if self._refused else 0

    def _counts(self) -> dict[str, int]:
        return {
            "accepted": self._accepted,
            "refused": self._refused,
            "predictions": self._sent,
            "series": len(self._session),
        }

    def _process(self, source: int, target: int, stop: "Stop", skip: int) -> None:
        number = 0
        self._send(target)
        sent = time.monotonic()
        timeout = None if self._file is None else min(self._seconds, 1.0)
        for lines in whole_lines(source, stop, timeout):
            for text in lines:
                number += 1
                if number <= skip:
                    continue
                self._take(text, number)
                if self._every is not None and self._progress.lines - self._saved_lines >= self._every:
                    self._send(target)
                    self._save()
                if time.monotonic() - sent > LATENCY:
                    self._send(target)
                    sent = time.monotonic()
            self._send(target)
            sent = time.monotonic()
            if self._closed:
                return
            due = sent - self._saved_at > self._seconds
            if self._file is not None and self._progress.lines > self._saved_lines and due:
                self._save()

    def _take(self, text: bytes, number: int) -> None:
        self._progress.lines += 1
        if not text or text.isspace():
            return
        try:
            self._predictions += self._session.take(text)
            self._accepted += 1
        except StreamError as error:
            self._refused += 1
            self._reports.refused(number, error)

    def _send(self, target: int) -> None:
        """Write all predictions. If the reader has gone, keep those that were not written completely."""
        self._encode_predictions()
        written = 0
        try:
            while written < len(self._unsent) and not self._closed:
                written += os.write(target, self._unsent[written:])
        except BrokenPipeError:
            self._closed = True
        whole = self._unsent.rfind(b"\n", 0, written) + 1
        lines = self._unsent.count(b"\n", 0, whole)
        self._progress.predictions += lines
        self._sent += lines
        self._unsent = self._unsent[whole:]

    def _encode_predictions(self) -> None:
        if self._predictions:
            self._unsent += encode_lines(self._predictions)
            self._predictions.clear()

    def _save(self) -> None:
        assert self._file is not None
        self._encode_predictions()
        self._progress.unsent, self._progress.series = self._unsent.decode(), self._session.state()
        self._file.write(self._progress)
        self._progress.series = []
        self._saved_lines, self._saved_at = self._progress.lines, time.monotonic()


class Stop:
    """The signal that asked to stop, if any. The descriptor `wakes` becomes readable when it arrives."""

    def __init__(self, wakes: int) -> None:
        self.wakes = wakes
        self.number: int | None = None


@contextlib.contextmanager
def signals_deferred() -> Iterator[Stop]:
    """Record SIGTERM and SIGINT instead of acting on them, so that a line is processed completely."""
    wakes, write = os.pipe()
    os.set_blocking(write, False)
    stop = Stop(wakes)

    def record(number: int, frame: FrameType | None) -> None:
        stop.number = number

    before = {number: signal.signal(number, record) for number in (signal.SIGTERM, signal.SIGINT)}
    woken = signal.set_wakeup_fd(write)
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wakes)
        os.close(write)


def whole_lines(source: int, stop: Stop, timeout: float | None) -> Iterator[list[bytes]]:
    """The complete lines that are ready to read, or an empty list if there are none within the timeout.

    After a signal nothing more is read: all that was read has been yielded, except for an incomplete line.
    """
    rest = b""
    while stop.number is None:
        # A signal interrupts this wait, but never a read, whose bytes would be lost.
        ready = select.select([source, stop.wakes], [], [], timeout)[0]
        if stop.number is not None or stop.wakes in ready:
            return
        if not ready:
            yield []
            continue
        piece = os.read(source, READ_SIZE)
        if not piece:
            if rest:
                yield [rest]
            return
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield lines
