"""From log-signatures to predictions."""

from logcde.models.initial import FirstValues as FirstValues
from logcde.models.initial import Learnt as Learnt
from logcde.models.initial import StartValues as StartValues
from logcde.models.inputs import Inputs as Inputs
from logcde.models.linear import LogSLiCE as LogSLiCE
from logcde.models.model import CDE as CDE
from logcde.models.model import AbstractModel as AbstractModel
from logcde.models.model import predict_all as predict_all
from logcde.models.readout import EachInterval as EachInterval
from logcde.models.readout import Mean as Mean
from logcde.models.readout import Terminal as Terminal
from logcde.models.scaling import UnitIncrements as UnitIncrements
from logcde.models.scaling import Unscaled as Unscaled
