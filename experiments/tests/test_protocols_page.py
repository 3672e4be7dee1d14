"""Tables on the page of the three protocols are those of the committed summaries."""

import json
import re

import pytest

from experiments.runner.reproduce import RESULTS
from experiments.runner.tables import Spread

PAGE = RESULTS.parents[1] / "docs" / "protocols.md"


def rows_of_page() -> dict[str, list[str]]:
    """The cells of each table row by its first cell, without emphasis; if that is empty, with those above it."""
    rows: dict[str, list[str]] = {}
    above = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("|"):
            first, *cells = (re.sub(r"\*\*|`|^\* ", "", cell.strip()) for cell in line.strip("|").split("|"))
            above = first or above
            rows[first or f"{above}, {cells[0]}"] = cells
            if first and cells[0]:
                rows[f"{first}, {cells[0]}"] = cells
    return rows


def summary(name: str) -> dict:
    return json.loads((RESULTS / name / "summary.json").read_text())


def spread(values: list[float], unit: float, digits: int) -> str:
    found = Spread.of(value / unit for value in values)
    return f"{found.mean:.{digits}f} ± {found.std:.{digits}f}" if len(values) > 1 else f"{found.mean:.{digits}f}"


MORTALITY = {
    "ensemble of the three marked by a star": "ensemble",
    "the same without the CDE": "ensemble without the CDE",
    "additive model, perceptron and BD-SLiCE, mean of three: best single model": "perceptron and CDE",
    "the same without the BD-SLiCE": "perceptron",
    "LogCDEClassifier(), static features as channels observed at time 0": "LogCDEClassifier()",
    "gradient boosting on summaries": "boosting on summaries",
    "gradient boosting on summaries and statistics of windows": "boosting on both",
    "gradient boosting on statistics of windows": "boosting on windows",
    "the two boosted ones with a star": "ensemble of boosting only",
}


@pytest.mark.parametrize("label", MORTALITY)
def test_areas_of_death_in_hospital(label):
    mine = [row for row in summary("mortality")["rows"] if row["model"] == MORTALITY[label]]
    expected = [spread([row[area] for row in mine], 0.01, 1) for area in ("auroc", "auprc")]
    assert rows_of_page()[label][:2] == expected


NEXTDAY = {
    "last value": "last value",
    "last value, shrunk to the mean by a share for each variable": "shrunk last value",
    "gradient boosting for each variable": "boosting",
    "the same with means of recent windows, on the change against the last value": "boosting with windows",
    "LogCDEForecaster, MeanLoss()": "logcde, mean",
    "LogCDEForecaster, MedianLoss()": "logcde, median",
    "the mean of these two": "logcde, between mean and median",
    "LogCDEForecaster, BetweenLoss(0.1)": "logcde, between",
    "LogCDEForecaster, BetweenLoss(0.1), with a network": "logcde with a network, between",
}


@pytest.mark.parametrize("label", NEXTDAY)
def test_errors_of_the_next_day(label):
    rows = [row for row in summary("nextday")["rows"] if row["model"] == NEXTDAY[label]]
    first, further = ([row for row in rows if (row["split"] == 42) is which] for which in (True, False))
    cells = rows_of_page()[label]
    assert cells[0] == f"{first[0]['mse'] * 1000:.2f} / {first[0]['mae'] * 100:.2f}"
    if further:
        errors = [spread([row[name] for row in further], unit, 2) for name, unit in (("mse", 1e-3), ("mae", 1e-2))]
        assert cells[1] == " / ".join(errors)


SEPSIS = {
    "boosting on hourly features": "boosting on hourly features",
    "boosting on recent windows": "logcde: boosting on recent windows",
    "mean of both": "mean of both",
    "GRU-D": "GRU-D",
}
PROTOCOLS = {"five random splits": "random", "A to B": "A to B", "B to A": "B to A"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("label", SEPSIS)
def test_scores_of_sepsis(protocol, label):
    rows = summary("sepsis")["rows"]
    name = f"sepsis, {PROTOCOLS[protocol]}"
    mine = [row for row in rows if row["model"] == SEPSIS[label] and row["protocol"] == name]
    digits = {"auroc": 3, "auprc": 3, "utility": 3, "log_loss": 4, "calibration_error": 4}
    expected = [spread([row[score] for row in mine], 1.0, count) for score, count in digits.items()]
    assert rows_of_page()[f"{protocol}, {label}"][1:] == expected
