"""The loop of `logcde stream`: lines in, predictions out, the state on disk from time to time and at the end.

Exactly once: a line that was read is processed completely, the state never runs ahead of the predictions that were
written, and predictions that could not be written are part of the state.
"""

import contextlib
import dataclasses
import hashlib
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import msgspec

from logcde._documents import FormatError, read_document, write_document
from logcde._files import read_regular, write_whole
from logcde.artefact.files import model_digest
from logcde.cli.advice import ADVICE
from logcde.cli.notices import warnings_to
from logcde.cli.output import UNWRITTEN, unwritten
from logcde.cli.stream_session import Session
from logcde.errors import ArtefactError, LogcdeError, LogcdeWarning, NonFiniteWarning, StreamError, Where
from logcde.online.lines import Id, PredictionLine, encode_lines

READ_SIZE = 1 << 16
LONGEST_LINE = 1 << 20
"""Bytes that a line may have."""
LATENCY = 0.05
"""Seconds that a prediction waits at most for others, while there is more input to process."""
FORMAT = 2
"""1: without a checksum, and without that of the input."""


@dataclasses.dataclass
class Progress:
    """How far a stream has come: `lines` of input, `predictions` written, and `unsent` ones that were not.

    `input` is the checksum of these lines, by which a replayed input is recognised. `series` is what `Session.state`
    returns.
    """

    lines: int = 0
    input: str = ""
    predictions: int = 0
    unsent: str = ""
    series: list[Any] = dataclasses.field(default_factory=list)


