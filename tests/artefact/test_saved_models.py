"""Saved models: equal after a round trip, refused when damaged or from another version."""

import dataclasses
import hashlib
import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logcde as lc
from logcde.artefact import registry, save
from logcde.artefact.files import FORMAT, read_extra, saved_class_name
from logcde.embedding import Coordinates, EmbeddingSpec
from logcde.errors import ArtefactError
from logcde.streams import DatetimeClock, Schema, Term, TimedeltaClock
from tests.artefact.forging import edited, sealed_again

KEY = jax.random.key(0)
SCHEMA = Schema(("a", "b"))


def a_model(schema=SCHEMA, partition=None, dtype=jnp.float32, **options):
    coordinates = Coordinates(schema, depth=2, counts=True, time=True)
    model = lc.log_slice(coordinates.basis, hidden=4, block=2, outputs=2, dtype=dtype, key=KEY, **options)
    return dataclasses.replace(model, spec=EmbeddingSpec(coordinates, partition or lc.Partition.every(0.5)))


def assert_same(one, two):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def round_trip(model, folder):
    model.save(folder / "saved", overwrite=True)
    return lc.load(folder / "saved")


MODELS = {
    "blocks": {},
    "diagonal": {"block": 1},
    "scaled": {"scaling": lc.IncrementRMSScaling((0.1, 1 / 3, 1.0, 2.0, 5e-324))},
    "static": {"initial": lc.TimeZeroInitial(), "static": 3, "readout": lc.Mean(widths=(5, 3), initial=True)},
    "options": {
        "flow": lc.flows.Euler(),
        "scan": lc.scans.Chunked(7),
        "readout": lc.PerInterval(),
        "initial": lc.FirstValueInitial(),
    },
}


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_models_survive_a_round_trip(options, tmp_path):
    basis = Coordinates(SCHEMA, 2, True, True).basis
    model = lc.log_slice(basis, **{"hidden": 4, "block": 2, "outputs": 2, "key": KEY} | options)
    assert_same(round_trip(model, tmp_path), model)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.bfloat16, jnp.float16])
def test_every_dtype_survives_a_round_trip(dtype, tmp_path):
    assert_same(round_trip(a_model(dtype=dtype), tmp_path), a_model(dtype=dtype))


CLOCKS = [
    TimedeltaClock(timedelta(minutes=15), "ns"),
    DatetimeClock(timedelta(days=1), "us", "Europe/Paris", np.datetime64("2024-03-31T01:00", "us")),
    DatetimeClock(timedelta(hours=1), "s", "+02:00", None),
]


@pytest.mark.parametrize("clock", CLOCKS)
def test_schemas_survive_a_round_trip(clock, tmp_path):
    terms = (Term("area", ("a", "b")), Term("third", ("a", ("a", "b"))))
    model = a_model(Schema(("a", "b"), clock, terms, ("speed",)))
    loaded = round_trip(model, tmp_path)
    assert loaded.spec == model.spec
    assert loaded.spec.coordinates.schema.clock.origin.dtype == clock.origin.dtype if clock is CLOCKS[1] else True


PARTITIONS = [
    lc.Partition.uniform(7),
    lc.Partition.every(0.1),
    lc.Partition.every(timedelta(minutes=5)),
    lc.Partition.every(np.timedelta64(5, "m")),
    lc.Partition.every_events(3),
    lc.Partition.calendar(lc.Calendar.QUARTER),
]


@pytest.mark.parametrize("partition", PARTITIONS, ids=repr)
def test_partition_rules_survive_a_round_trip(partition, tmp_path):
    assert round_trip(a_model(partition=partition), tmp_path).spec.partition == partition


