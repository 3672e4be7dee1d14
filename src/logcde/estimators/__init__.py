"""Estimators with the conventions of scikit-learn, on streams, arrays and data frames."""

# ruff: isort: off
from logcde.estimators import _needs as _needs
from logcde.estimators.architectures import AbstractArchitecture as AbstractArchitecture
from logcde.estimators.architectures import Neural as Neural
from logcde.estimators.architectures import Slice as Slice
from logcde.estimators.classifier import LogCDEClassifier as LogCDEClassifier
from logcde.estimators.data import Long as Long
from logcde.estimators.data import Wide as Wide
from logcde.estimators.regressor import LogCDERegressor as LogCDERegressor
from logcde.estimators.forecaster import LogCDEForecaster as LogCDEForecaster
from logcde.estimators.loading import load as load
