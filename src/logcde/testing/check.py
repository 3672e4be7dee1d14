"""`check_model`: the contract of models, checked one law after another."""

from logcde.errors import CheckFailed
from logcde.models import AbstractModel, Inputs
from logcde.testing import laws
from logcde.testing.examples import example_inputs

LAWS: dict[str, laws.Law] = {
    "one trace for each shape": laws.one_trace_for_each_shape,
    "the precision is kept": laws.keeps_its_precision,
    "a batch equals a loop": laws.batch_equals_loop,
    "a ragged batch equals one by one": laws.ragged_equals_single,
    "padding does nothing": laws.padding_does_nothing,
    "the future never changes the past": laws.future_never_changes_past,
    "online equals batch": laws.online_equals_batch,
    "a predictor equals batch": laws.predictor_equals_batch,
    "saved and loaded is the same": laws.comes_back_from_files,
    "gradients are finite": laws.gradients_are_finite,
}


def check_model(model: AbstractModel, inputs: Inputs | None = None) -> list[str]:
    """Check a model against the laws that all models obey; returns those that apply to it.

    A law that is broken raises `CheckFailed`, which says which one and how. Models that are driven by log-signatures
    in a basis need nothing else; for others, `inputs` is a batch of series of different lengths.

    >>> import jax, logcde
    >>> model = logcde.log_slice(logcde.Basis.of_width(2, 2), hidden=4, block=2, outputs=1, key=jax.random.key(0))
    >>> check_model(model)[:2]
    ['one trace for each shape', 'the precision is kept']
    """
    given = example_inputs(model) if inputs is None else inputs
    checked = []
    for name, law in LAWS.items():
        try:
            applied = law(model, given)
        except CheckFailed as failure:
            raise CheckFailed(f"{type(model).__name__} breaks the law: {name}. {failure}") from failure
        if applied:
            checked.append(name)
    return checked