POINTS = [
    [0.0, 0.5, 1.0],
    (0, 1, 2),
    np.array([0.0, 0.25, 1.0]),
    [np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0])],
    np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]"),
    [datetime(2024, 3, 30, tzinfo=ZoneInfo("Europe/Paris")), datetime(2024, 4, 1, tzinfo=ZoneInfo("Europe/Paris"))],
    [datetime(2024, 3, 30, tzinfo=UTC), datetime(2024, 4, 1, 12, 0, 0, 5, tzinfo=UTC)],
    [timedelta(0), timedelta(microseconds=5)],
]


@pytest.mark.parametrize("points", POINTS, ids=repr)
def test_query_points_survive_a_round_trip(points, tmp_path):
    partition = round_trip(a_model(partition=lc.Partition.at(points)), tmp_path).spec.partition
    assert repr(partition) == repr(lc.Partition.at(points))


@lc.register
class Swirl(eqx.Module):
    """A user's class with fields of many types."""

    mlp: eqx.nn.MLP
    activation: object
    parts: dict[str, jax.Array]
    table: np.ndarray
    kind: object = eqx.field(static=True)
    size: float = eqx.field(static=True)

    def __check_init__(self):
        if self.size < 0:
            raise ValueError("negative")


def a_swirl(activation=jax.nn.silu, size=-0.0):
    mlp = eqx.nn.MLP(2, "scalar", 3, 1, activation=jax.nn.softplus, key=KEY)
    return Swirl(mlp, activation, {"x": jnp.arange(3), "y": jnp.ones((0, 2), bool)}, np.eye(2), np.float32, size)


def test_registered_classes_survive_a_round_trip(tmp_path):
    model = a_swirl()
    lc.artefact.save(model, tmp_path / "swirl")
    loaded = lc.load(tmp_path / "swirl")
    assert_same(*(eqx.filter(tree, eqx.is_array) for tree in (loaded, model)))
    assert loaded.activation is jax.nn.silu
    assert loaded.mlp.final_activation is model.mlp.final_activation
    assert type(loaded.table) is np.ndarray
    assert float(loaded.mlp(jnp.ones(2))) == float(model.mlp(jnp.ones(2)))


class Unknown(eqx.Module):
    weight: jax.Array


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Unknown(jnp.ones(2)), "The model cannot be saved.*Unknown is not registered.*register"),
        (a_swirl(lambda x: x), "activation cannot be saved.*function.*register"),
        (a_swirl(jax.random.key(1)), "activation is an array of key"),
        (a_swirl({1, 2}), "activation is {1, 2}"),
        (a_swirl(np.array(["text"])), "activation is an array of <U4"),
    ],
)
def test_save_names_what_cannot_be_saved(model, words, tmp_path):
    with pytest.raises(ArtefactError, match=words):
        lc.artefact.save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_registered_classes_are_collected_once_per_file(tmp_path, monkeypatch):
    calls, classes = [], registry._classes
    monkeypatch.setattr(registry, "_classes", lambda: calls.append(None) or classes())
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    model = eqx.tree_at(lambda swirl: swirl.activation, a_swirl(), Unknown(jnp.ones(2)))
    with pytest.raises(ArtefactError, match="Unknown is not registered"):
        lc.artefact.save(model, tmp_path / "model")
    lc.register(Unknown)
    lc.artefact.save(model, tmp_path / "model")
    assert type(lc.load(tmp_path / "model").activation) is Unknown
    assert len(calls) == 3


def test_register_refuses_classes_without_fields():
    with pytest.raises(ArtefactError, match="neither an equinox.Module"):
        lc.register(type("Plain", (), {}))


def test_short_names_are_unique():
    short = [
        registry.short_name(thing)
        for name, module in sys.modules.items()
        if name.startswith("logcde.")
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__ == name and registry._is_storable(thing)
    ]
    packages = ("streams", "embedding", "scans", "flows", "models", "baselines")
    ours = [name for name, count in Counter(short).items() if count > 1 and name.split(".")[0] in packages]
    assert not ours


