"""What all estimators share: their parameters, how they read data, how they train and how they predict."""

import abc
import os
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int64, Num
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from logcde.embedding import LogSignatures
from logcde.errors import ModelError, Remedy, StreamError, TrainingError
from logcde.estimators import saving
from logcde.estimators.architectures import AbstractArchitecture, Reading, Slice
from logcde.estimators.checking import check_array, validate_data
from logcde.estimators.choosing import (
    GIVEN,
    Choice,
    choose_embedding,
    choose_held_out,
    choose_partition,
    choose_steps,
    refuse_many,
    usual_gap,
)
from logcde.estimators.data import Read, Table, check_channels, is_frame, last_stamps, read, refuse_long, with_horizon
from logcde.estimators.training import Queries, Schedule, inputs_of, predictions, train
from logcde.models import IncrementRMSScaling
from logcde.online import Predictor
from logcde.streams import Partition, Streams
from logcde.streams.scaling import AbstractScaler
from logcde.streams.schema import listed
from logcde.train import Checkpoints
from logcde.train.losses import AbstractMeasure


class AbstractLogCDE(BaseEstimator):
    """An estimator on streams. What is None is chosen from the data; `choices_` says what was chosen, and why.

    **Data.** `table` says how data frames are read (`Long`, `Wide`). `units` of the channels are learnt (`RobustScaler()`,
    `StandardScaler()`, `MinMaxScaler()`), `partition` cuts series into intervals, and the log-signature of each has `depth` and
    coordinates for `counts` of observations and for `time`.

    **Model.** `model` is an architecture: `Slice(...)` or `Neural(...)`.

    **Training.** At most `max_iter` steps on batches of `batch_size` series, at a rate that falls from `learning_rate`
    to zero. `validation_fraction` of the series, 0 for none, are held out to choose the best of 20 looks; with
    `patience`, training ends after so many looks that brought nothing better, most often before the rate has fallen.
    With `checkpoints`, a `fit` that was interrupted goes on when it is called again with the same data and parameters;
    that takes a number as `random_state`, which is otherwise as everywhere in scikit-learn.
    """

    reading: ClassVar[Reading]

    def __init__(
        self,
        *,
        table: Table | None = None,
        units: AbstractScaler | None = None,
        partition: Partition | None = None,
        depth: int | None = None,
        counts: bool | None = None,
        time: bool = True,
        model: AbstractArchitecture | None = None,
        max_iter: int | None = None,
        learning_rate: float = 1e-2,
        batch_size: int = 32,
        validation_fraction: float | None = None,
        patience: int | None = None,
        checkpoints: Checkpoints | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.table = table
        self.units = units
        self.partition = partition
        self.depth = depth
        self.counts = counts
        self.time = time
        self.model = model
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.checkpoints = checkpoints
        self.verbose = verbose
        self.random_state = random_state

    @abc.abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Learn from series and what belongs to them."""

    @abc.abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """What belongs to these series."""

    def online(self, reorder: object = None) -> Predictor:
        """The fitted model for one series as it comes in; with `reorder`, events may come late by that much time.

        It predicts what the model gives: numbers in the units of `y`, and for a classifier the logits of `classes_`,
        whose softmax are probabilities.
        """
        check_is_fitted(self)
        return Predictor(self.model_, reorder=reorder)

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write the fitted estimator as a directory of JSON and safetensors, which `load` reads."""
        check_is_fitted(self)
        saving.save(self, path, overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Any:
        """Read a fitted estimator of this class that was saved."""
        return saving.load(cls, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _begin(self, X: Any) -> Streams:
        """Training series; what later series are compared with is remembered."""
        if is_frame(X) and self.table is None:
            refuse_long(X)
        found = read(X, self.table, None, lambda data: validate_data(self, data, ensure_all_finite="allow-nan"))
        streams = found.streams
        if len(streams) < 2:
            raise TrainingError(f"There is one sample only (n_samples={len(streams)}): one series. Give at least two.")
        refuse_many(streams)
        self.flat_, self.schema_ = found.flat, streams.schema
        if not found.flat:
            validate_data(self, np.zeros((1, len(streams.schema.channels))))  # forgets names of features
            if found.gap is None:
                self.feature_names_in_ = np.array(streams.schema.channels, object)
        self.gap_ = usual_gap(streams) if found.gap is None else found.gap
        never = np.bincount(streams.channel, minlength=len(streams.schema.channels)) == 0
        if never.any():
            names = [name for name, none in zip(streams.schema.channels, never, strict=True) if none]
            raise StreamError(
                f"{listed(names)} is never observed in the {len(streams)} training series, so nothing can be learnt "
                "about it.",
                Remedy.LEAVE_CHANNELS,
            )
        return self._ended(found)

    def _again(self, X: Any) -> Streams:
        """Further series, in the form of the training series."""
        check_is_fitted(self)
        schema = None if self.flat_ else self.schema_
        found = read(X, self.table, schema, self._flattened)
        check_channels(found.streams, self.schema_)
        return self._ended(found)

    def _flattened(self, data: Any) -> np.ndarray:
        if self.flat_:
            return validate_data(self, data, reset=False, ensure_all_finite="allow-nan")
        return check_array(data, ensure_all_finite="allow-nan", input_name="X")

    def _ended(self, found: Read) -> Streams:
        streams = found.streams
        return streams if found.ended else with_horizon(streams, last_stamps(streams) + self.gap_)

    def _choose(self, streams: Streams) -> None:
        """How series are embedded."""
        if not isinstance(self.model, AbstractArchitecture | None):
            raise ModelError(f"model={self.model!r} is no architecture. Give Slice(...), Neural(...), or None.")
        self.observations_ = len(streams.value) / len(streams)
        partition = choose_partition(self.partition, streams, self.gap_)
        self.partition_ = partition.value
        embedding, made = choose_embedding(self.units, self.counts, self.time, self.depth, streams, self.partition_)
        self.embedding_ = embedding
        architecture = (
            Choice(Slice(), "fast, and good on most data") if self.model is None else Choice(self.model, GIVEN)
        )
        self.choices_ = {"partition": partition, **made, "model": architecture}

    def _train(
        self,
        logsigs: LogSignatures,
        queries: Queries | None,
        targets: Num[np.ndarray, "series ..."],
        outputs: int,
        loss: AbstractMeasure,
        metrics: tuple[AbstractMeasure, ...],
        classes: Int64[np.ndarray, "series"],
    ) -> Int64[np.ndarray, "_"] | None:
        """Choose what is left to choose, and train. Returns which series were held out, if any."""
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        held_out, fraction = choose_held_out(self.validation_fraction, classes, np.random.default_rng(seed))
        training = len(logsigs) - (0 if held_out is None else len(held_out))
        steps = choose_steps(self.max_iter, training, self.observations_, self.batch_size)
        self.choices_ |= {"validation_fraction": fraction, "max_iter": steps}
        schedule = Schedule(
            steps=steps.value,
            rate=self.learning_rate,
            batch=self.batch_size,
            held_out=held_out,
            patience=self.patience,
            checkpoints=self.checkpoints,
            progress=self.verbose,
            seed=seed,
        )
        build = self.choices_["model"].value
        self.model_, result = train(build, self.reading, logsigs, queries, targets, outputs, loss, metrics, schedule)
        self.history_, self.n_iter_ = result.history, result.summary.steps
        return held_out

    def _outputs(self, logsigs: LogSignatures, queries: Queries | None, ids: np.ndarray) -> Float[np.ndarray, "..."]:
        """What the model gives, refused where it is no number."""
        scaling = self.model_.scaling
        assert isinstance(scaling, IncrementRMSScaling)
        found = predictions(self.model_, inputs_of(logsigs, scaling, queries)).astype(np.float64)
        finite = np.isfinite(found.reshape(len(found), -1)).all(axis=1)
        if not finite.all():
            raise ModelError(
                f"The prediction for series {ids[~finite][0]!r} is not finite: it is probably much longer, or moves "
                "much more, than the training series. Train on series like it, or cut it."
            )
        return found
