"""`AbstractLogCDE`: parameters of all estimators, reading of data, training, and prediction."""

import abc
import os
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int64, Num
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from logcde.embedding import LogSignatures
from logcde.errors import ModelError, Remedy, StreamError, TrainingError, Where
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array, validate_data
from logcde.estimators.architectures import AbstractArchitecture, ReadoutType
from logcde.estimators.choosing import (
    check_channel_count,
    choose_architecture,
    choose_embedding,
    choose_held_out,
    choose_partition,
    choose_steps,
    median_gap,
)
from logcde.estimators.data import (
    Input,
    Layout,
    check_channels,
    check_samples,
    is_frame,
    last_times,
    read_input,
    with_horizon,
)
from logcde.estimators.training import QueryIntervals, Schedule, predict_each, scaled_inputs, train
from logcde.models import IncrementRMSScaling
from logcde.online import Predictor
from logcde.streams import Partition, Streams
from logcde.streams.faults import name
from logcde.streams.scaling import AbstractScaler
from logcde.streams.schema import listed
from logcde.train import Checkpoints
from logcde.train.losses import AbstractMeasure


class AbstractLogCDE(BaseEstimator):
    """Base class of the estimators.

    Parameters that are None are chosen from the training data; `choices_` has the chosen values and the reasons.

    Args:
        table: Layout of data frames, `Long(...)` or `Wide(...)`. Without it, rows of a data frame are samples.
        scaler: Scaler of the channels' values, such as `logcde.scaling.RobustScaler()`; it is fitted to the training
            series.
        partition: Partition of the series into intervals.
        depth: Depth of the log-signatures.
        counts: Whether each channel has a coordinate that counts its observations.
        time: Whether time is a coordinate.
        model: Architecture, `Slice(...)` or `Neural(...)`.
        max_iter: Number of training steps.
        learning_rate: Peak learning rate of Adam; it falls to zero as a cosine.
        batch_size: Series in one training step.
        validation_fraction: Fraction of the training series that is held out to select the best of 20 evaluations; 0
            uses all series for training.
        patience: Number of evaluations without improvement on the held-out series after which training stops; by
            default it does not stop early.
        checkpoints: Where to save the state of training. An interrupted `fit` is resumed by calling it again with the
            same data and parameters, which include an integer `random_state`.
        verbose: Show a progress bar.
        random_state: Integer seed, `RandomState`, or None, as in scikit-learn.

    Attributes:
        model_: The trained `SequenceModel`.
        embedding_: The `Embedding`, with the fitted scaler.
        partition_: The `Partition`.
        choices_: Settings by name, each a `Choice` with `value` and `reason`.
        history_: Evaluations during training.
        n_iter_: Number of training steps.
    """

    readout: ClassVar[ReadoutType]

    def __init__(
        self,
        *,
        table: Layout | None = None,
        scaler: AbstractScaler | None = None,
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
        self.scaler = scaler
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
        """Train on series `X` and targets `y`."""

    @abc.abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of series."""

    def online(self, reorder: object = None) -> Predictor:
        """Return an online predictor of one series.

        It predicts numbers in the units of `y`; for a classifier the logits of `classes_`, whose softmax are the
        probabilities.

        Args:
            reorder: How late an event may arrive, as a time or duration; by default events arrive in order.
        """
        check_is_fitted(self)
        return Predictor(self.model_, reorder=reorder)

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write the fitted estimator as a directory of JSON and safetensors, which `load` reads.

        An existing directory is replaced only with `overwrite=True`.
        """
        check_is_fitted(self)
        saving.save(self, path, overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Any:
        """Read a fitted estimator of this class."""
        return saving.load_as(cls, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _read_training(self, X: Any) -> Streams:
        """Read the training series, and remember their form and schema for `_read_further`."""
        if is_frame(X) and self.table is None:
            check_samples(X)
        found = read_input(X, self.table, None, lambda data: validate_data(self, data, ensure_all_finite="allow-nan"))
        streams = found.streams
        if len(streams) < 2:
            raise TrainingError(f"X has too few series (n_samples={len(streams)}).", "Give at least two.")
        check_channel_count(streams)
        self.flat_, self.schema_ = found.flat, streams.schema
        if not found.flat:
            validate_data(self, np.zeros((1, len(streams.schema.channels))))  # forgets feature names of an earlier fit
            if found.gap is None:
                self.feature_names_in_ = np.array(streams.schema.channels, object)
        self.gap_ = median_gap(streams) if found.gap is None else found.gap
        never = np.bincount(streams.channel, minlength=len(streams.schema.channels)) == 0
        if never.any():
            names = [name for name, none in zip(streams.schema.channels, never, strict=True) if none]
            raise StreamError(
                f"{listed(names)} is never observed in the {len(streams)} training series, so nothing can be learnt "
                "about it.",
                Remedy.LEAVE_CHANNELS,
            )
        return self._with_horizon(found)

    def _read_further(self, X: Any) -> Streams:
        """Read series to predict, with the channels of the training series."""
        check_is_fitted(self)
        schema = None if self.flat_ else self.schema_
        found = read_input(X, self.table, schema, self._check_samples)
        check_channels(found.streams, self.schema_)
        return self._with_horizon(found)

    def _check_samples(self, data: Any) -> np.ndarray:
        if self.flat_:
            return validate_data(self, data, reset=False, ensure_all_finite="allow-nan")
        return check_array(data, ensure_all_finite="allow-nan", input_name="X")

    def _with_horizon(self, found: Input) -> Streams:
        """End the observation window one median gap after the last event, unless the input has horizons."""
        streams = found.streams
        return streams if found.ended else with_horizon(streams, last_times(streams) + self.gap_)

    def _choose(self, streams: Streams) -> None:
        """Choose partition, embedding and architecture."""
        if not isinstance(self.model, AbstractArchitecture | None):
            raise ModelError(f"model={self.model!r} is not an architecture.", "Give Slice(...), Neural(...), or None.")
        self.observations_ = len(streams.value) / len(streams)
        partition = choose_partition(self.partition, streams, self.gap_)
        self.partition_ = partition.value
        self.embedding_, chosen = choose_embedding(
            self.scaler, self.counts, self.time, self.depth, streams, self.partition_
        )
        self.choices_ = {"partition": partition, **chosen, "model": choose_architecture(self.model)}

    def _train(
        self,
        logsigs: LogSignatures,
        queries: QueryIntervals | None,
        targets: Num[np.ndarray, "series ..."],
        outputs: int,
        loss: AbstractMeasure,
        metrics: tuple[AbstractMeasure, ...],
        classes: Int64[np.ndarray, "series"],
    ) -> Int64[np.ndarray, "_"] | None:
        """Choose the length of training and the validation series, and train.

        Args:
            logsigs: Log-signatures of the training series.
            queries: Intervals that end at query times; None if there is one target per series.
            targets: Targets of each series.
            outputs: Number of outputs of the model.
            loss: Training loss.
            metrics: Further scores of the held-out series.
            classes: Class of each series; the same fraction of each is held out.

        Returns:
            The held-out series, or None.
        """
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
        self.model_, result = train(build, self.readout, logsigs, queries, targets, outputs, loss, metrics, schedule)
        self.history_, self.n_iter_ = result.history, result.summary.steps
        return held_out

    def _outputs(
        self, logsigs: LogSignatures, queries: QueryIntervals | None, ids: np.ndarray
    ) -> Float[np.ndarray, "..."]:
        """Compute the outputs of the model, and refuse those that are not finite."""
        scaling = self.model_.scaling
        assert isinstance(scaling, IncrementRMSScaling)
        found = predict_each(self.model_, scaled_inputs(logsigs, scaling, queries)).astype(np.float64)
        finite = np.isfinite(found.reshape(len(found), -1)).all(axis=1)
        if not finite.all():
            series = ids[~finite][0]
            raise ModelError(
                f"The prediction for series {name(series)} is not finite. It is probably much longer than the training "
                "series, or has much larger changes.",
                "Train on series like it, or shorten it.",
                where=Where(series=series),
            )
        return found
