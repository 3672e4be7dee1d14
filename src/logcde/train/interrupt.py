"""Ctrl-C between two steps: asked for once, it waits for the steps that are under way; asked for twice, it does not.

A program that takes being asked to end (SIGTERM) as Ctrl-C has both handled alike.
"""

import contextlib
import dataclasses
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@dataclasses.dataclass
class Interrupt:
    """Whether someone asked to stop."""

    asked: bool = False


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within it, Ctrl-C only asks. Where Python does not handle Ctrl-C itself, nothing changes."""
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupt
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True

    alike = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is before]
    for number in alike:
        signal.signal(number, ask)
    try:
        yield interrupt
    finally:
        for number in alike:
            signal.signal(number, before)
