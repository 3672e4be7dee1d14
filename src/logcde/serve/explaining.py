"""On which observations of a series its current prediction rests, as far as all of them are kept."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from logcde.errors import StreamError, Where
from logcde.online.attributing import attribute_online
from logcde.online.lines import Stamp, time_of
from logcde.online.rules import Series
from logcde.serve.alerts import numbers_of
from logcde.serve.live import LiveSeries, ServedModel
from logcde.serve.store import Observation
from logcde.streams.clock import Time

PARTS = 32
"""Parts of the observations that are left out, each of which is a replay of the series."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A prediction that is to be explained: of which series, by which model, for which stamp.

    `clock` has the clock and the static features of the series.
    """

    name: Any
    model: ServedModel
    clock: Series
    time: float
    at: Stamp
    events: int

    @staticmethod
    def about(live: LiveSeries, models: Sequence[ServedModel]) -> "Question":
        """The question about the current prediction of a series."""
        at = live.stamp if live.predicted is None else live.predicted
        return Question(live.name, models[live.model], live.series, live.time, at, live.events)


def explained(question: Question, history: Sequence[Observation], risk: str | None) -> dict[str, Any]:
    """What each part of the observations adds to the output by which series are sorted.

    Args:
        question: The prediction.
        history: All observations of the series, in the order in which they arrived.
        risk: The output; None for the last one.

    Returns:
        The name of the output, and the parts as `attribute_online` has them, with stamps.

    Raises:
        StreamError: Not all observations are kept, or what else the prediction rests on is not.
    """
    model, series = question.model, question.clock
    where = Where(series=question.name)
    if len(history) < question.events:
        raise StreamError(
            f"{len(history):,} of the {question.events:,} observations of this series are kept, and it rests on all.",
            "Keep more with --history.",
            where=where,
        )
    if model.predictor.rule is None:
        raise StreamError(
            "The intervals of this model are closed by hand, and when is not kept.",
            "Train it with intervals that end by a rule.",
            where=where,
        )
    times = [time_of(one.stamp, series.clock) for one in history]
    kept = list(zip(times, history, strict=True))
    names = list(numbers_of(model.to_json(model.predictor.copy().predict())))
    output = names[-1] if risk is None else risk

    def of(outputs: np.ndarray) -> float:
        return numbers_of(model.to_json(outputs))[output]

    parts = attribute_online(
        model.predictor.begin(series.static),
        [(time, seen, one.terms) for time, one in kept if (seen := _numbers(one.values))],
        Time(max(question.time, float(time_of(question.at, series.clock)))),
        of=of,
        most=max(PARTS, len(model.predictor.schema.channels)),
        knots=[(time, _numbers(one.continuous)) for time, one in kept if one.continuous is not None],
    )
    return {
        "output": output,
        "parts": [
            {**dataclasses.asdict(one), "begin": series.stamp(one.begin), "end": series.stamp(one.end)} for one in parts
        ],
    }


def _numbers(values: Mapping[str, float | int | None]) -> dict[str, float]:
    """What was observed."""
    return {name: float(value) for name, value in values.items() if value is not None}
