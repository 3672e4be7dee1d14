"""A vector field with a known Log-ODE: f_i(h) = A_i h."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.flows import AbstractVectorField
from logcde.flows.neural import Push


class LinearField(AbstractVectorField):
    matrices: Float[Array, "letter hidden hidden"]

    @property
    def letters(self) -> int:
        return len(self.matrices)

    @property
    def hidden(self) -> int:
        return self.matrices.shape[-1]

    def __call__(self, hidden: Float[Array, "hidden"]) -> Float[Array, "letter hidden"]:
        return self.matrices @ hidden

    def linearise(self, hidden: Float[Array, "hidden"]) -> tuple[Float[Array, "letter hidden"], Push]:
        return self(hidden), lambda directions: jnp.einsum("jab,jb->a", self.matrices, directions)

    def of_letters(self, letters: Int[Array, "letter"]) -> "LinearField":
        return LinearField(self.matrices[letters])

    def penalty(self) -> Float[Array, ""]:
        return jnp.zeros(())
