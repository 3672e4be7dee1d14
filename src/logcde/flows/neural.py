"""Neural vector fields: a multilayer perceptron that gives one vector for each letter of the driving path.

Its layers are written out because Lie brackets need derivatives of the fields f_j in different directions: all pass
through the same inner layers, and each needs only its own letter's rows of the last layer.
"""

import abc
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.errors import ModelError

Push: TypeAlias = Callable[[Float[Array, "letter hidden"]], Float[Array, "hidden"]]
"""From one direction v_j for each letter to the sum of the directional derivatives D f_j v_j."""


class AbstractVectorField(eqx.Module):
    """One vector field f_i on the hidden state for each letter."""

    @property
    @abc.abstractmethod
    def letters(self) -> int:
        """The number of fields."""

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """The size of the hidden state."""

    @abc.abstractmethod
    def __call__(self, hidden: Float[Array, "hidden"]) -> Float[Array, "letter hidden"]:
        """All fields at one state."""

    @abc.abstractmethod
    def linearise(self, hidden: Float[Array, "hidden"]) -> tuple[Float[Array, "letter hidden"], Push]:
        """All fields at one state, and a function for the sum of their derivatives there, each in its own direction."""

    @abc.abstractmethod
    def of_letters(self, letters: Int[Array, "letter"]) -> "AbstractVectorField":
        """The fields of some letters only."""

    @abc.abstractmethod
    def penalty(self) -> Float[Array, ""]:
        """The size of the fields, as the regulariser of the paper's experiments measures it."""


class AbstractActivation(eqx.Module):
    """A function of one number, applied to each entry."""

    @abc.abstractmethod
    def __call__(self, entries: Float[Array, "entry"]) -> Float[Array, "entry"]:
        """Apply the function to each entry."""


class SiLU(AbstractActivation):
    """x sigmoid(x). Smooth, as fields must be whose brackets are taken."""

    def __call__(self, entries: Float[Array, "entry"]) -> Float[Array, "entry"]:
        """Apply the function to each entry."""
        return jax.nn.silu(entries)


class ReLU(AbstractActivation):
    """max(x, 0)."""

    def __call__(self, entries: Float[Array, "entry"]) -> Float[Array, "entry"]:
        """Apply the function to each entry."""
        return jax.nn.relu(entries)


class Tanh(AbstractActivation):
    """The hyperbolic tangent."""

    def __call__(self, entries: Float[Array, "entry"]) -> Float[Array, "entry"]:
        """Apply the function to each entry."""
        return jnp.tanh(entries)


class Identity(AbstractActivation):
    """The identity."""

    def __call__(self, entries: Float[Array, "entry"]) -> Float[Array, "entry"]:
        """Apply the function to each entry."""
        return entries


class NeuralField(AbstractVectorField):
    """A multilayer perceptron from the hidden state to one vector for each letter.

    Args:
        letters: The number of fields.
        hidden: The size of the hidden state.
        width: The size of the inner layers.
        activations: One for each layer; the last one is applied to the fields.
        init_scale: Multiplies all initial weights and biases, which are those of `eqx.nn.Linear`.
        dtype: The dtype of the weights.
        key: Draws the weights.

    >>> field = NeuralField(3, hidden=8, width=16, activations=(SiLU(), SiLU(), Tanh()), key=jax.random.key(0))
    >>> field(jnp.ones(8, jnp.float32)).shape
    (3, 8)
    """

    weights: tuple[Float[Array, "_out _in"], ...]
    biases: tuple[Float[Array, "_out"], ...]
    activations: tuple[AbstractActivation, ...]

    def __init__(
        self,
        letters: int,
        hidden: int,
        width: int,
        activations: tuple[AbstractActivation, ...],
        *,
        init_scale: float = 1.0,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if min(letters, hidden, width, len(activations)) < 1:
            raise ModelError(
                f"A vector field with {letters} letters, a hidden state of {hidden} and {len(activations)} layers of "
                f"width {width} cannot be built.",
                "Each of these is 1 or more.",
            )
        sizes = (hidden, *[width] * (len(activations) - 1), letters * hidden)
        keys = jax.random.split(key, len(activations))
        layers = [
            eqx.nn.Linear(before, after, dtype=dtype, key=k)
            for before, after, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        ]
        # A division, because published runs divide by 1000: a product with 1e-3 rounds differently.
        divisor = 1 / init_scale
        self.weights = tuple(jnp.asarray(layer.weight) / divisor for layer in layers)
        self.biases = tuple(jnp.asarray(layer.bias) / divisor for layer in layers)
        self.activations = activations

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.weights[0].shape[1]

    @property
    def letters(self) -> int:
        """The number of fields."""
        return self.weights[-1].shape[0] // self.hidden

    def __call__(self, hidden: Float[Array, "hidden"]) -> Float[Array, "letter hidden"]:
        """All fields at one state."""
        entries = hidden
        for weight, bias, activation in zip(self.weights, self.biases, self.activations, strict=True):
            entries = activation(weight @ entries + bias)
        return entries.reshape(self.letters, self.hidden)

    def linearise(self, hidden: Float[Array, "hidden"]) -> tuple[Float[Array, "letter hidden"], Push]:
        """All fields at one state, and a function for the sum of their derivatives there, each in its own direction."""
        entries, slopes = hidden, []
        for weight, bias, activation in zip(self.weights, self.biases, self.activations, strict=True):
            before = weight @ entries + bias
            entries, slope = jax.jvp(activation, (before,), (jnp.ones_like(before),))
            slopes.append(slope)
        values = entries.reshape(self.letters, self.hidden)

        def through_layers(directions: Float[Array, "_direction hidden"]) -> Float[Array, "_direction width"]:
            for weight, slope in zip(self.weights[:-1], slopes[:-1], strict=True):
                directions = (directions @ weight.T) * slope
            return directions

        def push(directions: Float[Array, "letter hidden"]) -> Float[Array, "hidden"]:
            if self.letters > self.hidden:  # fewer axes than directions: the axes go through the layers
                directions = directions @ through_layers(jnp.eye(self.hidden, dtype=directions.dtype))
            else:
                directions = through_layers(directions)
            # Of the last layer, the direction of letter j meets the rows of letter j alone.
            rows = self.weights[-1].reshape(self.letters, self.hidden, -1)
            moved = jnp.einsum("jhw,jw->jh", rows, directions)
            return jnp.sum(moved * slopes[-1].reshape(moved.shape), axis=0)

        return values, push

    def of_letters(self, letters: Int[Array, "letter"]) -> "NeuralField":
        """The same layers, but the last one, which has the rows of these letters."""

        def chosen(rows: Float[Array, "row *entry"]) -> Float[Array, "_ *entry"]:
            return rows.reshape(self.letters, self.hidden, *rows.shape[1:])[letters].reshape(-1, *rows.shape[1:])

        weights = (*self.weights[:-1], chosen(self.weights[-1]))
        biases = (*self.biases[:-1], chosen(self.biases[-1]))
        return eqx.tree_at(lambda field: (field.weights, field.biases), self, (weights, biases))

    def penalty(self) -> Float[Array, ""]:
        """The sum over layers of the mean norm of the rows of the weight and the norm of the bias."""
        parts = [jnp.mean(_norm(weight)) + _norm(bias) for weight, bias in zip(self.weights, self.biases, strict=True)]
        return jnp.sum(jnp.stack(parts))


def _norm(rows: Float[Array, "*row entry"]) -> Float[Array, "*row"]:
    """Euclidean norms with a finite gradient at zero."""
    return jnp.sqrt(jnp.sum(rows * rows, axis=-1) + jnp.finfo(rows.dtype).tiny)
