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
from logcde.embedding import Associative as Associative
from logcde.embedding import Chunked as Chunked
from logcde.embedding import Sequential as Sequential
from logcde.embedding import logsignatures as logsignatures
from logcde.embedding import pad as pad
from logcde.paths import RealisedPath as RealisedPath
from logcde.paths import realise as realise
from logcde.paths import decode as decode
from logcde.paths import check_faithful as check_faithful
