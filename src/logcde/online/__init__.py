"""Predictions as observations come in."""

from logcde.online.predictor import Predictor as Predictor
from logcde.online.predictor import Predictors as Predictors
