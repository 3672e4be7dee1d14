"""From log-signatures to flows of a hidden state."""

from logcde.flows.cumulative import CumulativeFeatures as CumulativeFeatures
from logcde.flows.dynamics import AbstractBatchDynamics as AbstractBatchDynamics
from logcde.flows.dynamics import AbstractDynamics as AbstractDynamics
from logcde.flows.fields import BlockDiagonal as BlockDiagonal
from logcde.flows.fields import Dense as Dense
from logcde.flows.fields import Diagonal as Diagonal
from logcde.flows.fields import DiagonalLowRank as DiagonalLowRank
from logcde.flows.fields import Sparse as Sparse
from logcde.flows.fields import WalshHadamard as WalshHadamard
from logcde.flows.linear import LinearDynamics as LinearDynamics
from logcde.flows.log_ode import LogODE as LogODE
from logcde.flows.neural import AbstractVectorField as AbstractVectorField
from logcde.flows.neural import Identity as Identity
from logcde.flows.neural import NeuralField as NeuralField
from logcde.flows.neural import ReLU as ReLU
from logcde.flows.neural import SiLU as SiLU
from logcde.flows.neural import Tanh as Tanh
from logcde.flows.scan import Euler as Euler
from logcde.flows.scan import Exponential as Exponential
from logcde.flows.stack import ResidualBlock as ResidualBlock
from logcde.flows.stack import Stack as Stack
