"""Exported programs: the numbers of the model, without kernels of this library, and what cannot be exported."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde import flows
from logcde.errors import ArtefactError, ModelError
from logcde.export import export, programs_of
from logcde.models import SoftLimit, deep_stable
from tests.cli.streaming import a_model
from tests.cli.tables import run, write
from tests.cli.training_tables import QUICK, TABLE, vitals

KEY = jax.random.key(0)
INTERVALS = 4
MODELS = {
    "slice": lambda basis: lc.log_slice(basis, 6, 2, block=2, readout=lc.Mean(widths=(3,)), static=2, key=KEY),
    "dense": lambda basis: lc.log_slice(basis, 4, 2, block=4, initial=lc.TimeZeroInitial(), key=KEY),
    "deep": lambda basis: lc.deep_log_slice(basis, 4, 2, block=2, scaling=SoftLimit(), key=KEY),
    "stable": lambda basis: deep_stable(basis, 4, 2, layers=1, key=KEY),
    "ncde": lambda basis: lc.log_ncde(basis, 4, 2, width=5, key=KEY),
    "additive": lambda basis: lc.additive(basis, 2, history=True, key=KEY),
}


def embedded(series=5):
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 20, series)
    streams = lc.Streams.from_arrays(
        [np.sort(rng.choice(80, size, replace=False)) / 10 for size in lengths],
        [rng.normal(size=(size, 2)) for size in lengths],
        horizon=8.0,
    )
    return lc.Embedding(2)(streams, lc.Partition.uniform(INTERVALS))


def programs(folder):
    return {file.stem: jax.export.deserialize(bytearray(file.read_bytes())) for file in folder.glob("*.bin")}


@pytest.mark.parametrize("name", MODELS)
def test_programs_give_the_numbers_of_the_model(name, tmp_path):
    logsigs = embedded()
    model = MODELS[name](logsigs.basis)
    static = np.random.default_rng(1).normal(size=(5, model.statics))
    inputs = lc.Inputs.of(logsigs, static)
    model = model.fit_preprocessing(inputs, None)
    folder = export(model, tmp_path / "exported", intervals=INTERVALS)
    found = programs(folder)
    initial = (inputs.initial.first, inputs.initial.seen, inputs.initial.at_start, inputs.static)
    expected = lc.predict(model, inputs)
    np.testing.assert_allclose(
        found["predict"].call(inputs.logsigs, inputs.length, *initial), expected, rtol=1e-5, atol=1e-6
    )
    kept = found["start"].call(*initial)
    for interval in range(INTERVALS):
        kept = found["advance"].call(*kept, inputs.logsigs[:, interval])
    np.testing.assert_allclose(found["read"].call(*kept), expected, rtol=1e-5, atol=1e-6)
    for program in found.values():
        assert set(re.findall(r"custom_call @(\w+)", program.mlir_module())) <= {"shape_assertion"}
    for file in folder.glob("*.mlir"):
        assert b"logcde" not in file.read_bytes()  # no kernel, no path of this machine
    signature = json.loads((folder / "signature.json").read_text())
    assert signature["coordinates"] == list(logsigs.basis.labels)
    first = signature["programs"]["predict"]["arguments"][0]
    assert first == {"name": "logsigs", "shape": ["series", INTERVALS, logsigs.basis.dimension], "dtype": "float32"}


def test_a_fixed_number_of_series(tmp_path):
    model = MODELS["slice"](embedded().basis)
    folder = export(model, tmp_path / "exported", intervals=INTERVALS, series=3)
    program = programs(folder)["predict"]
    assert program.in_avals[0].shape[0] == 3
    assert "custom_call" not in program.mlir_module()


def test_portable_programs_are_those_of_the_kernels():
    """Within the context twins are traced, after it kernels again; an exception ends it as well."""
    logsigs = embedded()
    model = lc.log_slice(logsigs.basis, 6, 2, block=2, key=KEY)
    inputs = lc.Inputs.of(logsigs)

    def traced():
        return jax.jit(jax.vmap(lambda one: model(one))).lower(inputs)

    with flows.portable():
        portable = traced()
    with pytest.raises(KeyError), flows.portable():
        raise KeyError
    kernels = traced()
    assert "custom_call" not in portable.as_text()
    assert "logcde_act" in kernels.as_text()
    np.testing.assert_allclose(portable.compile()(inputs), kernels.compile()(inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", [True, False])
def test_sparse_forms_are_portable(form):
    logsigs = lc.Embedding(2)(
        lc.Streams.from_dense(np.random.default_rng(0).normal(size=(4, 6, 2))), lc.Partition.uniform(2), sparse=True
    )
    model = lc.log_slice(logsigs.basis, 6, 2, block=2, key=KEY)
    inputs = lc.Inputs.of(logsigs, factors=form)
    with flows.portable():
        portable = jax.jit(jax.vmap(lambda one: model(one))).lower(inputs)
    assert "custom_call" not in portable.as_text()
    np.testing.assert_allclose(portable.compile()(inputs), lc.predict(model, inputs), rtol=1e-5, atol=1e-6)


def test_refused(tmp_path):
    model = MODELS["slice"](embedded().basis)
    (tmp_path / "there").mkdir()
    with pytest.raises(ArtefactError, match="exists already"):
        export(model, tmp_path / "there", intervals=2)
    with pytest.raises(ModelError, match="intervals is 0"):
        export(model, tmp_path / "new", intervals=0)
    with pytest.raises(ModelError, match="series is -1"):
        export(model, tmp_path / "new", intervals=1, series=-1)
    with pytest.raises(ModelError, match="rows of features"):
        programs_of(deep_stable(3, 4, 2, layers=1, key=KEY), 1, 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["there"]


def test_export_of_a_model_that_was_saved_from_python(tmp_path, capsys):
    a_model(dtype=jnp.float32).save(tmp_path / "model")
    assert run("export", tmp_path / "model", "-o", tmp_path / "out", "--intervals", 3, "--rows", 1) == 0
    assert "predict, start, advance and read" in capsys.readouterr().out
    signature = json.loads((tmp_path / "out" / "signature.json").read_text())
    assert signature["partition"] == "Partition.every(0.5)"
    assert signature["channels"] == ["pulse", "temp"]
    assert "exists already" in run("export", tmp_path / "model", "-o", tmp_path / "out", "--intervals", 3)


def test_export_of_trained_estimators(tmp_path):
    file = write(vitals(), tmp_path / "vitals.parquet")
    assert run("train", file, *QUICK, "--target", "state", "--learner", "slice", "-o", tmp_path / "model") == 0
    assert run("export", tmp_path / "model", "-o", tmp_path / "out", "--intervals", 4) == 0
    signature = json.loads((tmp_path / "out" / "signature.json").read_text())
    assert signature["classes"] == ["ill", "well"]
    estimator = lc.estimators.load(tmp_path / "model")
    model = estimator.model_
    streams = lc.Streams.from_dense(np.random.default_rng(0).normal(60, 5, (3, 7, 3)), channels=model.schema.channels)
    inputs = lc.Inputs.of(model.embedding(streams, lc.Partition.uniform(4)))
    program = programs(tmp_path / "out")["predict"]
    initial = (inputs.initial.first, inputs.initial.seen, inputs.initial.at_start, inputs.static)
    np.testing.assert_allclose(
        program.call(inputs.logsigs, inputs.length, *initial), lc.predict(model.sequence, inputs), rtol=1e-4, atol=1e-5
    )
    assert run("train", file, *TABLE, "--target", "state", "--learner", "ridge", "-o", tmp_path / "ridge") == 0
    message = run("export", tmp_path / "ridge", "-o", tmp_path / "no", "--intervals", 4)
    assert "holds no network on log-signatures" in message
    assert "--learner slice" in message
