"""What the UEA experiment shows: the paper's tables with its numbers beside ours, ranks, and the dropping curves."""

import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from logcde import plot
from logcde._files import write_whole
from logcde.experiments.abstract import Record
from logcde.experiments.claims import Conclusion
from logcde.experiments.tables import Spread, latex, markdown

if TYPE_CHECKING:
    from logcde.experiments.uea import UeaCell

MODELS = {
    "s5": "S5",
    "lru": "LRU",
    "s6": "S6",
    "mamba": "Mamba",
    "ncde": "NCDE",
    "log_ncde": "Log-NCDE",
    "d_slice": "D-SLiCE",
    "d_slice_euler": "D-SLiCE, flow 1 + A",
    "bd_slice": "BD-SLiCE",
    "lncde": "LNCDE",
}
PAPER_SETS = (
    "EigenWorms",
    "EthanolConcentration",
    "Heartbeat",
    "MotorImagery",
    "SelfRegulationSCP1",
    "SelfRegulationSCP2",
)
PERCENT = 0.01
Printed: TypeAlias = dict[str, dict[str, dict[str, tuple[float, float]]]]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one data set at one share of dropped observations, over seeds; accuracies in percent.

    `samples` is by how many test samples the mean differs from the paper's, and `capped` in how many runs training
    ended because of the limit on steps.
    """

    dataset: str
    model: str
    drop: float
    dropping: str
    seeds: list[int]
    mean: float
    std: float
    paper_mean: float | None = None
    paper_std: float | None = None
    tests: int
    samples: float | None = None
    steps: float
    most: int
    capped: int
    train_seconds: float
    parameters: int


def conclude(cells: Sequence["UeaCell"], records: Mapping["UeaCell", Record], folder: Path) -> Conclusion:
    """Tables, in words and for programs, and the figure."""
    rows = rows_of(cells, records)
    missing = [cell for cell in cells if cell not in records]
    dropped = [row for row in rows if row.dropping == "points"]
    each = [row for row in rows if row.dropping == "channels"]
    blocks = averages(dropped)
    text = _text(dropped, each, blocks, len(missing), len(cells))
    write_whole(folder / "tables.tex", _latex(dropped))
    _draw(dropped, folder / "dropping.png")
    if each:
        _draw(each, folder / "dropping_each_channel.png")
    summary = {
        "unit": "percent",
        "rows": msgspec.to_builtins(dropped),
        "each_channel": msgspec.to_builtins(each),
        "averages": msgspec.to_builtins(blocks),
        "not_run": [cell.label for cell in missing],
        "cell_seconds": round(sum(records[cell].seconds for cell in cells if cell in records), 1),
    }
    return Conclusion(summary, text, ())


def rows_of(cells: Sequence["UeaCell"], records: Mapping["UeaCell", Record]) -> list[Row]:
    """What is finished, over seeds, in the order of the paper's tables."""
    found: dict[tuple[str, str, float, str], list[UeaCell]] = {}
    for cell in cells:
        if cell in records:
            found.setdefault((cell.dropping, cell.dataset, cell.drop, cell.variant), []).append(cell)
    datasets = list(dict.fromkeys([*PAPER_SETS, *(cell.dataset for cell in cells)]))
    printed, models = _printed(), list(MODELS)
    order = sorted(found, key=lambda key: (key[0] != "points", datasets.index(key[1]), key[2], models.index(key[3])))
    rows = []
    for key in order:
        dropping, dataset, drop, model = key
        mine = found[key]
        outcomes = [records[cell].outcome for cell in mine]
        spread = Spread.of(outcome.accuracy / PERCENT for outcome in outcomes)
        paper = printed.get(str(drop), {}).get(model, {}).get(dataset) if dropping == "points" else None
        tests = outcomes[0].tests
        rows.append(
            Row(
                dataset=dataset,
                model=model,
                drop=drop,
                dropping=dropping,
                seeds=[cell.seed for cell in mine],
                mean=spread.mean,
                std=spread.std,
                paper_mean=None if paper is None else paper[0],
                paper_std=None if paper is None else paper[1],
                tests=tests,
                samples=None if paper is None else (spread.mean - paper[0]) * PERCENT * tests,
                steps=float(np.mean([outcome.steps for outcome in outcomes])),
                most=mine[0].training.most,
                capped=sum(outcome.capped for outcome in outcomes),
                train_seconds=float(np.mean([outcome.train_seconds for outcome in outcomes])),
                parameters=outcomes[0].parameters,
            )
        )
    return rows


