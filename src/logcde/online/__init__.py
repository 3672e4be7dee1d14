"""Online prediction: `Predictor` follows one growing series, `Predictors` many."""

from logcde.online.predictor import Predictor as Predictor
from logcde.online.predictor import Predictors as Predictors
