"""Everything that brings numbers to like sizes.

Channel scalers act on observed values, before the embedding: `Embedding(scaler=ChannelScaler.fit(streams))`. Letter
scalings act on log-signatures, inside a model: `log_slice(..., scaling=IncrementRMSScaling())`; `fit` fits them on the
training part.
"""

from logcde.models.scaling import AbstractScaling as AbstractScaling
from logcde.models.scaling import IncrementRMSScaling as IncrementRMSScaling
from logcde.models.scaling import NoScaling as NoScaling
from logcde.models.scaling import TotalStdScaling as TotalStdScaling
from logcde.streams.scaling import AbstractScaler as AbstractScaler
from logcde.streams.scaling import ChannelScale as ChannelScale
from logcde.streams.scaling import ChannelScaler as ChannelScaler
from logcde.streams.scaling import MinMaxScaler as MinMaxScaler
from logcde.streams.scaling import RobustScaler as RobustScaler
from logcde.streams.scaling import StandardScaler as StandardScaler
