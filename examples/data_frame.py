"""Your own data frame: a long table with one observation in each row, in polars or pandas.

python -m examples.data_frame
"""

import importlib
import importlib.util
from typing import Any

import numpy as np

import logcde as lc
from logcde.estimators import LogCDEClassifier, Long


def table(patients: int) -> tuple[Any, list[str]]:
    """A long table of vitals, and the outcome of each patient, in the order of the table."""
    rng = np.random.default_rng(0)
    ill = np.arange(patients) % 2 == 1
    rows = [
        (f"patient {patient}", hour, vital, level + 2.0 * ill[patient] + rng.normal())
        for patient in range(patients)
        for vital, level, count in (("pulse", 70.0, 12), ("lactate", 1.0, 3))
        for hour in rng.uniform(0, 24, count)
    ]
    rows.sort(key=lambda row: (int(row[0].split()[1]), row[1]))
    columns = dict(zip(("patient", "hour", "vital", "x"), map(list, zip(*rows, strict=True)), strict=True))
    library = "polars" if importlib.util.find_spec("polars") else "pandas"
    return importlib.import_module(library).DataFrame(columns), ["ill" if one else "well" for one in ill]


def main(patients: int = 120) -> np.ndarray:
    """Describe the table, train a classifier on it, and predict. Returns probabilities of the classes."""
    frame, outcome = table(patients)
    streams = lc.Streams.from_frame(frame, series="patient", time="hour", channel="vital", value="x", horizon=24.0)
    print(streams.describe())

    # Several learners are compared on patients left out, and mixed.
    columns = Long(series="patient", time="hour", channel="vital", value="x")
    classifier = LogCDEClassifier(table=columns, random_state=0)
    classifier.fit(frame, outcome)
    print("Settings, and why:")
    for name, choice in classifier.choices_.items():
        print(f"  {name}: {choice.value} ({choice.reason})")

    probabilities = classifier.predict_proba(frame)
    print(f"Probabilities of {', '.join(classifier.classes_)} for the first patient: {probabilities[0].round(2)}")
    return probabilities


if __name__ == "__main__":
    main()
