"""Predictions as observations come in."""

from logcde.online.predictor import Predictor as Predictor
from logcde.online.predictors import Predictors as Predictors
