import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import logcde as lc
from logcde import estimators
from logcde.errors import ArtefactError, ModelError, OutOfRangeWarning, StreamError
from logcde.estimators import LogCDEClassifier, LogCDETransformer, Long, Wide
from logcde.features import LogSignatureFeatures, WindowFeatures
from tests.estimators.series import COUNT, STEPS, labels, streams, values

WINDOWS, LOGSIGS = WindowFeatures(units=20), LogSignatureFeatures(scales=(1, 3), recent=(2.0,))
BOTH = pytest.mark.parametrize("features", [WINDOWS, LOGSIGS], ids=["windows", "logsigs"])


def long_table(seed=0, missing=0.4):
    steps = values(seed, missing)
    series, step, channel = np.nonzero(~np.isnan(steps))
    return pd.DataFrame(
        {
            "series": [f"s{n}" for n in series],
            "time": step.astype(float),
            "channel": np.array(["a", "b"])[channel],
            "value": steps[series, step, channel],
        }
    )


def wide_table(seed=0, missing=0.4):
    steps = values(seed, missing).reshape(COUNT * STEPS, 2)
    table = pd.DataFrame(steps, columns=["a", "b"])
    table.insert(0, "series", [f"s{n}" for n in range(COUNT) for _ in range(STEPS)])
    table.insert(1, "time", np.tile(np.arange(STEPS, dtype=float), COUNT))
    return table


@BOTH
def test_rows_are_those_of_the_features(features):
    transformer = LogCDETransformer(features)
    rows = transformer.fit_transform(streams(0, 0.4))
    fitted = features.fit(streams(0, 0.4))
    np.testing.assert_array_equal(rows, fitted(streams(0, 0.4)))
    np.testing.assert_array_equal(transformer.transform(streams(1, 0.4)), fitted(streams(1, 0.4)))
    assert transformer.get_feature_names_out().tolist() == list(fitted.names)
    assert transformer.n_features_in_ == 2
    assert transformer.feature_names_in_.tolist() == ["a", "b"]


@BOTH
def test_all_forms_of_input_have_equal_rows(features):
    """Arrays, lists, long and wide tables are read as by the estimators: the horizon is one step after the last."""
    array = values(0, 0.4)
    expected = LogCDETransformer(features).fit_transform(array)
    np.testing.assert_array_equal(LogCDETransformer(features).fit_transform(list(array)), expected)
    for table, layout in ((long_table(), Long()), (wide_table(), Wide())):
        for frame in (table, pl.from_pandas(table)):
            transformer = LogCDETransformer(features, table=layout)
            np.testing.assert_allclose(transformer.fit_transform(frame), expected, rtol=1e-5, atol=1e-5)
    flat = LogCDETransformer(features).fit_transform(array[..., 0])
    np.testing.assert_array_equal(flat, LogCDETransformer(features).fit_transform(array[..., :1]))


@BOTH
@pytest.mark.parametrize(
    "head",
    [
        RidgeClassifierCV(),
        LogisticRegression(max_iter=2000),
        HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=2),
    ],
    ids=lambda head: type(head).__name__,
)
def test_pipelines_learn(features, head):
    pipeline = clone(make_pipeline(LogCDETransformer(features), StandardScaler(), head))
    pipeline.fit(values(0, 0.2), labels(0))
    assert pipeline.score(values(0, 0.2), labels(0)) > 0.9


@BOTH
def test_pandas_output_has_names_and_ids(features):
    transformer = LogCDETransformer(features, table=Long()).set_output(transform="pandas")
    frame = transformer.fit_transform(long_table())
    assert frame.index.tolist() == [f"s{n}" for n in range(COUNT)]
    assert frame.columns.tolist() == transformer.get_feature_names_out().tolist()
    transformer.set_output(transform="default")
    np.testing.assert_array_equal(transformer.transform(long_table()), frame.to_numpy())
    transformer.set_output(transform="polars")
    assert transformer.transform(long_table()).columns == frame.columns.tolist()
    samples = pd.DataFrame(values()[..., 0], index=np.arange(COUNT) + 100)
    samples.columns = samples.columns.astype(str)
    assert LogCDETransformer(features).set_output(transform="pandas").fit_transform(samples).index[0] == 100


@BOTH
def test_saved_transformer_gives_the_same_rows(tmp_path, features):
    transformer = LogCDETransformer(features, table=Long()).fit(long_table())
    transformer.save(tmp_path / "mine")
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {"model.json", "model.safetensors"}
    for again in (LogCDETransformer.load(tmp_path / "mine"), estimators.load(tmp_path / "mine")):
        np.testing.assert_array_equal(again.transform(long_table(1)), transformer.transform(long_table(1)))
        assert again.get_feature_names_out().tolist() == transformer.get_feature_names_out().tolist()
        assert repr(again.get_params()) == repr(transformer.get_params())
    with pytest.raises(ArtefactError, match="holds a LogCDETransformer and not a LogCDEClassifier"):
        LogCDEClassifier.load(tmp_path / "mine")


@BOTH
def test_online_rows_are_the_offline_ones(features):
    data = streams(0, 0.4)
    transformer = LogCDETransformer(features).fit(data)
    one, online = data[3], transformer.online()
    for event, time in enumerate(one.times):
        mine = slice(*one.obs_offsets[event : event + 2])
        names = [one.schema.channels[k] for k in one.channel[mine]]
        online.observe(float(time), dict(zip(names, one.value[mine].tolist(), strict=True)))
    np.testing.assert_array_equal(online.features(at=float(one.horizon[0])), transformer.transform(one)[0])


@BOTH
def test_a_channel_without_observations_has_finite_rows(features):
    array = values(0, 0.4)
    array[:, :, 1] = np.nan
    array[:, :2, 0] = 1.0
    transformer = LogCDETransformer(features)
    assert np.isfinite(transformer.fit_transform(array)).all()
    with pytest.warns(OutOfRangeWarning, match="of 'x2' within .*, in training at most 0"):
        assert np.isfinite(transformer.transform(values(1, 0.4))).all()


@BOTH
def test_one_series_is_enough(features):
    assert np.isfinite(LogCDETransformer(features).fit_transform(values()[:1])).all()


def test_other_channels_and_unfitted_transformers_are_refused():
    transformer = LogCDETransformer(WINDOWS)
    with pytest.raises(ValueError, match="not fitted"):
        transformer.get_feature_names_out()
    transformer.fit(streams())
    other = lc.Streams.from_dense(values(), channels=["a", "c"], horizon=float(STEPS))
    with pytest.raises(StreamError, match="fitted to the channels 'a', 'b'"):
        transformer.transform(other)
    with pytest.raises(ValueError, match="input_features"):
        transformer.get_feature_names_out(["a", "c"])
    with pytest.raises(ModelError, match=r"features='windows' are not options.*Give WindowFeatures"):
        LogCDETransformer("windows").fit(streams())
