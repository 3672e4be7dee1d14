"""Numbers in predictions: by which one series are sorted, and thresholds with hysteresis that raise alerts."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from logcde.errors import ModelError


def numbers_of(prediction: Any) -> dict[str, float]:
    """The numbers in a prediction by name: probabilities of classes, outputs by name, or outputs counted from 0.

    >>> numbers_of({"class": "ill", "probabilities": {"ill": 0.9, "well": 0.1}})
    {'ill': 0.9, 'well': 0.1}
    >>> numbers_of([0.25]), numbers_of({"days": 4.5})
    ({'0': 0.25}, {'days': 4.5})
    """
    if isinstance(prediction, list):
        return {str(number): value for number, value in enumerate(prediction)}
    return prediction.get("probabilities", prediction)


def risk_of(numbers: Mapping[str, float], name: str | None) -> float | None:
    """The number by which series are sorted: that of an output, by default the last one; None if it is not finite.

    >>> risk_of({"well": 0.1, "ill": 0.9}, None), risk_of({"well": 0.1, "ill": 0.9}, "well")
    (0.9, 0.1)
    """
    value = numbers[list(numbers)[-1] if name is None else name]
    return value if math.isfinite(value) else None


@dataclasses.dataclass(frozen=True)
class Alert:
    """Raised where an output reaches a threshold, and cleared where it comes back to another one.

    Args:
        output: Name of the output.
        raised: The alert is raised from here on: upwards if `cleared` is lower, downwards if it is higher.
        cleared: The alert is cleared from here on.

    >>> alert = Alert.parse("ill:0.8:0.6")
    >>> [alert.after(False, 0.7), alert.after(False, 0.8), alert.after(True, 0.7), alert.after(True, 0.6)]
    [False, True, True, False]
    """

    output: str
    raised: float
    cleared: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.raised) and math.isfinite(self.cleared)) or self.raised == self.cleared:
            raise ModelError(
                f"An alert cannot be raised at {self.raised} and cleared at {self.cleared}.",
                "Give two different, finite numbers.",
            )

    @staticmethod
    def parse(text: str) -> "Alert":
        """Read `output:raised:cleared`."""
        output, *limits = text.rsplit(":", 2)
        try:
            raised, cleared = map(float, limits)
        except ValueError as error:
            raise ModelError(
                f"{text!r} is not an alert.",
                "Give an output, the number at which it is raised and that at which it is cleared: ill:0.8:0.6.",
            ) from error
        return Alert(output, raised, cleared)

    def after(self, active: bool, value: float) -> bool:
        """Whether the alert is active after this value. One that is not finite changes nothing."""
        if not math.isfinite(value):
            return active
        sign = 1.0 if self.raised > self.cleared else -1.0
        return sign * value > sign * self.cleared if active else sign * value >= sign * self.raised

    def __str__(self) -> str:
        return f"{self.output}:{self.raised:g}:{self.cleared:g}"


def check_outputs(alerts: Sequence[Alert], risk: str | None, known: Sequence[str]) -> None:
    """Refuse options that name an output that the model does not have."""
    for name in [alert.output for alert in alerts] + ([] if risk is None else [risk]):
        if name not in known:
            raise ModelError(f"The model has no output {name!r}.", f"It has {', '.join(map(repr, known))}.")
