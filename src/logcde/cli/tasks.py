"""The three tasks: what each predicts, how it is scored, and how predictions are written as JSON."""

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from logcde.errors import TableError
from logcde.report.record import Task as TaskName

if TYPE_CHECKING:
    from logcde.scale.predictions import Predictions
    from logcde.streams import Streams

HIGHER_IS_BETTER = {
    "accuracy": True,
    "balanced accuracy": True,
    "log loss": False,
    "auroc": True,
    "mse": False,
    "mae": False,
    "r2": True,
}


class AbstractTask(abc.ABC):
    """What a model predicts for a series. Arguments named `classes` are None where it predicts numbers."""

    name: TaskName
    estimator: str
    """The class of `logcde.estimators`."""
    main_score: str
    """The score by which models are compared."""

    @abc.abstractmethod
    def strata(self, targets: Any, count: int) -> np.ndarray:
        """A stratum for each of `count` series; the same share of every stratum is held out."""

    @abc.abstractmethod
    def truth(self, targets: Any, streams: "Streams") -> tuple[Any, Any]:
        """The query times (None for the ends of series), and the true values row by row."""

    @abc.abstractmethod
    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> "Predictions":
        """Predictions of an estimator at query times, by default at the ends of series; rows may lack one."""

    @abc.abstractmethod
    def scores(self, truth: Any, predictions: "Predictions", classes: Sequence[Any] | None) -> dict[str, float]:
        """What `evaluate` prints: the name of each score and its value."""

    @abc.abstractmethod
    def prior(self, truth: Any, classes: Sequence[Any] | None) -> list[float]:
        """The best constant prediction: the share of each class, or the mean of each output."""

    @abc.abstractmethod
    def constant(self, prior: Sequence[float], rows: int, classes: Sequence[Any] | None) -> "Predictions":
        """The prior as the prediction of every row."""

    @abc.abstractmethod
    def to_json(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> Callable[[np.ndarray], Any]:
        """The function from a model's outputs to a prediction in JSON."""


class Classify(AbstractTask):
    """One class for each series."""

    name = "classify"
    estimator = "LogCDEClassifier"
    main_score = "accuracy"

    def strata(self, targets: Any, count: int) -> np.ndarray:
        """One stratum for each class."""
        return np.unique(np.array(targets), return_inverse=True)[1]

    def truth(self, targets: Any, streams: "Streams") -> tuple[Any, Any]:
        """The class of every series, at its end."""
        return None, list(targets)

    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> "Predictions":
        """The most probable class, with probabilities, at the end of every series."""
        from logcde.scale.predictions import predict

        if at is not None:
            refuse_query_times()
        return predict(estimator, streams)

    def scores(self, truth: Any, predictions: "Predictions", classes: Sequence[Any] | None) -> dict[str, float]:
        """Scores of the probabilities, see `classification_scores`."""
        assert predictions.probabilities is not None
        return classification_scores(truth, predictions.probabilities, classes or ())

    def prior(self, truth: Any, classes: Sequence[Any] | None) -> list[float]:
        """The share of each class among the true ones."""
        return [float(np.mean([one == other for other in truth])) for one in classes or ()]

    def constant(self, prior: Sequence[float], rows: int, classes: Sequence[Any] | None) -> "Predictions":
        """The most frequent class."""
        from logcde.scale.predictions import Predictions

        probabilities = np.tile(np.asarray(prior), (rows, 1))
        value = np.array(classes)[probabilities.argmax(axis=1)]
        return Predictions(np.arange(rows), np.zeros(rows), value, probabilities)

    def to_json(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> Callable[[np.ndarray], Any]:
        """From logits to the class, and the probability of every class."""
        known = list(classes or ())

        def from_logits(logits: np.ndarray) -> dict[str, Any]:
            numbers = np.asarray(logits, np.float64)
            with np.errstate(invalid="ignore"):  # infinite logits have no probabilities
                raised = np.exp(numbers - numbers.max())
            shares = raised / raised.sum()
            best = known[int(shares.argmax())] if np.isfinite(shares).all() else None
            return {"class": best, "probabilities": dict(zip(map(str, known), shares.tolist(), strict=True))}

        return from_logits


class AbstractNumericTask(AbstractTask):
    """What regression and forecasts have in common."""

    main_score = "r2"

    def strata(self, targets: Any, count: int) -> np.ndarray:
        """One stratum for all series."""
        return np.zeros(count, np.int64)

    def scores(self, truth: Any, predictions: "Predictions", classes: Sequence[Any] | None) -> dict[str, float]:
        """Scores of the predicted numbers, see `regression_scores`."""
        return regression_scores(truth, predictions.value)

    def prior(self, truth: Any, classes: Sequence[Any] | None) -> list[float]:
        """The mean of each output, missing ones left out."""
        return np.nanmean(truth, axis=0).tolist()

    def constant(self, prior: Sequence[float], rows: int, classes: Sequence[Any] | None) -> "Predictions":
        """The mean of each output of the training series, whatever the series."""
        from logcde.scale.predictions import Predictions

        return Predictions(np.arange(rows), np.zeros(rows), np.tile(np.asarray(prior), (rows, 1)))

    def to_json(self, outputs: Sequence[str], classes: Sequence[Any] | None) -> Callable[[np.ndarray], Any]:
        """From the outputs of one series to a mapping of their names to numbers."""
        return lambda numbers: dict(zip(outputs, numbers.tolist(), strict=True))


class Regress(AbstractNumericTask):
    """One number for each series."""

    name = "regress"
    estimator = "LogCDERegressor"

    def truth(self, targets: Any, streams: "Streams") -> tuple[Any, Any]:
        """The number of every series, at its end."""
        return None, np.asarray(targets, np.float64)[:, None]

    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> "Predictions":
        """The number at the end of every series."""
        from logcde.scale.predictions import predict

        if at is not None:
            refuse_query_times()
        return predict(estimator, streams)


class Forecast(AbstractNumericTask):
    """Numbers at query times, each from the observations before it."""

    name = "forecast"
    estimator = "LogCDEForecaster"

    def truth(self, targets: Any, streams: "Streams") -> tuple[Any, Any]:
        """The values of the target streams at their times; without targets, the next values of the series."""
        from logcde.estimators.queries import queries_of_targets

        asked = queries_of_targets(streams if targets is None else targets)
        return asked, asked.targets

    def predict(self, estimator: Any, streams: "Streams", at: Any = None) -> "Predictions":
        """All outputs at the query times, by default at the end of every series."""
        from logcde.scale.predictions import predict

        return predict(estimator, streams, at)


TASKS: dict[TaskName, AbstractTask] = {"classify": Classify(), "regress": Regress(), "forecast": Forecast()}


def refuse_query_times() -> NoReturn:
    """Refuse query times of a model that predicts once for each series."""
    raise TableError(
        "--at and --every are for forecasts; this model predicts once for each series, at its end.",
        "To predict at other times, use logcde stream, or a table that ends there.",
    )


def classification_scores(truth: Sequence[Any], probabilities: np.ndarray, classes: Sequence[Any]) -> dict[str, float]:
    """Scores of probabilities (series, class).

    A true class that is none of `classes` counts as a wrong prediction in the accuracies; log loss and AUROC leave such
    series out. AUROC is for two classes only.

    >>> found = classification_scores(["a", "b", "b"], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), ["a", "b"])
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


def regression_scores(truth: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    """Scores of numbers (row, output), averaged over outputs. NaN in `truth` means unknown.

    The coefficient of determination is left out where the truth is constant.

    >>> regression_scores(np.array([[1.0], [2.0], [np.nan]]), np.array([[1.0], [1.0], [7.0]]))
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
