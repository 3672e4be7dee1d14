"""The loop around the compiled steps: evaluates, keeps the best model, writes checkpoints, handles Ctrl-C.

A step that is not finite ends the call of the compiled program before it. The run then goes back to its last good
state, that of the last evaluation whose numbers were all finite, and goes on with updates of half the size.
"""

import abc
import contextlib
import dataclasses
import logging
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
from logcde.train.data import BatchOrder, Examples
from logcde.train.losses import AbstractMeasure
from logcde.train.parallel import AXIS, agree_across_processes, broadcast_from_main, is_main_process, put_on_mesh
from logcde.train.records import RunProgress, Summary
from logcde.train.steps import AbstractEvaluator, Parameters, StepBatches, StepState, TrainStep, run_steps

CALL_SECONDS = 0.5
GROWTH = 8
SLOWDOWN = 0.5
"""Factor of the learning rate in each recovery."""
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TrainingState:
    """All that changes between two calls of the compiled program, and all that a checkpoint holds.

    Attributes:
        current: Parameters and optimiser state, on the devices.
        best: Parameters of the best evaluation so far, on the host.
        good: Where a recovery begins, on the host: the state of the last evaluation without a non-finite number.
        progress: Steps, losses and evaluations so far.
    """

    current: StepState
    best: Parameters
    good: StepState
    progress: RunProgress


class AbstractBucketReader(abc.ABC):
    """Training data of which one bucket is on the devices at a time."""

    @abc.abstractmethod
    def at(self, number: int) -> tuple[Examples, ...]:
        """A bucket, as the only one of a tuple. All have one shape."""


