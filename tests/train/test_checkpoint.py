"""Checkpoints: resuming killed, interrupted and failing runs to the same bits, and damaged files."""

import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.errors import CheckpointError, InUseError, NonFiniteError, TrainingInterrupted
from logcde.train.checkpoint import decode, encode
from logcde.train.records import RunProgress
from tests.train import toys, worker
from tests.train.worker_processes import finish, start

KEY = jax.random.key(5)
OPTIONS = {"size": 8, "optimiser": toys.OPTIMISER, "every": lc.Steps(5), "key": KEY, "validation": toys.HELD_OUT}


def train(folder=None, steps=15, **options):
    kept = None if folder is None else lc.Checkpoints(folder, seconds=0.0)
    given = {**OPTIONS, "duration": lc.Steps(steps), "checkpoints": kept, **options}
    targets = given.pop("targets", toys.ends())
    return lc.fit(toys.model(), toys.logsigs(), targets, **toys.options(**given))


@pytest.fixture
def ctrl_c():
    """Sends SIGINT to this process, with Python's own handler in place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


class Watcher(lc.train.AbstractCallback):
    """Calls `action` once a step is reached, and records what it was called with."""

    def __init__(self, step=None, action=None):
        self.step, self.action = step, action

    def on_start(self, step, steps):
        self.resumed = step

    def on_steps(self, step, loss):
        if self.step is not None and step >= self.step:
            self.step, self.reached = None, step
            self.action()

    def on_evaluation(self, evaluation, model): ...

    def on_end(self, summary):
        self.summary = summary


def losses(result):
    return [(one.step, one.loss, one.validation, one.best) for one in result.history]


def test_killed_run_resumes_to_the_same_bits(tmp_path):
    """Killed twice: between two checkpoints, and while one is being written."""
    folder = tmp_path / "run"
    for step, saves in ((9, 99), (99, 3)):
        code, errors = finish(start("killed", folder, step, saves))
        assert code == -signal.SIGKILL, errors
    assert len(list(folder.glob(".logcde-*"))) == 1
    assert (folder / ".lock").exists()
    newest = max(folder.glob("*.safetensors"))
    resumed = worker.train(lc.Checkpoints(folder, seconds=0.0), [watch := Watcher()])
    assert 0 < watch.resumed < 20
    assert f"{watch.resumed:012d}" in newest.name
    whole = worker.train()
    assert toys.same((whole.model, whole.last), (resumed.model, resumed.last))
    assert losses(whole) == losses(resumed)
    assert {path.suffix for path in folder.iterdir()} == {".safetensors"}


def test_interrupted_run_resumes_to_the_same_bits(tmp_path, ctrl_c):
    stopped = Watcher(7, ctrl_c)
    with pytest.raises(TrainingInterrupted, match="interrupted after step .* call fit with the same arguments") as info:
        train(tmp_path, callbacks=[stopped])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    step = info.value.step
    assert step == stopped.reached < 15
    assert stopped.summary is None
    assert toys.same(info.value.model, train(steps=step).last)
    resumed, whole = train(tmp_path, callbacks=[watch := Watcher()]), train()
    assert watch.resumed == step
    assert watch.summary == resumed.summary
    assert toys.same((whole.model, whole.last), (resumed.model, resumed.last))
    assert losses(whole) == losses(resumed)


def test_interruption_without_checkpoints_advises_to_pass_some(ctrl_c):
    with pytest.raises(TrainingInterrupted, match="Pass checkpoints="):
        train(callbacks=[Watcher(8, ctrl_c)])


def test_finished_run_is_not_repeated_and_can_be_extended(tmp_path):
    first, again = train(tmp_path), train(tmp_path)
    assert toys.same(first.model, again.model)
    assert first.history == again.history
    longer, whole = train(tmp_path, steps=20), train(steps=20)
    assert toys.same(longer.last, whole.last)
    assert losses(longer) == losses(whole)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("what", ["loss", "parameters"])
def test_non_finite_step_keeps_the_model_before_it(tmp_path, what):
    if what == "loss":
        targets = toys.ends()
        targets[3] = 1e200
        options, said = {"targets": targets}, "The loss became inf at step"
    else:
        exploding = optax.sgd(lambda count: jnp.where(count >= 3, jnp.inf, 0.01))
        options, said = {"optimiser": exploding}, "A parameter became infinite or NaN at step 4"
    options |= {"validation": None, "recoveries": 0}
    with pytest.raises(NonFiniteError, match=said) as info:
        train(tmp_path, **options)
    good = info.value.step - 1
    assert all(np.isfinite(leaf).all() for leaf in toys.arrays(info.value.model))
    expected = train(steps=good, **options).last if good else toys.model()
    assert toys.same(info.value.model, expected)
    assert f"{good:012d}" in max(tmp_path.iterdir()).name
    with pytest.raises(NonFiniteError, match=said):
        train(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 4}, "batching.size was 8, is 4"),
        ({"latest": True}, "selection.latest was False, is True"),
        ({"optimiser": optax.adam(2e-2)}, "optimiser was"),
        ({"loss": lc.losses.Binary(2.0)}, "loss was"),
        ({"targets": toys.ends() + 1}, "data was"),
        ({"key": jax.random.key(6)}, "key was"),
    ],
)
def test_checkpoint_of_another_run_is_refused_by_name(tmp_path, options, said):
    train(tmp_path)
    with pytest.raises(CheckpointError, match=f"belongs to another run: .*{said}"):
        train(tmp_path, **options)


def test_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, caplog):
    whole = train(tmp_path)
    before, newest = sorted(tmp_path.iterdir())
    content = bytearray(newest.read_bytes())
    content[-3] ^= 1
    newest.write_bytes(content)
    resumed = train(tmp_path, callbacks=[watch := Watcher()])
    assert f"{watch.resumed:012d}" in before.name
    assert "its checksum differs" in caplog.text
    assert newest.name in caplog.text
    assert toys.same(whole.model, resumed.model)
    assert newest.with_suffix(".damaged").read_bytes() == content
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="No checkpoint can be read. .*damaged.* Remove the folder"):
        train(tmp_path)


def test_checkpoint_with_another_step_than_its_name_is_not_used(tmp_path, caplog):
    whole = train(tmp_path)
    before, newest = sorted(tmp_path.iterdir())
    newest.replace(tmp_path / "step-000000000099.safetensors")
    resumed = train(tmp_path, callbacks=[watch := Watcher()])
    assert f"{watch.resumed:012d}" in before.name
    assert f"It is of step {int(newest.stem[5:])}, but its name says 99." in caplog.text
    assert toys.same(whole.model, resumed.model)


def test_edited_journal_is_refused(tmp_path):
    tree = {"a": jnp.arange(3.0)}
    content = encode(tree, RunProgress(step=30), {})
    edited = content.replace(rb"\"step\":30", rb"\"step\":10")
    assert edited != content
    with pytest.raises(CheckpointError, match="its checksum differs"):
        decode(edited, tree, {})


def test_two_runs_do_not_share_a_folder(tmp_path):
    def second():
        with pytest.raises(InUseError, match=f"is in use by process {os.getpid()} on "):
            train(tmp_path)

    train(tmp_path, callbacks=[watch := Watcher(5, second)])
    assert watch.reached
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}


def test_files_without_end_are_no_checkpoints(tmp_path):
    os.mkfifo(tmp_path / "step-000000000010.safetensors")
    (tmp_path / "step-000000000020.safetensors").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="No checkpoint can be read. .*not a regular file.*not a regular file"):
        lc.Checkpoints(tmp_path).newest()


@pytest.mark.parametrize("size", [0, 5, 8, 40, -1])
def test_truncated_checkpoint_is_refused(tmp_path, size):
    tree = {"a": jnp.arange(3.0), "key": jax.random.key(1)}
    content = encode(tree, RunProgress(), {})
    with pytest.raises(CheckpointError, match="damaged"):
        decode(content[:size], tree, {})


def test_encode_and_decode_keep_every_dtype():
    tree = (
        jnp.arange(4, dtype=jnp.bfloat16),
        jnp.array([1 + 2j]),
        jnp.array(True),
        jnp.zeros((0, 3), jnp.float16),
        {"key": jax.random.key(4), "count": jnp.asarray(7, jnp.int32)},
    )
    progress = RunProgress(step=3, loss_sum=0.1).after_evaluation(
        0.5, {"mse": None}, None, maximise=False, latest=False
    )
    back, read = decode(encode(tree, progress, {"a": "b"}), tree, {"a": "b"})
    assert read == progress
    for got, wanted in zip(jax.tree.leaves(back), jax.tree.leaves(tree), strict=True):
        assert got.dtype == wanted.dtype
        assert bool((jnp.asarray(got) == wanted).all())
