"""`DeepSLiCE`: a deep stack of stable flows along the rows of windows."""

import dataclasses

import jax
import numpy as np
from jaxtyping import Int64, PRNGKeyArray

from logcde.algebra import Basis
from logcde.estimators.choosing import choose_windows
from logcde.estimators.learners.abstract import Task
from logcde.estimators.learners.gradients import AbstractGradientLearner, Prepared, Versions, drop_copies
from logcde.features import WindowRows
from logcde.features.rows import NAMES
from logcde.models import AbstractOnlineModel, AbstractReadout, MeanMax, SequenceModel, deep_stable
from logcde.models.series import RowModel, row_inputs
from logcde.scans import Auto, Sequential

LIMIT = 3.0
"""Entries of rows are limited softly to this size; those of training have unit size."""
STANDARDISING = 2
"""Versions with fewer observations by which rows are standardised, besides the series themselves."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepSLiCE(AbstractGradientLearner):
    """A deep stack of linear CDEs whose flows rotate and forget, along the rows of windows (`WindowRows`).

    Its layers mix time by stable flows, so that no series moves a state out of bounds, and windows that are over are
    folded into the states online. Further options are those of `AbstractGradientLearner`.

    Args:
        hidden: Size of the state and of the output of every layer.
        layers: Number of layers.
        windows: Number of windows of a series of typical length.
        memory: Shortest and longest of the initial time constants, in windows.

    >>> DeepSLiCE(hidden=64).layers
    3
    """

    hidden: int = 48
    layers: int = 3
    windows: int | None = None
    memory: tuple[float, float] = (1.0, 32.0)
    rate: float = 4e-3

    def prepare(self, task: Task, training: Int64[np.ndarray, "_"]) -> Prepared:
        """Compute the rows of the series, and of versions with fewer observations."""
        windows = choose_windows(self.windows, task.streams)
        size = len(task.streams) * windows.value * len(task.streams.schema.channels) * len(NAMES)
        dropped = drop_copies(task.streams, self.regularisation.copies, size, task.seed)
        some = tuple(one[training] for one in dropped[:STANDARDISING])
        rows = WindowRows(windows.value).fit(task.streams[training], some)
        inputs, *copies = (row_inputs(rows(one)) for one in (task.streams, *dropped))

        def finish(network: AbstractOnlineModel) -> RowModel:
            return RowModel(network, rows)

        return Prepared(Versions(len(rows.names), inputs, tuple(copies)), finish, {"windows": windows})

    def build(
        self, rows: Basis | int, outputs: int, readout: type[AbstractReadout] | None, key: PRNGKeyArray
    ) -> SequenceModel:
        """The stack."""
        dropout = self.regularisation.dropout
        return deep_stable(
            rows,
            self.hidden,
            outputs,
            layers=self.layers,
            memory=self.memory,
            dropout=dropout,
            input_limit=LIMIT,
            readout=(readout or MeanMax)((), dropout),
            # What `Auto` selects on a CPU; compiling its other branches as well would take longer than small fits.
            scan=Sequential() if jax.default_backend() == "cpu" else Auto(),
            key=key,
        )
