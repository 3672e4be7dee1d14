"""How good predictions are, in the numbers that people expect: of classes, and of numbers.

The three kinds of models: what each learns, how its predictions are asked for, scored, named and written.

A model against answers that are known: scores, beside those of knowing nothing about a series.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.errors import TableError
from logcde.report.record import Task

HIGHER = {"accuracy": True, "balanced accuracy": True, "log loss": False, "auroc": True}
HIGHER |= {"mse": False, "mae": False, "r2": True}
"""Whether more is better."""


def of_classes(truth: Sequence[Any], probabilities: np.ndarray, classes: Sequence[Any]) -> dict[str, float]:
    """Scores of probabilities (series, class). A class that is none of `classes` is never right.

    Log loss, and the area under the receiver operating characteristic, which is for two classes, are of the series
    whose class is known.

    >>> found = of_classes(["a", "b", "b"], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), ["a", "b"])
    >>> [f"{name} {value:.3f}" for name, value in found.items()]
    ['accuracy 0.667', 'balanced accuracy 0.750', 'log loss 0.415', 'auroc 1.000']
    """
    from sklearn.metrics import log_loss, recall_score, roc_auc_score

    places = {one: number for number, one in enumerate(classes)}
    code = np.array([places.get(one, -1) for one in truth], np.int64)
    found = probabilities.argmax(axis=1)
    each = recall_score(code, found, labels=np.unique(code), average="macro")
    scores = {"accuracy": (found == code).mean(), "balanced accuracy": each}
    known = code >= 0
    if known.any():
        scores["log loss"] = log_loss(code[known], probabilities[known], labels=np.arange(len(classes)))
    if len(classes) == 2 and {0, 1} <= set(code.tolist()):
        scores["auroc"] = roc_auc_score(code[known], probabilities[known, 1])
    return {name: float(score) for name, score in scores.items()}


def of_numbers(truth: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    """Scores of numbers (row, output), the mean over outputs; a truth that is NaN is not known.

    The coefficient of determination is left out where the truth does not vary.

    >>> of_numbers(np.array([[1.0], [2.0], [np.nan]]), np.array([[1.0], [1.0], [7.0]]))
    {'mse': 0.5, 'mae': 0.5, 'r2': -1.0}
    """
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    known = np.isfinite(truth)
    outputs = [(truth[seen, n], prediction[seen, n]) for n, seen in enumerate(known.T) if seen.any()]
    scores = {
        "mse": np.mean([mean_squared_error(a, b) for a, b in outputs]),
        "mae": np.mean([mean_absolute_error(a, b) for a, b in outputs]),
    }
    if all(a.std() > 0 for a, _ in outputs):
        scores["r2"] = np.mean([r2_score(a, b) for a, b in outputs])
    return {name: float(score) for name, score in scores.items()}


if TYPE_CHECKING:
    from logcde.streams import Streams


@dataclasses.dataclass(frozen=True)
class Predicted:
    """Predictions, row by row: of which series, for which time, and what: classes, or numbers (row, output)."""

    series: np.ndarray
    time: np.ndarray
    value: np.ndarray
    probabilities: np.ndarray | None = None


class AbstractTask(abc.ABC):
    """What a model is for."""

    name: Task
    estimator: str
    """The class of `logcde.estimators`."""
    score: str
    """What is looked at first."""

    @abc.abstractmethod
    def strata(self, truth: Any, count: int) -> np.ndarray:
        """A number for each of the series; of all with the same number, the same share is held out."""

    @abc.abstractmethod
    def truth(self, answers: Any, streams: "Streams") -> tuple[Any, Any]:
        """When predictions are asked for, and what is right, row by row."""

    @abc.abstractmethod
    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> Predicted:
        """What the model says."""

    @abc.abstractmethod
    def scores(self, truth: Any, found: Predicted, classes: Sequence[Any] | None) -> dict[str, float]:
        """How good that is."""

    @abc.abstractmethod
    def prior(self, truth: Any, classes: Sequence[Any] | None) -> list[float]:
        """What is known without looking at a series: the share of each class, or the mean of each output."""

    @abc.abstractmethod
    def always(self, prior: Sequence[float], rows: int, classes: Sequence[Any] | None) -> Predicted:
        """Predictions that say that and nothing else."""

    @abc.abstractmethod
    def columns(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> dict[str, Callable[[Predicted], Any]]:
        """Names of the columns of a table of predictions, and what is in them."""

    @abc.abstractmethod
    def present(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> Callable[[np.ndarray], Any]:
        """From what a model gives to what is written of it in JSON."""


class Classify(AbstractTask):
    """One class for each series."""

    name = "classify"
    estimator = "LogCDEClassifier"
    score = "accuracy"

    def strata(self, truth: Any, count: int) -> np.ndarray:
        """Classes."""
        return np.unique(np.array(truth), return_inverse=True)[1]

    def truth(self, answers: Any, streams: "Streams") -> tuple[Any, Any]:
        """At the end of every series."""
        return None, list(answers)

    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> Predicted:
        """The most probable class."""
        _only_at_the_end(at)
        found = estimator.predict_proba(streams)
        value = estimator.classes_[found.argmax(axis=1)]
        return Predicted(np.arange(len(streams)), streams.horizon, value, found)

    def scores(self, truth: Any, found: Predicted, classes: Sequence[Any] | None) -> dict[str, float]:
        """Accuracy and others."""
        assert found.probabilities is not None
        return of_classes(truth, found.probabilities, classes or ())

    def prior(self, truth: Any, classes: Sequence[Any] | None) -> list[float]:
        """Shares of classes."""
        return [float(np.mean([one == other for other in truth])) for one in classes or ()]

    def always(self, prior: Sequence[float], rows: int, classes: Sequence[Any] | None) -> Predicted:
        """The most frequent class."""
        probabilities = np.tile(np.asarray(prior), (rows, 1))
        return Predicted(
            np.arange(rows), np.zeros(rows), np.array(classes)[probabilities.argmax(axis=1)], probabilities
        )

    def columns(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> dict[str, Callable[[Predicted], Any]]:
        """The class, and the probability of every class."""
        each = {f"probability_{one}": _probability(number) for number, one in enumerate(classes or ())}
        return {"prediction": lambda found: found.value, **each}

    def present(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> Callable[[np.ndarray], Any]:
        """The class, and the probability of every class."""
        known = list(classes or ())

        def named(logits: np.ndarray) -> dict[str, Any]:
            numbers = np.asarray(logits, np.float64)
            raised = np.exp(numbers - numbers.max())
            shares = raised / raised.sum()
            best = known[int(shares.argmax())] if np.isfinite(shares).all() else None
            return {"class": best, "probabilities": dict(zip(map(str, known), shares.tolist(), strict=True))}

        return named


class AbstractNumbers(AbstractTask):
    """What all models share that predict numbers."""

    score = "r2"

    def strata(self, truth: Any, count: int) -> np.ndarray:
        """All alike."""
        return np.zeros(count, np.int64)

    def scores(self, truth: Any, found: Predicted, classes: Sequence[Any] | None) -> dict[str, float]:
        """Squared errors and others."""
        return of_numbers(truth, found.value)

    def prior(self, truth: Any, classes: Sequence[Any] | None) -> list[float]:
        """Means of outputs."""
        return np.nanmean(truth, axis=0).tolist()

    def always(self, prior: Sequence[float], rows: int, classes: Sequence[Any] | None) -> Predicted:
        """The mean."""
        return Predicted(np.arange(rows), np.zeros(rows), np.tile(np.asarray(prior), (rows, 1)))

    def present(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> Callable[[np.ndarray], Any]:
        """Every output by its name."""
        return lambda numbers: dict(zip(outputs, numbers.tolist(), strict=True))


class Regress(AbstractNumbers):
    """One number for each series."""

    name = "regress"
    estimator = "LogCDERegressor"

    def truth(self, answers: Any, streams: "Streams") -> tuple[Any, Any]:
        """At the end of every series."""
        return None, np.asarray(answers, np.float64)[:, None]

    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> Predicted:
        """A number."""
        _only_at_the_end(at)
        return Predicted(np.arange(len(streams)), streams.horizon, estimator.predict(streams)[:, None])

    def columns(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> dict[str, Callable[[Predicted], Any]]:
        """The number."""
        return {"prediction": _output(0)}


class Forecast(AbstractNumbers):
    """Numbers at stamps, each from what was observed before it."""

    name = "forecast"
    estimator = "LogCDEForecaster"

    def truth(self, answers: Any, streams: "Streams") -> tuple[Any, Any]:
        """Wherever there is something to compare with: other streams, or the next values of these."""
        from logcde.estimators.forecaster import queries_of_targets

        asked = queries_of_targets(streams if answers is None else answers)
        return np.split(asked.times, asked.offsets[1:-1]), asked.targets

    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> Predicted:
        """Numbers at these times, by default at the end of every series."""
        from logcde.estimators.forecaster import queries_at
        from logcde.streams.ragged import owners

        asked = queries_at(streams.horizon[:, None] if at is None else at, streams)
        found = estimator.predict(streams, at=np.split(asked.times, asked.offsets[1:-1]))
        return Predicted(owners(asked.offsets), asked.times, found[asked.present])

    def columns(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> dict[str, Callable[[Predicted], Any]]:
        """All outputs."""
        return {f"prediction_{name}": _output(number) for number, name in enumerate(outputs)}


TASKS: dict[Task, AbstractTask] = {"classify": Classify(), "regress": Regress(), "forecast": Forecast()}


def _only_at_the_end(at: Any) -> None:
    if at is not None:
        raise TableError(
            "--at and --every are for forecasts; this model says one thing about each series, at its end. To ask at "
            "other times, use logcde stream, or a table that ends there."
        )


def _probability(number: int) -> Callable[[Predicted], Any]:
    return lambda found: found.probabilities[:, number]  # type: ignore[index]


def _output(number: int) -> Callable[[Predicted], Any]:
    return lambda found: found.value[:, number]


if TYPE_CHECKING:
    from logcde.cli.targets import Examples


@dataclasses.dataclass(frozen=True)
class Scored:
    """Predictions with what is right, row by row, for so many series. `always` says what the baseline answers."""

    series: int
    ids: np.ndarray
    truth: Any
    found: Predicted
    metrics: dict[str, float]
    baseline: dict[str, float]
    always: str
    unknown: dict[Any, int]


def score(
    task: AbstractTask, estimator: Any, examples: "Examples", prior: Sequence[float], classes: Sequence[Any] | None
) -> Scored:
    """Predict, and compare."""
    at, truth = task.truth(examples.answers, examples.streams)
    found = task.predict(estimator, examples.streams, at)
    baseline = task.always(prior, len(found.series), classes)
    unknown: dict[Any, int] = {}
    if classes is not None:
        for one in truth:
            if one not in classes:
                unknown[one] = unknown.get(one, 0) + 1
    return Scored(
        series=len(examples.streams),
        ids=examples.streams.ids[found.series],
        truth=truth,
        found=found,
        metrics=task.scores(truth, found, classes),
        baseline=task.scores(truth, baseline, classes),
        always="the mean" if classes is None else f"{classes[int(np.argmax(prior))]!r}",
        unknown=unknown,
    )


def table_of(scored: Scored, title: str) -> list[str]:
    """Scores for people."""
    head = f"always {scored.always}"
    lines = [f"{title}:", f"  {'':18} {'model':>10}   {head:>{max(10, len(head))}}"]
    for name, value in scored.metrics.items():
        lines.append(f"  {name:18} {value:10.4g}   {scored.baseline[name]:{max(10, len(head))}.4g}")
    for one, count in scored.unknown.items():
        lines.append(
            f"The model has never seen the class {one!r}, which is that of {count:,} series: it is never right "
            "about it. Log loss and AUROC are of the others. Train again with such series."
        )
    return lines
