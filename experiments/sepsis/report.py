"""Tables of the scores, from hospital to hospital and in random splits, and the cost of serving."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown
from experiments.sepsis.cells import SepsisCell, SepsisConfig, Served, Watched
from experiments.sepsis.learners import HourlyRows, RecentRows
from logcde.errors import ExperimentError

SCORES = ("auroc", "auprc", "utility", "log_loss", "brier", "calibration_error")
TITLES = ("AUROC", "AUPRC", "utility", "log loss", "Brier score", "calibration error")
DIGITS = 4


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A model on one split of a protocol."""

    protocol: str
    model: str
    split: int
    auroc: float
    auprc: float
    utility: float
    log_loss: float
    brier: float
    calibration_error: float
    train_seconds: float


def conclude(config: SepsisConfig, outcomes: Mapping[SepsisCell, Watched], folder: Path) -> Conclusion:
    """Judge the claims, and write summary and text."""
    if not outcomes:
        raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
    rows = [
        Row(protocol=f"sepsis, {cell.protocol}", model=name, split=cell.seed, **msgspec.structs.asdict(scores))
        for cell, outcome in outcomes.items()
        for name, scores in outcome.models.items()
    ]
    claims = judge(rows)
    served = next((outcome.served for outcome in outcomes.values() if outcome.served is not None), None)
    parts = [
        "# Sepsis hour by hour: results",
        "Scores over all hours of the test stays; from one hospital to the other, and mean ± standard deviation over "
        "random splits 80/10/10 of both. Threshold and calibration are from validation stays.",
        claims_markdown(claims),
        _table(rows),
    ]
    if served is not None:
        parts.append(_sentence(served))
    summary = {
        "rows": msgspec.to_builtins(rows),
        "hours": {cell.label: outcome.hours for cell, outcome in outcomes.items()},
        "labelled_hours": {cell.label: outcome.warned for cell, outcome in outcomes.items()},
        "served": msgspec.to_builtins(served),
        "claims": msgspec.to_builtins(claims),
    }
    return Conclusion(summary, "\n\n".join(parts) + "\n", claims)


def judge(rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Whether ours is above boosting on hourly features, and loses less between hospitals."""
    found = {(row.protocol, row.model, row.split): row for row in rows}
    claims = []
    for protocol, score in itertools.product(dict.fromkeys(row.protocol for row in rows), ("utility", "auprc")):
        pairs = [
            (getattr(row, score), getattr(found[protocol, HourlyRows.name, row.split], score))
            for row in rows
            if row.model == RecentRows.name and row.protocol == protocol
        ]
        gain = Spread.of(ours - theirs for ours, theirs in pairs)
        evidence = f"by {gain.mean:+.4f} ± {gain.std:.4f} on {len(pairs)} splits"
        name = TITLES[SCORES.index(score)]
        text = f"{protocol}: our {name} is above that of boosting on hourly features"
        claims.append(Claim(text, gain.mean > 0, evidence))
    inside = {
        model: [r.utility for r in rows if r.model == model and r.protocol == "sepsis, random"]
        for model in (HourlyRows.name, RecentRows.name)
    }
    across = {
        model: [r.utility for r in rows if r.model == model and r.protocol != "sepsis, random"] for model in inside
    }
    if all(inside.values()) and all(across.values()):
        losses = {model: Spread.of(inside[model]).mean - Spread.of(across[model]).mean for model in inside}
        theirs, ours = losses.values()
        evidence = f"the mean utility falls by {ours:.3f}, that of boosting on hourly features by {theirs:.3f}"
        claims.append(Claim("Ours loses less from one hospital to the other", ours < theirs, evidence))
    return tuple(claims)


def _table(rows: Sequence[Row]) -> str:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.protocol, row.model), []).append(row)
    lines = []
    for (protocol, model), mine in groups.items():
        spreads = [Spread.of(getattr(row, score) for row in mine) for score in SCORES]
        shown = [f"{one.mean:.{DIGITS}f}" + (f" ± {one.std:.{DIGITS}f}" if len(mine) > 1 else "") for one in spreads]
        seconds = sum(row.train_seconds for row in mine) / len(mine)
        lines.append([protocol, model, *shown, f"{seconds / 60:.1f}"])
    return markdown(["protocol", "model", *TITLES, "minutes of training"], lines)


def _sentence(served: Served) -> str:
    total = served.event_seconds + served.prediction_seconds
    return (
        f"Served event by event: {served.stays} stays with {served.events:,} events and {served.observations:,} "
        f"observations take {served.event_seconds:.1f} s, a prediction after each of {served.predictions:,} hours "
        f"{served.prediction_seconds:.1f} s more, {served.events / total:,.0f} events a second in total. Online log "
        f"odds differ from those of the batch by at most {served.difference:.1g}."
    )
