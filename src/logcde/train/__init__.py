"""Training: `fit` and its options, augmentation, losses and metrics, optimiser, checkpoints, callbacks, calibration."""

from logcde.train import losses as losses
from logcde.train.augmentation import dropped_copies as dropped_copies
from logcde.train.calibration import calibrated as calibrated
from logcde.train.calibration import temperature_of as temperature_of
from logcde.train.callbacks import AbstractCallback as AbstractCallback
from logcde.train.callbacks import JsonLog as JsonLog
from logcde.train.callbacks import ProgressBar as ProgressBar
from logcde.train.checkpoint import Checkpoints as Checkpoints
from logcde.train.fit import fit as fit
from logcde.train.fit import score as score
from logcde.train.losses import AbstractMeasure as AbstractMeasure
from logcde.train.optimisers import one_cycle_adamw as one_cycle_adamw
from logcde.train.options import Batching as Batching
from logcde.train.options import Epochs as Epochs
from logcde.train.options import Selection as Selection
from logcde.train.options import Steps as Steps
from logcde.train.records import Evaluation as Evaluation
from logcde.train.records import Result as Result
from logcde.train.records import Summary as Summary
from logcde.train.shards import Shards as Shards
from logcde.train.shards import fit_shards as fit_shards
