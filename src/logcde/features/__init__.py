"""Features of windows: from streams to rows of numbers, for any model that takes a table."""

from logcde.features.features import FittedFeatures as FittedFeatures
from logcde.features.features import WindowFeatures as WindowFeatures
from logcde.features.logsigs import FittedLogSignatureFeatures as FittedLogSignatureFeatures
from logcde.features.logsigs import LogSignatureFeatures as LogSignatureFeatures
from logcde.features.logsigs import Sliding as Sliding
from logcde.features.online import OnlineFeatures as OnlineFeatures
from logcde.features.smoothing import AbstractSmoother as AbstractSmoother
from logcde.features.smoothing import Shrinkage as Shrinkage
from logcde.features.windows import Windows as Windows
