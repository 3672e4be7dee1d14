"""Fixtures: `logcde stream` in this process, and a folder that `logcde train` wrote."""

import sys
from types import SimpleNamespace

import jax
import pytest

from logcde.estimators.learners import gradients
from logcde.train import Evaluation
from tests.cli.streaming import a_model, written
from tests.cli.tables import run
from tests.cli.training_tables import QUICK, tables


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A saved model."""
    path = tmp_path_factory.mktemp("saved") / "model"
    a_model().save(path)
    return path


@pytest.fixture
def stream(tmp_path, monkeypatch, capfdbinary):
    """Run the command on these lines; returns its exit code, its output and its errors."""

    def run_on(model, lines, *options):
        file = tmp_path / "lines.jsonl"
        file.write_bytes(lines if isinstance(lines, bytes) else written(lines))
        if not hasattr(model, "exists"):
            saved, model = model, tmp_path / "own"
            saved.save(model, overwrite=True)
        with file.open("rb") as source:
            monkeypatch.setattr(sys, "stdin", source)
            code = run("stream", model, *options)
        out, errors = capfdbinary.readouterr()
        return code, out, errors.decode()

    return run_on


@pytest.fixture
def untrained(monkeypatch):
    """Skip the training loop, which takes long to compile: models keep their initial parameters."""

    def train(build, inputs, copies, targets, loss, measure, schedule):
        summary = SimpleNamespace(steps=schedule.steps)
        history = (Evaluation(schedule.steps, 1.0, 0.0, 0.5, {}, False),)
        result = SimpleNamespace(history=history, summary=summary, held_out=None)
        return build(jax.random.key(schedule.seed)), result

    monkeypatch.setattr(gradients, "train", train)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with tables, and the folder of a classifier in it."""
    place = tables(tmp_path_factory.mktemp("trained"))
    assert run("train", place / "vitals.parquet", *QUICK, "--target", "state", "-o", place / "model") == 0
    return place
