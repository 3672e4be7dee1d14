"""Ctrl-C between two steps: asked for once, it waits for the steps that are under way; asked for twice, it does not.

A program that takes being asked to end (SIGTERM) as Ctrl-C has both handled alike.

The loop around the compiled steps: it looks at the model, remembers the best, saves, and stops in good order.
"""

import contextlib
import dataclasses
import math
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from logcde.errors import NonFiniteError, TrainingInterrupted
from logcde.models import AbstractModel
from logcde.train.callbacks import AbstractCallback
from logcde.train.checkpoint import Checkpoints, decode, encode
from logcde.train.data import Examples, Plan
from logcde.train.losses import AbstractMeasure
from logcde.train.parallel import AXIS, agree, leads, place, share
from logcde.train.records import Journal, Pace, Summary
from logcde.train.steps import Call, Evaluator, Parameters, State, Task, run


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


@dataclasses.dataclass(frozen=True)
class Moment:
    """All there is between two calls, and all that a checkpoint holds. `best` is on the host."""

    state: State
    best: Parameters
    journal: Journal


@dataclasses.dataclass(frozen=True)
class Run:
    """A training run: everything that does not change while it lasts."""

    task: Task
    plan: Plan
    buckets: tuple[Examples, ...]
    key: PRNGKeyArray
    evaluator: Evaluator | None
    selector: AbstractMeasure
    latest: bool
    steps: int
    every: int
    patience: int | None
    checkpoints: Checkpoints | None
    fingerprint: dict[str, str]
    callbacks: tuple[AbstractCallback, ...]

    def __call__(self, state: State) -> tuple[Moment, Summary]:
        """The last moment of the run, from the start or from a checkpoint, and what happened on the way."""
        moment = self._begun(state)
        for callback in self.callbacks:
            callback.on_start(moment.journal.step, self.steps)
        try:
            with interruptible() as interrupt:
                moment = self._train(moment, interrupt)
        except BaseException:
            self._ended(None)
            raise
        summary = self._summary(moment)
        self._ended(summary)
        return moment, summary

    def model(self, parameters: Parameters) -> AbstractModel:
        """The whole model, on the default device, in arrays of its own."""
        return self.task.model(jax.tree.map(jnp.array, _on_host(parameters)))

    def _train(self, moment: Moment, interrupt: Interrupt) -> Moment:
        pace = Pace(self.plan.longest)
        saved = time.monotonic()
        while not self._over(moment.journal):
            step = moment.journal.step
            until = min(self.steps, (step // self.every + 1) * self.every)
            stop, count = agree(interrupt.asked, min(pace.count, until - step))
            if stop:
                self._save(moment)
                self._interrupt(moment)
            moment = self._advanced(moment, count, pace)
            if moment.journal.step == until:
                moment = self._looked(moment)
            if self.checkpoints is not None:
                due = time.monotonic() - saved >= self.checkpoints.seconds
                if due or self._over(moment.journal):
                    self._save(moment)
                    saved = time.monotonic()
        return moment

    def _ended(self, summary: Summary | None) -> None:
        for callback in self.callbacks:
            callback.on_end(summary)

    def _over(self, journal: Journal) -> bool:
        return journal.step >= self.steps or self._stopped(journal)

    def _stopped(self, journal: Journal) -> bool:
        return self.patience is not None and self.evaluator is not None and journal.waited >= self.patience

    def _advanced(self, moment: Moment, count: int, pace: Pace) -> Moment:
        """After so many more steps."""
        mesh, journal = self.task.mesh, moment.journal
        bucket, rows = self.plan.steps(journal.step, count)
        call = Call(
            self.buckets,
            place(mesh, bucket),
            place(mesh, rows, None, AXIS),
            place(mesh, np.asarray(count, np.int32)),
            self.key,
        )
        start = time.perf_counter()
        state, losses, done = run((self.task, call), moment.state)
        losses, good = np.asarray(losses), int(done)
        seconds = time.perf_counter() - start
        moment = Moment(state, moment.best, journal.after(losses[:good].tolist(), seconds))
        if good < count:
            self._save(moment)
            self._fail(moment, float(losses[good]))
        pace.saw(count, seconds)
        for callback in self.callbacks:
            callback.on_steps(moment.journal.step, float(losses[count - 1]))
        return moment

    def _looked(self, moment: Moment) -> Moment:
        """After an evaluation."""
        start = time.perf_counter()
        numbers = {} if self.evaluator is None else self.evaluator(moment.state.parameters)
        validation = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        journal = moment.journal.after([], time.perf_counter() - start)
        score, epoch = validation.get(self.selector.name), journal.step / self.plan.per_epoch
        journal = journal.looked(epoch, validation, score, maximise=self.selector.maximise, latest=self.latest)
        best = _on_host(moment.state.parameters) if journal.history[-1].best else moment.best
        for callback in self.callbacks:
            callback.on_evaluation(journal.history[-1], self.model(moment.state.parameters))
        return Moment(moment.state, best, journal)

    def _begun(self, state: State) -> Moment:
        """From the newest checkpoint, if there is one."""
        moment = Moment(state, _on_host(state.parameters), Journal())
        if self.checkpoints is not None:
            content = share((self.checkpoints.newest() if leads() else None) or b"")
            if content:
                (state, best), journal = decode(content, (state, moment.best), self.fingerprint)
                moment = Moment(state, best, journal)
        return dataclasses.replace(moment, state=place(self.task.mesh, moment.state))

    def _save(self, moment: Moment) -> None:
        if self.checkpoints is not None and leads():
            content = encode((moment.state, moment.best), moment.journal, self.fingerprint)
            self.checkpoints.save(content, moment.journal.step)

    def _summary(self, moment: Moment) -> Summary:
        journal = moment.journal
        selected = journal.best_score is not None
        return Summary(
            steps=journal.step,
            epochs=journal.step / self.plan.per_epoch,
            seconds=round(journal.seconds, 3),
            training_series=sum(self.plan.sizes),
            validation_series=0 if self.evaluator is None else sum(map(len, self.evaluator.buckets)),
            parameters=sum(leaf.size for leaf in jax.tree.leaves(moment.best)),
            loss=self.task.loss.name,
            metric=self.selector.name,
            best_step=journal.best_step if selected else journal.step,
            best_score=journal.best_score,
            stopped_early=self._stopped(journal),
        )

    def _interrupt(self, moment: Moment) -> NoReturn:
        step = moment.journal.step
        if self.checkpoints is None:
            advice = "Its last model is `model` of this exception; give checkpoints=... to be able to go on next time."
        else:
            advice = f"Its state is in {self.checkpoints.folder}: call fit with the same arguments to go on."
        message = f"Training was interrupted after step {step} of {self.steps}. {advice}"
        raise TrainingInterrupted(message, self.model(moment.state.parameters), step)

    def _fail(self, moment: Moment, loss: float) -> NoReturn:
        step = moment.journal.step + 1
        what = "A parameter became infinite or not a number" if math.isfinite(loss) else f"The loss became {loss}"
        kept = "" if self.checkpoints is None else f" and its state in {self.checkpoints.folder}"
        message = (
            f"{what} at step {step}, in epoch {(step - 1) // self.plan.per_epoch + 1}. The model before that step is "
            f"`model` of this error{kept}. A smaller learning rate or scaled inputs (lc.IncrementRMSScaling) may help."
        )
        raise NonFiniteError(message, model=self.model(moment.state.parameters), step=step)


def _on_host(tree: Parameters) -> Parameters:
    return jax.tree.map(np.array, tree)
