"""Models from the literature for comparison: NCDE, NRDE, GRU-D, S5, LRU, S6 and Mamba, and the controls they need.

What only baselines need, such as batch statistics, is here and nowhere else.
"""

from logcde.baselines.controls import AbstractControl as AbstractControl
from logcde.baselines.controls import Controls as Controls
from logcde.baselines.controls import HeldControl as HeldControl
from logcde.baselines.controls import HermiteControl as HermiteControl
from logcde.baselines.controls import LinearControl as LinearControl
from logcde.baselines.controls import RectilinearControl as RectilinearControl
from logcde.baselines.mixing import AbstractMixer as AbstractMixer
from logcde.baselines.mixing import AbstractRecurrence as AbstractRecurrence
from logcde.baselines.neural import ControlODE as ControlODE
from logcde.baselines.neural import ncde as ncde
from logcde.baselines.neural import nrde as nrde
from logcde.baselines.norms import AbstractNorm as AbstractNorm
from logcde.baselines.norms import BatchNorm as BatchNorm
from logcde.baselines.norms import LayerNorm as LayerNorm
from logcde.baselines.recurrent import FadingGRU as FadingGRU
from logcde.baselines.recurrent import gru_d as gru_d
from logcde.baselines.selective import Gated as Gated
from logcde.baselines.selective import Selective as Selective
from logcde.baselines.sequence import Recurrent as Recurrent
from logcde.baselines.sequence import RecurrentModel as RecurrentModel
from logcde.baselines.sequence import ssm as ssm
from logcde.baselines.state_space import LinearRecurrentUnit as LinearRecurrentUnit
from logcde.baselines.state_space import SimplifiedStateSpace as SimplifiedStateSpace
from logcde.baselines.units import LRU as LRU
from logcde.baselines.units import S5 as S5
from logcde.baselines.units import S6 as S6
from logcde.baselines.units import AbstractUnit as AbstractUnit
from logcde.baselines.units import Mamba as Mamba
