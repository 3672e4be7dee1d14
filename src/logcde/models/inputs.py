"""What a model sees: rows of numbers for each interval, what the series begins with, and what never changes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int

from logcde.algebra import Basis
from logcde.embedding import InitialObservations, LogSignatures
from logcde.errors import ModelError


class Controls(eqx.Module):
    """The pieces of the controls of many series, zero beyond a series' own number of pieces.

    A row has the coefficients of 1, s, s^2, ... of the path's derivative, all letters for each, in time s that goes
    from 0 to 1 over a piece: for straight pieces just the increment. `ends` is the piece that ends at each query point
    and `queries` how many of these there are.
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
        """The chosen series, by slice, mask or array of positions."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    def __repr__(self) -> str:
        series, pieces, _ = self.values.shape
        return f"Controls({series} series, up to {pieces} pieces, letters {', '.join(self.basis.letters)})"


class Inputs(eqx.Module):
    """One series as models take it; with a leading axis, many of them.

    `steps` are zero beyond `length`. `ends` is for driving paths with several pieces between two query points: the
    number of the piece that ends at each query point, and `queries` how many there are; None if every row is an
    interval of its own.
    """

    steps: Float[Array, "*series interval lie"]
    length: Int[Array, "*series"]
    initial: InitialObservations
    static: Float[Array, "*series static"]
    ends: Int[Array, "*series query"] | None = None
    queries: Int[Array, "*series"] | None = None

    @property
    def outputs(self) -> Int[Array, "*series"]:
        """The number of query intervals, each of which may have a prediction."""
        return self.length if self.queries is None else self.queries

    def __len__(self) -> int:
        return len(self.length)

    def __getitem__(self, series: int | slice | np.ndarray | Array) -> "Inputs":
        """One series, or some of them, by position, slice, mask or array of positions."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    @staticmethod
    def of(
        logsigs: LogSignatures | Controls,
        static: Float[Array | np.ndarray, "series static"] | None = None,
        dtype: DTypeLike = np.float32,
    ) -> "Inputs":
        """Log-signatures or controls, and features that do not change over time, as arrays of one dtype.

        >>> from logcde import Basis
        >>> logsigs = LogSignatures(np.ones((2, 3, 3)), np.array([3, 2]), Basis(("pulse", "time"), 2))
        >>> Inputs.of(logsigs)[0].steps.shape
        (3, 3)
        """
        count = len(logsigs)
        nothing = np.zeros((count, 0), bool)
        initial = logsigs.initial or InitialObservations(nothing.astype(dtype), nothing, nothing)
        if static is not None and (np.ndim(static) != 2 or len(static) != count):
            raise ModelError(
                f"The static features have shape {np.shape(static)}, but there are {count} series. "
                "Give one row for each series."
            )
        return Inputs(
            jnp.asarray(logsigs.values, dtype),
            jnp.asarray(logsigs.lengths, np.int32),
            InitialObservations(
                jnp.asarray(initial.first, dtype), jnp.asarray(initial.seen), jnp.asarray(initial.at_start)
            ),
            jnp.zeros((count, 0), dtype) if static is None else jnp.asarray(static, dtype),
            jnp.asarray(logsigs.ends, np.int32) if isinstance(logsigs, Controls) else None,
            jnp.asarray(logsigs.queries, np.int32) if isinstance(logsigs, Controls) else None,
        )
