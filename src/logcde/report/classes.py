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
    probabilities = np.array(held_out.probabilities, float) if held_out.probabilities else np.empty((0, 0))
    finite = np.isfinite(probabilities).all() and probabilities.size > 0
    if finite:
        parts += [tag("h3", "Calibration"), figures.reliability_diagram(probabilities, right)]
    parts.append(tag("h3", "Most confident errors"))
    wrong = np.flatnonzero(~right)
    if not len(wrong):
        return joined(*parts, tag("p", "There are no errors: all held-out series are classified correctly."))
    if finite:
        wrong = wrong[np.argsort(-probabilities[wrong].max(axis=1), kind="stable")]
    rows = [_error(run, held_out, place, probabilities if finite else None) for place in wrong[:MOST_ROWS].tolist()]
    text = f"{len(wrong):,} of {len(right):,} predictions are wrong. Those with the highest probability:"
    head = ["series", "true", "predicted", "probability of predicted", "probability of true"]
    return joined(*parts, tag("p", text), table(head, rows, texts=3))


def _confusion(run: Run, held_out: HeldOut) -> Markup:
    """Tabulate true (rows) and predicted classes (columns); if there are many, only the most frequent errors."""
    pairs = Counter(zip(held_out.truth, held_out.prediction, strict=True))
    known = list(run.classes or ())
    classes = known + [one for one in dict.fromkeys(held_out.truth) if one not in known]
    if len(classes) > MOST_CLASSES:
        errors = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]][:MOST_ROWS]
        rows = [[str(true), str(predicted), number(count)] for (true, predicted), count in errors]
        text = f"There are {len(classes):,} classes, too many for the whole matrix."
        return joined(
            tag("p", text + (" The most frequent errors:" if rows else " There are no errors.")),
            table(["true", "predicted", "series"], rows, texts=2) if rows else "",
        )
    head = tag("tr", tag("th", "true ↓ predicted →"), *(tag("th", str(one), kind="n") for one in known))
    body = []
    for true in classes:
        total = sum(pairs[true, predicted] for predicted in known)
        body.append(
            tag(
                "tr",
                tag("th", str(true)),
                *(_cell(pairs[true, predicted], total, true == predicted) for predicted in known),
            )
        )
    made = tag("table", tag("thead", head), tag("tbody", *body), kind="confusion")
    text = "Numbers of series. Colours are fractions of the true class; correct predictions are framed."
    return joined(made, tag("p", text))


def _cell(count: int, total: int, right: bool) -> Markup:
    share = count / total if total else 0.0
    return tag("td", number(count), kind="n right" if right else "n", style=f"--share: {0.75 * share:.3f}")


def _error(run: Run, held_out: HeldOut, place: int, probabilities: np.ndarray | None) -> list[str]:
    true, predicted = held_out.truth[place], held_out.prediction[place]
    of_predicted, of_true = (
        None if probabilities is None else _probability(run, probabilities[place], one) for one in (predicted, true)
    )
    return [str(held_out.series[place]), str(true), str(predicted), number(of_predicted), number(of_true)]


def _probability(run: Run, probabilities: np.ndarray, one: Label | list) -> float | None:
    classes = run.classes or []
    return float(probabilities[classes.index(one)]) if one in classes else None
