"""Solve an ODE over one interval after another, each of unit length, in whole steps of a Diffrax solver.

One interval is one iteration of a loop, so nothing is looked up by time. The backward pass keeps the states between
steps and recomputes the rest: on a CPU that is faster than writing everything to memory and reading it back.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from logcde.errors import ModelError

Rows: TypeAlias = PyTree[Any]
"""What drives one interval, or with a leading axis many."""

Drift: TypeAlias = Callable[[Any, Any, Any], Float[Array, "hidden"]]
"""The derivative of the state, from the time within the interval (0 to 1), the state and the row."""


def integrate(
    drift: Drift, hidden: Float[Array, "hidden"], rows: Rows, solver: diffrax.AbstractSolver, steps: int
) -> Float[Array, "interval hidden"]:
    """The state at the end of every interval.

    >>> states = integrate(lambda time, state, row: row * state, jnp.ones(1), jnp.arange(2.0), diffrax.Heun(), 100)
    >>> states[:, 0].round(3).tolist()
    [1.0, 2.718]
    """

    def extend(state: Float[Array, "hidden"], row: Rows) -> tuple[Float[Array, "hidden"], Float[Array, "hidden"]]:
        state = over_interval(drift, state, row, solver, steps)
        return state, state

    return jax.lax.scan(extend, hidden, rows)[1]


def over_interval(
    drift: Drift, hidden: Float[Array, "hidden"], row: Rows, solver: diffrax.AbstractSolver, steps: int
) -> Float[Array, "hidden"]:
    """The state at the end of one interval."""
    term = diffrax.ODETerm(drift)
    tableau = solver.tableau if isinstance(solver, diffrax.AbstractERK) else None
    zero, size = jnp.zeros((), hidden.dtype), 1 / steps

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def forward(carry: PyTree[Any], number: Float[Array, ""]) -> tuple[PyTree[Any], None]:
        state, kept = carry
        if isinstance(tableau, diffrax.ButcherTableau):
            return (_explicit(tableau, drift, number * size, size, state, row), kept), None
        state, _, _, kept, _ = solver.step(term, number * size, (number + 1) * size, state, row, kept, False)
        return (state, kept), None

    kept = None if isinstance(tableau, diffrax.ButcherTableau) else solver.init(term, zero, zero + size, hidden, row)
    if steps == 1:
        return forward((hidden, kept), zero)[0][0]
    return jax.lax.scan(forward, (hidden, kept), jnp.arange(steps, dtype=hidden.dtype))[0][0]


def check_solver(solver: diffrax.AbstractSolver, steps: int) -> None:
    """Refuse implicit solvers, whose steps may fail, and fewer than one step."""
    if isinstance(solver, diffrax.AbstractImplicitSolver):
        raise ModelError(
            f"{type(solver).__name__} is an implicit solver, whose steps may fail.",
            "Use an explicit one, such as diffrax.Heun() or diffrax.Tsit5(), with more steps if necessary.",
        )
    if steps < 1:
        raise ModelError(f"The solver would take {steps} steps over an interval.", "Give a whole number, 1 or more.")


def _explicit(
    tableau: diffrax.ButcherTableau,
    drift: Drift,
    start: Float[Array, ""],
    size: float,
    hidden: Float[Array, "hidden"],
    row: Rows,
) -> Float[Array, "hidden"]:
    """One step of an explicit Runge-Kutta method with its stages written out.

    Diffrax's own step loops over them with checkpoints, which costs more than stages this small.
    """
    slopes: list[Float[Array, "hidden"]] = []

    def moved(amounts: Any) -> Float[Array, "hidden"]:
        state = hidden
        for amount, slope in zip(amounts, slopes, strict=False):
            if amount != 0:
                state = state + float(amount) * size * slope
        return state

    for place, amounts in zip((0.0, *tableau.c), ((), *tableau.a_lower), strict=True):
        slopes.append(drift(start + float(place) * size, moved(amounts), row))
    return moved(tableau.b_sol)
