"""`check_model`: the contract of models, one law after another."""

from logcde.errors import CheckFailed
from logcde.models import AbstractModel, Inputs
from logcde.testing import laws
from logcde.testing.examples import example_inputs

LAWS: dict[str, laws.Law] = {
    "one trace for each shape": laws.one_trace_for_each_shape,
    "the precision is kept": laws.precision_is_kept,
    "a batch equals a loop": laws.batch_equals_loop,
    "a ragged batch equals single series": laws.ragged_equals_single,
    "padding changes nothing": laws.padding_changes_nothing,
    "the future never changes the past": laws.future_never_changes_past,
    "online equals batch": laws.online_equals_batch,
    "a predictor equals batch": laws.predictor_equals_batch,
    "a saved model loads unchanged": laws.saved_model_loads_unchanged,
    "gradients are finite": laws.gradients_are_finite,
    "stable flows stay bounded": laws.stable_flows_stay_bounded,
}


def check_model(model: AbstractModel, inputs: Inputs | None = None) -> list[str]:
    """Check a model against the laws that all models obey.

    Args:
        model: The model.
        inputs: A batch of series of different lengths. Models that take log-signatures in a basis need none.

    Returns:
        The names of the laws that apply to the model.

    Raises:
        CheckFailed: If the model breaks a law; the error says which one and how.

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
            found = f"{type(model).__name__} breaks the law: {name}. {failure.found}"
            raise CheckFailed(found, failure.remedy) from failure
        if applied:
            checked.append(name)
    return checked
