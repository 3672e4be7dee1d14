"""The realised path of a series, its inverse, and which series an embedding cannot tell apart."""

from logcde.paths.decoding import decode as decode
from logcde.paths.faithful import Collision as Collision
from logcde.paths.faithful import Faithfulness as Faithfulness
from logcde.paths.faithful import Reason as Reason
from logcde.paths.faithful import Unseen as Unseen
from logcde.paths.faithful import check_faithful as check_faithful
from logcde.paths.faithful import unseen as unseen
from logcde.paths.path import RealisedPath as RealisedPath
from logcde.paths.realisation import realise as realise
