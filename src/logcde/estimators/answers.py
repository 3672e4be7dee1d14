"""What is to be learnt, put beside the series that it belongs to: by position, or by the ids of the series."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from logcde.errors import TrainingError
from logcde.streams import Streams
from logcde.streams.schema import listed


def aligned(answers: Any, streams: Streams, flat: bool) -> Any:
    """One answer for each series, in their order.

    A mapping, or a pandas Series with an index, is looked up by the ids of the series; everything else, and everything
    that belongs to samples x features, is in their order already.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], ids=["a", "b"], horizon=1.0)
    >>> aligned({"b": 1, "a": 0}, streams, flat=False)
    [0, 1]
    """
    if isinstance(answers, Mapping):
        return _looked_up(dict(answers), streams)
    index = getattr(answers, "index", None)
    if flat or index is None or callable(index):  # as that of lists
        array = np.asarray(answers)
        _check_count(array, streams, flat)
        return array
    index = np.asarray(index)
    if len(set(index.tolist())) == len(index) and set(streams.ids.tolist()) <= set(index.tolist()):
        return _looked_up(dict(zip(index.tolist(), answers.tolist(), strict=True)), streams)
    raise TrainingError(
        f"The index of y is {listed(index.tolist(), 3)}, and the series are {listed(streams.ids.tolist(), 3)}: it is "
        "not clear which belongs to which. Give y the ids of the series as its index, each once, or, if it is in the "
        "order of the series, pass y.to_numpy()."
    )


def _looked_up(answers: dict, streams: Streams) -> list:
    lacking = [one for one in streams.ids.tolist() if one not in answers]
    if lacking:
        raise TrainingError(f"y has nothing for the series {listed(lacking, 3)}. Give every series its own.")
    return [answers[one] for one in streams.ids.tolist()]


def _check_count(answers: np.ndarray, streams: Streams, flat: bool) -> None:
    """One for each series; what has no length scikit-learn puts into words."""
    count, series = len(answers) if answers.ndim else len(streams), len(streams)
    if count != series:
        hint = ""
        if flat:
            hint = (
                " If rows of X are observations, several for each series, say so: table=Long(...) or table=Wide(...)."
            )
        elif count == len(streams.times):
            hint = " y has one for each row of the table, it seems; it needs one for each series."
        raise TrainingError(f"There are {series} series in X, but {count} in y. Give one for each series.{hint}")


def required(estimator: Any, answers: Any) -> None:
    """Refuse to learn from nothing, in the words of scikit-learn."""
    if answers is None:
        raise TrainingError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Give what belongs to each "
            "series."
        )
