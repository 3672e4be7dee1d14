"""From observations to one log-signature for each query interval."""

from logcde.embedding.coordinates import Coordinates as Coordinates
from logcde.embedding.device import logsignatures as logsignatures
from logcde.embedding.embedding import Embedding as Embedding
from logcde.embedding.index import Index as Index
from logcde.embedding.logsigs import LogSignatures as LogSignatures
from logcde.embedding.logsigs import Source as Source
from logcde.embedding.online import Online as Online
from logcde.embedding.opening import Opening as Opening
from logcde.embedding.opening import opening_of as opening_of
from logcde.embedding.padding import PaddedStreams as PaddedStreams
from logcde.embedding.padding import pad as pad
from logcde.embedding.scan import Associative as Associative
from logcde.embedding.scan import Chunked as Chunked
from logcde.embedding.scan import Sequential as Sequential
