"""One page about a training run: it needs nothing beside itself, runs nothing, and loads nothing from anywhere."""

import importlib.resources

from logcde.report import figures
from logcde.report.classes import of_classes
from logcde.report.html import Markup, joined, number, table, tag
from logcde.report.numbers import of_numbers
from logcde.report.record import Run

SCORES = {
    "accuracy": ("accuracy", "share of series whose class is right; more is better"),
    "balanced accuracy": ("balanced accuracy", "the mean of that over classes; more is better"),
    "log loss": ("log loss", "how surprising the truth is under the probabilities; less is better"),
    "auroc": ("AUROC", "chance that a series of the second class gets a higher probability of it than one of the "
              "first; more is better"),
    "mse": ("mean squared error", "less is better"),
    "mae": ("mean absolute error", "less is better"),
    "r2": ("R²", "share of the variance that is explained; 1 is perfect, 0 is no better than the mean"),
}  # fmt: skip
WHAT = {"classify": "the class", "regress": "the number", "forecast": "values over time of"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(run: Run, config: str) -> str:
    """A whole HTML document. `config` is the text of the configuration that repeats the run.

    Whatever a user has named is escaped, and a policy in the page forbids scripts and everything from elsewhere.
    """
    title = f"Predicting {WHAT[run.task]} {_names(run)}"
    sections = {
        "Scores": _scores(run),
        "Predictions": _predictions(run),
        "Training": _training(run),
        "Data": _data(run),
        "Settings": _settings(run),
        "Again": _again(run, config),
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
    """The whole in a sentence."""
    if not run.metrics:
        return "No series were held out, so nothing is known about how good the model is."
    first = "accuracy" if run.task == "classify" else "mse"
    found, other = run.metrics.get(first), run.baseline.get(first)
    if found is None:
        return "Predictions for held-out series are not all finite numbers: this model is of no use."
    name = "An accuracy" if run.task == "classify" else "A mean squared error"
    return (
        f"{name} of {number(found)} on {run.data.held_out:,} series that training has never seen. "
        f"Always {_always(run)} would have {number(other)}."
    )


def _always(run: Run) -> str:
    if run.classes is None:
        return "answering with the mean"
    return f"answering {run.classes[max(range(len(run.prior)), key=run.prior.__getitem__)]}"


def _scores(run: Run) -> Markup:
    if not run.metrics:
        return tag("p", "There are no scores, because no series were held out. Train with --holdout 0.2 to have them.")
    rows = []
    for key, value in run.metrics.items():
        name, meaning = SCORES.get(key, (key, ""))
        cell = joined(name, tag("div", meaning, kind="soft"))
        rows.append([cell, number(value), number(run.baseline.get(key))])
    made = table(["", "model", f"always {_always(run)}"], rows)
    lost = None in (*run.metrics.values(), *run.baseline.values())
    return joined(made, tag("p", "A dash stands for what is not a finite number.", kind="soft") if lost else "")


def _predictions(run: Run) -> Markup:
    held_out = run.held_out
    if held_out is None or not held_out.series:
        return tag("p", "There are no predictions to show, because no series were held out.")
    return of_classes(run, held_out) if run.task == "classify" else of_numbers(run, held_out)


def _training(run: Run) -> Markup:
    if not run.history:
        return tag("p", "There is no record of how training went.")
    seconds = run.seconds.get("training")
    told = f"{run.history[-1].step:,} steps on {run.data.trained:,} series"
    told += "." if seconds is None else f" in {number(seconds)} seconds."
    figure = figures.training(run.history)
    if figure is None:
        return joined(tag("p", told), tag("p", "The loss was never a finite number.", kind="warning"))
    return joined(tag("p", told), figure)


def _data(run: Run) -> Markup:
    data = run.data
    facts = [
        ["file", data.file],
        ["SHA-256", data.sha256],
        ["rows", number(data.rows)],
        ["series", f"{data.series:,}: {data.trained:,} to train on, {data.held_out:,} held out"],
        ["events", number(data.events)],
        ["observations", number(data.observations)],
        ["usual gap between events", f"{number(data.gap)} {data.unit}".strip()],
    ]
    channels = [
        [one.name, number(one.observations), number(one.lowest), number(one.highest), number(one.median_gap)]
        for one in data.channels
    ]
    gap = f"median gap, {data.unit}" if data.unit else "median gap"
    made = table(["channel", "observations", "lowest", "highest", gap], channels)
    return joined(table(["", ""], facts, texts=2), tag("h3", "Channels"), made)


def _settings(run: Run) -> Markup:
    rows = [[name.replace("_", " "), one.value, one.why] for name, one in run.choices.items()]
    told = f"The model has {run.parameters:,} parameters. The task is to {run.task} ({run.why_task})."
    return joined(tag("p", told), table(["setting", "value", "why"], rows, texts=3))


def _again(run: Run, config: str) -> Markup:
    facts = [[name, str(value)] for name, value in (*run.versions.items(), *run.machine.items())]
    return joined(
        tag("p", "This command makes the model again, with the same table in the same place:"),
        tag("pre", run.command),
        tag("p", "So does logcde train --config train.toml -o FOLDER with this train.toml:"),
        tag("pre", config),
        tag("p", "The same versions on the same machine give the same model, bit for bit. They were:"),
        table(["", ""], facts, texts=2),
    )
