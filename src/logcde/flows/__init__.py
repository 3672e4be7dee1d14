"""From log-signatures to flows of a hidden state."""

from logcde.flows.comparison import DiagonalLowRank as DiagonalLowRank
from logcde.flows.comparison import Sparse as Sparse
from logcde.flows.comparison import WalshHadamard as WalshHadamard
from logcde.flows.controls import Controls as Controls
from logcde.flows.controls import HermiteControl as HermiteControl
from logcde.flows.controls import LinearControl as LinearControl
from logcde.flows.controls import RectilinearControl as RectilinearControl
from logcde.flows.dynamics import AbstractDynamics as AbstractDynamics
from logcde.flows.fields import BlockDiagonal as BlockDiagonal
from logcde.flows.fields import Dense as Dense
from logcde.flows.fields import Diagonal as Diagonal
from logcde.flows.linear import LinearDynamics as LinearDynamics
from logcde.flows.log_ode import LogODE as LogODE
from logcde.flows.ncde import ControlODE as ControlODE
from logcde.flows.neural import AbstractVectorField as AbstractVectorField
from logcde.flows.neural import Identity as Identity
from logcde.flows.neural import NeuralField as NeuralField
from logcde.flows.neural import ReLU as ReLU
from logcde.flows.neural import SiLU as SiLU
from logcde.flows.neural import Tanh as Tanh
from logcde.flows.scan import Acting as Acting
from logcde.flows.scan import Euler as Euler
from logcde.flows.scan import Exponential as Exponential
from logcde.flows.scan import Fastest as Fastest
from logcde.flows.stack import Block as Block
from logcde.flows.stack import Stack as Stack