class StateFile:
    """The state of a stream on disk: sealed JSON, complete or absent, and for one model only."""

    def __init__(self, path: Path, model: Path) -> None:
        self.path = path
        self._model = model_digest(model)

    def read(self) -> Progress:
        """The state that was written last; a new one if there is no file."""
        try:
            document = read_document(read_regular(self.path), FORMAT)
            if document["model"] == self._model:
                return msgspec.convert(document["progress"], Progress)
        except FileNotFoundError:
            return Progress()
        except FormatError as error:
            raise ArtefactError(
                f"The state in {self.path} has format {error.document['format']!r}; this version of logcde reads "
                f"{FORMAT}.",
                "Name another file with --state, and replay the input from its first line.",
            ) from error
        except (OSError, ValueError, KeyError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ArtefactError(
                f"{self.path} cannot be read as the state of a stream: {reason}.", "Name another file with --state."
            ) from error
        raise ArtefactError(
            f"The state in {self.path} belongs to another model.",
            "Name the model that it was written with, or another state file.",
        )

    def write(self, progress: Progress) -> None:
        """Replace the file, once the new one is on the disk."""
        try:
            # The state of a series that overflowed is not finite, which JSON of the standard library can hold.
            write_whole(self.path, write_document({"model": self._model, "progress": vars(progress)}, FORMAT))
        except OSError as error:
            raise ArtefactError(
                f"The state cannot be written to {self.path}: {error.strerror or error}. The older state is unchanged."
            ) from error


@dataclasses.dataclass(frozen=True)
class Reports:
    """What is said on standard error: refused lines, warnings about series, and a summary at the end."""

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

    def warned(self, line: int, series: Id | None, warning: LogcdeWarning) -> None:
        """Report a series that is far outside of what the model was trained on, or whose prediction is not finite."""
        if self.json:
            self._write_json({"line": line, "warning": str(warning), "series": series})
        else:
            sys.stderr.write(f"logcde: line {line:,}, series {series!r}: {warning}\n")

    def summary(self, counts: dict[str, int], state: str) -> None:
        """Report how many lines were accepted and refused; nothing if quiet, unless some were refused."""
        if self.quiet and not counts["refused"]:
            return
        if self.json:
            self._write_json(counts)
        else:
            sys.stderr.write(
                f"logcde: {counts['accepted']:,} line{'s' * (counts['accepted'] != 1)} accepted, "
                f"{counts['refused']:,} refused, "
                f"{counts['predictions']:,} predictions, {counts['series']:,} series.{state}\n"
            )

    def _write_json(self, content: dict[str, Any]) -> None:
        sys.stderr.write(msgspec.json.encode(content).decode() + "\n")


class StreamLoop:
    """A session between two file descriptors.

    The state is written after `every` lines or after `seconds`, and never before the predictions that it counts.
    """

    def __init__(
        self,
        session: Session,
        file: StateFile | None,
        reports: Reports,
        *,
        every: int | None,
        seconds: float,
        longest: int = LONGEST_LINE,
    ) -> None:
        self._session, self._file, self._reports = session, file, reports
        self._every, self._seconds, self._longest = every, seconds, longest
        self._progress = Progress() if file is None else file.read()
        session.restore(self._progress.series)
        self._unsent = self._progress.unsent.encode()
        self._predictions: list[PredictionLine] = []
        self._fault: OSError | None = None
        self._line = self._accepted = self._refused = self._sent = self._lost = 0
        self._saved_lines, self._saved_at = self._progress.lines, time.monotonic()
        if file is not None:
            self._save()  # An unwritable file is found before anything is read.

    def run(self, source: int, target: int, *, replay: bool) -> int:
        """Process lines until the input ends, the output fails or a signal arrives. Returns the exit code."""
        with signals_deferred() as stop, warnings_to(self._warned):
            self._process(source, target, stop, _Replay(self._progress, replay))
            if self._file is not None:
                self._save()
        if self._fault is not None:
            sys.stderr.write(f"{unwritten(self._fault)} {self._unsent_ones()}\n")
        if self._refused or self._fault is None:
            state = "" if self._file is None else f" State after line {self._progress.lines:,} in {self._file.path}."
            self._reports.summary(self._counts(), state)
        if stop.number is not None:
            return 128 + stop.number
        if self._refused or self._lost:
            return 1
        return 0 if self._fault is None else UNWRITTEN

    def _warned(self, warning: LogcdeWarning) -> None:
        self._lost += isinstance(warning, NonFiniteWarning)
        self._reports.warned(self._line, self._session.current, warning)

    def _unsent_ones(self) -> str:
        """What becomes of predictions that were not written."""
        count = self._unsent.count(b"\n")
        ones = f"{count:,} prediction{'s' * (count != 1)}"
        return f"{ones} got lost." if self._file is None else f"{ones} will come first when the command continues."

    def _counts(self) -> dict[str, int]:
        return {
            "accepted": self._accepted,
            "refused": self._refused,
            "predictions": self._sent,
            "series": len(self._session),
        }

    def _process(self, source: int, target: int, stop: "Stop", replayed: "_Replay") -> None:
        number = 0
        self._send(target)
        sent = time.monotonic()
        timeout = None if self._file is None else min(self._seconds, 1.0)
        for lines in whole_lines(source, stop, timeout, self._longest):
            for text in lines:
                number += 1
                if not replayed.is_over:
                    replayed.skip(text)
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
            if self._fault is not None:
                return
            due = sent - self._saved_at > self._seconds
            if self._file is not None and self._progress.lines > self._saved_lines and due:
                self._save()
        if stop.number is None and not replayed.is_over:
            raise replayed.other_input(f"has {number:,} lines and the state has seen {self._progress.lines:,}")

    def _take(self, text: "bytes | LongLine", number: int) -> None:
        self._progress.lines += 1
        self._line = number
        if self._file is not None:
            self._progress.input = _with_line(self._progress.input, text)
        if isinstance(text, bytes) and (not text or text.isspace()):
            return
        try:
            if isinstance(text, LongLine):
                raise text.refused(self._longest)
            self._predictions += self._session.take(text)
            self._accepted += 1
        except StreamError as error:
            self._refused += 1
            self._reports.refused(number, error)

    def _send(self, target: int) -> None:
        """Write all predictions. If they cannot be written, keep those that were not written completely."""
        self._encode_predictions()
        written = 0
        while written < len(self._unsent) and self._fault is None:
            try:
                written += os.write(target, self._unsent[written:])
            except BlockingIOError:  # a pipe that does not wait by itself
                select.select([], [target], [])
            except OSError as error:
                self._fault = error
        whole = self._unsent.rfind(b"\n", 0, written) + 1
        if whole < written:
            _take_back(target, written - whole)
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


def _take_back(target: int, count: int) -> None:
    """Remove a part of a line, the last bytes that were written, if that is possible: from a file."""
    status = os.fstat(target)
    if stat.S_ISREG(status.st_mode) and os.lseek(target, 0, os.SEEK_CUR) == status.st_size:
        os.ftruncate(target, os.lseek(target, -count, os.SEEK_CUR))


class LongLine(NamedTuple):
    """A line that is longer than allowed, of which only its length in bytes and its checksum are kept."""

    size: int
    digest: bytes

    def refused(self, longest: int) -> StreamError:
        """The error about it."""
        return StreamError(
            f"The line has {self.size:,} bytes, more than {longest:,}.",
            "Check that lines end with a newline, or allow longer ones with --longest-line.",
        )


def _with_line(checksum: str, text: bytes | LongLine) -> str:
    """The checksum of an input with one more line."""
    digest = text.digest if isinstance(text, LongLine) else hashlib.sha256(text).digest()
    return hashlib.sha256(checksum.encode() + digest).hexdigest()


class _Replay:
    """Skips the lines that a state has seen, if the input starts again at its first line."""

    def __init__(self, progress: Progress, replay: bool) -> None:
        self._left, self._expected = progress.lines if replay else 0, progress.input
        self._lines, self._input = progress.lines, ""

    @property
    def is_over(self) -> bool:
        """Whether the next line is new."""
        return self._left == 0

    def skip(self, text: bytes | LongLine) -> None:
        """Skip a line; the last one is refused if the lines are not those that the state has seen."""
        self._left -= 1
        self._input = _with_line(self._input, text)
        if self.is_over and self._input != self._expected:
            raise self.other_input(f"begins with {self._lines:,} lines that are not those that the state has seen")

    @staticmethod
    def other_input(found: str) -> StreamError:
        """The error about an input that the state does not belong to."""
        return StreamError(
            f"--replay needs the input that the state belongs to, but this one {found}. Nothing was changed.",
            "Send that input from its first line, leave out --replay to continue with new lines, or name another file "
            "with --state.",
        )


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


def whole_lines(
    source: int, stop: Stop, timeout: float | None, longest: int = LONGEST_LINE
) -> Iterator[list[bytes | LongLine]]:
    """The complete lines that are ready to read, or an empty list if there are none within the timeout.

    After a signal nothing more is read: all that was read has been yielded, except for an incomplete line.
    """
    line = _UnfinishedLine(longest)
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
            if line.size:
                yield [line.take()]
            return
        *ends, rest = piece.split(b"\n")
        lines = []
        for end in ends:
            line.add(end)
            lines.append(line.take())
        line.add(rest)
        if lines:
            yield lines


class _UnfinishedLine:
    """The beginning of a line; if it becomes too long, only its length and its checksum."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._begin()

    def _begin(self) -> None:
        self.size, self._pieces, self._digest = 0, [], None

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._pieces.append(piece)
        if self.size > self._longest:
            self._digest = hashlib.sha256() if self._digest is None else self._digest
            for one in self._pieces:
                self._digest.update(one)
            self._pieces.clear()

    def take(self) -> bytes | LongLine:
        """The line, which ends here; the next one begins."""
        text = b"".join(self._pieces) if self._digest is None else LongLine(self.size, self._digest.digest())
        self._begin()
        return text
