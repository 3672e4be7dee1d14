"""Estimators with the conventions of scikit-learn, on streams, arrays and data frames."""

# ruff: isort: off
from logcde.estimators import _sklearn as _sklearn  # first: it says what to install if scikit-learn is missing
from logcde.estimators.architectures import AbstractArchitecture as AbstractArchitecture
from logcde.estimators.architectures import Neural as Neural
from logcde.estimators.architectures import Slice as Slice
from logcde.estimators.data import Long as Long
from logcde.estimators.data import Wide as Wide
from logcde.estimators.base import AbstractLogCDE as AbstractLogCDE
from logcde.estimators.classifier import LogCDEClassifier as LogCDEClassifier
from logcde.estimators.regressor import LogCDERegressor as LogCDERegressor
from logcde.estimators.forecaster import LogCDEForecaster as LogCDEForecaster
from logcde.estimators.saving import load as load
