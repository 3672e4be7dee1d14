"""How the command line phrases remedies: options in place of Python's arguments."""

from collections.abc import Mapping

from logcde.errors import Remedy

ADVICE: Mapping[Remedy, str] = {
    Remedy.SORT: "Sort the rows by time, or pass --sort.",
    Remedy.DUPLICATES: "Keep one of them, or pass --duplicates last or --duplicates mean.",
    Remedy.EMPTY: "Leave it out, or pass --drop-empty to leave out all such series.",
    Remedy.HORIZON: "Pass --horizon.",
    Remedy.LATER_HORIZON: "Give a later --horizon, or leave it out.",
    Remedy.ORIGIN: "Pass --origin, a datetime.",
    Remedy.EARLIER_ORIGIN: "Subtract the first stamp, or give an earlier --origin.",
    Remedy.COMMON_ORIGIN: "Train a model with --origin first, or with an earlier --origin.",
    Remedy.NEARER_ORIGIN: "Round the stamps to microseconds, or give a nearer --origin, such as --origin first.",
    Remedy.EPOCH: (
        "If they count from 1970, convert them to datetimes with --epoch and their unit, such as --epoch ns; otherwise "
        "subtract the first one."
    ),
    Remedy.LONGER_INTERVALS: "Choose longer ones; or if the stamps count from 1970, pass --epoch.",
    Remedy.NO_EPOCH: "Leave out --epoch.",
    Remedy.EMPTY_INTERVALS: (
        "If time should count from where series begin, pass --origin first; otherwise give --horizon or other "
        "intervals."
    ),
    Remedy.CHANNELS: "Choose the value columns with --channels, or leave the field empty where nothing was observed.",
    Remedy.LEAVE_CHANNELS: "Leave such channels out: name the others with --channels.",
    Remedy.UNKNOWN_CHANNEL: "Add it to --channels, or leave out its rows.",
    Remedy.CALENDAR: "Use --every, or a table with datetimes.",
    Remedy.PARTIAL: "Add it.",
    Remedy.BINS_NEED_COUNTS: "Embed with counts.",
    Remedy.DATA_FOLDER: "Set the environment variable LOGCDE_DATA to the folder of data sets.",
    Remedy.TOO_LARGE: "Scale the values, leave such rows out, or choose --precision float64.",
    Remedy.OVERWRITE: "Choose another name, or pass --overwrite to replace it.",
    Remedy.FRESH: "Pass --fresh to train from the start.",
    Remedy.OTHER_FOLDER: "Repeat the options of that run to resume it, or pass --fresh to start over.",
}
"""Advice of the commands that take all table options."""

TRAINED_ADVICE: Mapping[Remedy, str] = {
    **ADVICE,
    Remedy.ORIGIN: "Leave out series without observations.",
    Remedy.EARLIER_ORIGIN: "Leave it out, or train a model with --origin first.",
    Remedy.COMMON_ORIGIN: "Leave out what is earlier, or train a model with --origin first.",
    Remedy.NEARER_ORIGIN: "Round the stamps to microseconds.",
    Remedy.EPOCH: "Give the stamps in the units of the training table.",
    Remedy.LONGER_INTERVALS: "Choose longer ones.",
    Remedy.NO_EPOCH: "Give the stamps as numbers, as in the training table.",
    Remedy.CHANNELS: "Convert the column to numbers, and leave the field empty where nothing was observed.",
    Remedy.UNKNOWN_CHANNEL: "The model was not trained on it: leave out its rows, or train a model with it.",
}
"""Advice of the commands that read further tables for a trained model, whose channels and clock are fixed."""
