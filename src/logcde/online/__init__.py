"""Online prediction: `Predictor` follows one growing series, `Predictors` many."""

from logcde.online.abstract import AbstractPredictor as AbstractPredictor
from logcde.online.attributing import Part as Part
from logcde.online.attributing import attribute_online as attribute_online
from logcde.online.predictor import Predictor as Predictor
from logcde.online.predictors import Predictors as Predictors
from logcde.online.series import predictor_of as predictor_of
