"""The vocabulary of axes, each named once, and the array types of public signatures.

| axis       | what it counts                                                |
|------------|---------------------------------------------------------------|
| `series`   | observation streams in a data set                             |
| `event`    | stamps of one or all series, simultaneous observations merged |
| `obs`      | single observations (event, channel, value)                   |
| `channel`  | discretely observed channels                                  |
| `letter`   | coordinates of the driving path (values, counts, continuous)  |
| `interval` | query intervals                                               |
| `piece`    | pieces of a control between observations and query points     |
| `query`    | query points that have a prediction                           |
| `lie`      | coordinates in a Lyndon basis                                 |
| `knot`     | knots of continuous channels or of soft bins                  |
| `hidden`   | entries of a hidden state                                     |
| `features` | entries of the state that dynamics pass to a readout          |
| `block`    | blocks of a block-diagonal matrix; `row`, `column` within one |
| `static`   | time-independent features of a series                         |
| `output`   | entries of a prediction                                       |
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Numbers: TypeAlias = float | int | Sequence | np.ndarray
"""A number, or anything that converts to an array of numbers."""
