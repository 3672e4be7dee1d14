"""Truncated tensor algebra and free Lie algebra over named letters."""

from logcde.algebra.basis import Basis as Basis
from logcde.algebra.basis import Bracket as Bracket
from logcde.algebra.lie import Lie as Lie
from logcde.algebra.lie import expand as expand
from logcde.algebra.lie import project as project
from logcde.algebra.lyndon import witt_dimensions as witt_dimensions
from logcde.algebra.operations import bch as bch
from logcde.algebra.operations import bracket as bracket
from logcde.algebra.operations import dilate as dilate
from logcde.algebra.operations import exp as exp
from logcde.algebra.operations import log as log
from logcde.algebra.operations import multiply_exp as multiply_exp
from logcde.algebra.sparse import SparseMap as SparseMap
from logcde.algebra.tensor import Tensor as Tensor
from logcde.algebra.tensor import inverse as inverse
from logcde.algebra.tensor import product as product
from logcde.algebra.tensor import unit as unit
