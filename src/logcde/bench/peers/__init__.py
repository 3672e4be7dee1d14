"""The peers, each behind the same small interface; a peer's own package is imported when it first runs."""

from logcde.bench.peers.abstract import AbstractPeer as AbstractPeer
from logcde.bench.peers.abstract import AbstractStream as AbstractStream
from logcde.bench.peers.closed import ClosedJax as ClosedJax
from logcde.bench.peers.closed import ClosedNumPy as ClosedNumPy
from logcde.bench.peers.compiled import IISignature as IISignature
from logcde.bench.peers.compiled import PySigLib as PySigLib
from logcde.bench.peers.compiled import PySigLibBch as PySigLibBch
from logcde.bench.peers.rough import Esig as Esig
from logcde.bench.peers.rough import RoughPy as RoughPy
from logcde.bench.peers.xla import RoughPyJax as RoughPyJax
from logcde.bench.peers.xla import Signax as Signax

PEERS: tuple[AbstractPeer, ...] = (
    IISignature(),
    PySigLib(),
    PySigLibBch(),
    Signax(),
    RoughPyJax(),
    RoughPy(),
    Esig(),
    ClosedNumPy(),
    ClosedJax(),
)
"""In the order of the tables; the first that answers is the reference of the comparison."""
