"""Report of the UEA experiment: the tables of the paper with both numbers, claims, and accuracy over dropping."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from experiments.runner.abstract import Claim, Conclusion, Record
from experiments.runner.tables import claims_markdown, latex, markdown
from experiments.uea.cells import UeaCell
from experiments.uea.rows import PERCENT, Average, Row, averages, constant_of, judge, rows_of
from experiments.uea.settings import MODELS
from logcde import plot
from logcde._files import write_whole

OF_ROWS = ("s5", "lru", "s6", "mamba")
"""Models on rows instead of a path."""
CONSTANT = "the same class always"


def conclude(cells: Sequence[UeaCell], records: Mapping[UeaCell, Record], folder: Path) -> Conclusion:
    """Judge the claims, write tables, summary and text, and draw the figures."""
    rows = rows_of(cells, records)
    missing = [cell for cell in cells if cell not in records]
    dropped = [row for row in rows if row.dropping == "points"]
    each = [row for row in rows if row.dropping == "channels"]
    blocks = averages(dropped)
    claims = judge(dropped, blocks)
    text = _text(dropped, each, blocks, claims, len(missing), len(cells))
    write_whole(folder / "tables.tex", _latex(dropped))
    _draw(dropped, folder / "dropping.png")
    if each:
        _draw(each, folder / "dropping_each_channel.png")
    summary = {
        "unit": "percent",
        "rows": msgspec.to_builtins(dropped),
        "each_channel": msgspec.to_builtins(each),
        "averages": msgspec.to_builtins(blocks),
        "claims": msgspec.to_builtins(claims),
        "not_run": [cell.label for cell in missing],
        "cell_seconds": round(sum(records[cell].seconds for cell in cells if cell in records), 1),
    }
    return Conclusion(summary, text, claims)


def _text(
    dropped: Sequence[Row],
    each: Sequence[Row],
    blocks: Sequence[Average],
    claims: Sequence[Claim],
    missing: int,
    cells: int,
) -> str:
    parts = [
        "# Classification under dropped observations: results",
        "Test accuracy in percent, mean ± standard deviation over seeds, or one number of one seed; the paper's, over "
        "five, in brackets. After an asterisk (*) more than half of the runs were ended by a limit on steps, not by "
        "early stopping. The last line of a table is of always saying the class that most training series have. "
        f"Of {cells} runs of the grid, {missing or 'none'} {'was' if missing == 1 else 'were'} left out.",
    ]
    if claims:
        parts += ["## What the paper says", claims_markdown(claims)]
    if blocks:
        parts += [
            "## Averages",
            "Over data sets of the paper and seeds that all models of a block were run with; lower ranks are better.",
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
            "What the difference amounts to in test samples of one seed, and in standard errors of drawing other test "
            "series: the least that chance does.",
            markdown(
                [
                    "data set",
                    "model",
                    "dropped",
                    "ours",
                    "paper",
                    "difference",
                    "in test samples",
                    "in standard errors",
                ],
                [
                    [
                        row.dataset,
                        MODELS[row.model],
                        f"{row.drop:.0%}",
                        _ours(row),
                        _number(row.paper_mean, row.paper_std),
                        f"{row.mean - (row.paper_mean or 0.0):+.1f}",
                        f"{row.samples:+.1f} of {row.tests}",
                        f"{row.errors:+.1f}",
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
    head = f"{average.drop:.0%} dropped, over {average.where}:"
    columns = (average.accuracy, average.paper_accuracy, average.rank, average.paper_rank)
    rows = [
        [MODELS[model], f"{accuracy:.1f}", f"{paper:.1f}", f"{rank:.2f}", f"{paper_rank:.2f}"]
        for model, accuracy, paper, rank, paper_rank in zip(average.models, *columns, strict=True)
    ]
    return head + "\n\n" + markdown(["model", "mean accuracy", "paper", "mean rank", "paper"], rows)


def _table(rows: Sequence[Row]) -> str:
    """Format accuracies with a row for each model and a column for each data set."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    return markdown(["model", *datasets], _cells(rows, datasets))


def _cells(rows: Sequence[Row], datasets: Sequence[str], none: str = "not run") -> list[list[str]]:
    found = {(row.model, row.dataset): row for row in rows}
    lines = []
    for model, name in MODELS.items():
        if any((model, dataset) in found for dataset in datasets):
            mine = [found.get((model, dataset)) for dataset in datasets]
            lines.append([name, *(none if row is None else _cell(row) for row in mine)])
    constants = [constant_of(rows, dataset) for dataset in datasets]
    return [*lines, [CONSTANT, *("" if constant is None else f"{constant:.1f}" for constant in constants)]]


def _cell(row: Row) -> str:
    ours = _ours(row) + ("*" if 2 * row.capped > len(row.seeds) else "")
    return ours if row.paper_mean is None else f"{ours} ({_number(row.paper_mean, row.paper_std)})"


def _ours(row: Row) -> str:
    return _number(row.mean, row.std) if len(row.seeds) > 1 else f"{row.mean:.1f}"


def _number(mean: float | None, std: float | None) -> str:
    return "" if mean is None or std is None else f"{mean:.1f} ± {std:.1f}"


def _latex(rows: Sequence[Row]) -> str:
    """The table of every share in LaTeX."""
    tables = []
    for drop in sorted({row.drop for row in rows}):
        here = [row for row in rows if row.drop == drop]
        datasets = list(dict.fromkeys(row.dataset for row in here))
        caption = f"Test accuracy in percent with {drop:.0%} of all time points dropped; the paper's in brackets."
        tables.append(latex(["Model", *datasets], _cells(here, datasets, "--"), caption))
    return "\n\n".join(tables) + "\n"


def _draw(rows: Sequence[Row], file: Path) -> None:
    """Draw accuracy over the dropped share, a panel for each data set with several shares."""
    shares: dict[str, set[float]] = {}
    for row in rows:
        shares.setdefault(row.dataset, set()).add(row.drop)
    datasets = [dataset for dataset, found in shares.items() if len(found) > 1]
    if not datasets:
        return
    columns = min(len(datasets), 4)
    lines = -(-len(datasets) // columns)
    figure = plot.figure_of(3.4 * columns, 2.9 * lines + 0.4)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[len(datasets) :]:
        axes.set_visible(False)
    models = [model for model in MODELS if any(row.model == model for row in rows)]
    for axes, dataset in zip(panels, datasets, strict=False):
        for number, model in enumerate(models):
            line = [row for row in rows if (row.dataset, row.model) == (dataset, model)]
            if line:
                points = [(row.mean, row.std) for row in line]
                shift = 0.6 * PERCENT * (number - (len(models) - 1) / 2)  # so that bars do not hide each other
                drops = [row.drop + shift for row in line]
                plot.drop_curve(axes, drops, points, MODELS[model], number, open_marks=model in OF_ROWS)
        constant, (low, high) = constant_of(rows, dataset), axes.get_ylim()
        if constant is not None and low < constant < high:
            axes.axhline(constant, color="0.6", lw=1.0, dashes=(1, 2), label=CONSTANT)
        axes.set_title(dataset, fontsize=10)
    panels[0].set_ylabel("test accuracy, %")
    shown = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), frameon=False, fontsize=8, ncols=6, loc="outside lower center")
    plot.save(figure, file)
