"""Channel scalers: fitting, the same scaling in every engine and online, and what is refused."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logcde as lc
from logcde.errors import StreamError
from logcde.streams import ChannelScale, ChannelScaler, MinMaxScaler, RobustScaler, StandardScaler, Streams

NAN = np.nan


def column(values, name="a"):
    return Streams.from_dense(np.asarray(values, float)[None, :, None], channels=[name], horizon=float(len(values)))


def scale_of(values, units, **limits):
    return ChannelScaler.fit(column(values), units, {"a": tuple(limits["limits"])} if limits else None).each[0]


def test_standard_scaler_uses_mean_and_deviation_of_observations():
    streams = Streams.from_dense(np.array([[[1.0, NAN], [3.0, 7.0]], [[NAN, 7.0], [8.0, 7.0]]]))
    scaler = ChannelScaler.fit(streams, StandardScaler())
    assert (scaler.each[0].centre, scaler.each[0].spread) == pytest.approx((4.0, np.std([1.0, 3.0, 8.0])))
    assert scaler.each[1] == ChannelScale(7.0, 1.0)  # a constant becomes zero
    scaled = scaler(streams)
    mine = scaled.value[scaled.channel == 0]
    np.testing.assert_allclose((mine.mean(), mine.std()), (0, 1), atol=1e-12)
    assert dataclasses.replace(scaled, value=streams.value) == streams


def test_min_max_scaler_maps_the_range_to_minus_one_and_one():
    assert scale_of([3.0, 9.0, 5.0], MinMaxScaler()) == ChannelScale(6.0, 3.0)
    assert scale_of([4.0, 4.0], MinMaxScaler()) == ChannelScale(4.0, 1.0)


def test_robust_scaler_ignores_outliers():
    calm = np.random.default_rng(0).normal(50.0, 5.0, 4000)
    wild = np.concatenate([calm, [1e9, -1e9]])
    one, other = scale_of(calm, RobustScaler()), scale_of(wild, RobustScaler())
    assert one.bend == other.bend == math.inf
    assert (one.centre, one.spread) == pytest.approx((50.0, 5.0), rel=0.05)
    assert (other.centre, other.spread) == pytest.approx((one.centre, one.spread), rel=0.01)
    assert 60 < other.high < 80


def test_robust_scaler_compresses_long_tails_only():
    rng = np.random.default_rng(1)
    skewed = np.exp(1.5 * rng.normal(size=4000))
    assert scale_of(skewed, RobustScaler()).bend == pytest.approx(1.0, rel=0.1)  # its median
    assert scale_of(-skewed, RobustScaler()).bend == pytest.approx(1.0, rel=0.1)
    assert scale_of(rng.exponential(size=4000), RobustScaler()).bend == math.inf
    scaled = ChannelScaler.fit(column(skewed), RobustScaler())(column(skewed)).value
    assert np.abs(scaled).max() < 8


@pytest.mark.parametrize(
    "values", [[0.0] * 50, [0.0] * 50 + [1.0], [3.0], [0.0, 0.0, 1e-300], [0.0, 0.0, 3.0, 1e-308, 1e-308], [0.1] * 7]
)
def test_nearly_constant_channels_have_finite_scales(values):
    for units in (RobustScaler(), RobustScaler(tails=0.0), StandardScaler()):
        scale = scale_of(values, units)
        assert scale.spread > 0
        scaled = ChannelScaler(("a",), (scale,))(column(values)).value
        assert np.isfinite(scaled).all()


def test_limits_apply_before_fitting_and_clipped_values_are_counted():
    streams = column([36.0, 37.0, 38.0, 0.0, 0.0, 300.0])
    scaler = ChannelScaler.fit(streams, StandardScaler(), {"a": (25.0, 45.0)})
    kept = np.array([36.0, 37.0, 38.0, 25.0, 25.0, 45.0])
    assert scaler.each[0] == ChannelScale(kept.mean().item(), kept.std().item(), 25.0, 45.0)
    (row,) = scaler.clipped(streams)
    assert (row.channel, row.observations, row.below, row.above) == ("a", 6, 2, 1)
    assert any("limits" in sentence for sentence in lc.Embedding(scaler=scaler).invariances())
    assert (
        lc.Embedding(scaler=ChannelScaler.fit(streams, StandardScaler())).invariances() == lc.Embedding().invariances()
    )


def test_unobserved_channels_are_not_scaled():
    streams = Streams.from_arrays([[1.0]], [[[1.0, NAN]]], channels=["a", "b"])
    assert ChannelScaler.fit(streams, limits={"b": (0.0, 5.0)}).each[1] == ChannelScale(low=0.0, high=5.0)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.sampled_from([RobustScaler(), StandardScaler()]))
def test_scales_are_monotone(values, units):
    scaler = ChannelScaler.fit(column(values), units)
    ordered = np.sort(np.asarray(values))
    assert (np.diff(scaler(column(ordered)).value) >= 0).all()


SCALES = ChannelScaler(("a", "b"), (ChannelScale(2.0, 0.5, low=-4.0, high=4.0), ChannelScale(-1.0, 3.0, bend=0.7)))


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 3, size=(6, 2))
    values[rng.random(size=values.shape) < 0.3] = NAN
    values[:, 0] = np.where(np.isnan(values).all(axis=1), 1.0, values[:, 0])
    return np.arange(6) + 0.25, values


def test_every_engine_applies_the_scaler():
    times, values = drawn()
    streams = Streams.from_arrays([times], [values], channels=["a", "b"], horizon=6.0)
    partition = lc.Partition.every(2.0)
    scaled, plain = lc.Embedding(scaler=SCALES), lc.Embedding()
    expected = plain(SCALES(streams), partition)
    found = scaled(streams, partition)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.initial.first, expected.initial.first)
    np.testing.assert_allclose(scaled.on_device(streams, partition).values, expected.values, atol=1e-9)
    online = scaled.online(streams.schema)
    for time, row in zip(times[:2], values[:2], strict=True):
        online.observe(time, row)
    np.testing.assert_allclose(online.close(2.0), expected.values[0, 0], atol=1e-12)
    online.observe_many(times[2:4], values[2:4])
    np.testing.assert_allclose(online.close(4.0), expected.values[0, 1], atol=1e-12)
    for time, row in zip(times[4:], values[4:], strict=True):
        out = online.step(time, {name: x for name, x in zip("ab", row, strict=True) if not np.isnan(x)})
    np.testing.assert_allclose(online.logsig(6.0), expected.values[0, 2], atol=1e-12)
    assert out.shape == (15,)
    index = scaled.index(streams)
    index.correct(0, times[0], {"a": 3.0})
    other = values.copy()
    other[0, 0] = 3.0
    corrected = Streams.from_arrays([times], [other], channels=["a", "b"], horizon=6.0)
    np.testing.assert_allclose(index.query(0, 0.0, 2.0)[0], scaled(corrected, partition).values[0, 0], atol=1e-12)
    np.testing.assert_allclose(
        np.concatenate([path.positions[-1] for path in lc.realise(streams, scaled)]),
        np.concatenate([path.positions[-1] for path in lc.realise(SCALES(streams), plain)]),
    )


def test_values_in_single_precision_are_scaled_in_double():
    values = (1000.0 + np.random.default_rng(0).normal(size=(3, 40, 2)).cumsum(1)).astype(np.float32)
    values[0, :, 0] -= 999.0  # far from the centre
    single, double = Streams.from_dense(values), Streams.from_dense(values.astype(np.float64))
    scaler = ChannelScaler.fit(single, StandardScaler())
    assert scaler(single).value.dtype == np.float64
    embedding, partition = lc.Embedding(2, scaler=scaler), lc.Partition.uniform(3)
    np.testing.assert_array_equal(embedding(single, partition).values, embedding(double, partition).values)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e12])
@pytest.mark.parametrize("rule", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=repr)
def test_scales_do_not_depend_on_offsets(rule, offset):
    values = np.random.default_rng(1).integers(-500, 500, 300) / 4
    plain, moved = column(values), column(values + offset)
    expected = ChannelScaler.fit(plain, rule)(plain).value
    found = ChannelScaler.fit(moved, rule)(moved).value
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5, atol=1e-5)


def test_constants_at_offsets_become_zero():
    for constant in (0.1, 1e8 / 3, 1e12 / 7):
        assert scale_of(np.full(1001, constant), StandardScaler()).spread == 1.0


def test_values_without_a_finite_scale_are_refused():
    for rule in (StandardScaler(), MinMaxScaler(), RobustScaler(tails=0.0)):
        with pytest.raises(StreamError, match=r"channel 'a' go from -1.7e\+308 to 1.7e\+308, too large for a scale"):
            ChannelScaler.fit(column([1.0, -1.7e308, 1.7e308, 2.0]), rule)


def test_predictor_of_a_saved_model_applies_the_scaler(tmp_path):
    times, values = drawn()
    streams = Streams.from_arrays([times], [values], channels=["a", "b"], horizon=6.0)
    logsigs = lc.Embedding(scaler=SCALES)(streams, lc.Partition.every(2.0))
    model = lc.log_slice(
        logsigs.basis, hidden=4, block=1, outputs=1, initial=lc.TimeZeroInitial(), key=jax.random.key(0)
    )
    inputs = lc.Inputs.of(logsigs)
    model = model.fit_preprocessing(inputs, logsigs.spec)
    model.save(tmp_path / "model")
    predictor = lc.Predictor(lc.load(tmp_path / "model"))
    for time, row in zip(times, values, strict=True):
        predictor.observe(time, row)
    np.testing.assert_allclose(predictor.predict(at=6.0), lc.predict(model, inputs)[0], rtol=1e-5)


def test_check_faithful_finds_clipped_values_that_collide():
    streams = Streams.from_arrays([[1.0], [1.0], [1.0]], [[[9.0]], [[5.0]], [[3.0]]], ids=["x", "y", "z"])
    scaler = ChannelScaler(("x1",), (ChannelScale(high=4.0),))
    report = lc.check_faithful(streams, lc.Embedding(scaler=scaler))
    assert [collision.series for collision in report.collisions] == [("x", "y")]


def test_refused_scalers_limits_and_channels():
    streams = column([1.0, 2.0])
    with pytest.raises(StreamError, match="limits for 'pulse', which is not a channel"):
        ChannelScaler.fit(streams, limits={"pulse": (0.0, 1.0)})
    with pytest.raises(StreamError, match="first must be below the second"):
        ChannelScaler.fit(streams, limits={"a": (1.0, 1.0)})
    with pytest.raises(StreamError, match="scales are those of the channels 'a', 'b'"):
        lc.Embedding(scaler=SCALES)(streams, lc.Partition.uniform(1))
    with pytest.raises(StreamError, match="below 0.25"):
        RobustScaler(tails=0.3)
    with pytest.raises(StreamError, match="one for each"):
        ChannelScaler(("a", "b"), (ChannelScale(),))
    terms = Streams.from_arrays(
        [[1.0]], [[[1.0, 2.0]]], channels=["a", "b"], terms={lc.streams.Term("area", ("a", "b")): [[1.0]]}
    )
    with pytest.raises(StreamError, match="higher-order terms, such as 'area'"):
        ChannelScaler.fit(terms)
    online = lc.Embedding(scaler=SCALES).online(lc.Schema(("a", "b")))
    with pytest.raises(StreamError, match="Channel 'a' is infinite"):
        online.observe(1.0, {"a": math.inf})
    with pytest.raises(StreamError, match="infinite"):
        online.observe_many([1.0], [[math.inf, 1.0]])
    with pytest.raises(StreamError, match="1 values for 2 channels"):
        online.observe(1.0, [2.0])
