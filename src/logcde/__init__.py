"""Learning from irregular, asynchronous observation streams, without filling a gap."""

# In the order of the data path.
# ruff: isort: off
from logcde.algebra import Basis as Basis
from logcde.algebra import Lie as Lie
from logcde.algebra import Tensor as Tensor
from logcde.streams import Average as Average
from logcde.streams import Calendar as Calendar
from logcde.streams import FirstStamp as FirstStamp
from logcde.streams import KeepLast as KeepLast
from logcde.streams import Partition as Partition
from logcde.streams import Schema as Schema
from logcde.streams import Streams as Streams
from logcde.streams import Term as Term
from logcde.embedding import Embedding as Embedding
from logcde.embedding import Index as Index
from logcde.embedding import LogSignatures as LogSignatures
from logcde.embedding import Online as Online
from logcde.embedding import Opening as Opening
from logcde.embedding import Associative as Associative
from logcde.embedding import Chunked as Chunked
from logcde.embedding import Sequential as Sequential
from logcde.embedding import logsignatures as logsignatures
from logcde.embedding import pad as pad
from logcde.artefact import load as load
from logcde.artefact import register as register
from logcde.flows import Acting as Acting
from logcde.flows import Euler as Euler
from logcde.flows import Exponential as Exponential
from logcde.flows import Fastest as Fastest
from logcde.models import CDE as CDE
from logcde.models import EachInterval as EachInterval
from logcde.models import FirstValues as FirstValues
from logcde.models import Inputs as Inputs
from logcde.models import Learnt as Learnt
from logcde.models import LogSLiCE as LogSLiCE
from logcde.models import Mean as Mean
from logcde.models import StartValues as StartValues
from logcde.models import Terminal as Terminal
from logcde.models import UnitIncrements as UnitIncrements
from logcde.models import Unscaled as Unscaled
from logcde.models import predict_all as predict_all
from logcde.paths import RealisedPath as RealisedPath
from logcde.paths import realise as realise
from logcde.paths import decode as decode
from logcde.paths import check_faithful as check_faithful
