"""`logcde warm`: compile ahead of the first use, and say what was compiled and where it is kept."""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import tyro

from logcde._cache import VARIABLE
from logcde.cli.output import progress_bar
from logcde.errors import LogcdeError, ModelError

if TYPE_CHECKING:
    from logcde.online import AbstractPredictor

Step: TypeAlias = tuple[str, Callable[[], object]]
"""What is compiled, and a small job that needs it."""

MOST_DEPTH, MOST_BLOCK = 6, 64
"""The largest sizes that are compiled ahead; larger ones are compiled when they are met."""
LONGEST = 1e9
"""Where the search for the end of an interval stops, in the units of a model's clock."""


@dataclasses.dataclass(frozen=True)
class Warm:
    """Compile what the first use of a process would wait for: kernels, and programs of a trained model.

    Without MODEL: the kernels that embed streams, train a Log-SLiCE and serve it. With MODEL: what `logcde stream` and
    `Predictor` need for it. Kernels are kept on disk by themselves; programs of XLA only if the environment variable
    LOGCDE_CACHE_DIR names a folder, for this command and for later ones. Examples:

    logcde warm

    LOGCDE_CACHE_DIR=cache logcde warm model/
    """

    model: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="MODEL")] = None
    """Folder of a trained model."""
    depth: tuple[int, ...] = (2,)
    """Without MODEL: depths of log-signatures."""
    block: tuple[int, ...] = (4,)
    """Without MODEL: block sizes of Log-SLiCEs; 4 is the default of `log_slice`."""

    def run(self) -> int:
        """Run a small job for each group of kernels, and return the exit code."""
        for name, sizes, most in (("--depth", self.depth, MOST_DEPTH), ("--block", self.block, MOST_BLOCK)):
            if not sizes or not 1 <= min(sizes) <= max(sizes) <= most:
                raise ModelError(f"{name} is {' '.join(map(str, sizes))}.", f"Give whole numbers from 1 to {most}.")
        try:
            sys.stdout.write(report_of(list(self._steps())))
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped. What was compiled is kept.\n")
            return 130
        return 0

    def _steps(self) -> Iterator[Step]:
        if self.model is not None:
            folder = self.model
            yield f"serving of {folder}", lambda: _serve_saved(folder)
            return
        for depth in self.depth:
            yield f"log-signatures of depth {depth}", lambda depth=depth: _embed(depth)
            for block in self.block:
                yield (
                    f"depth {depth}, blocks of {block}: training and serving",
                    lambda depth=depth, block=block: _train_and_serve(depth, block),
                )


def cache_folders() -> tuple[Path | None, Path | None]:
    """Where Numba keeps kernels and JAX keeps programs, None if nowhere."""
    from logcde._cache import programs_folder
    from logcde.kernels import _jit

    kernel: Any = _jit.scratch
    kernels, programs = kernel.stats.cache_path, programs_folder()
    return Path(kernels) if kernels else None, Path(programs) if programs else None


def report_of(steps: list[Step]) -> str:
    """Run all steps, and say what they added to the caches."""
    kernels, programs = cache_folders()
    if kernels is None:
        raise LogcdeError("Compiled kernels cannot be kept.", f"Set {VARIABLE} to a folder that can be written.")
    places = [("kernels", kernels, "*.nbc")] + ([("programs", programs, "*-cache")] if programs else [])
    before = [_count(folder, pattern) for _, folder, pattern in places]
    lines = []
    with progress_bar("compiling", len(steps), "steps") as report:
        for label, job in steps:
            start = time.perf_counter()
            job()
            lines.append(f"{label}: {time.perf_counter() - start:.1f} s")
            report(1)
    for (what, folder, pattern), known in zip(places, before, strict=True):
        now = _count(folder, pattern)
        lines.append(f"{now - known} {what} compiled, {now} in {folder}")
    if programs is None:
        lines.append(f"No programs of XLA are kept: set {VARIABLE} to a folder of yours to keep them.")
    return "\n".join(lines) + "\n"


def _count(folder: Path, pattern: str) -> int:
    return sum(1 for _ in folder.glob(pattern))


def _embed(depth: int) -> None:
    """Asynchronous streams, and synchronous ones, which other kernels embed."""
    import numpy as np

    import logcde as lc

    events = [(0, 0.5, {"a": 1.0}), (0, 1.5, {"b": 1.0}), (0, 2.5, {"a": 2.0, "b": 0.0})]
    for streams in (
        lc.Streams.from_events(events, horizon=3.0),
        lc.Streams.from_dense(np.ones((16, 8, 2)), channels=["a", "b"], horizon=8.0),
    ):
        lc.Embedding(depth=depth)(streams, lc.Partition.every(1.0))


def _train_and_serve(depth: int, block: int) -> None:
    import jax
    import jax.numpy as jnp

    import logcde as lc
    from logcde.flows import LinearDynamics

    schema, embedding, partition = lc.Schema(("a", "b")), lc.Embedding(depth=depth), lc.Partition.every(1.0)
    model = lc.log_slice(embedding.basis(schema), 2 * block, 2, block=block, key=jax.random.key(0))
    dynamics = model.dynamics
    assert isinstance(dynamics, LinearDynamics)

    def total(matrices: jax.Array) -> jax.Array:
        return jnp.sum(dynamics.flow.act(matrices, jnp.ones((block, 2))))

    jax.grad(total)(jnp.zeros((1, block, block, 2))).block_until_ready()
    _follow(lc.Predictor(model, schema=schema, embedding=embedding, partition=partition))


def _serve_saved(folder: Path) -> None:
    from logcde.cli.stream import predictor_and_output

    _follow(predictor_and_output(folder)[0])


def _follow(predictor: "AbstractPredictor") -> None:
    """Two events with the end of an interval between them, if intervals end by a rule, and a prediction."""
    from logcde.online import Predictor
    from logcde.streams.clock import Time

    paths = dict.fromkeys(predictor.schema.continuous, 0.0)
    values = dict.fromkeys(predictor.schema.channels, 0.0)
    start = end = LONGEST**-1

    def known(time: float) -> Time:
        if paths and isinstance(predictor, Predictor):
            predictor.knot(Time(time), paths)
        return Time(time)

    known(0.0)
    predictor.observe(known(start), values)
    if predictor.rule is not None:
        while end < LONGEST and next(iter(predictor.ends(known(end))), None) is None:
            end *= 2
    predictor.observe(known(2 * end), values)
    predictor.predict(known(3 * end))
