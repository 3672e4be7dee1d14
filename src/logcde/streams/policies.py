"""What to do with input that may mean several things. The default is always to refuse and say why."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Forbid:
    """Raise an error that names the place."""


@dataclasses.dataclass(frozen=True)
class KeepLast:
    """Of several values for one series, stamp and channel, keep the one that comes last in the input."""


@dataclasses.dataclass(frozen=True)
class Average:
    """Of several values for one series, stamp and channel, keep the mean."""


@dataclasses.dataclass(frozen=True)
class Drop:
    """Leave out series without a single observation."""


@dataclasses.dataclass(frozen=True)
class Keep:
    """Keep series without a single observation: their intervals still carry the passing of time."""


@dataclasses.dataclass(frozen=True)
class Earliest:
    """Datetimes count from the earliest observed stamp of the whole data set."""


@dataclasses.dataclass(frozen=True)
class FirstStamp:
    """Datetimes count from each series' own first observed stamp."""
