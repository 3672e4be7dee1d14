"""Mutations of every kind of file that is read back: its reader refuses each with its own error, or reads the same.

One function for each kind of file. All take a folder to work in, how many mutations to try, and a seed.
"""

import contextlib
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import logcde as lc
from logcde import estimators
from logcde._documents import write_document
from logcde.artefact.encoding import encode as encode_value
from logcde.artefact.files import save
from logcde.artefact.registry import Names
from logcde.cli.resume import FORMAT, ResumableWork
from logcde.cli.stream_loop import Progress, StateFile
from logcde.cli.stream_session import Session
from logcde.cli.stress import Cell, _cached
from logcde.errors import ArtefactError, CheckpointError, LogcdeError
from logcde.estimators import LogCDERegressor, WindowRidge
from logcde.report.record import RUN, read_run, write_run
from logcde.train.checkpoint import Checkpoints, decode, encode
from logcde.train.records import RunProgress
from tests.cli.streaming import a_model, history, written
from tests.report.runs import classifier_run

NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How many mutations were refused, and how many changed nothing that is read."""

    refused: int
    same: int


def attack(
    files: list[Path],
    read: Callable[[], Any],
    same: Callable[[Any], bool],
    error: type[LogcdeError],
    count: int,
    seed: int,
) -> Outcome:
    """Try single mutations of these files, one after another.

    Args:
        files: The files, which are restored after each.
        read: Reads them.
        same: Whether what was read is what was written.
        error: What the reader may raise.
        count: Number of mutations.
        seed: Seed of the mutations.
    """
    intact, refused = {file: file.read_bytes() for file in files}, 0
    assert same(read())
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        file = files[rng.integers(len(files))]
        file.write_bytes(mutated(intact[file], rng))
        try:
            assert same(read()), f"Mutation {number} of seed {seed} of {file.name} changes what is read."
        except error:
            refused += 1
        finally:
            file.write_bytes(intact[file])
    return Outcome(refused, count - refused)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one thing changed."""
    one, two = sorted(rng.integers(0, len(content), 2).tolist())
    three, length = int(rng.integers(two, len(content) + 1)), int(rng.integers(1, 9))
    numbers = list(NUMBER.finditer(content))
    number = numbers[rng.integers(len(numbers))] if numbers else None
    match rng.integers(8):
        case 0:
            return content[:one] + bytes([content[one] ^ (1 << int(rng.integers(8)))]) + content[one + 1 :]
        case 1:
            return content[:one]
        case 2:
            return content[:one] + rng.bytes(length) + content[one:]
        case 3:
            return content[:one] + content[one + length :]
        case 4:
            return content[:two] + content[one:two] + content[two:]
        case 5:
            return content[:one] + content[two:three] + content[one:two] + content[three:]
        case 6:
            return content[:one] + bytes(min(length, len(content) - one)) + content[one + length :]
    if number is None:
        return content + b"0"
    other = str(float(number[0]) + 1 if b"." in number[0] else int(number[0]) + 1).encode()
    return content[: number.start()] + other + content[number.end() :]


def models(folder: Path, count: int, seed: int) -> Outcome:
    """Saved models: `model.json` and `model.safetensors`."""
    a_model().save(folder / "model")
    files = [folder / "model" / name for name in ("model.json", "model.safetensors")]
    return attack(files, lambda: lc.load(folder / "model"), _equals(a_model()), ArtefactError, count, seed)


def exchanged_models(folder: Path) -> int:
    """Files of one saved model in the folder of another; returns how many were refused."""
    a_model().save(folder / "one")
    jax.tree.map(lambda leaf: 2 * leaf if isinstance(leaf, jax.Array) else leaf, a_model()).save(folder / "two")
    refused = 0
    for name in ("model.json", "model.safetensors"):
        before = (folder / "one" / name).read_bytes()
        (folder / "one" / name).write_bytes((folder / "two" / name).read_bytes())
        with contextlib.suppress(ArtefactError):
            lc.load(folder / "one")
            refused -= 1
        refused += 1
        (folder / "one" / name).write_bytes(before)
    return refused


def fitted_estimators(folder: Path, count: int, seed: int) -> Outcome:
    """Saved estimators."""
    values = np.random.default_rng(0).normal(size=(8, 5, 2))
    LogCDERegressor(learner=WindowRidge()).fit(values, values[:, -1, 0]).save(folder / "estimator")
    expected = estimators.load(folder / "estimator")

    def same(found: Any) -> bool:
        return repr(found.get_params()) == repr(expected.get_params()) and _equals(expected.model_)(found.model_)

    files = [folder / "estimator" / name for name in ("model.json", "model.safetensors")]
    return attack(files, lambda: estimators.load(folder / "estimator"), same, ArtefactError, count, seed)


