"""Features of windows: from streams to rows of numbers, for any model that takes a table."""

from logcde.features.abstract import AbstractFeatures as AbstractFeatures
from logcde.features.abstract import AbstractFittedFeatures as AbstractFittedFeatures
from logcde.features.abstract import AbstractOnlineFeatures as AbstractOnlineFeatures
from logcde.features.brackets import AbstractBrackets as AbstractBrackets
from logcde.features.brackets import AllBrackets as AllBrackets
from logcde.features.brackets import OwnBrackets as OwnBrackets
from logcde.features.features import FittedFeatures as FittedFeatures
from logcde.features.features import WindowFeatures as WindowFeatures
from logcde.features.logsigs import FittedLogSignatureFeatures as FittedLogSignatureFeatures
from logcde.features.logsigs import LogSignatureFeatures as LogSignatureFeatures
from logcde.features.logsigs import Sliding as Sliding
from logcde.features.online import OnlineFeatures as OnlineFeatures
from logcde.features.rows import FittedRows as FittedRows
from logcde.features.rows import Rows as Rows
from logcde.features.rows import WindowRows as WindowRows
from logcde.features.smoothing import AbstractFittedSmoother as AbstractFittedSmoother
from logcde.features.smoothing import AbstractSmoother as AbstractSmoother
from logcde.features.smoothing import GaussianProcess as GaussianProcess
from logcde.features.smoothing import Shrinkage as Shrinkage
from logcde.features.windows import Windows as Windows
