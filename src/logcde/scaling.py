"""Everything that brings numbers to like sizes, and where each acts.

Channel scalers act on observed values, before the embedding: `Embedding(scaler=ChannelScaler.fit(streams))`. They bring
channels in different units to like sizes by `StandardScaler`, `MinMaxScaler` or `RobustScaler`, and may shift and clip
values. They are a part of the embedding, so that all models of its log-signatures see the same units, and you fit them,
to the training series.

Letter scalings act on log-signatures, inside a model: `log_slice(..., scaling=IncrementRMSScaling())`. They set the
size of the steps of the dynamics. They multiply only, so that they apply to log-signatures that exist already. They are
a part of the model, and `fit` fits them once, to the training part, by `fit_preprocessing`: the only place where models
fit anything before training. It also fits the constants of `flows.CumulativeFeatures`.

`SoftLimit` wraps a letter scaling and bounds what it gives.

Both can be used together: the letter scaling is then fitted to log-signatures of scaled channels.
"""

from logcde.models.scaling import AbstractLetterScaling as AbstractLetterScaling
from logcde.models.scaling import AbstractScaling as AbstractScaling
from logcde.models.scaling import IncrementRMSScaling as IncrementRMSScaling
from logcde.models.scaling import NoScaling as NoScaling
from logcde.models.scaling import SoftLimit as SoftLimit
from logcde.models.scaling import TotalStdScaling as TotalStdScaling
from logcde.streams.scaling import AbstractScaler as AbstractScaler
from logcde.streams.scaling import ChannelScale as ChannelScale
from logcde.streams.scaling import ChannelScaler as ChannelScaler
from logcde.streams.scaling import MinMaxScaler as MinMaxScaler
from logcde.streams.scaling import RobustScaler as RobustScaler
from logcde.streams.scaling import StandardScaler as StandardScaler
