"""The loop of `logcde stream`: lines in, answers out, the state on disk from time to time and at the end."""

import os
import sys
import time

from logcde.cli.lines import Answer, encode_lines
from logcde.cli.reading import Stop, stopping, whole_lines
from logcde.cli.session import Session
from logcde.cli.statefile import Progress, StateFile
from logcde.errors import StreamError

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
