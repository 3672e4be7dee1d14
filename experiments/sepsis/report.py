"""Tables of the scores, from hospital to hospital and in random splits, and the cost of serving."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown
from experiments.sepsis.cells import SepsisCell, SepsisConfig, Served, Watched
from experiments.sepsis.learners import BOTH, HOURLY, RECENT, Boosting
from logcde.errors import ExperimentError

SCORES = ("auroc", "auprc", "utility", "log_loss", "brier", "calibration_error")
TITLES = ("AUROC", "AUPRC", "utility", "log loss", "Brier score", "calibration error")
DIGITS = 4
RANDOM = "sepsis, random"


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
    setting: str = ""


def conclude(config: SepsisConfig, outcomes: Mapping[SepsisCell, Watched], folder: Path) -> Conclusion:
    """Judge the claims, and write summary and text."""
    if not outcomes:
        raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
    several = sum(isinstance(learner, Boosting) for learner in config.learners.values()) > 1
    rows = [
        Row(
            protocol=f"sepsis, {cell.protocol}",
            model=f"{cell.variant}: {name}" if several else name,
            split=cell.seed,
            **msgspec.structs.asdict(scores),
        )
        for cell, outcome in outcomes.items()
        for name, scores in outcome.models.items()
    ]
    claims = judge(rows)
    served = next((outcome.served for outcome in outcomes.values() if outcome.served is not None), None)
    scored = "test stays" if config.part == "test" else "validation stays, by learners of training stays only"
    parts = [
        "# Sepsis hour by hour: results",
        f"Scores over all hours of the {scored}, mean ± standard deviation over splits: from one hospital to the "
        "other, and 80/10/10 of both at random. Threshold and calibration are from stays that are neither trained on "
        "nor scored.",
        *([claims_markdown(claims)] if claims else []),
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
    """Whether ours are above boosting on hourly features, and lose less between hospitals."""
    found = {(row.protocol, row.model, row.split): row for row in rows}
    claims = []
    protocols, ours = dict.fromkeys(row.protocol for row in rows), (RECENT, BOTH)
    for protocol, model, score in itertools.product(protocols, ours, ("utility", "auprc")):
        mine = [row for row in rows if row.model == model and row.protocol == protocol]
        gains = [getattr(row, score) - getattr(found[protocol, HOURLY, row.split], score) for row in mine]
        if gains:
            gain = Spread.of(gains)
            evidence = (
                f"by {gain.mean:+.4f} ± {gain.std:.4f}, on {sum(one > 0 for one in gains)} of {len(gains)} splits"
            )
            text = f"{protocol}, {model}: {TITLES[SCORES.index(score)]} is above that of {HOURLY}"
            claims.append(Claim(text, gain.mean > 0, evidence))
    losses = {model: _lost(rows, model) for model in (HOURLY, *ours)}
    for model in ours:
        lost, theirs = losses[model], losses[HOURLY]
        if lost is not None and theirs is not None:
            evidence = f"the mean utility falls by {lost:.3f}, that of {HOURLY} by {theirs:.3f}"
            claims.append(Claim(f"{model} loses less from one hospital to the other", lost < theirs, evidence))
    return tuple(claims)


def _lost(rows: Sequence[Row], model: str) -> float | None:
    """The mean utility on random splits minus that from one hospital to the other, each way counted once."""
    means = {
        protocol: Spread.of(row.utility for row in rows if row.model == model and row.protocol == protocol).mean
        for protocol in dict.fromkeys(row.protocol for row in rows if row.model == model)
    }
    across = [mean for protocol, mean in means.items() if protocol != RANDOM]
    return means[RANDOM] - sum(across) / len(across) if RANDOM in means and across else None


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
        f"{served.prediction_seconds:.1f} s more, of the processor; {served.events / total:,.0f} events a second in "
        f"total. Online log odds differ from those of the batch by at most {served.difference:.1g}."
    )
