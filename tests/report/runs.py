"""Made-up records of training runs."""

import msgspec
import numpy as np

from logcde.report.record import Channel, Data, Evaluation, HeldOut, Run, Setting

NASTY = "<script>alert('$x$')</script>&"


def make_run(task="regress", held_out=None, metrics=None, **changed):
    """Make a record of a task, with held-out predictions and their scores."""
    channels = [Channel("pulse", 70, 40.0, 180.0, 0.5), Channel(NASTY, 0, None, None, None)]
    count = 0 if held_out is None else len(set(held_out.series))
    run = Run(
        command=f"logcde train 'vitals of {NASTY}.csv' -o model",
        created="2026-01-01T00:00:00+00:00",
        config={"file": f"vitals of {NASTY}.csv", "steps": 40},
        task=task,
        task_reason="as given",
        outputs=["state"],
        classes=None,
        prior=[0.5],
        data=Data("vitals.csv", "ab" * 32, 70, 10, 10 - count, count, 70, 70, channels, "h", 0.5),
        choices={"depth": Setting("2", "as given"), "max_iter": Setting("40", f"of {NASTY}")},
        parameters=1234,
        history=[Evaluation(20 * n, 1.0 * n, 1.0 * n, 1.0 / n, {"loss": 1.2 / n}, True) for n in (1, 2)],
        metrics=metrics or {},
        baseline=metrics or {},
        held_out=held_out,
        seconds={"training": 2.5},
        versions={"logcde": "0.1.0", "jax": "0.10"},
        machine={"cores": 2, "load": None},
    )
    return msgspec.structs.replace(run, **changed)


def classifier_run(classes, truth, chances, **changed):
    """Make the record of a classifier with these probabilities."""
    predicted = [classes[place] for place in np.argmax(chances, axis=1)]
    series = [f"{NASTY} {place}" for place in range(len(truth))]
    held_out = HeldOut(series, [8.0] * len(truth), truth, predicted, np.asarray(chances).tolist())
    accuracy = float(np.mean([one == other for one, other in zip(truth, predicted, strict=True)]))
    prior = [1 / len(classes)] * len(classes)
    return make_run("classify", held_out, {"accuracy": accuracy}, classes=classes, prior=prior, **changed)


def value_run(task, outputs, series, truth, prediction, **changed):
    """Make the record of a regressor or forecaster with these predictions."""
    time = np.arange(len(series), dtype=float)
    held_out = HeldOut(series, time.tolist(), truth, prediction, None)
    return make_run(task, held_out, {"mse": 0.25, "r2": 0.5}, outputs=outputs, prior=[0.0] * len(outputs), **changed)
