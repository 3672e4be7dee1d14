"""A training run in a process of its own, which may be killed, or have several devices, or be one of several.

worker.py killed FOLDER STEP SAVES      killed after STEP steps, or in the middle of saving for the SAVES-th time
worker.py devices OUT COUNT             on COUNT virtual devices
worker.py process OUT PORT NUMBER       as one of two processes
worker.py shards OUT FOLDER PORT NUMBER on shards, as one of two processes
"""

import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_platforms", "cpu")


def train(checkpoints=None, callbacks=(), batch=6):
    """The run of all processes: with noise, so that keys matter, in batches that devices do not divide, some short.

    States are normalised over the batch, so that devices have to exchange statistics.
    """
    import logcde as lc
    from tests.train import toys

    data = (toys.logsigs(), toys.running())
    options = toys.options(duration=lc.Steps(20), every=lc.Steps(6), size=batch, optimiser=toys.OPTIMISER)
    options |= {"checkpoints": checkpoints, "callbacks": callbacks, "penalty": 0.01}
    model = toys.model(each=True, noise=0.1, normalised=True)
    return lc.fit(model, *data, key=jax.random.key(3), **options)


def killed(folder, step, saves):
    import logcde as lc

    class Killer(lc.train.AbstractCallback):
        def on_start(self, step, steps): ...

        def on_steps(self, now, loss):
            if now >= int(step):
                os.kill(os.getpid(), signal.SIGKILL)

        def on_evaluation(self, evaluation, model): ...

        def on_end(self, summary): ...

    synced = []
    fsync = os.fsync

    def counting(file):
        synced.append(file)
        if len(synced) == 2 * int(saves) - 1:  # a file and its folder each time: the file is written, not yet renamed
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(file)

    os.fsync = counting
    train(lc.Checkpoints(folder, seconds=0.0), [Killer()])


def write(out, result):
    numbers = [np.asarray(leaf) for leaf in jax.tree.leaves(result.last)]
    losses = [[evaluation.loss, evaluation.validation["mse"]] for evaluation in result.history]
    np.savez(out, *numbers, losses=np.array(losses))


def devices(out, count):
    jax.config.update("jax_num_cpu_devices", int(count))
    assert len(jax.devices()) == int(count)
    write(out, train())


def process(out, port, number):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(number))
    assert jax.process_count() == 2
    import logcde as lc

    folder = Path(out).parent / "checkpoints"  # of both, though only the first one writes
    result = train(lc.Checkpoints(folder, seconds=0.0))
    again = train(lc.Checkpoints(folder, seconds=0.0))  # has nothing left to do
    assert jnp.array_equal(result.last.weight, again.last.weight)
    write(out, result)
    jax.distributed.shutdown()


def train_on(folder):
    """The run on shards of all processes."""
    import logcde as lc
    from tests.train import toys

    model = toys.model(each=True, noise=0.1, normalised=True)
    shards = lc.train.Shards.open(folder)
    options = {"batch": 6, "optimiser": toys.OPTIMISER, "duration": lc.Epochs(2), "callbacks": ()}
    return lc.train.fit_shards(model, shards, validation=shards, key=jax.random.key(3), **options)


def shards(out, folder, port, number):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(number))
    assert jax.process_count() == 2
    write(out, train_on(folder))
    jax.distributed.shutdown()


if __name__ == "__main__":
    {"killed": killed, "devices": devices, "process": process, "shards": shards}[sys.argv[1]](*sys.argv[2:])
