"""Estimators with the conventions of scikit-learn, on streams, arrays and data frames."""

# ruff: isort: off
from logcde.estimators import _sklearn as _sklearn  # first: it says what to install if scikit-learn is missing
from logcde.estimators.data import Long as Long
from logcde.estimators.data import Wide as Wide
from logcde.estimators.learners import AbstractForecastLoss as AbstractForecastLoss
from logcde.estimators.learners import AbstractGradientLearner as AbstractGradientLearner
from logcde.estimators.learners import AbstractLearner as AbstractLearner
from logcde.estimators.learners import AbstractNetwork as AbstractNetwork
from logcde.estimators.learners import Auto as Auto
from logcde.estimators.learners import BetweenLoss as BetweenLoss
from logcde.estimators.learners import Blend as Blend
from logcde.estimators.learners import Cuts as Cuts
from logcde.estimators.learners import DirectForecast as DirectForecast
from logcde.estimators.learners import DeepSLiCE as DeepSLiCE
from logcde.estimators.learners import LogNCDE as LogNCDE
from logcde.estimators.learners import LogSLiCE as LogSLiCE
from logcde.estimators.learners import MeanLoss as MeanLoss
from logcde.estimators.learners import MedianLoss as MedianLoss
from logcde.estimators.learners import Perceptron as Perceptron
from logcde.estimators.learners import Questions as Questions
from logcde.estimators.learners import WindowBoosting as WindowBoosting
from logcde.estimators.learners import WindowRidge as WindowRidge
from logcde.estimators.learners import WindowTrees as WindowTrees
from logcde.estimators.training import Regularisation as Regularisation
from logcde.estimators.base import AbstractLogCDE as AbstractLogCDE
from logcde.estimators.base import AbstractSeriesEstimator as AbstractSeriesEstimator
from logcde.estimators.classifier import LogCDEClassifier as LogCDEClassifier
from logcde.estimators.regressor import LogCDERegressor as LogCDERegressor
from logcde.estimators.forecaster import LogCDEForecaster as LogCDEForecaster
from logcde.estimators.transformer import LogCDETransformer as LogCDETransformer
from logcde.estimators.saving import load as load
