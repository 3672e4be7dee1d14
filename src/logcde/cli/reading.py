"""Standard input as whole lines, as they come in, until it ends or somebody asks to stop."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType

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
