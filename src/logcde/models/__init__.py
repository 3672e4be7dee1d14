"""From log-signatures to predictions."""

from logcde.models.attribution import Attribution as Attribution
from logcde.models.attribution import attribute as attribute
from logcde.models.initial import FirstValueInitial as FirstValueInitial
from logcde.models.initial import LearntInitial as LearntInitial
from logcde.models.initial import RawFirstValues as RawFirstValues
from logcde.models.initial import TimeZeroInitial as TimeZeroInitial
from logcde.models.inputs import Controls as Controls
from logcde.models.inputs import Inputs as Inputs
from logcde.models.linear import additive as additive
from logcde.models.linear import deep_log_slice as deep_log_slice
from logcde.models.linear import log_slice as log_slice
from logcde.models.model import AbstractBatchModel as AbstractBatchModel
from logcde.models.model import AbstractModel as AbstractModel
from logcde.models.model import AbstractOnlineModel as AbstractOnlineModel
from logcde.models.model import SequenceModel as SequenceModel
from logcde.models.model import predict as predict
from logcde.models.model import predict_prefixes as predict_prefixes
from logcde.models.nonlinear import log_ncde as log_ncde
from logcde.models.readout import Mean as Mean
from logcde.models.readout import PerInterval as PerInterval
from logcde.models.readout import Terminal as Terminal
from logcde.models.scaling import IncrementRMSScaling as IncrementRMSScaling
from logcde.models.scaling import NoScaling as NoScaling
from logcde.models.scaling import TotalStdScaling as TotalStdScaling
from logcde.models.sums import Sum as Sum
