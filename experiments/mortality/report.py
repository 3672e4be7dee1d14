"""Tables of areas under the curves, for complete stays and for those with variables left out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments.mortality.cells import MortalityCell, MortalityConfig, Scored
from experiments.mortality.data import SHARES
from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown
from logcde import plot
from logcde.errors import ExperimentError
from logcde.plot.style import MARKS

PUBLISHED = {
    "Transformer": (0.833, 0.479),
    "GRU-D": (0.819, 0.461),
    "mTAND": (0.842, 0.482),
    "IP-Net": (0.826, 0.476),
    "DGM2-O": (0.844, 0.473),
    "Raindrop": (0.828, 0.440),
    "ViTST": (0.851, 0.511),
}
"""AUROC and AUPRC on these splits, from the papers of Raindrop and ViTST."""
OURS, RIVAL, WITHOUT = "ensemble", "boosting on summaries", "ensemble without the CDE"
PERCENT = 0.01
PROTOCOL = "mortality"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A model on one split: areas for complete stays, and for each share of left-out variables."""

    protocol: str
    model: str
    split: int
    auroc: float
    auprc: float
    left_out_auroc: list[float]
    left_out_auprc: list[float]
    train_seconds: float


def conclude(config: MortalityConfig, outcomes: Mapping[MortalityCell, Scored], folder: Path) -> Conclusion:
    """Score variants and ensembles, judge the claims, and write summary and text."""
    if not outcomes:
        raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
    runs: dict[str, dict[int, Scored]] = {}
    for cell, outcome in outcomes.items():
        runs.setdefault(cell.variant, {})[cell.seed] = outcome
    for name, members in config.ensembles.items():
        shared = [seed for seed in config.seeds if all(seed in runs.get(member, {}) for member in members)]
        if shared:
            runs[name] = {seed: mean_of([runs[member][seed] for member in members]) for seed in shared}
    rows = [row_of(name, seed, run) for name, found in runs.items() for seed, run in found.items()]
    claims = judge(rows)
    _draw(rows, folder)
    summary = {
        "unit": "fraction",
        "part": config.part,
        "left_out": list(SHARES),
        "rows": msgspec.to_builtins(rows),
        "published": {name: {"auroc": auroc, "auprc": auprc} for name, (auroc, auprc) in PUBLISHED.items()},
        "claims": msgspec.to_builtins(claims),
    }
    return Conclusion(summary, _text(config, rows, claims), claims)


def mean_of(runs: Sequence[Scored]) -> Scored:
    """The mean of the log odds of several learners, each counted once."""
    return Scored(
        odds=np.mean([run.odds for run in runs], axis=0).tolist(),
        died=runs[0].died,
        members=sum(run.members for run in runs),
        train_seconds=sum(run.train_seconds for run in runs),
    )


def row_of(name: str, seed: int, run: Scored) -> Row:
    """Score one run."""
    died = np.array(list(run.died), int)
    auroc = [float(roc_auc_score(died, odds)) for odds in run.odds]
    auprc = [float(average_precision_score(died, odds)) for odds in run.odds]
    return Row(
        protocol=PROTOCOL,
        model=name,
        split=seed,
        auroc=auroc[0],
        auprc=auprc[0],
        left_out_auroc=auroc,
        left_out_auprc=auprc,
        train_seconds=round(run.train_seconds, 1),
    )


def judge(rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Whether the ensemble is above boosting on summaries and every published row, and what the CDE adds to it."""
    by_model = _by_model(rows)
    if OURS not in by_model:
        return ()
    claims = []
    for area in ("auroc", "auprc"):
        ours = {row.split: getattr(row, area) for row in by_model[OURS]}
        best = max(dict(zip(("auroc", "auprc"), pair, strict=True))[area] for pair in PUBLISHED.values())
        mean = float(np.mean(list(ours.values())))
        evidence = f"{mean / PERCENT:.1f} against {best / PERCENT:.1f}"
        claims.append(Claim(f"{area.upper()} of the ensemble is above every published row", mean > best, evidence))
        for other, text in (
            (RIVAL, "is above boosting on summaries"),
            (WITHOUT, "is larger with the CDE than without"),
        ):
            theirs = {row.split: getattr(row, area) for row in by_model.get(other, [])}
            gains = [ours[split] - theirs[split] for split in ours if split in theirs]
            if gains:
                spread = Spread.of(gains)
                evidence = f"by {spread.mean / PERCENT:+.2f} ± {spread.std / PERCENT:.2f} on the same split, "
                evidence += f"on {sum(gain > 0 for gain in gains)} of {len(gains)}"
                claims.append(Claim(f"{area.upper()} of the ensemble {text}", spread.mean > 0, evidence))
    return tuple(claims)


def _text(config: MortalityConfig, rows: Sequence[Row], claims: Sequence[Claim]) -> str:
    scored = "test stays" if config.part == "test" else "validation stays, by learners of training stays only"
    by_model = _by_model(rows)
    lines = [
        [
            name,
            Spread.of(row.auroc / PERCENT for row in mine).text(),
            Spread.of(row.auprc / PERCENT for row in mine).text(),
            f"{np.mean([row.train_seconds for row in mine]) / 60:.1f}",
            _note(config, name),
        ]
        for name, mine in by_model.items()
    ]
    lines += [[name, f"{a / PERCENT:.1f}", f"{b / PERCENT:.1f}", "", "published"] for name, (a, b) in PUBLISHED.items()]
    parts = [
        "# Death in hospital on the published splits: results",
        f"Areas in percent on {scored}, mean ± standard deviation over {len(config.seeds)} splits.",
        claims_markdown(claims),
        markdown(["model", "AUROC", "AUPRC", "minutes of training", ""], lines),
    ]
    for area, title in (("left_out_auroc", "AUROC"), ("left_out_auprc", "AUPRC")):
        left = [
            [name, *(f"{np.mean([getattr(row, area)[k] for row in mine]) / PERCENT:.1f}" for k in range(len(SHARES)))]
            for name, mine in by_model.items()
        ]
        parts += [
            f"## {title} with variables left out of the scored stays",
            markdown(["model", *(f"{share:.0%}" for share in SHARES)], left),
        ]
    return "\n\n".join(parts) + "\n"


def _note(config: MortalityConfig, name: str) -> str:
    members = config.ensembles.get(name)
    return config.variants[name].note if members is None else "mean of " + ", ".join(members)


def _by_model(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.model, []).append(row)
    return found


def _draw(rows: Sequence[Row], folder: Path) -> None:
    """Draw AUROC over the share of left-out variables."""
    figure = plot.figure_of(5.6, 3.8)
    axes = figure.subplots()
    for number, (name, mine) in enumerate(_by_model(rows).items()):
        means = np.mean([row.left_out_auroc for row in mine], axis=0) / PERCENT
        colour, mark = plot.COLOURS[number % len(plot.COLOURS)], MARKS[number % len(MARKS)]
        axes.plot(np.array(SHARES) / PERCENT, means, color=colour, marker=mark, label=name)
    axes.set_xlabel("variables left out of test stays, %")
    axes.set_ylabel("AUROC, %")
    axes.legend(frameon=False, fontsize=8)
    plot.save(figure, folder / "left_out.png")
