"""One training step as a contender: forward, backward and update, compiled before it is timed."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.cases import Direct
from logcde.models import Inputs


class TrainingStep:
    """A compiled step of Adam on a classification loss; every call repeats the same step.

    Args:
        predict: Logits of one example, from a model and its inputs.
        model: The model.
        inputs: A batch of inputs.
        classes: Number of classes.
    """

    def __init__(self, predict: Callable[[Any, Inputs], Any], model: Any, inputs: Inputs, classes: int) -> None:
        parameters, rest = eqx.partition(model, eqx.is_inexact_array)
        adam = optax.adam(1e-3)
        labels = jnp.arange(len(inputs)) % classes

        def step(parameters: Any, state: Any, inputs: Inputs) -> tuple[Any, Any, Any]:
            def loss(parameters: Any) -> Any:
                model = eqx.combine(parameters, rest)
                logits = jax.vmap(lambda one: predict(model, one))(inputs)
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

            value, slope = jax.value_and_grad(loss)(parameters)
            with jax.numpy_dtype_promotion("standard"):  # which Optax relies on
                update, state = adam.update(slope, state, parameters)
                return optax.apply_updates(parameters, update), state, value

        self.arguments = (parameters, adam.init(parameters), inputs)
        self.compiled = jax.jit(step).lower(*self.arguments).compile()

    def __call__(self) -> Any:
        """Take the step and return the loss before it."""
        return jax.block_until_ready(self.compiled(*self.arguments))[2]

    def memory(self) -> int:
        """Bytes of temporary memory of the compiled program, without arguments and results."""
        analysis = self.compiled.memory_analysis()
        assert analysis is not None
        return analysis.temp_size_in_bytes


def contender(predict: Callable[[Any, Inputs], Any], model: Any, inputs: Inputs, classes: int, same: bool) -> Direct:
    """A training step as a contender; with `same`, its loss is compared with those of the others."""
    step = TrainingStep(predict, model, inputs, classes)
    return Direct(step, lambda loss: np.asarray(loss, np.float64).reshape(1, 1) if same else None, step.memory)
