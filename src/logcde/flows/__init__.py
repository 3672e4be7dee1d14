"""From log-signatures to flows of a hidden state."""

from logcde.flows.comparison import DiagonalLowRank as DiagonalLowRank
from logcde.flows.comparison import Sparse as Sparse
from logcde.flows.comparison import WalshHadamard as WalshHadamard
from logcde.flows.dynamics import AbstractDynamics as AbstractDynamics
from logcde.flows.fields import BlockDiagonal as BlockDiagonal
from logcde.flows.fields import Dense as Dense
from logcde.flows.fields import Diagonal as Diagonal
from logcde.flows.linear import LinearDynamics as LinearDynamics
from logcde.flows.scan import Acting as Acting
from logcde.flows.scan import Euler as Euler
from logcde.flows.scan import Exponential as Exponential
from logcde.flows.scan import Fastest as Fastest
