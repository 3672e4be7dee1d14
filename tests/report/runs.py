"""Records of training runs that never were."""

import msgspec
import numpy as np

from logcde.report.record import Channel, Chosen, Data, HeldOut, Look, Run

NASTY = "<script>alert('$x$')</script>&"


def a_run(task="regress", held_out=None, metrics=None, **changed):
    """A record of this task; with held-out series, which have these scores."""
    channels = [Channel("pulse", 70, 40.0, 180.0, 0.5), Channel(NASTY, 0, None, None, None)]
    count = 0 if held_out is None else len(set(held_out.series))
    run = Run(
        command=f"logcde train 'vitals of {NASTY}.csv' -o model",
        created="2026-01-01T00:00:00+00:00",
        config={"file": f"vitals of {NASTY}.csv", "steps": 40},
        task=task,
        why_task="as given",
        outputs=["state"],
        classes=None,
        prior=[0.5],
        data=Data("vitals.csv", "ab" * 32, 70, 10, 10 - count, count, 70, 70, channels, "h", 0.5),
        choices={"depth": Chosen("2", "as given"), "max_iter": Chosen("40", f"of {NASTY}")},
        parameters=1234,
        history=[Look(20 * n, 1.0 * n, 1.0 * n, 1.0 / n, {"loss": 1.2 / n}, True) for n in (1, 2)],
        metrics=metrics or {},
        baseline=metrics or {},
        held_out=held_out,
        seconds={"training": 2.5},
        versions={"logcde": "0.1.0", "jax": "0.10"},
        machine={"cores": 2, "load": None},
    )
    return msgspec.structs.replace(run, **changed)


def of_classes(classes, truth, chances, **changed):
    """A classifier that gave these probabilities."""
    said = [classes[place] for place in np.argmax(chances, axis=1)]
    series = [f"{NASTY} {place}" for place in range(len(truth))]
    held_out = HeldOut(series, [8.0] * len(truth), truth, said, np.asarray(chances).tolist())
    accuracy = float(np.mean([one == other for one, other in zip(truth, said, strict=True)]))
    prior = [1 / len(classes)] * len(classes)
    return a_run("classify", held_out, {"accuracy": accuracy}, classes=classes, prior=prior, **changed)


def of_numbers(task, outputs, series, truth, prediction, **changed):
    """A model that predicted these numbers."""
    time = np.arange(len(series), dtype=float)
    held_out = HeldOut(series, time.tolist(), truth, prediction, None)
    return a_run(task, held_out, {"mse": 0.25, "r2": 0.5}, outputs=outputs, prior=[0.0] * len(outputs), **changed)
