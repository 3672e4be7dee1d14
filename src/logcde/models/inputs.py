"""What models take: one row for each interval of a series, its initial observations and its static features."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int

from logcde.algebra import Basis
from logcde.embedding import (
    AbstractRaggedSteps,
    FactorSteps,
    InitialObservations,
    LogSignatures,
    SparseLogSignatures,
    SparseSteps,
)
from logcde.errors import ModelError


class Controls(eqx.Module):
    """Controls of many series: paths through observations, in pieces, one row for each piece.

    Attributes:
        values: The rows, zero beyond a series' own pieces. A row has the coefficients of 1, s, s^2, ... of the path's
            derivative, all letters for each, in time s that goes from 0 to 1 over the piece: for straight pieces just
            the increment.
        lengths: The number of pieces of each series.
        basis: The letters of the path.
        initial: The first observations of each series.
        ends: For each query point, the piece that ends there.
        queries: The number of query points of each series.
    """

    values: Float[Array | np.ndarray, "series piece entry"]
    lengths: Int[Array | np.ndarray, "series"]
    basis: Basis = eqx.field(static=True)
    initial: InitialObservations
    ends: Int[Array | np.ndarray, "series query"]
    queries: Int[Array | np.ndarray, "series"]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, series: slice | np.ndarray | list) -> "Controls":
        """Select series by slice, mask or array of positions."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    def __repr__(self) -> str:
        series, pieces, _ = self.values.shape
        return f"Controls({series} series, up to {pieces} pieces, letters {', '.join(self.basis.letters)})"


class Inputs(eqx.Module):
    """The inputs of a model for one series; with a leading axis, for many.

    Attributes:
        logsigs: One log-signature for each interval, zero beyond `length`, or sparse ones, or their factors; for models
            along controls, one row for each piece of the control.
        length: The number of rows of the series itself.
        initial: The first observations of the series.
        static: Features that do not change over time.
        ends: For each query point, the row that ends there; None if every row is an interval of its own.
        queries: The number of query points; None if `ends` is.
    """

    logsigs: Float[Array, "*series interval lie"] | AbstractRaggedSteps
    length: Int[Array, "*series"]
    initial: InitialObservations
    static: Float[Array, "*series static"]
    ends: Int[Array, "*series query"] | None = None
    queries: Int[Array, "*series"] | None = None

    @property
    def outputs(self) -> Int[Array, "*series"]:
        """The number of query intervals, each of which may have a prediction."""
        return self.length if self.queries is None else self.queries

    @property
    def intervals(self) -> int:
        """The number of rows, with padding."""
        return self.logsigs.intervals if isinstance(self.logsigs, AbstractRaggedSteps) else self.logsigs.shape[-2]

    @property
    def rows(self) -> Float[Array, "*series interval lie"]:
        """The log-signatures as an array; refuses sparse ones."""
        if isinstance(self.logsigs, AbstractRaggedSteps):
            raise ModelError("Sparse log-signatures have no rows.", "Make the inputs of logsigs.dense().")
        return self.logsigs

    def __len__(self) -> int:
        return len(self.length)

    def __getitem__(self, series: int | slice | np.ndarray | Array) -> "Inputs":
        """Select one series, or several by slice, mask or array of positions."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    @staticmethod
    def of(
        data: LogSignatures | SparseLogSignatures | Controls,
        static: Float[Array | np.ndarray, "series static"] | None = None,
        dtype: DTypeLike = np.float32,
        *,
        factors: bool = False,
    ) -> "Inputs":
        """Make inputs of log-signatures or controls.

        Args:
            data: What an `Embedding` or a control gives.
            static: One row of static features for each series.
            dtype: The dtype of all real numbers.
            factors: Take the factors of sparse log-signatures, where they are known, instead of coordinates: for
                models that need no coordinates.

        >>> from logcde import Basis
        >>> logsigs = LogSignatures(np.ones((2, 3, 3)), np.array([3, 2]), Basis(("pulse", "time"), 2))
        >>> Inputs.of(logsigs)[0].logsigs.shape
        (3, 3)
        """
        count = len(data)
        nothing = np.zeros((count, 0), bool)
        initial = data.initial or InitialObservations(nothing.astype(dtype), nothing, nothing)
        if static is not None and (np.ndim(static) != 2 or len(static) != count):
            raise ModelError(
                f"The static features have shape {np.shape(static)}, but there are {count} series.",
                "Give one row for each series.",
            )
        # Only controls have several rows between two query points.
        ends, queries = (data.ends, data.queries) if isinstance(data, Controls) else (None, None)
        steps: Any
        if isinstance(data, SparseLogSignatures):
            form = FactorSteps if factors and data.factors is not None else SparseSteps
            steps = jax.tree.map(jnp.asarray, form.of(data, dtype))
        else:
            steps = jnp.asarray(data.values, dtype)
        return Inputs(
            steps,
            jnp.asarray(data.lengths, np.int32),
            InitialObservations(
                jnp.asarray(initial.first, dtype), jnp.asarray(initial.seen), jnp.asarray(initial.at_start)
            ),
            jnp.zeros((count, 0), dtype) if static is None else jnp.asarray(static, dtype),
            None if ends is None else jnp.asarray(ends, np.int32),
            None if queries is None else jnp.asarray(queries, np.int32),
        )