def records(folder: Path, count: int, seed: int) -> Outcome:
    """Records of training, `run.json`, in the folder of a model."""
    run = classifier_run(["ill", "well"], ["ill", "well"], [[0.9, 0.1], [0.6, 0.4]])
    save(a_model(), folder / "model", extra_files={RUN: write_run(run)})
    files = [folder / "model" / RUN]
    return attack(files, lambda: read_run(folder / "model"), lambda found: found == run, ArtefactError, count, seed)


def checkpoints(folder: Path, count: int, seed: int) -> Outcome:
    """Checkpoints of training, with their journals."""
    kept, tree = Checkpoints(folder / "run"), _tree(0)
    progress = RunProgress(step=3, loss_sum=0.1).after_evaluation(0.5, {"mse": 0.2}, 0.2, maximise=False, latest=False)
    kept.save(encode(tree, progress, {"a": "b"}), 3)

    def read() -> Any:
        content = kept.newest()
        assert content is not None
        return decode(content, tree, {"a": "b"})

    return attack(
        kept.found(),
        read,
        lambda found: found[1] == progress and _equals(tree)(found[0]),
        CheckpointError,
        count,
        seed,
    )


def exchanged_checkpoints(folder: Path) -> bool:
    """Two checkpoints of one run, each with the name of the other; returns whether they were refused."""
    kept = Checkpoints(folder / "run")
    for step in (3, 6):
        kept.save(encode(_tree(step), RunProgress(step=step), {}), step)
    new, old = kept.found()
    contents = new.read_bytes(), old.read_bytes()
    new.write_bytes(contents[1])
    old.write_bytes(contents[0])
    try:
        kept.newest()
    except CheckpointError:
        return True
    return False


def stream_states(folder: Path, count: int, seed: int) -> Outcome:
    """States of `logcde stream`."""
    a_model().save(folder / "model")
    file, session = StateFile(folder / "state.json", folder / "model"), Session(lc.Predictor(a_model()))
    for line in written(history(9)).splitlines():
        session.take(line)
    expected = Progress(9, "0" * 64, 9, "", session.state())
    file.write(expected)

    def read() -> Any:
        progress, restored = file.read(), Session(lc.Predictor(a_model()))
        restored.restore(progress.series)
        return dataclasses.replace(progress, series=restored.state())

    return attack([file.path], read, lambda found: found == file.read() == expected, LogcdeError, count, seed)


def unfinished_work(folder: Path, count: int, seed: int) -> Outcome:
    """Keys of interrupted commands."""
    work = ResumableWork(folder / "unfinished", {"steps": 10, "rate": 0.5, "content of the table": "ab12"})
    work.begin()
    files = [work.folder / "belongs.json"]
    return attack(files, work.begin, lambda found: found is None, CheckpointError, count, seed)


def finished_scores(folder: Path, count: int, seed: int) -> Outcome:
    """Scores that an interrupted `logcde stress` keeps."""
    cell = Cell(0.5, 1, "accuracy", 20, {"accuracy": 0.75}, {"accuracy": 0.5})
    file = folder / "drop-0.5-seed-1.json"
    file.write_bytes(write_document(dataclasses.asdict(cell), FORMAT))

    def compute(share: float, seed: int) -> Cell:
        raise AssertionError("The scores are there.")

    return attack(
        [file],
        lambda: _cached(folder, compute, 0.5, 1),
        lambda found: found == cell,
        CheckpointError,
        count,
        seed,
    )


KINDS = {
    one.__name__: one
    for one in (models, fitted_estimators, records, checkpoints, stream_states, unfinished_work, finished_scores)
}
"""The functions by kind of file."""


def _tree(seed: int) -> Any:
    return {"a": np.arange(3.0) + seed, "b": np.ones((2, 2), np.float32)}


def _equals(expected: Any) -> Callable[[Any], bool]:
    """Whether something would be saved with the same structure and the same arrays, bit for bit."""

    def stored(value: Any) -> Any:
        tensors: dict[str, np.ndarray] = {}
        document = encode_value(value, "", tensors, Names())
        return document, {name: array.tobytes() for name, array in tensors.items()}

    return lambda found: stored(found) == stored(expected)
