"""`check_model`: good models pass, and for every law there is a model that breaks it."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array

import logcde as lc
from logcde.embedding import Coordinates, EmbeddingSpec
from logcde.errors import CheckFailed, ModelError
from logcde.flows import AbstractDynamics, AbstractStableField, Contracting, LinearDynamics, Orthogonal
from logcde.models import AbstractModel
from logcde.models.initial import AbstractInitial
from logcde.streams import DatetimeClock, Schema
from logcde.testing import check_model
from logcde.testing.check import LAWS
from logcde.testing.examples import example_inputs

KEY = jax.random.key(0)
COORDINATES = Coordinates(Schema(("a", "b")), 2, True, True)
BASIS = COORDINATES.basis
STABLE = "stable flows stay bounded"
COMMON = [name for name in LAWS if name != STABLE]


def a_model(**options):
    return lc.log_slice(BASIS, **{"hidden": 4, "block": 2, "outputs": 2, "dtype": jnp.float64, "key": KEY} | options)


GOOD = {
    "single": {"dtype": jnp.float32, "hidden": 6, "block": 3},
    "each": {
        "readout": lc.PerInterval(widths=(3,)),
        "initial": lc.TimeZeroInitial(),
        "static": 2,
        "flow": lc.flows.Euler(),
        "hidden": 3,
        "block": 3,
    },
    "mean": {
        "readout": lc.Mean(initial=True),
        "block": 1,
        "flow": lc.flows.Euler(),
        "scaling": lc.IncrementRMSScaling(),
    },
}


@pytest.mark.parametrize("options", GOOD.values(), ids=GOOD)
def test_check_model_passes_good_models(options):
    assert check_model(a_model(**options)) == COMMON


def test_check_model_names_only_laws_that_apply():
    skipped = set(COMMON) - set(check_model(a_model(initial=lc.FirstValueInitial())))
    assert skipped == {"the future never changes the past", "online equals batch", "a predictor equals batch"}


def test_check_model_with_a_spec_of_another_clock():
    schema = Schema(("a", "b"), DatetimeClock())
    spec = EmbeddingSpec(dataclasses.replace(COORDINATES, schema=schema), lc.Partition.calendar(lc.Calendar.DAY))
    assert check_model(dataclasses.replace(a_model(), spec=spec)) == COMMON


def stable(kind):
    """A model of one stable linear CDE; `Orthogonal` or `Contracting`."""
    model = a_model()
    return dataclasses.replace(
        model, dynamics=LinearDynamics(kind(BASIS, 4, 2, init_scale=1.0, dtype=jnp.float64, key=KEY))
    )


@pytest.mark.parametrize("kind", [Orthogonal, Contracting])
def test_check_model_passes_stable_models(kind):
    assert check_model(stable(kind)) == list(LAWS)


@lc.register
class Growing(AbstractStableField):
    """Claims that its flows are rotations; they are not."""

    inner: Orthogonal
    basis: lc.Basis = eqx.field(static=True)

    @property
    def hidden(self):
        return self.inner.hidden

    def generators(self):
        return self.inner.generators() + 1e-3 * jnp.eye(2)[..., None]

    def letter_generators(self):
        return self.generators()[: self.basis.width]

    def as_matrices(self):
        return self.inner.as_matrices()

    def letters(self):
        return self.inner.letters()

    def bound(self, norms, logsig):
        return self.inner.bound(norms, logsig)


def test_check_model_catches_stable_fields_that_grow():
    model = stable(Orthogonal)
    field = Growing(model.dynamics.field, BASIS)
    with pytest.raises(CheckFailed, match=f"{STABLE}. A state of Growing leaves its bound"):
        check_model(dataclasses.replace(model, dynamics=LinearDynamics(field)))


class AbstractToy(AbstractModel):
    """Running sums of log-signatures, times a weight."""

    weight: Array
    spec: None = eqx.field(static=True, default=None)

    def sums(self, inputs):
        valid = jnp.arange(len(inputs.logsigs), dtype=inputs.length.dtype) < inputs.length
        return jnp.cumsum(jnp.where(valid[:, None], inputs.logsigs @ self.weight, 0), axis=0)

    def penalty(self):
        return jnp.sum(self.weight)

    def fit_preprocessing(self, inputs, spec):
        return self


def toy(name, call):
    """A toy with another `__call__`."""
    made = type(name, (AbstractToy,), {"__call__": call, "__module__": __name__})
    return lc.register(made)


TRACED = []


def traces(self, inputs, *, key=None):
    TRACED.append(0)
    return self.sums(inputs) + 0.1 * len(TRACED)


BROKEN = {
    "one trace for each shape": lambda self, inputs, *, key=None: (
        self.sums(inputs) if inputs.length > 2 else 2 * self.sums(inputs)
    ),
    "the precision is kept": lambda self, inputs, *, key=None: self.sums(inputs).astype(jnp.float32),
    "a batch equals a loop": traces,
    "a ragged batch equals single series": lambda self, inputs, *, key=None: (
        self.sums(inputs) + float(len(inputs.logsigs) < 3)
    ),
    "padding changes nothing": lambda self, inputs, *, key=None: self.sums(inputs) + float(len(inputs.logsigs) > 6),
    "the future never changes the past": lambda self, inputs, *, key=None: self.sums(inputs) + self.sums(inputs)[-1],
    "gradients are finite": lambda self, inputs, *, key=None: jnp.sqrt(jnp.square(self.sums(inputs))),
}


def test_check_model_passes_a_custom_model():
    model = toy("Sound", lambda self, inputs, *, key=None: self.sums(inputs))(jnp.ones((BASIS.dimension, 2)))
    skipped = set(COMMON) - set(check_model(model, example_inputs(a_model())))
    assert skipped == {"online equals batch", "a predictor equals batch"}


@pytest.mark.parametrize(("law", "call"), BROKEN.items())
def test_check_model_catches_broken_laws(law, call):
    model = toy("Broken", call)(jnp.ones((BASIS.dimension, 2)))
    with pytest.raises(CheckFailed, match=f"Broken breaks the law: {law}"):
        check_model(model, example_inputs(a_model()))


@lc.register
class Drifting(AbstractDynamics):
    """`advance` differs from `unroll` for log-signatures above a certain size."""

    inner: LinearDynamics
    above: float = eqx.field(static=True)

    @property
    def hidden(self):
        return self.inner.hidden

    @property
    def features(self):
        return self.inner.features

    def unroll(self, hidden, logsigs, length):
        return self.inner.unroll(hidden, logsigs, length)

    def start(self, hidden):
        return hidden

    def advance(self, carry, logsig):
        moved = self.inner.advance(carry, logsig)
        return jnp.where(jnp.abs(logsig).max() > self.above, 1.01 * moved, moved)

    def state(self, carry):
        return carry

    def penalty(self):
        return self.inner.penalty()


@lc.register
class Peeking(AbstractInitial):
    """Claims to be causal and is not."""

    causal: bool = eqx.field(default=True, init=False, static=True)

    def size(self, channels):
        return channels

    def __call__(self, initial):
        return initial.first


@pytest.mark.parametrize(("law", "above"), [("online equals batch", 0.0), ("a predictor equals batch", 1.2)])
def test_check_model_catches_advance_that_differs_from_unroll(law, above):
    model = a_model()
    with pytest.raises(CheckFailed, match=f"SequenceModel breaks the law: {law}"):
        check_model(dataclasses.replace(model, dynamics=Drifting(model.dynamics, above)))


def test_check_model_catches_a_false_claim_of_causality():
    with pytest.raises(CheckFailed, match="the future never changes the past.*claims to be causal"):
        check_model(a_model(initial=Peeking()))


class Unregistered(AbstractToy):
    def __call__(self, inputs, *, key=None):
        return self.sums(inputs)


def test_check_model_catches_unregistered_models():
    with pytest.raises(CheckFailed, match="a saved model loads unchanged.*register"):
        check_model(Unregistered(jnp.ones((BASIS.dimension, 2))), example_inputs(a_model()))


def test_check_model_needs_inputs_without_a_basis():
    with pytest.raises(ModelError, match="Pass `inputs`"):
        check_model(Unregistered(jnp.ones((2, 2))))