class Average(msgspec.Struct, frozen=True, kw_only=True):
    """Several models on the same data sets at one share: mean accuracy and mean rank of each, and of the paper's."""

    drop: float
    datasets: list[str]
    models: list[str]
    accuracy: list[float]
    rank: list[float]
    paper_accuracy: list[float | None]


def averages(rows: Sequence[Row]) -> list[Average]:
    """For every share, over each group of the paper's data sets that two models or more have in common.

    Ranks are taken on accuracies that are not rounded, and models with the same accuracy share the mean of their ranks.
    """
    found = []
    for drop in sorted({row.drop for row in rows}):
        here = {(row.model, row.dataset): row for row in rows if row.drop == drop and row.dataset in PAPER_SETS}
        by_model: dict[str, frozenset[str]] = {}
        for model, dataset in here:
            by_model[model] = by_model.get(model, frozenset()) | {dataset}
        for group in sorted(set(by_model.values()), key=lambda group: -len(group)):
            models = [model for model in MODELS if group <= by_model.get(model, frozenset())]
            datasets = [dataset for dataset in PAPER_SETS if dataset in group]
            if len(models) > 1:
                found.append(_average(drop, models, datasets, here))
    return found


def _average(drop: float, models: list[str], datasets: list[str], here: Mapping[tuple[str, str], Row]) -> Average:
    ours = np.array([[here[model, dataset].mean for dataset in datasets] for model in models])
    ranks = np.mean([ranks_of(column) for column in ours.T], axis=0)
    paper = [[here[model, dataset].paper_mean for dataset in datasets] for model in models]
    return Average(
        drop=drop,
        datasets=datasets,
        models=models,
        accuracy=ours.mean(axis=1).tolist(),
        rank=ranks.tolist(),
        paper_accuracy=[None if None in line else float(np.mean([x for x in line if x is not None])) for line in paper],
    )


def ranks_of(accuracies: np.ndarray) -> np.ndarray:
    """Ranks from 1 for the greatest; equal ones share the mean of theirs.

    >>> ranks_of(np.array([80.0, 90.0, 80.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    better = (accuracies[None, :] > accuracies[:, None]).sum(axis=1)
    equal = (accuracies[None, :] == accuracies[:, None]).sum(axis=1)
    return better + (equal + 1) / 2


def _printed() -> Printed:
    text = importlib.resources.files("logcde.experiments").joinpath("presets", "printed-uea.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=Printed)


def _text(dropped: Sequence[Row], each: Sequence[Row], blocks: Sequence[Average], missing: int, cells: int) -> str:
    parts = [
        "# Classification under dropped observations: results",
        "Test accuracy in percent, mean ± standard deviation over seeds. A number in brackets is the paper's. "
        f"Of {cells} runs of the grid, {missing} were not run.",
    ]
    if blocks:
        parts += [
            "## Averages",
            "Over data sets of the paper that all models of a block were run on; lower ranks are better.",
            *map(_average_table, blocks),
        ]
    for drop in sorted({row.drop for row in dropped}):
        parts += [f"## {drop:.0%} of all time points dropped", _table([row for row in dropped if row.drop == drop])]
    if each:
        parts.append("## Dropped from each channel by itself")
        parts += [
            f"{drop:.0%} of each channel's observations:\n\n" + _table([row for row in each if row.drop == drop])
            for drop in sorted({row.drop for row in each})
        ]
    beside = [row for row in dropped if row.samples is not None]
    if beside:
        parts += [
            "## Beside the paper",
            "What the difference amounts to in test samples of one seed.",
            markdown(
                ["data set", "model", "dropped", "ours", "paper", "difference", "in test samples"],
                [
                    [
                        row.dataset,
                        MODELS[row.model],
                        f"{row.drop:.0%}",
                        _number(row.mean, row.std),
                        _number(row.paper_mean, row.paper_std),
                        f"{row.mean - (row.paper_mean or 0.0):+.1f}",
                        f"{row.samples:+.1f} of {row.tests}",
                    ]
                    for row in beside
                ],
            ),
        ]
    parts += [
        "## How long training took",
        "A limit on steps that ended training before early stopping would have is counted.",
        markdown(
            ["data set", "model", "dropped", "seeds", "steps", "ended by the limit", "seconds", "parameters"],
            [
                [
                    row.dataset,
                    MODELS[row.model],
                    f"{row.drop:.0%}" + (" of each channel" if row.dropping == "channels" else ""),
                    str(len(row.seeds)),
                    f"{row.steps:,.0f}",
                    f"{row.capped} of {len(row.seeds)} (at {row.most:,})" if row.capped else "none",
                    f"{row.train_seconds:,.0f}",
                    f"{row.parameters:,}",
                ]
                for row in [*dropped, *each]
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _average_table(average: Average) -> str:
    head = f"{average.drop:.0%} dropped, over {', '.join(average.datasets)}:"
    rows = [
        [MODELS[model], f"{accuracy:.1f}", f"{rank:.2f}", "" if paper is None else f"{paper:.1f}"]
        for model, accuracy, rank, paper in zip(
            average.models, average.accuracy, average.rank, average.paper_accuracy, strict=True
        )
    ]
    return head + "\n\n" + markdown(["model", "mean accuracy", "mean rank", "paper's mean accuracy"], rows)


def _table(rows: Sequence[Row]) -> str:
    """Models by data sets."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    return markdown(["model", *datasets], _cells(rows, datasets))


