"""The peers, each behind the same small interface; a peer's own package is imported when it first runs."""

from benchmarks.peers.abstract import AbstractPeer as AbstractPeer
from benchmarks.peers.abstract import AbstractStream as AbstractStream
from benchmarks.peers.closed import ClosedJax as ClosedJax
from benchmarks.peers.closed import ClosedNumPy as ClosedNumPy
from benchmarks.peers.compiled import Esig as Esig
from benchmarks.peers.compiled import IISignature as IISignature
from benchmarks.peers.compiled import PySigLib as PySigLib
from benchmarks.peers.compiled import PySigLibBch as PySigLibBch
from benchmarks.peers.compiled import RoughPy as RoughPy
from benchmarks.peers.xla import RoughPyJax as RoughPyJax
from benchmarks.peers.xla import Signax as Signax

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
