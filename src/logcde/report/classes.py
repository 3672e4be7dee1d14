"""Report of a classifier: confusion matrix, calibration, and the most confident errors."""

from collections import Counter

import numpy as np

from logcde.report import figures
from logcde.report.html import Markup, joined, number, table, tag
from logcde.report.record import HeldOut, Label, Run

MOST_CLASSES = 15
MOST_ROWS = 10


def class_report(run: Run, held_out: HeldOut) -> Markup:
    """Report on the predicted classes of the held-out series."""
    right = np.array([one == other for one, other in zip(held_out.truth, held_out.prediction, strict=True)])
    parts = [tag("h3", "Confusion matrix"), _confusion(run, held_out)]
    chance = np.array(held_out.probabilities, float) if held_out.probabilities else np.empty((0, 0))
    sure = np.isfinite(chance).all() and chance.size > 0
    if sure:
        parts += [tag("h3", "Calibration"), figures.reliability_diagram(chance, right)]
    parts.append(tag("h3", "Most confident errors"))
    wrong = np.flatnonzero(~right)
    if not len(wrong):
        return joined(*parts, tag("p", "There are no errors: all held-out series are classified correctly."))
    if sure:
        wrong = wrong[np.argsort(-chance[wrong].max(axis=1), kind="stable")]
    rows = [_error(run, held_out, place, chance if sure else None) for place in wrong[:MOST_ROWS].tolist()]
    told = f"{len(wrong):,} of {len(right):,} predictions are wrong. Those with the highest probability:"
    head = ["series", "true", "predicted", "probability of predicted", "probability of true"]
    return joined(*parts, tag("p", told), table(head, rows, texts=3))


def _confusion(run: Run, held_out: HeldOut) -> Markup:
    """Tabulate true (rows) and predicted classes (columns); if there are many, only the most frequent errors."""
    pairs = Counter(zip(held_out.truth, held_out.prediction, strict=True))
    known = list(run.classes or ())
    classes = known + [one for one in dict.fromkeys(held_out.truth) if one not in known]
    if len(classes) > MOST_CLASSES:
        errors = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]][:MOST_ROWS]
        rows = [[str(true), str(said), number(count)] for (true, said), count in errors]
        told = f"There are {len(classes):,} classes, too many for the whole matrix."
        return joined(
            tag("p", told + (" The most frequent errors:" if rows else " There are no errors.")),
            table(["true", "predicted", "series"], rows, texts=2) if rows else "",
        )
    head = tag("tr", tag("th", "true ↓ predicted →"), *(tag("th", str(one), kind="n") for one in known))
    body = []
    for true in classes:
        total = sum(pairs[true, said] for said in known)
        body.append(tag("tr", tag("th", str(true)), *(_cell(pairs[true, said], total, true == said) for said in known)))
    made = tag("table", tag("thead", head), tag("tbody", *body), kind="confusion")
    told = "Numbers of series. Colours are fractions of the true class; correct predictions are framed."
    return joined(made, tag("p", told))


def _cell(count: int, total: int, right: bool) -> Markup:
    share = count / total if total else 0.0
    return tag("td", number(count), kind="n right" if right else "n", style=f"--share: {0.75 * share:.3f}")


def _error(run: Run, held_out: HeldOut, place: int, chance: np.ndarray | None) -> list[str]:
    true, said = held_out.truth[place], held_out.prediction[place]
    of_said, of_true = (None if chance is None else _chance(run, chance[place], one) for one in (said, true))
    return [str(held_out.series[place]), str(true), str(said), number(of_said), number(of_true)]


def _chance(run: Run, chance: np.ndarray, one: Label | list) -> float | None:
    classes = run.classes or []
    return float(chance[classes.index(one)]) if one in classes else None
