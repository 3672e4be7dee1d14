"""GRU-D, a gated recurrent unit on forward-filled values, masks and time gaps, trained by `logcde.train.fit`."""

import time

import numpy as np
import optax

from experiments.defaults.data import Labelled
from experiments.defaults.peer_process import softmax
from experiments.defaults.peers import Answer
from experiments.runner.recipes import keys_of
from logcde.baselines import HeldControl, gru_d
from logcde.models import Inputs, predict
from logcde.streams import ChannelScaler, Partition, Streams
from logcde.train import Batching, Selection, Steps, fit, losses

HIDDEN, RATE, BATCH = 64, 5e-3, 32
MOST, EVERY, PATIENCE = 1000, 20, 20
HELD_OUT = 0.2
TOGETHER = 64


def classify(data: Labelled, seed: int) -> Answer:
    """Train with Adam, a fifth of the training series held out to stop at the least loss; one row for each event."""
    began = time.process_time()
    stamps = np.arange(data.train.shape[2]) / data.train.shape[2]  # gaps below 1, so that states do not fade at first
    train, test = (Streams.from_dense(part.swapaxes(1, 2), stamps) for part in (data.train, data.test))
    scaler = ChannelScaler.fit(train)
    for_model, for_training = keys_of(seed)
    held = HeldControl(dtype=np.float32)
    rows = held(scaler(train), Partition.uniform(1))
    result = fit(
        gru_d(rows.basis, HIDDEN, data.classes, key=for_model),
        Inputs.of(rows),
        data.train_labels,
        loss=losses.cross_entropy,
        optimiser=optax.adam(RATE),
        batching=Batching(size=BATCH, buckets=1),
        duration=Steps(MOST),
        selection=Selection(
            validation=_held_out(data.train_labels, seed), every=Steps(EVERY), patience=PATIENCE, metrics=()
        ),
        callbacks=(),
        key=for_training,
    )
    fitted = time.process_time()
    inputs = Inputs.of(held(scaler(test), Partition.uniform(1)))
    logits = np.concatenate(
        [
            np.asarray(predict(result.model, inputs[begin : begin + TOGETHER]))
            for begin in range(0, len(data.test), TOGETHER)
        ]
    )
    return Answer(
        predictions=softmax(logits.astype(np.float64)),
        fit_seconds=fitted - began,
        predict_seconds=time.process_time() - fitted,
    )


def _held_out(labels: np.ndarray, seed: int) -> np.ndarray:
    """Positions of a fifth of each class."""
    random = np.random.default_rng(seed)
    parts = [random.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    return np.concatenate([part[: round(HELD_OUT * len(part))] for part in parts])
