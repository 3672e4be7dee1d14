"""From a model and data to a trained model."""

from logcde.train import losses as losses
from logcde.train.calibration import calibrated as calibrated
from logcde.train.callbacks import AbstractCallback as AbstractCallback
from logcde.train.callbacks import JsonLog as JsonLog
from logcde.train.checkpoint import Checkpoints as Checkpoints
from logcde.train.fit import fit as fit
from logcde.train.fit import score as score
from logcde.train.records import Epochs as Epochs
from logcde.train.records import Evaluation as Evaluation
from logcde.train.records import Result as Result
from logcde.train.records import Steps as Steps
from logcde.train.records import Summary as Summary
