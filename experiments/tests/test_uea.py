"""Classification under dropping: what models see, cells, tables, and one run from files to accuracy."""

import importlib.resources
import io

import equinox as eqx
import jax
import msgspec
import numpy as np
import pytest
from rich.console import Console

from experiments.runner.abstract import Record
from experiments.runner.reproduce import reproduce, settings_of
from experiments.uea import cells as uea
from experiments.uea.experiment import Uea
from experiments.uea.models import Given, LinearPath, NeuralPath, Spline, StateSpace
from experiments.uea.rows import Row, averages, judge
from experiments.uea.settings import Reading, packaged, printed
from experiments.uea.training import Classified
from logcde.datasets import Classification, Split, split
from logcde.errors import DatasetError, ExperimentError
from logcde.streams import PerChannel, Streams, drop_observations

LENGTH = 12


def waves(count=20, lengths=None):
    """Two classes of two channels, which differ in how fast they turn."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    lengths = np.full(count, LENGTH) if lengths is None else lengths
    angles = [(1 + label) * np.arange(n) / 2 + rng.uniform(0, 6) for label, n in zip(labels, lengths, strict=True)]
    values = [np.stack([np.sin(a), 10 + 3 * np.cos(a)], axis=1).astype(np.float32) for a in angles]
    return values, labels


def dataset(lengths=None):
    values, labels = waves(lengths=lengths)
    sizes = np.array([len(one) for one in values])
    times = [np.arange(n) / LENGTH for n in sizes]
    streams = Streams.from_arrays(times, values, ["a", "b"], sizes / LENGTH)
    return Classification("Waves", streams, labels, ("slow", "fast"), np.zeros(len(labels), bool), LENGTH)


def given(fraction=0.0, data=None):
    data = dataset() if data is None else data
    return Given(data, drop_observations(data.streams, fraction, seed=0), split(len(data), 0))


LINEAR = LinearPath(hidden=4, block=2, depth=2, step=4, time=True)
SPACE = StateSpace(unit="lru", hidden=4, layers=1, state=2, time=False)


@pytest.mark.parametrize(
    "model",
    [
        LINEAR,
        NeuralPath(hidden=4, depth=2, step=4, time=False, layers=1, width=4),
        Spline(hidden=4, time=True, layers=1, width=4),
        *(msgspec.structs.replace(SPACE, unit=unit, time=True) for unit in ("s5", "s6", "mamba")),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("fraction", [0.0, 0.95])
def test_every_model_predicts_all_classes_after_dropping(model, fraction):
    inputs, basis = model.inputs(given(fraction))
    built = model.model(basis, 2, jax.random.key(0))
    assert eqx.filter_eval_shape(built, inputs[0]).shape == (2,)
    assert np.isfinite(inputs.logsigs).all()


def test_windows_and_time_do_not_depend_on_dropping():
    whole, _ = LINEAR.inputs(given(0.0))
    left, basis = LINEAR.inputs(given(0.95))
    assert whole.logsigs.shape == left.logsigs.shape == (20, 3, 6)
    clock = basis.letters.index("clock")
    # From the second window on time has moved by a window, as scaled by its range.
    np.testing.assert_allclose(left.logsigs[:, 1:, clock], 2 * 4 / 11, rtol=1e-5)
    np.testing.assert_allclose(left.logsigs[..., clock], whole.logsigs[..., clock], rtol=1e-5)


def test_linear_path_scales_by_training_series_or_by_all():
    data = given(0.0)
    for scaled_by, which in (("train", data.split.train), ("all", np.arange(20))):
        inputs, _ = msgspec.structs.replace(LINEAR, step=1, time=False, scaled_by=scaled_by).inputs(data)
        values = np.cumsum(inputs.logsigs[..., :2], axis=1)
        np.testing.assert_allclose(values[which].min(axis=(0, 1)), -1, atol=1e-5)
        np.testing.assert_allclose(values[which].max(axis=(0, 1)), 1, atol=1e-5)


def test_linear_path_skip_first_and_divide():
    plain, _ = LINEAR.inputs(given())
    other, _ = msgspec.structs.replace(LINEAR, skip_first=True, divide=10.0).inputs(given())
    np.testing.assert_allclose(other.logsigs, plain.logsigs[:, 1:] / 10)
    np.testing.assert_array_equal(other.length, plain.length - 1)


def test_state_space_inputs_are_remaining_rows_and_stamps():
    some = given(0.7)
    inputs, basis = msgspec.structs.replace(SPACE, time=True).inputs(some)
    assert basis.letters == ("a", "b", "clock")
    rows = np.cumsum(inputs.logsigs[0], axis=0)
    one = some.left[:1]
    np.testing.assert_allclose(rows[:, :2], one.value.reshape(-1, 2), atol=1e-4)
    np.testing.assert_allclose(rows[:, 2], one.times, atol=1e-6)
    assert set(inputs.length.tolist()) == {4}  # round(0.3 * 12)


def test_state_space_inputs_hold_the_last_value_of_a_dropped_channel():
    data = dataset()
    left = drop_observations(data.streams, 0.7, PerChannel(), seed=0)
    inputs, _ = SPACE.inputs(Given(data, left, split(len(data), 0)))
    rows, one = np.cumsum(inputs.logsigs[0], axis=0), left[:1]
    last = np.zeros(2)
    for event, (start, stop) in enumerate(zip(one.obs_offsets[:-1], one.obs_offsets[1:], strict=True)):
        last[one.channel[start:stop]] = one.value[start:stop]
        np.testing.assert_allclose(rows[event], last, atol=1e-4)


def test_linear_path_windows_of_ragged_series():
    lengths = np.where(np.arange(20) % 3, LENGTH, 5)
    inputs, _ = LINEAR.inputs(given(data=dataset(lengths)))
    np.testing.assert_array_equal(inputs.length, np.ceil(lengths / 4))


@pytest.fixture(scope="module")
def config():
    return settings_of(Uea())


def test_cells_have_the_settings_of_the_papers_tables(config):
    cells = {(cell.variant, cell.dataset): cell for cell in Uea().cells(config, {})}
    bd = cells["bd_slice", "MotorImagery"]
    assert (bd.training.rate, bd.training.penalty) == (1e-3, 1e-3)
    assert bd.model == LinearPath(hidden=16, block=4, depth=2, step=16, time=False)
    diagonal = cells["d_slice", "Heartbeat"].model
    assert (diagonal.block, diagonal.depth, diagonal.divide, diagonal.time) == (1, 1, 10.0, True)
    assert cells["lncde", "Epilepsy"].model.block == 64
    s5 = cells["s5", "SelfRegulationSCP1"]
    assert s5.model == StateSpace(unit="s5", hidden=128, layers=6, state=16, time=False, blocks=8)
    assert s5.training.rate == 1e-3
    mamba = cells["mamba", "SelfRegulationSCP1"].model
    assert (mamba.convolution, mamba.expansion, mamba.state) == (4, 1, 16)
    assert cells["ncde", "SelfRegulationSCP1"].model == Spline(hidden=128, time=False, layers=4, width=128)
    neural = cells["log_ncde", "SelfRegulationSCP2"]
    assert (neural.model.layers, neural.model.width, neural.training.penalty) == (2, 32, 1e-3)


def test_presets_are_valid_and_cells_are_unique(config):
    assert settings_of(Uea(), preset="quick").seeds == (2345,)
    whole = Uea().cells(settings_of(Uea(), preset="paper"), {})
    assert len({(cell.variant, cell.dataset, cell.drop, cell.seed) for cell in whole}) == 8 * 6 * 4 * 5
    assert {(cell.training.every, cell.training.most) for cell in whole} == {(1000, 100_000), (100, 100_000)}
    twice = msgspec.structs.replace(config, grid=(config.grid[0], config.grid[0]))
    once = msgspec.structs.replace(config, grid=(config.grid[0],))
    assert Uea().cells(twice, {}) == Uea().cells(once, {})


def test_published_preset_differs_by_its_reading_only(config):
    ours = set(Uea().cells(config, {}))
    published = settings_of(Uea(), preset="published")
    assert published.reading == Reading(flow="euler", scaled_by="all", skip_first=True)
    assert set(Uea().cells(msgspec.structs.replace(published, reading=Reading()), {})) < ours


def test_own_settings_extend_or_replace_the_packaged_ones(config):
    own = msgspec.structs.replace(packaged()["Epilepsy"], path=packaged()["Heartbeat"].path)
    part = uea.Part(models=("d_slice",), datasets=("Mine", "Epilepsy", "RacketSports"), drops=(0.0,))
    made = uea.UeaConfig(seeds=(1,), grid=(part,), settings={"Mine": own, "Epilepsy": own})
    assert made.settings == {"Mine": own, "Epilepsy": own, "RacketSports": packaged()["RacketSports"]}
    assert packaged()["Epilepsy"] != own


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('models = ["d_slice"', "models are some of .*, not e_slice"),
        ('datasets = ["RacketSports"', "no settings for Rockets"),
        ("drops = [0.0", "less than 1"),
    ],
)
def test_config_refuses_unknown_models_data_sets_and_shares(tmp_path, change, said):
    presets = importlib.resources.files("experiments.uea").joinpath("presets")
    wrong = {"d_slice": "e_slice", "RacketSports": "Rockets", "0.0": "1.0"}
    word = next(word for word in wrong if change.rstrip('"').endswith(word))
    text = presets.joinpath("quick.toml").read_text().replace(change, change.replace(word, wrong[word]))
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ExperimentError, match=said):
        settings_of(Uea(), tmp_path / "c.toml")


def small_config(**part):
    grid = {"models": ("d_slice",), "datasets": ("RacketSports",), "drops": (0.7,), "every": 10, "most": 30} | part
    quick = settings_of(Uea(), preset="quick")
    return msgspec.structs.replace(quick, grid=(uea.Part(**grid),))


def test_files_to_accuracy(tmp_path, monkeypatch):
    values, labels = waves(40)
    packed = np.stack(values).transpose(0, 2, 1)
    names = np.array(["slow", "fast"])[labels]
    np.savez(
        tmp_path / "RacketSports2.npz", X_train=packed[:20], X_test=packed[20:], y_train=names[:20], y_test=names[20:]
    )
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    quick = small_config()
    settings = {"RacketSports2": packaged()["RacketSports"]}
    part = msgspec.structs.replace(quick.grid[0], datasets=("RacketSports2",))
    config = msgspec.structs.replace(quick, settings=settings, grid=(part,))
    (cell,) = Uea().cells(config, {})
    told = []
    outcome = Uea().run(cell, told.append, tmp_path / "scratch")
    assert (outcome.series, outcome.tests, outcome.steps, outcome.capped) == (40, 6, 30, True)
    assert [step for step, _ in outcome.history] == [10, 20, 30]
    assert told[-1] == 1.0
    parts = split(40, (2345, 0))
    common = np.bincount(labels[parts.train]).argmax()
    assert outcome.constant == np.mean(labels[parts.test] == common)
    assert list((tmp_path / "scratch").glob("*.safetensors"))
    again = Uea().run(cell, told.append, tmp_path / "scratch")  # goes on from where it ended
    assert alike(again, outcome)
    conclusion = Uea().conclude(config, {cell: Record(cell, outcome, 1.0, {})}, tmp_path / "out")
    (row,) = conclusion.summary["rows"]
    assert row["mean"] == pytest.approx(100 * outcome.accuracy)
    shared = Split.read(tmp_path / "out" / "splits" / "RacketSports2-2345.json")
    np.testing.assert_array_equal(shared.test, parts.test)


def alike(one, other):
    return msgspec.structs.replace(one, train_seconds=0.0) == msgspec.structs.replace(other, train_seconds=0.0)


def outcome(accuracy, capped=False):
    return Classified(
        accuracy=accuracy, validation=0.9, series=561, tests=85, steps=2000, best_step=1000, capped=capped,
        parameters=10, train_seconds=1.0, history=[], constant=0.5 if capped else 0.4,
    )  # fmt: skip


def made_up(config, accuracies):
    """Records for the first seeds of cells, by model, data set and share."""
    records = {}
    for cell in Uea().cells(config, {}):
        found = accuracies.get((cell.variant, cell.dataset, cell.drop), [])
        number = config.seeds.index(cell.seed)
        if number < len(found) and cell.dropping == "points":
            records[cell] = Record(cell, outcome(found[number], capped=number > 0), 2.0, {})
    return records


def test_conclude_shows_the_papers_numbers_and_missing_cells(tmp_path, config):
    records = made_up(
        config,
        {
            ("bd_slice", "SelfRegulationSCP1", 0.0): [0.85, 0.87],
            ("d_slice", "SelfRegulationSCP1", 0.0): [0.85, 0.87],
            ("bd_slice", "SelfRegulationSCP1", 0.3): [0.8, 0.8, 0.8],
            ("bd_slice", "SelfRegulationSCP2", 0.0): [0.5],
            ("lru", "RacketSports", 0.7): [0.4],
        },
    )
    conclusion = Uea().conclude(config, records, tmp_path)
    rows = {(row["model"], row["dataset"], row["drop"]): row for row in conclusion.summary["rows"]}
    row = rows["bd_slice", "SelfRegulationSCP1", 0.0]
    assert (row["mean"], row["std"]) == pytest.approx((86.0, 1.0))
    assert (row["paper_mean"], row["paper_std"]) == (84.9, 1.9)
    assert row["samples"] == pytest.approx(0.011 * 85)
    assert (row["seeds"], row["capped"]) == ([2345, 3456], 1)
    assert rows["lru", "RacketSports", 0.7]["paper_mean"] is None
    assert "86.0 ± 1.0 (84.9 ± 1.9)" in conclusion.text
    assert "| 50.0 (54.0 ± 7.4) |" in conclusion.text  # of one seed
    assert "not run" in conclusion.text
    assert len(conclusion.summary["not_run"]) == len(Uea().cells(config, {})) - 9
    assert r"$86.0 \pm 1.0$ ($84.9 \pm 1.9$)" in (tmp_path / "tables.tex").read_text()
    (average,) = conclusion.summary["averages"]  # two models have SCP1 in common, and nothing else
    assert (average["datasets"], average["models"]) == (["SelfRegulationSCP1"], ["d_slice", "bd_slice"])
    assert average["rank"] == [1.5, 1.5]
    assert (average["paper_accuracy"], average["paper_rank"]) == ([83.5, 84.9], [2.0, 1.0])
    assert "| the same class always | 45.0 | 40.0 |" in conclusion.text  # where two seeds are, the mean of both
    assert "80.0 ± 0.0* (85.4 ± 2.8)" in conclusion.text  # two of three runs were ended by the limit


def row(model, drop, dataset, mean, **fields):
    paper = printed()[str(drop)].get(model, {}).get(dataset)
    return Row(
        dataset=dataset, model=model, drop=drop, dropping="points", seeds=[1], accuracies=[mean], mean=mean, std=0.0,
        paper_mean=paper[0], paper_std=paper[1], tests=50, steps=1.0, most=1, capped=0, train_seconds=1.0,
        parameters=1, **fields,
    )  # fmt: skip


def test_judge_uses_data_sets_that_models_have_in_common():
    means = {"bd_slice": (64.0, 62.0), "log_ncde": (66.0, 61.0), "lru": (65.0, 61.5)}
    rows = [
        row(model, drop, dataset, mean + shift, errors=0.5)
        for model, both in means.items()
        for drop, mean in zip((0.0, 0.95), both, strict=True)
        for dataset, shift in (("Heartbeat", 10), ("SelfRegulationSCP2", -10))
    ]
    rows.append(row("bd_slice", 0.0, "SelfRegulationSCP1", 0.0, errors=-9.0))  # what is run of one model alone
    claims = {claim.text: claim for claim in judge(rows, averages(rows))}
    assert claims["Log-NCDE has the best mean accuracy with 0% dropped"].held
    best = claims["BD-SLiCE has the best mean accuracy with 95% dropped"]
    assert best.held
    assert best.evidence.startswith(
        "over Heartbeat, SelfRegulationSCP2 (1 seed): BD-SLiCE 62.0, LRU 61.5, Log-NCDE 61.0;"
    )
    assert not claims["BD-SLiCE has the best mean rank, or shares it, with 0% dropped"].held
    assert claims["BD-SLiCE has the best mean rank, or shares it, with 95% dropped"].held
    steady = claims["BD-SLiCE loses no more than 1.5 points of mean accuracy from nothing to 95% dropped"]
    assert (steady.held, "64.0 to 62.0" in steady.evidence) == (False, True)
    alike = claims["Nine of ten accuracies are within two standard errors of the paper's"]
    assert (alike.held, alike.evidence.split(";")[0]) == (True, "12 of 13")
    assert len(claims) == 6
    two_models = [one for one in rows if one.model != "lru"]
    assert not [claim for claim in judge(two_models, averages(two_models)) if "best" in claim.text]


def test_averages_use_seeds_that_models_have_in_common():
    three = row("bd_slice", 0.0, "Heartbeat", 72.0)
    three = msgspec.structs.replace(three, seeds=[1, 2, 3], accuracies=[70.0, 80.0, 66.0])
    two = msgspec.structs.replace(row("s5", 0.0, "Heartbeat", 74.0), seeds=[2, 1], accuracies=[76.0, 72.0])
    (average,) = averages([three, two])
    assert (average.models, average.accuracy, average.rank) == (["s5", "bd_slice"], [74.0, 75.0], [2.0, 1.0])
    assert (average.seeds, average.where) == ([2], "Heartbeat (2 seeds)")
    assert averages([three, msgspec.structs.replace(two, seeds=[8, 9])]) == []
    both = [three, two, row("bd_slice", 0.0, "SelfRegulationSCP2", 50.0), row("s5", 0.0, "SelfRegulationSCP2", 50.0)]
    assert averages(both)[0].where == "Heartbeat (2 seeds), SelfRegulationSCP2 (1 seed)"


def test_reproduce_leaves_out_cells_without_data(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    console = Console(file=io.StringIO(), width=200)
    with pytest.raises(ExperimentError, match="No cell of this grid is finished"):
        reproduce(Uea(), preset="quick", out=tmp_path / "out", console=console)
    assert "12 cells were not run because their data are not available." in console.file.getvalue()
    monkeypatch.delenv("LOGCDE_DATA")
    with pytest.raises(DatasetError, match="No folder of data sets is given"):
        reproduce(Uea(), preset="quick", out=tmp_path / "out", console=console)


def test_conclude_refuses_an_empty_grid(tmp_path, config):
    with pytest.raises(ExperimentError, match="No cell of this grid"):
        Uea().conclude(config, {}, tmp_path)


def test_printed_tables_average_to_the_papers_averages():
    """Table 2 of the paper is the mean of the four per-dataset tables, which were typed in by a program."""
    means = {
        (share, model): np.mean([line[0] for line in printed()[share][model].values()])
        for share in ("0.0", "0.3", "0.7", "0.95")
        for model in ("s5", "log_ncde", "bd_slice")
    }
    expected = {
        "s5": (61.8, 63.4, 60.1, 56.7),
        "log_ncde": (64.3, 64.2, 62.7, 60.9),
        "bd_slice": (64.0, 63.7, 62.5, 62.5),
    }
    for model, numbers in expected.items():
        for share, average in zip(("0.0", "0.3", "0.7", "0.95"), numbers, strict=True):
            assert means[share, model] == pytest.approx(average, abs=0.06)
