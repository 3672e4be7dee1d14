"""Top-level names of version 0.1.0 that were renamed or moved in 0.2.0, and where they are now.

`logcde.__getattr__` reads this table for its error message.
"""

RENAMED = {
    # algebra
    "Lie": "algebra.Lie",
    "Tensor": "algebra.Tensor",
    # streams
    "Average": "streams.Average",
    "FirstStamp": "streams.FirstStamp",
    "KeepLast": "streams.KeepLast",
    "Term": "streams.Term",
    "EachChannel": "streams.PerChannel",
    "WholePoints": "streams.PerEvent",
    "Levels": "SoftBins",
    "beside": "merge_channels",
    "drop": "drop_observations",
    "with_clock": "streams.with_time_channel",
    # scaling
    "Standard": "scaling.StandardScaler",
    "Range": "scaling.MinMaxScaler",
    "Robust": "scaling.RobustScaler",
    "Scale": "scaling.ChannelScale",
    "Scales": "ChannelScaler",
    "UnitIncrements": "IncrementRMSScaling",
    "UnitTotals": "TotalStdScaling",
    "Unscaled": "scaling.NoScaling",
    # embedding
    "Index": "LogSignatureIndex",
    "Online": "OnlineEmbedding",
    "Opening": "embedding.InitialObservations",
    "logsignatures": "embedding.logsignatures",
    "pad": "embedding.pad",
    # scans
    "Sequential": "scans.Sequential",
    "Associative": "scans.Associative",
    "Chunked": "scans.Chunked",
    "Acting": "scans.MatrixFree",
    "Fastest": "scans.Auto",
    # paths
    "RealisedPath": "paths.RealisedPath",
    # flows
    "Block": "flows.ResidualBlock",
    "Euler": "flows.Euler",
    "Exponential": "flows.Exponential",
    # models
    "CDE": "SequenceModel",
    "LogSLiCE": "log_slice",
    "DeepLogSLiCE": "deep_log_slice",
    "LogNCDE": "log_ncde",
    "Additive": "additive",
    "Learnt": "LearntInitial",
    "FirstValues": "FirstValueInitial",
    "RawFirstValues": "FirstValueInitial(activation=lc.flows.Identity())",
    "StartValues": "TimeZeroInitial",
    "EachInterval": "PerInterval",
    "predict_all": "predict",
    "predict_along": "predict_prefixes",
    # baselines
    "NCDE": "baselines.ncde",
    "NRDE": "baselines.nrde",
    "GRUD": "baselines.gru_d",
    "SSM": "baselines.ssm",
    "S5": "baselines.S5",
    "LRU": "baselines.LRU",
    "S6": "baselines.S6",
    "Mamba": "baselines.Mamba",
    "Controls": "baselines.Controls",
    "HeldControl": "baselines.HeldControl",
    "HermiteControl": "baselines.HermiteControl",
    "LinearControl": "baselines.LinearControl",
    "RectilinearControl": "baselines.RectilinearControl",
    # train
    "AbstractCallback": "train.AbstractCallback",
    "JsonLog": "train.JsonLog",
}
"""Old name to new name, both relative to `logcde`, in the order of the data path."""
