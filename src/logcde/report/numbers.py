"""Report of a regressor or forecaster: predicted over true values, forecasts over time, and the largest errors."""

import numpy as np

from logcde.report import figures
from logcde.report.html import Markup, joined, number, table, tag
from logcde.report.record import HeldOut, Run

MOST_OUTPUTS = 4
MOST_PANELS = 2
MOST_SERIES = 4
MOST_ROWS = 10


def value_report(run: Run, held_out: HeldOut) -> Markup:
    """Report on the predicted numbers of the held-out series."""
    truth, prediction = (np.array(rows, float) for rows in (held_out.truth, held_out.prediction))
    known = np.isfinite(truth) & np.isfinite(prediction)
    lost = int((np.isfinite(truth) & ~np.isfinite(prediction)).sum())
    parts = []
    if lost:
        text = "1 prediction is not finite and is" if lost == 1 else f"{lost:,} predictions are not finite and are"
        parts.append(tag("p", f"{text} left out below.", kind="warning"))
    if not known.any():
        return joined(*parts, tag("p", "There are no finite predictions."))
    parts.append(tag("h3", "Predicted and true values"))
    some = [place for place in range(len(run.outputs)) if known[:, place].any()]
    if len(some) > 1:
        parts.append(_each_output(run, truth, prediction, known))
    if len(some) > MOST_OUTPUTS:
        parts.append(tag("p", f"The first {MOST_OUTPUTS} outputs:"))
    for place in some[:MOST_OUTPUTS]:
        seen = known[:, place]
        parts.append(figures.error_plots(truth[seen, place], prediction[seen, place], run.outputs[place], place))
    if run.task == "forecast":
        parts += [tag("h3", "Examples"), _over_time(run, held_out, truth, prediction, some[:MOST_PANELS])]
    return joined(*parts, tag("h3", "Largest errors"), _largest(run, held_out, truth, prediction, known))


def _each_output(run: Run, truth: np.ndarray, prediction: np.ndarray, known: np.ndarray) -> Markup:
    rows = []
    for place, name in enumerate(run.outputs):
        seen = known[:, place]
        error = prediction[seen, place] - truth[seen, place]
        found = [None] * 3
        if len(error):
            found = [float(np.abs(error).mean()), float(np.sqrt(np.square(error).mean())), float(error.mean())]
        rows.append([name, number(len(error)), *map(number, found)])
    return table(["output", "predictions", "mean absolute error", "root mean squared error", "mean error"], rows)


def _over_time(run: Run, held_out: HeldOut, truth: np.ndarray, prediction: np.ndarray, outputs: list[int]) -> Markup:
    places: dict[str | int, list[int]] = {}
    for place, name in enumerate(held_out.series):
        places.setdefault(name, []).append(place)
    names = list(places)[:MOST_SERIES]
    return figures.forecasts(
        [str(name) for name in names],
        [np.array(places[name]) for name in names],
        np.array(held_out.time),
        truth[:, outputs],
        prediction[:, outputs],
        [run.outputs[place] for place in outputs],
        run.data.unit,
    )


def _largest(run: Run, held_out: HeldOut, truth: np.ndarray, prediction: np.ndarray, known: np.ndarray) -> Markup:
    """List the largest errors, relative to the standard deviation of their output."""
    spread = np.array([np.std(truth[seen, place]) if seen.any() else 0.0 for place, seen in enumerate(known.T)])
    size = np.where(known, np.abs(prediction - truth) / np.where(spread > 0, spread, 1.0), -1.0)
    order = np.argsort(-size, axis=None, kind="stable")[:MOST_ROWS]
    rows = []
    for place, output in zip(*(part.tolist() for part in np.unravel_index(order, size.shape)), strict=True):
        if known[place, output]:
            true, predicted = float(truth[place, output]), float(prediction[place, output])
            what = [str(held_out.series[place]), run.outputs[output], number(held_out.time[place])]
            rows.append([*what, number(true), number(predicted), number(predicted - true)])
    unit = f"time, {run.data.unit}" if run.data.unit else "time"
    return table(["series", "output", unit, "true", "predicted", "error"], rows, texts=2)