def test_model_json_is_readable(tmp_path):
    a_model().save(tmp_path / "model", summary={"loss": np.float32(0.5), "best": float("nan"), "epochs": [1, 2]})
    document = json.loads((tmp_path / "model" / "model.json").read_text())
    assert document["format"] == FORMAT
    assert document["versions"]["jax"] == jax.__version__
    assert document["summary"] == {"loss": 0.5, "best": "nan", "epochs": [1, 2]}
    assert document["model"]["type"] == "models.SequenceModel"
    assert document["model"]["spec"]["partition"] == {"type": "streams.Every", "step": 0.5}
    assert document["model"]["dynamics"]["field"]["matrices"]["tensor"] == "dynamics.field.matrices"


def test_save_replaces_older_models_only_with_overwrite(tmp_path):
    a_model().save(tmp_path / "model")
    with pytest.raises(ArtefactError, match="exists already.*overwrite"):
        a_model().save(tmp_path / "model")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    with pytest.raises(ArtefactError, match="not a saved model"):
        a_model().save(tmp_path / "thesis", overwrite=True)
    assert sorted(part.name for part in tmp_path.iterdir()) == ["model", "thesis"]


def test_extra_files_belong_to_the_model(tmp_path):
    folder = tmp_path / "model"
    save(a_model(), folder, extra_files={"notes.txt": "mine"})
    assert (folder / "notes.txt").read_text() == "mine"
    assert read_extra(folder, "notes.txt") == b"mine"
    assert read_extra(folder, "other.txt") is None
    assert_same(lc.load(folder), a_model())
    assert saved_class_name(folder) == "models.SequenceModel"
    (folder / "thesis.tex").touch()
    with pytest.raises(ArtefactError, match="not a saved model: there is 'thesis.tex' in it"):
        a_model().save(folder, overwrite=True)
    (folder / "thesis.tex").unlink()
    a_model().save(folder, overwrite=True)
    assert sorted(part.name for part in folder.iterdir()) == ["model.json", "model.safetensors"]
    with pytest.raises(ArtefactError, match="none/model.json cannot be read: No such file"):
        lc.load(tmp_path / "none")


@pytest.mark.parametrize("step", [1, 2])
def test_failing_save_leaves_the_older_model(step, tmp_path, monkeypatch):
    a_model().save(tmp_path / "model")
    calls = []
    true_rename = type(tmp_path).rename

    def failing(self, target):
        calls.append(target)
        if len(calls) == step:
            raise OSError("disk full")
        return true_rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "rename", failing)
        with pytest.raises(OSError, match="disk full"):
            a_model(dtype=jnp.float64).save(tmp_path / "model", overwrite=True)
    assert [part.name for part in tmp_path.iterdir()] == ["model"]
    assert_same(lc.load(tmp_path / "model"), a_model())


def test_load_names_the_older_model_of_an_interrupted_save(tmp_path):
    a_model().save(tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / ".logcde-abc-model.old")
    with pytest.raises(ArtefactError, match=r"older model is in .*\.logcde-abc-model\.old"):
        lc.load(tmp_path / "model")
    with pytest.raises(ArtefactError, match="exists already"):
        a_model(dtype=jnp.float64).save(tmp_path / "model")
    assert_same(lc.load(tmp_path / "model"), a_model())
    assert [part.name for part in tmp_path.iterdir()] == ["model"]


