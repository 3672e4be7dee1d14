"""From log-signatures to flows of a hidden state: vector fields, flows, and dynamics made of them."""

from logcde.flows.cumulative import CumulativeFeatures as CumulativeFeatures
from logcde.flows.dynamics import AbstractDynamics as AbstractDynamics
from logcde.flows.dynamics import AbstractFittedDynamics as AbstractFittedDynamics
from logcde.flows.fields import AbstractLinearField as AbstractLinearField
from logcde.flows.fields import AbstractOpenField as AbstractOpenField
from logcde.flows.fields import BlockDiagonal as BlockDiagonal
from logcde.flows.fields import Dense as Dense
from logcde.flows.fields import Diagonal as Diagonal
from logcde.flows.fields import DiagonalLowRank as DiagonalLowRank
from logcde.flows.fields import Sparse as Sparse
from logcde.flows.fields import WalshHadamard as WalshHadamard
from logcde.flows.linear import LinearDynamics as LinearDynamics
from logcde.flows.log_ode import LogODE as LogODE
from logcde.flows.neural import AbstractActivation as AbstractActivation
from logcde.flows.neural import AbstractVectorField as AbstractVectorField
from logcde.flows.neural import Identity as Identity
from logcde.flows.neural import NeuralField as NeuralField
from logcde.flows.neural import ReLU as ReLU
from logcde.flows.neural import SiLU as SiLU
from logcde.flows.neural import Tanh as Tanh
from logcde.flows.scan import AbstractFlow as AbstractFlow
from logcde.flows.scan import Euler as Euler
from logcde.flows.scan import Exponential as Exponential
from logcde.flows.scan import LinearFlows as LinearFlows
from logcde.flows.stack import ResidualBlock as ResidualBlock
from logcde.flows.stack import Stack as Stack
