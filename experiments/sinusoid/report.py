"""Report of the sinusoid experiment: cross-regime tables, claims, and the figures of `app:sinusoid`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from experiments.runner.abstract import Claim, Conclusion, Record
from experiments.runner.tables import Spread, claims_markdown, markdown
from experiments.sinusoid.cells import SinusoidConfig
from logcde import plot
from logcde.datasets import REGIMES, sinusoids

NAMES = {
    "sync_regular": "synchronous\nregular",
    "sync_irregular": "synchronous\nirregular",
    "async_irregular": "asynchronous\nirregular",
    "async_sparse": "asynchronous\nsparse",
}
UNIT = 1e-2
Runs: TypeAlias = Mapping[tuple[str, int], Record]
Table: TypeAlias = dict[str, dict[str, Spread]]


def conclude(
    config: SinusoidConfig,
    by_variant: Mapping[str, Runs],
    searched: Mapping[str, float | None],
    chosen: str | None,
    folder: Path,
) -> Conclusion:
    """Judge the claims, draw the figures, and write summary and text."""
    final = {name: runs for name, runs in by_variant.items() if runs and not name.startswith("candidate ")}
    tables = {name: table_of(runs) for name, runs in final.items()}
    claims = judge(tables["printed"])
    _draw(config, final, tables, folder)
    summary = {
        "seeds": sorted({seed for _, seed in final["printed"]}),
        "mse": msgspec.to_builtins(tables["printed"]),
        "variants": {name: msgspec.to_builtins(table) for name, table in tables.items() if name != "printed"},
        "chosen": chosen,
        "validation": {
            name: error if error is None or np.isfinite(error) else None for name, error in searched.items()
        },
        "claims": msgspec.to_builtins(claims),
        "cell_seconds": round(sum(record.seconds for runs in by_variant.values() for record in runs.values()), 1),
    }
    return Conclusion(summary, _text(config, tables, final, searched, chosen, claims), claims)


def table_of(runs: Runs) -> Table:
    """Errors by training regime and test regime, over seeds."""
    trained = list(dict.fromkeys(regime for regime, _ in runs))
    return {
        regime: {
            test: Spread.of(record.outcome.mse[test] for (mine, _), record in runs.items() if mine == regime)
            for test in REGIMES
        }
        for regime in trained
    }


def judge(table: Table) -> tuple[Claim, ...]:
    """Judge the claims of the paper about the cross-regime table for the rows that exist."""
    claims = [_own_regime_best(table)]
    if "sync_regular" in table:
        column = {row: cells["async_sparse"].mean for row, cells in table.items()}
        claims.append(
            Claim(
                "The model trained on regular data is the worst on asynchronous sparse data",
                max(column, key=column.__getitem__) == "sync_regular",
                _listed(column),
            )
        )
    if "async_sparse" in table:
        flatness = {
            row: max(c.mean for c in cells.values()) / min(c.mean for c in cells.values())
            for row, cells in table.items()
        }
        claims.append(
            Claim(
                "The model trained on asynchronous sparse data has the flattest row (largest / smallest error)",
                min(flatness, key=flatness.__getitem__) == "async_sparse",
                ", ".join(f"{row} {ratio:.3g}" for row, ratio in flatness.items()),
            )
        )
    if {"sync_irregular", "async_irregular"} <= set(table):
        one, other = table["sync_irregular"], table["async_irregular"]
        ratios = {test: one[test].mean / other[test].mean for test in REGIMES}
        claims.append(
            Claim(
                "Synchronous and asynchronous irregular training behave alike (errors within a third of each other)",
                all(3 / 4 <= ratio <= 4 / 3 for ratio in ratios.values()),
                "ratios " + ", ".join(f"{test} {ratio:.2f}" for test, ratio in ratios.items()),
            )
        )
    return tuple(claims)


def _own_regime_best(table: Table) -> Claim:
    """Two errors are compared by the root sum of squares of their standard deviations over seeds."""
    worst: list[str] = []
    for test in table:
        own = table[test][test]
        for row, cells in table.items():
            excess = own.mean - cells[test].mean
            if excess > np.hypot(own.std, cells[test].std):
                worst.append(f"on {test}, trained on {row} {cells[test].text(UNIT)} beats {own.text(UNIT)}")
    return Claim(
        "On every regime the model trained on it is the best, or within one standard deviation",
        not worst,
        "; ".join(worst) or _listed({test: table[test][test].mean for test in table}),
    )


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value / UNIT:.3g}" for name, value in values.items()) + " (1e-2)"


def _text(
    config: SinusoidConfig,
    tables: Mapping[str, Table],
    final: Mapping[str, Runs],
    searched: Mapping[str, float | None],
    chosen: str | None,
    claims: Sequence[Claim],
) -> str:
    """All tables as Markdown."""
    seeds = sorted({seed for _, seed in final["printed"]})
    parts = [
        "# Coupled sinusoids: results",
        f"Test MSE in units of 1e-2, mean ± standard deviation over {len(seeds)} seeds; {config.train} training and "
        f"{config.test} test series for each regime. Rows: trained on, columns: tested on.",
        "## The printed recipe",
        cross_table(tables["printed"]),
        claims_markdown(claims),
    ]
    if "ours" in tables:
        parts += [
            f"## Our recipe: {chosen}",
            "Chosen among the candidates by their errors on validation series, the geometric mean over all regimes to "
            "train in and to predict in, then trained on all training series.",
            cross_table(tables["ours"]),
        ]
    if searched:
        parts.append(
            markdown(
                ["candidate", "validation MSE (1e-2)"],
                [[name, _error(error)] for name, error in searched.items()],
            )
        )
    parts += [
        "## Everything else, each on its own regime",
        markdown(
            ["variant", *tables["printed"], "parameters", "seconds a model", "seeds"],
            [_row(name, table, final[name]) for name, table in tables.items()],
        ),
        *(f"- **{name}**: {variant.note}" for name, variant in config.variants.items() if variant.note),
    ]
    return "\n\n".join(parts) + "\n"


def cross_table(table: Table) -> str:
    """Format errors with a row for each training regime and a column for each test regime."""
    rows = [[regime, *(cell.text(UNIT) for cell in cells.values())] for regime, cells in table.items()]
    return markdown(["trained on", *REGIMES], rows)


def _error(error: float | None) -> str:
    if error is None:
        return "not run"
    return f"{error / UNIT:.3g}" if np.isfinite(error) else "training did not stay finite"


def _row(name: str, table: Table, runs: Runs) -> list[str]:
    records = list(runs.values())
    seconds = float(np.mean([record.outcome.train_seconds for record in records]))
    own = [table[regime][regime].text(UNIT) if regime in table else "not run" for regime in REGIMES]
    count = len({seed for _, seed in runs})
    return [name, *own, f"{records[0].outcome.parameters:,}", f"{seconds:.0f}", str(count)]


def _draw(config: SinusoidConfig, final: Mapping[str, Runs], tables: Mapping[str, Table], folder: Path) -> None:
    for name in ("printed", "ours"):
        if name in tables:
            _draw_cross_table(tables[name], folder / f"cross_regime_{name}.png")
            _draw_curves(final[name], folder / f"curves_{name}.png")
    first = min(seed for _, seed in final["printed"])
    for regime in config.regimes:
        _draw_example(regime, config, first, folder / f"example_{regime}.png")
        if (regime, first) in final["printed"]:
            _draw_predictions(regime, config, final["printed"][regime, first], folder / f"predictions_{regime}.png")
    if len(tables) > 1:
        _draw_variants(final, folder / "variants.png")


def _draw_cross_table(table: Table, file: Path) -> None:
    means = np.array([[cell.mean for cell in cells.values()] for cells in table.values()]) / UNIT
    spreads = np.array([[cell.std for cell in cells.values()] for cells in table.values()]) / UNIT
    figure = plot.figure_of(6.4, 4.4)
    axes = plot.heatmap(figure.subplots(), means, spreads, [NAMES[row] for row in table], [*NAMES.values()])
    axes.set_xlabel("tested on")
    axes.set_ylabel("trained on")
    axes.set_title("Test MSE, in units of 1e-2", loc="left", fontsize=11)
    plot.save(figure, file)


def _draw_curves(runs: Runs, file: Path) -> None:
    figure = plot.figure_of(9, 3.2)
    regimes = list(dict.fromkeys(regime for regime, _ in runs))
    panels = figure.subplots(1, len(regimes), sharey=True, squeeze=False)[0]
    for number, (axes, regime) in enumerate(zip(panels, regimes, strict=True)):
        found = [record.outcome.curve for (mine, _), record in runs.items() if mine == regime]
        plot.loss_curves(
            axes, np.array([c.training for c in found]), np.array([c.held_out for c in found]), "", number
        ).set_title(NAMES[regime].replace("\n", " "), fontsize=10)
    panels[0].set_ylabel("MSE (dashed: training, solid: test)")
    plot.save(figure, file)


def _draw_example(regime: str, config: SinusoidConfig, seed: int, file: Path) -> None:
    """Draw signal, observations and targets of one series, and a raster of its observation times."""
    drawn = sinusoids(regime, config.test, (seed, 1))
    fine = np.linspace(0, drawn.data.streams.horizon[0], 400)
    truth = drawn.waves(0, fine)
    one = drawn.data.streams[:1]
    stamps = np.repeat(one.times, np.diff(one.obs_offsets))
    cuts = drawn.data.partition.cuts(drawn.data.streams)
    queries = cuts.points[1 : cuts.offsets[1]]
    figure = plot.figure_of(8, 4.6)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    plot.predictions(top, queries, drawn.data.targets[0, : len(queries)], (fine, truth), one.schema.channels)
    for line, name in zip(top.get_lines()[1::2], one.schema.channels, strict=True):
        line.set_label(f"{name}, target")
    for channel, colour in enumerate(plot.COLOURS[: len(one.schema.channels)]):
        mine = one.channel == channel
        top.plot(stamps[mine], one.value[mine], ".", color=colour, ms=3, label=f"{one.schema.channels[channel]}, seen")
    plot.intervals(top, np.concatenate([[0.0], queries]))
    top.set_title(f"{NAMES[regime].replace(chr(10), ' ')}: signal, observations, targets", loc="left", fontsize=11)
    top.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02))
    plot.channel_raster(bottom, one).set_xlabel("time")
    plot.save(figure, file)


def _draw_predictions(regime: str, config: SinusoidConfig, record: Record, file: Path) -> None:
    drawn = sinusoids(regime, config.test, (record.cell.seed, 1))
    cuts = drawn.data.partition.cuts(drawn.data.streams)
    fine = np.linspace(0, drawn.data.streams.horizon[0], 400)
    shown = record.outcome.predictions
    figure = plot.figure_of(8, 1.9 * len(shown))
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for series, (axes, rows) in enumerate(zip(panels, shown, strict=True)):
        queries = cuts.points[cuts.offsets[series] + 1 : cuts.offsets[series + 1]]
        predicted = np.array(rows)[: len(queries)]
        plot.predictions(
            axes, queries, predicted, (fine, drawn.waves(series, fine)), drawn.data.streams.schema.channels
        )
    panels[0].set_title(f"Trained and tested on {NAMES[regime].replace(chr(10), ' ')} data", loc="left", fontsize=11)
    panels[-1].set_xlabel("time")
    figure.legend(
        *panels[0].get_legend_handles_labels(), frameon=False, fontsize=8, ncols=4, loc="outside lower center"
    )
    plot.save(figure, file)


def _draw_variants(final: Mapping[str, Runs], file: Path) -> None:
    regimes = list(dict.fromkeys(regime for regime, _ in final["printed"]))
    figure = plot.figure_of(11, 1.2 + 0.3 * len(final))
    panels = figure.subplots(1, len(regimes), sharey=True, squeeze=False)[0]
    for number, (axes, regime) in enumerate(zip(panels, regimes, strict=True)):
        groups = {
            name: [record.outcome.mse[regime] / UNIT for (mine, _), record in runs.items() if mine == regime]
            for name, runs in final.items()
        }
        plot.strip(axes, {name: values for name, values in groups.items() if values}, number)
        axes.set_title(NAMES[regime].replace("\n", " "), fontsize=10)
        axes.set_xlabel("test MSE (1e-2)")
    plot.save(figure, file)