EDITS = {
    "has format 99; .*Upgrade logcde": lambda d: d.update(format=99),
    r"was saved by logcde 0\.1\.0 and has format 1.*Load it with logcde 0\.1\.0": lambda d: d.update(
        format=1, versions={"logcde": "0.1.0"}
    ),
    "was saved by another version of logcde": lambda d: d.update(format=0, versions=None),
    "'os.system' is unknown": lambda d: d["model"].update(type="os.system"),
    "'logcde.artefact.files.save' is unknown": lambda d: d["model"].update(type="logcde.artefact.files.save"),
    "lacks field 'readout'": lambda d: d["model"].pop("readout"),
    "has an unknown field 'extra'": lambda d: d["model"].update(extra=1),
    "'dynamics.field.matrices' is float32.*expected": lambda d: d["model"]["dynamics"]["field"]["matrices"].update(
        shape=[1]
    ),
    "'initial.bias' is float32.*float64": lambda d: d["model"]["initial"]["bias"].update(dtype="float64"),
    "tensor 'nothing' is missing": lambda d: d["model"]["initial"]["bias"].update(tensor="nothing"),
    "function 'os.system' is unknown": lambda d: d["model"].update(spec={"function": "os.system"}),
    "has no meaning": lambda d: d["model"].update(spec={"pickle": "gASV"}),
    "at least 1": lambda d: d["model"]["basis"].update(depth=0),
    "too many to index": lambda d: d["model"]["basis"].update(depth=10**15),
    "chunk needs at least one": lambda d: d["model"]["dynamics"].update(scan={"type": "scans.Chunked", "size": 0}),
    "and not a model": lambda d: d.update(model=[1, 2]),
}


@pytest.mark.parametrize(("words", "change"), EDITS.items())
def test_load_explains_what_does_not_fit(words, change, tmp_path):
    with pytest.raises(ArtefactError, match=words):
        lc.load(edited(a_model(), tmp_path, change))


def test_load_refuses_double_precision_without_x64(tmp_path):
    a_model(dtype=jnp.float64).save(tmp_path / "model")
    with jax.enable_x64(False), pytest.raises(ArtefactError, match="jax_enable_x64"):
        lc.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_load_refuses_missing_files(name, tmp_path):
    a_model().save(tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(ArtefactError, match=f"{name} cannot be read"):
        lc.load(tmp_path / "model")


def test_load_refuses_an_edited_number(tmp_path):
    a_model().save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    file.write_text(file.read_text().replace('"step": 0.5', '"step": 0.6'))
    with pytest.raises(ArtefactError, match="model.json is damaged: its checksum differs"):
        lc.load(tmp_path / "model")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_load_detects_random_damage(data, tmp_path):
    folder = tmp_path / "model"
    if not folder.exists():
        a_model().save(folder)
    file = folder / data.draw(st.sampled_from(["model.json", "model.safetensors"]))
    intact = file.read_bytes()
    damaged = bytearray(intact)
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        file.write_bytes(bytes(damaged))
        loaded = lc.load(folder)
    except ArtefactError:
        return
    finally:
        file.write_bytes(intact)
    assert_same(loaded, a_model())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_load_of_forged_files_gives_an_artefact_error_or_a_module(data, tmp_path):
    folder = tmp_path / "model"
    if not folder.exists():
        a_model().save(folder)
    text, numbers = folder / "model.json", folder / "model.safetensors"
    intact = text.read_bytes(), numbers.read_bytes()
    damaged = bytearray(intact[1])
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, 400))] ^= data.draw(st.integers(1, 255))
    document = json.loads(intact[0])
    document["files"]["model.safetensors"]["sha256"] = hashlib.sha256(damaged).hexdigest()
    place = document["model"]
    while True:  # replace a random value of the tree
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        if not place[key] or not isinstance(place[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    place[key] = data.draw(st.sampled_from([None, 0, -1, 1.5, 10**18, 1e308, "x", [], {}, True]))
    try:
        text.write_bytes(sealed_again(document))
        numbers.write_bytes(bytes(damaged))
        loaded = lc.load(folder)
    except ArtefactError:
        return
    finally:
        text.write_bytes(intact[0])
        numbers.write_bytes(intact[1])
    assert isinstance(loaded, eqx.Module)


def test_what_a_killed_save_left_is_removed(tmp_path):
    (tmp_path / ".logcde-0123456789abcdef-model").mkdir()
    (tmp_path / ".logcde-0123456789abcdef-model" / "model.json").touch()
    a_model().save(tmp_path / "model")
    assert [part.name for part in tmp_path.iterdir()] == ["model"]