@dataclasses.dataclass(frozen=True)
class TrainingLoop:
    """A training run: everything that does not change while it lasts.

    Attributes:
        train_step: One optimiser step.
        order: The series of each step.
        buckets: The training data, on the devices; or what reads them, one bucket at a time.
        key: Key of the run.
        evaluator: Computes measures on the validation series, None without any.
        selector: The measure that selects the model.
        latest: Whether the latest of equal scores is the best.
        steps: Steps of the whole run.
        every: Steps between two evaluations.
        patience: Evaluations without gain before the run stops early.
        recoveries: How often the run may go back to its last good state.
        checkpoints: Where to save, if anywhere.
        fingerprint: What a checkpoint must have been written with.
        callbacks: Called by this process.
    """

    train_step: TrainStep
    order: BatchOrder
    buckets: tuple[Examples, ...] | AbstractBucketReader
    key: PRNGKeyArray
    evaluator: AbstractEvaluator | None
    selector: AbstractMeasure
    latest: bool
    steps: int
    every: int
    patience: int | None
    recoveries: int
    checkpoints: Checkpoints | None
    fingerprint: dict[str, str]
    callbacks: tuple[AbstractCallback, ...]

    def __call__(self, initial: StepState) -> tuple[TrainingState, Summary]:
        """Train from the initial state, or from the newest checkpoint, to the end."""
        with contextlib.nullcontext() if self.checkpoints is None or not is_main_process() else self.checkpoints.held():
            return self._train_to_the_end(initial)

    def _train_to_the_end(self, initial: StepState) -> tuple[TrainingState, Summary]:
        state = self._resume(initial)
        for callback in self.callbacks:
            callback.on_start(state.progress.step, self.steps)
        try:
            with interruptible() as interrupt:
                state = self._train(state, interrupt)
        except BaseException:
            self._end_callbacks(None)
            raise
        summary = self._summary(state)
        self._end_callbacks(summary)
        return state, summary

    def model(self, parameters: Parameters) -> AbstractModel:
        """The model with these parameters, on the default device, in arrays of its own."""
        return self.train_step.model(jax.tree.map(jnp.array, _on_host(parameters)))

    def _train(self, state: TrainingState, interrupt: "Interrupt") -> TrainingState:
        call_length = CallLength(self.order.longest)
        saved = time.monotonic()
        while not self._is_over(state.progress):
            step = state.progress.step
            until = min(self.steps, (step // self.every + 1) * self.every)
            stop, count = agree_across_processes(interrupt.requested, min(call_length.steps, until - step))
            if stop:
                self._save(state)
                self._raise_interrupted(state)
            state = self._run_steps(state, count, call_length)
            if state.progress.step == until:
                state = self._evaluate(state)
            if self.checkpoints is not None:
                due = time.monotonic() - saved >= self.checkpoints.seconds
                if due or self._is_over(state.progress):
                    self._save(state)
                    saved = time.monotonic()
        return state

    def _end_callbacks(self, summary: Summary | None) -> None:
        for callback in self.callbacks:
            callback.on_end(summary)

    def _is_over(self, progress: RunProgress) -> bool:
        return progress.step >= self.steps or self._stops_early(progress)

    def _stops_early(self, progress: RunProgress) -> bool:
        if self.patience is None or self.evaluator is None:
            return False
        return progress.evaluations_without_gain >= self.patience

    def _run_steps(self, state: TrainingState, count: int, call_length: "CallLength") -> TrainingState:
        mesh, progress = self.train_step.mesh, state.progress
        bucket, rows = self.order.steps(progress.step, count)
        buckets = self.buckets
        if isinstance(buckets, AbstractBucketReader):
            # A call takes its steps from one bucket, which is then the only one.
            first, count = int(bucket[0]), int(np.argmax(np.append(bucket[:count] != bucket[0], True)))
            buckets, bucket, rows = buckets.at(first), np.zeros_like(bucket), rows.copy()
            rows[count:] = -1
        batches = StepBatches(
            buckets,
            put_on_mesh(mesh, bucket),
            put_on_mesh(mesh, rows, None, AXIS),
            put_on_mesh(mesh, np.asarray(count, np.int32)),
            self.key,
        )
        start = time.perf_counter()
        current, losses, done = run_steps((self._slowed(progress.recoveries), batches), state.current)
        losses, finite = np.asarray(losses), int(done)
        seconds = time.perf_counter() - start
        progress = progress.after_steps(losses[:finite].tolist(), seconds)
        state = dataclasses.replace(state, current=current, progress=progress)
        if finite < count:
            return self._recover(state, float(losses[finite]))
        call_length.record(count, seconds)
        for callback in self.callbacks:
            callback.on_steps(state.progress.step, float(losses[count - 1]))
        return state

    def _slowed(self, recoveries: int) -> TrainStep:
        """The step at half the rate for each recovery; before the first, the program that knows nothing of them."""
        if not recoveries:
            return self.train_step
        slowdown = put_on_mesh(self.train_step.mesh, np.asarray(SLOWDOWN**recoveries, np.float32))
        return dataclasses.replace(self.train_step, slowdown=slowdown)

    def _recover(self, state: TrainingState, loss: float) -> TrainingState:
        """Go back to the last good state; raise if that was done often enough, or if no rate would change anything."""
        progress = state.progress
        same = progress.step == int(state.good.step) and not math.isfinite(loss)
        if same or progress.recoveries >= self.recoveries:
            self._save(state)
            self._raise_non_finite(state, loss)
        after = progress.after_recovery(int(state.good.step))
        log.warning(
            "%s at step %d. Training goes on from step %d at %g of the learning rate (%d of at most %d times).",
            _event(loss), progress.step + 1, after.step, SLOWDOWN**after.recoveries, after.recoveries, self.recoveries,
        )  # fmt: skip
        current = put_on_mesh(self.train_step.mesh, state.good)
        recovered = dataclasses.replace(state, current=current, progress=after)
        self._save(recovered)
        return recovered

    def _evaluate(self, state: TrainingState) -> TrainingState:
        start = time.perf_counter()
        numbers = {} if self.evaluator is None else self.evaluator(state.current.parameters)
        validation = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        progress = state.progress.after_steps([], time.perf_counter() - start)
        score, epoch = validation.get(self.selector.name), progress.step / self.order.per_epoch
        maximise = self.selector.maximise
        progress = progress.after_evaluation(epoch, validation, score, maximise=maximise, latest=self.latest)
        evaluation = progress.history[-1]
        best = _on_host(state.current.parameters) if evaluation.best else state.best
        good = state.good if None in validation.values() else _on_host(state.current)
        for callback in self.callbacks:
            callback.on_evaluation(evaluation, self.model(state.current.parameters))
        return TrainingState(state.current, best, good, progress)

    def _resume(self, initial: StepState) -> TrainingState:
        """The state of the newest checkpoint, the initial state if there is none."""
        state = TrainingState(initial, _on_host(initial.parameters), _on_host(initial), RunProgress())
        if self.checkpoints is not None:
            content = broadcast_from_main((self.checkpoints.newest() if is_main_process() else None) or b"")
            if content:
                like = (state.current, state.best, state.good)
                (current, best, good), progress = decode(content, like, self.fingerprint)
                state = TrainingState(current, best, good, progress)
        return dataclasses.replace(state, current=put_on_mesh(self.train_step.mesh, state.current))

    def _save(self, state: TrainingState) -> None:
        if self.checkpoints is not None and is_main_process():
            content = encode((state.current, state.best, state.good), state.progress, self.fingerprint)
            self.checkpoints.save(content, state.progress.step)

    def _summary(self, state: TrainingState) -> Summary:
        progress = state.progress
        selected = progress.best_score is not None
        return Summary(
            steps=progress.step,
            epochs=progress.step / self.order.per_epoch,
            seconds=round(progress.seconds, 3),
            training_series=sum(self.order.sizes),
            validation_series=0 if self.evaluator is None else self.evaluator.series,
            parameters=sum(leaf.size for leaf in jax.tree.leaves(state.best)),
            loss=self.train_step.loss.name,
            metric=self.selector.name,
            best_step=progress.best_step if selected else progress.step,
            best_score=progress.best_score,
            stopped_early=self._stops_early(progress),
            recoveries=progress.recoveries,
        )

    def _raise_interrupted(self, state: TrainingState) -> NoReturn:
        step = state.progress.step
        if self.checkpoints is None:
            advice = "The model so far is `model` of this exception. Pass checkpoints=... to be able to resume."
        else:
            advice = f"Its state is in {self.checkpoints.folder}: call fit with the same arguments to resume."
        message = f"Training was interrupted after step {step} of {self.steps}. {advice}"
        raise TrainingInterrupted(message, self.model(state.current.parameters), step)

    def _raise_non_finite(self, state: TrainingState, loss: float) -> NoReturn:
        step, recoveries = state.progress.step + 1, state.progress.recoveries
        tried = f", also at {SLOWDOWN**recoveries:g} of the learning rate" if recoveries else ""
        saved = "" if self.checkpoints is None else f" and its state in {self.checkpoints.folder}"
        raise NonFiniteError(
            f"{_event(loss)} at step {step}, in epoch {(step - 1) // self.order.per_epoch + 1}{tried}. The model "
            f"before that step is `model` of this error{saved}.",
            "Lower the learning rate, or scale the inputs (lc.IncrementRMSScaling).",
            model=self.model(state.current.parameters),
            step=step,
        )


class CallLength:
    """Adapts the number of steps per call of the compiled program to take about half a second.

    >>> call_length = CallLength(longest=1000)
    >>> call_length.record(1, seconds=3.0)  # the first call compiles, so its time is ignored
    >>> call_length.record(1, seconds=0.01)
    >>> call_length.steps
    8
    """

    def __init__(self, longest: int) -> None:
        self.steps = 1
        self._longest = longest
        self._compiled = False

    def record(self, steps: int, seconds: float) -> None:
        """Take into account that a call of this many steps took this long."""
        if self._compiled:
            fitting = int(CALL_SECONDS * steps / max(seconds, 1e-9))
            self.steps = max(1, min(fitting, GROWTH * steps, self._longest))
        self._compiled = True


@dataclasses.dataclass
class Interrupt:
    """Whether Ctrl-C was pressed."""

    requested: bool = False


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within it, the first Ctrl-C stops after the current call, the second at once.

    A program that handles SIGTERM as Ctrl-C has both handled so. Outside the main thread, and where Python does not
    handle Ctrl-C, nothing changes.
    """
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupt
        return

    def request(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    handled = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is before]
    for number in handled:
        signal.signal(number, request)
    try:
        yield interrupt
    finally:
        for number in handled:
            signal.signal(number, before)


def _event(loss: float) -> str:
    return "A parameter became infinite or NaN" if math.isfinite(loss) else f"The loss became {loss}"


def _on_host(tree: Parameters) -> Parameters:
    return jax.tree.map(np.array, tree)
