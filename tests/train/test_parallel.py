"""Training on several devices and in several processes equals training on one device, to rounding."""

import socket

import jax
import numpy as np
import pytest

from logcde.train import Shards
from tests.train import toys, worker
from tests.train.worker_processes import finish, start


@pytest.fixture(scope="module")
def one_device():
    result = worker.train()
    numbers = [np.asarray(leaf) for leaf in jax.tree.leaves(result.last)]
    assert len(numbers) == 5
    return numbers, np.array([[one.loss, one.validation["mse"]] for one in result.history])


def check(path, one_device):
    numbers, losses = one_device
    stored = np.load(path)
    np.testing.assert_allclose(stored["losses"], losses, rtol=1e-10)
    for k, number in enumerate(numbers):
        np.testing.assert_allclose(stored[f"arr_{k}"], number, rtol=1e-9)


def test_four_devices_equal_one(tmp_path, one_device):
    code, errors = finish(start("devices", tmp_path / "out.npz", 4))
    assert code == 0, errors
    check(tmp_path / "out.npz", one_device)


def test_two_processes_equal_one(tmp_path, one_device):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [start("process", tmp_path / f"out{number}.npz", port, number) for number in range(2)]
    for process in processes:
        code, errors = finish(process)
        assert code == 0, errors
    for number in range(2):
        check(tmp_path / f"out{number}.npz", one_device)


def test_two_processes_on_shards_equal_one(tmp_path):
    logsigs, targets = toys.logsigs(), toys.running()
    parts = [(logsigs[part], targets[part]) for part in np.array_split(np.arange(len(logsigs)), 3)]
    folder = Shards.write(tmp_path / "shards", parts).folder
    worker.write(tmp_path / "one.npz", worker.train_on(folder))
    alone = np.load(tmp_path / "one.npz")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [start("shards", tmp_path / f"out{number}.npz", folder, port, number) for number in range(2)]
    for process in processes:
        code, errors = finish(process)
        assert code == 0, errors
    for number in range(2):
        check(tmp_path / f"out{number}.npz", ([alone[f"arr_{k}"] for k in range(5)], alone["losses"]))
