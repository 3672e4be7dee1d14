"""The utility score of the PhysioNet/CinC Challenge 2019 (Reyna et al., 2020), from its definition.

A warning about a patient with sepsis earns most 6 hours before its onset, from 12 hours before to 3 hours after; being
silent costs up to 2 from 6 hours before onset on; a warning about a patient without sepsis costs 0.05. Labels are 1
from 6 hours before onset on. The score is scaled so that silence is 0 and the best warnings are 1.
"""

import itertools

import numpy as np
from jaxtyping import Bool, Float64, Int64

EARLY, OPTIMAL, LATE = -12, -6, 3
BEST, MISSED, FALSE = 1.0, -2.0, -0.05


def utilities(label: Int64[np.ndarray, "hour"]) -> Float64[np.ndarray, "hour 2"]:
    """The utility of silence and of a warning at each hour of one stay.

    >>> utilities(np.array([0, 0, 1])).round(3).tolist()
    [[0.0, 0.667], [0.0, 0.833], [0.0, 1.0]]
    >>> utilities(np.zeros(1, int)).tolist()
    [[0.0, -0.05]]
    """
    found = np.zeros((len(label), 2))
    if not label.any():
        found[:, 1] = FALSE
        return found
    onset = int(np.argmax(label)) - OPTIMAL
    after = np.arange(len(label)) - onset
    rising = np.maximum(BEST * (after - EARLY) / (OPTIMAL - EARLY), FALSE)
    falling = BEST * (LATE - after) / (LATE - OPTIMAL)
    found[:, 1] = np.where(after <= OPTIMAL, rising, falling)
    found[:, 0] = np.where(after <= OPTIMAL, 0.0, MISSED * (after - OPTIMAL) / (LATE - OPTIMAL))
    found[after > LATE] = 0.0
    return found


def normalised(
    utility: Float64[np.ndarray, "row 2"], label: Int64[np.ndarray, "row"], rows: Int64[np.ndarray, "stay+1"],
    warned: Bool[np.ndarray, "row"],
) -> float:  # fmt: skip
    """The score of warnings: 0 for silence, 1 for the best warnings, negative for worse than silence.

    The best warnings are about patients with sepsis only, from 12 hours before onset to 3 hours after it.
    """
    silence = utility[:, 0].sum()
    found = np.where(warned, utility[:, 1], utility[:, 0]).sum()
    best = sum(_best(utility[a:b], label[a:b]) for a, b in itertools.pairwise(rows))
    return float((found - silence) / (best - silence))


def _best(utility: Float64[np.ndarray, "hour 2"], label: Int64[np.ndarray, "hour"]) -> float:
    if not label.any():
        return 0.0
    after = np.arange(len(label)) - (int(np.argmax(label)) - OPTIMAL)
    return float(np.where((after >= EARLY) & (after <= LATE), utility[:, 1], utility[:, 0]).sum())


def best_threshold(odds: Float64[np.ndarray, "row"], utility: Float64[np.ndarray, "row 2"]) -> float:
    """The threshold from which on warnings have the greatest utility.

    >>> best_threshold(np.array([3.0, 1.0, 2.0]), np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.5]]))
    1.5
    """
    order = np.argsort(-odds, kind="stable")
    gained = np.concatenate([[0.0], np.cumsum((utility[:, 1] - utility[:, 0])[order])])
    ordered = np.concatenate([[np.inf], odds[order], [-np.inf]])
    distinct = np.flatnonzero(np.diff(ordered) != 0)  # warnings end between two different odds
    count = int(distinct[np.argmax(gained[distinct])])
    above, below = ordered[count], ordered[count + 1]
    if not np.isfinite(above):
        return float(below) + 1.0
    return float((above + below) / 2) if np.isfinite(below) else float(above) - 1.0