def _cells(rows: Sequence[Row], datasets: Sequence[str], none: str = "not run") -> list[list[str]]:
    found = {(row.model, row.dataset): row for row in rows}
    lines = []
    for model, name in MODELS.items():
        if any((model, dataset) in found for dataset in datasets):
            mine = [found.get((model, dataset)) for dataset in datasets]
            lines.append([name, *(none if row is None else _cell(row) for row in mine)])
    return lines


def _cell(row: Row) -> str:
    ours = _number(row.mean, row.std)
    return ours if row.paper_mean is None else f"{ours} ({_number(row.paper_mean, row.paper_std)})"


def _number(mean: float | None, std: float | None) -> str:
    return "" if mean is None or std is None else f"{mean:.1f} ± {std:.1f}"


def _latex(rows: Sequence[Row]) -> str:
    """The table of every share, for a paper."""
    tables = []
    for drop in sorted({row.drop for row in rows}):
        here = [row for row in rows if row.drop == drop]
        datasets = list(dict.fromkeys(row.dataset for row in here))
        caption = f"Test accuracy in percent with {drop:.0%} of all time points dropped; the paper's in brackets."
        tables.append(latex(["Model", *datasets], _cells(here, datasets, "--"), caption))
    return "\n\n".join(tables) + "\n"


def _draw(rows: Sequence[Row], file: Path) -> None:
    """Accuracy against the share that was dropped, a panel for each data set with more than one share."""
    shares: dict[str, set[float]] = {}
    for row in rows:
        shares.setdefault(row.dataset, set()).add(row.drop)
    datasets = [dataset for dataset, found in shares.items() if len(found) > 1]
    if not datasets:
        return
    models = [model for model in MODELS if any(row.model == model for row in rows)]
    columns = min(len(datasets), 4)
    lines = -(-len(datasets) // columns)
    figure = plot.figure_of(3.4 * columns, 2.9 * lines + 0.4)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[len(datasets) :]:
        axes.set_visible(False)
    for axes, dataset in zip(panels, datasets, strict=False):
        for number, model in enumerate(models):
            line = [row for row in rows if (row.dataset, row.model) == (dataset, model)]
            if line:
                points = [(row.mean, row.std) for row in line]
                plot.dropping(axes, [row.drop for row in line], points, MODELS[model], number)
        axes.set_title(dataset, fontsize=10)
    panels[0].set_ylabel("test accuracy, %")
    shown = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), frameon=False, fontsize=8, ncols=5, loc="outside lower center")
    plot.save(figure, file)
