"""From log-signatures to predictions."""

from logcde.models.deep import DeepLogSLiCE as DeepLogSLiCE
from logcde.models.initial import FirstValues as FirstValues
from logcde.models.initial import Learnt as Learnt
from logcde.models.initial import RawFirstValues as RawFirstValues
from logcde.models.initial import StartValues as StartValues
from logcde.models.inputs import Inputs as Inputs
from logcde.models.linear import LogSLiCE as LogSLiCE
from logcde.models.model import CDE as CDE
from logcde.models.model import AbstractBatchModel as AbstractBatchModel
from logcde.models.model import AbstractModel as AbstractModel
from logcde.models.model import predict_all as predict_all
from logcde.models.nonlinear import NCDE as NCDE
from logcde.models.nonlinear import NRDE as NRDE
from logcde.models.nonlinear import LogNCDE as LogNCDE
from logcde.models.readout import EachInterval as EachInterval
from logcde.models.readout import Mean as Mean
from logcde.models.readout import Terminal as Terminal
from logcde.models.recurrent import GRUD as GRUD
from logcde.models.scaling import UnitIncrements as UnitIncrements
from logcde.models.scaling import Unscaled as Unscaled
from logcde.models.sequence import LRU as LRU
from logcde.models.sequence import S5 as S5
from logcde.models.sequence import S6 as S6
from logcde.models.sequence import SSM as SSM
from logcde.models.sequence import Mamba as Mamba
