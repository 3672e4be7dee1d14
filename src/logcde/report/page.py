"""The HTML report of a training run: one self-contained page without scripts."""

import importlib.resources
from collections.abc import Sequence

from logcde.report import figures
from logcde.report.classes import class_report
from logcde.report.html import Markup, joined, number, table, tag
from logcde.report.numbers import value_report
from logcde.report.record import Run, compared

SCORES = {
    "accuracy": ("accuracy", "fraction of series that are classified correctly; higher is better"),
    "balanced accuracy": ("balanced accuracy", "mean accuracy over classes; higher is better"),
    "log loss": ("log loss", "mean negative log-probability of the true class; lower is better"),
    "auroc": ("AUROC", "area under the receiver operating characteristic; higher is better"),
    "mse": ("mean squared error", "lower is better"),
    "mae": ("mean absolute error", "lower is better"),
    "r2": ("R²", "fraction of variance explained; 1 is perfect, 0 is no better than the mean"),
}  # fmt: skip
TARGETS = {"classify": "the class", "regress": "the value of", "forecast": "future values of"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(run: Run, config: str) -> str:
    """Return the report as one HTML document.

    Names given by users are escaped, and a content security policy forbids scripts and external resources.

    Args:
        run: The record of the run.
        config: Text of the `train.toml` that repeats it.
    """
    title = f"Predicting {TARGETS[run.task]} {_names(run)}"
    sections = {
        "Scores": _scores(run),
        "Predictions": _predictions(run),
        "Training": _training(run),
        "Data": _data(run),
        "Settings": _settings(run),
        "Reproduce": _reproduce(run, config),
    }
    body = [
        tag("h1", title),
        tag("p", _lead(run), kind="lead"),
        tag("p", f"Trained {run.created} with logcde {run.versions.get('logcde', '')}.", kind="soft"),
        Markup("<nav>" + "".join(f'<a href="#{name.lower()}">{name}</a>' for name in sections) + "</nav>"),
    ]
    for name, content in sections.items():
        body.append(Markup(f'<section id="{name.lower()}">{tag("h2", name)}{content}</section>'))
    head = joined(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", title),
        tag("style", Markup(importlib.resources.files("logcde.report").joinpath("style.css").read_text("utf-8"))),
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n{tag("head", head)}\n{tag("body", *body)}\n</html>\n'


def _names(run: Run) -> str:
    shown = ", ".join(run.outputs[:3])
    return shown if len(run.outputs) <= 3 else f"{shown} and {len(run.outputs) - 3:,} more"


def _lead(run: Run) -> str:
    """Summarise the run in a sentence."""
    if not run.metrics:
        return "No series were held out, so the model was not evaluated."
    first = "accuracy" if run.task == "classify" else "mse"
    found, other = run.metrics.get(first), run.baseline.get(first)
    if found is None:
        return "Some predictions for held-out series are not finite: this model is unusable."
    name = "An accuracy" if run.task == "classify" else "A mean squared error"
    return (
        f"{name} of {number(found)} on {run.data.held_out:,} held-out series. Always predicting {_prior(run)} has "
        f"{number(other)}."
    )


def _prior(run: Run) -> str:
    """Name the prediction of the baseline: the mean, or the most frequent class."""
    if run.classes is None:
        return "the mean"
    return str(run.classes[max(range(len(run.prior)), key=run.prior.__getitem__)])


def _scores(run: Run) -> Markup:
    if not run.metrics:
        return tag(
            "p", "There are no scores, because no series were held out. To hold some out, train with --holdout 0.2."
        )
    rows = []
    for key, value in run.metrics.items():
        name, meaning = SCORES.get(key, (key, ""))
        cell = joined(name, tag("div", meaning, kind="soft"))
        rows.append([cell, number(value), number(run.baseline.get(key))])
    made = table(["", "model", f"always {_prior(run)}"], rows)
    lost = None in (*run.metrics.values(), *run.baseline.values())
    return joined(made, tag("p", "A dash is a score that is not finite.", kind="soft") if lost else "")


def _predictions(run: Run) -> Markup:
    held_out = run.held_out
    if held_out is None or not held_out.series:
        return tag("p", "There are no predictions, because no series were held out.")
    return class_report(run, held_out) if run.task == "classify" else value_report(run, held_out)


def _training(run: Run) -> Markup:
    seconds, learners = run.seconds.get("training"), compared(run.choices)
    took = "." if seconds is None else f" in {number(seconds)} seconds."
    if not run.history:
        text = tag("p", f"Trained on {run.data.trained:,} series{took}")
        return joined(text, _learners(learners)) if learners else text
    text = f"{run.history[-1].step:,} steps on {run.data.trained:,} series{took}"
    figure = figures.loss_curve(run.history)
    if figure is None:
        return joined(tag("p", text), tag("p", "The loss was never finite.", kind="warning"))
    return joined(tag("p", text), figure)


def _learners(learners: Sequence[Sequence[str]]) -> Markup:
    text = (
        "Each learner predicted training series that it had not seen. The model is their mean, with the weights that "
        "predict best; a learner of weight 0 is not part of it."
    )
    made = table(["learner", "weight", "on series left out"], learners, texts=3)
    return joined(tag("h3", "Learners"), tag("p", text), made)


def _data(run: Run) -> Markup:
    data = run.data
    facts = [
        ["file", data.file],
        ["SHA-256", data.sha256],
        ["rows", number(data.rows)],
        ["series", f"{data.series:,}: {data.trained:,} for training, {data.held_out:,} held out"],
        ["events", number(data.events)],
        ["observations", number(data.observations)],
        ["median gap between events", f"{number(data.gap)} {data.unit}".strip()],
    ]
    channels = [
        [one.name, number(one.observations), number(one.lowest), number(one.highest), number(one.median_gap)]
        for one in data.channels
    ]
    gap = f"median gap, {data.unit}" if data.unit else "median gap"
    made = table(["channel", "observations", "minimum", "maximum", gap], channels)
    return joined(table(["", ""], facts, texts=2), tag("h3", "Channels"), made)


def _settings(run: Run) -> Markup:
    shown = {name for name, *_ in compared(run.choices)}
    rows = [[name.replace("_", " "), one.value, one.reason] for name, one in run.choices.items() if name not in shown]
    text = f"The model has {run.parameters:,} parameters. The task is to {run.task} ({run.task_reason})."
    return joined(tag("p", text), table(["setting", "value", "reason"], rows, texts=3))


def _reproduce(run: Run, config: str) -> Markup:
    facts = [[name, str(value)] for name, value in (*run.versions.items(), *run.machine.items())]
    return joined(
        tag("p", "This command trains the same model, if the table is in the same place:"),
        tag("pre", run.command),
        tag("p", "So does logcde train --config train.toml -o FOLDER with this train.toml:"),
        tag("pre", config),
        tag("p", "The model is the same to the bit with the same versions on the same machine:"),
        table(["", ""], facts, texts=2),
    )
