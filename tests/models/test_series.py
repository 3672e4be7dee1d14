import numpy as np
import pytest

from logcde.errors import ModelError
from logcde.features import WindowFeatures
from logcde.models.heads import LinearHead, log_softmax
from logcde.models.series import FeatureModel, Mixture
from tests.features.series import random_streams
from tests.models.saved import saved_and_loaded

STREAMS = random_streams(0, 20)


def feature_model(seed, outputs=2, units=20):
    features = WindowFeatures(units=units, seed=seed).fit(STREAMS)
    rng, count = np.random.default_rng(seed), len(features.names)
    rows = features(STREAMS)
    weight = rng.normal(size=(count, outputs)) / np.sqrt(count)
    return FeatureModel(
        features, LinearHead(rows.mean(0, np.float64), rows.std(0, np.float64) + 1, weight, rng.normal(size=outputs))
    )


def mixture(classifies, outputs=2):
    return Mixture((feature_model(0, outputs), feature_model(1, outputs)), np.array([0.3, 0.7]), classifies)


def test_feature_model_is_its_head_on_its_features():
    model = feature_model(0)
    np.testing.assert_array_equal(model(STREAMS), model.head(model.features(STREAMS)))
    assert model.schema == STREAMS.schema
    assert model.size == model.head.size


def test_mixture_of_classifiers_is_the_mean_of_probabilities():
    model = mixture(True)
    one, two = (np.exp(log_softmax(part(STREAMS))) for part in model.models)
    np.testing.assert_allclose(np.exp(log_softmax(model(STREAMS))), 0.3 * one + 0.7 * two)
    assert model.schema == STREAMS.schema
    assert model.size == sum(part.size for part in model.models)


def test_mixture_of_numbers_is_the_mean():
    model = mixture(False, outputs=1)
    one, two = (part(STREAMS) for part in model.models)
    np.testing.assert_allclose(model(STREAMS), 0.3 * one + 0.7 * two)


@pytest.mark.parametrize("classifies", [True, False])
def test_outputs_do_not_depend_on_the_batch(classifies):
    model = mixture(classifies, outputs=3)
    whole = model(STREAMS)
    for series in range(len(STREAMS)):
        np.testing.assert_array_equal(model(STREAMS[series])[0], whole[series])
    np.testing.assert_array_equal(model(STREAMS[3:14]), whole[3:14])


def test_saved_and_loaded(tmp_path):
    model = mixture(True)
    loaded = saved_and_loaded(model, tmp_path)
    np.testing.assert_array_equal(loaded(STREAMS), model(STREAMS))
    for one, other in zip(loaded.models, model.models, strict=True):
        assert one.features.names == other.features.names
        assert one.features.digest == other.features.digest


def test_as_many_weights_as_models():
    with pytest.raises(ModelError, match="1 models and 2 weights"):
        Mixture((feature_model(0),), np.array([0.5, 0.5]), True)
    with pytest.raises(ModelError, match="0 models"):
        Mixture((), np.array([]), True)
