"""Report of the intensive care experiment: models, ablations, scores over hours, and attributions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from experiments.physionet2012.cells import Live, PhysioNetCell, PhysioNetConfig, Tested
from experiments.physionet2012.online import Replay
from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown
from logcde import plot

PUBLISHED = {
    "GRU-D": (0.819, 0.461),
    "Raindrop": (0.828, 0.440),
    "mTAND": (0.842, 0.482),
    "ViTST": (0.851, 0.511),
}
"""AUROC and AUPRC as published, on other random splits of the same data."""
PERCENT = 0.01
OURS, RIVAL = "bd_slice", "gradient_boosting"
TITLES = {
    "model": "## Models",
    "part": "## Parts of the model, each by itself",
    "ablation": "## What is left if something is taken away",
}
MARKED = (6, 12, 24, 48)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A variant over splits; `member` is the mean of its members, each by itself, and `better` counts splits.

    `better` are those where the areas are larger than those of gradient boosting on the same split, of `beside`, and
    `gain` is by how much.
    """

    model: str
    kind: str
    splits: list[int]
    auroc: Spread
    auprc: Spread
    validation_auroc: Spread
    validation_auprc: Spread
    members: int
    member_auroc: Spread
    member_auprc: Spread
    log_loss: Spread
    brier: Spread
    temperature: Spread
    train_seconds: float
    parameters: int
    beside: int
    better_auroc: int
    better_auprc: int
    gain_auroc: Spread | None
    gain_auprc: Spread | None


def conclude(config: PhysioNetConfig, outcomes: Mapping[PhysioNetCell, Tested], folder: Path) -> Conclusion:
    """Judge the claims, draw the figures, and write summary and text."""
    runs: dict[str, dict[int, Tested]] = {}
    lives: dict[str, Live] = {}
    for cell, outcome in outcomes.items():
        if outcome.live is not None:
            lives[cell.variant] = outcome.live
        else:
            runs.setdefault(cell.variant, {})[cell.seed] = outcome
    rows = [row_of(name, config.variants[name].kind, found, runs.get(RIVAL, {})) for name, found in runs.items()]
    claims = judge({row.model: row for row in rows})
    _draw(lives, folder)
    summary = {
        "unit": "fraction",
        "rows": msgspec.to_builtins(rows),
        "published": {name: {"auroc": auroc, "auprc": auprc} for name, (auroc, auprc) in PUBLISHED.items()},
        "live": {name: _without_stay(live) for name, live in lives.items()},
        "claims": msgspec.to_builtins(claims),
    }
    return Conclusion(summary, _text(config, rows, lives, claims), tuple(claims))


def row_of(name: str, kind: str, found: Mapping[int, Tested], rival: Mapping[int, Tested]) -> Row:
    """Summarise a variant over its splits, compared with gradient boosting on the same splits."""
    all_of_it = list(found.values())
    both = [(one, rival[seed]) for seed, one in found.items() if seed in rival]
    members = [np.mean(one.members, axis=0) for one in all_of_it]
    return Row(
        model=name,
        kind=kind,
        splits=list(found),
        auroc=Spread.of(one.auroc for one in all_of_it),
        auprc=Spread.of(one.auprc for one in all_of_it),
        validation_auroc=Spread.of(one.validation_auroc for one in all_of_it),
        validation_auprc=Spread.of(one.validation_auprc for one in all_of_it),
        members=len(all_of_it[0].members),
        member_auroc=Spread.of(float(one[0]) for one in members),
        member_auprc=Spread.of(float(one[1]) for one in members),
        log_loss=Spread.of(one.log_loss for one in all_of_it),
        brier=Spread.of(one.brier for one in all_of_it),
        temperature=Spread.of(one.temperature for one in all_of_it),
        train_seconds=float(np.mean([one.train_seconds for one in all_of_it])),
        parameters=all_of_it[0].parameters,
        beside=len(both),
        better_auroc=sum(one.auroc > other.auroc for one, other in both),
        better_auprc=sum(one.auprc > other.auprc for one, other in both),
        gain_auroc=Spread.of(one.auroc - other.auroc for one, other in both) if both else None,
        gain_auprc=Spread.of(one.auprc - other.auprc for one, other in both) if both else None,
    )


def judge(rows: Mapping[str, Row]) -> tuple[Claim, ...]:
    """Judge whether ours is above gradient boosting on the same splits, and above published numbers."""
    ours, rival = rows.get(OURS), rows.get(RIVAL)
    if ours is None:
        return ()
    claims = []
    if rival is not None:
        for area, mine, other, better, gain in (
            ("AUROC", ours.auroc, rival.auroc, ours.better_auroc, ours.gain_auroc),
            ("AUPRC", ours.auprc, rival.auprc, ours.better_auprc, ours.gain_auprc),
        ):
            evidence = f"{_percent(mine)} against {_percent(other)}, better on {better} of {ours.beside} splits"
            if gain is not None:
                evidence += f", by {gain.mean / PERCENT:+.1f} ± {gain.std / PERCENT:.1f} on the same split"
            claims.append(
                Claim(f"{area} is above gradient boosting on the same splits", mine.mean > other.mean, evidence)
            )
    best = {"AUROC": max(a for a, _ in PUBLISHED.values()), "AUPRC": max(b for _, b in PUBLISHED.values())}
    for area, mine in (("AUROC", ours.auroc), ("AUPRC", ours.auprc)):
        evidence = f"{_percent(mine)} against {best[area] / PERCENT:.1f}"
        claims.append(Claim(f"{area} is above the best published number", mine.mean > best[area], evidence))
    return tuple(claims)


def _text(config: PhysioNetConfig, rows: Sequence[Row], lives: Mapping[str, Live], claims: Sequence[Claim]) -> str:
    parts = [
        "# Death in hospital from 48 hours of intensive care records: results",
        "Areas under the receiver operating characteristic (AUROC) and under precision over recall (AUPRC) on test "
        "stays, in percent, mean ± standard deviation over random splits 80/10/10.",
        claims_markdown(claims),
    ]
    for kind, title in TITLES.items():
        here = [row for row in rows if row.kind == kind]
        if here:
            parts += [title, _table(config, here)]
        if kind == "model":
            parts += [
                "Published, on other random splits: "
                + ", ".join(f"{name} {a / PERCENT:.1f} / {b / PERCENT:.1f}" for name, (a, b) in PUBLISHED.items())
                + ".",
                "## Probabilities",
                "Log loss and Brier score after the temperature that validation stays ask for.",
                markdown(
                    ["model", "log loss", "Brier score", "temperature"],
                    [[row.model, row.log_loss.text(), row.brier.text(), row.temperature.text()] for row in here],
                ),
            ]
    for name, live in lives.items():
        parts.append(_live_text(name, live))
    return "\n\n".join(parts) + "\n"


def _table(config: PhysioNetConfig, rows: Sequence[Row]) -> str:
    head = ["model", "AUROC", "AUPRC", "better than boosting", "one member", "validation", "training, s", "splits"]
    lines = []
    for row in rows:
        better = f"{row.better_auroc} / {row.better_auprc} of {row.beside}" if row.beside and row.model != RIVAL else ""
        alone = f"{_percent(row.member_auroc)} / {_percent(row.member_auprc)}" if row.members > 1 else ""
        valid = f"{row.validation_auroc.mean / PERCENT:.1f} / {row.validation_auprc.mean / PERCENT:.1f}"
        lines.append(
            [row.model, _percent(row.auroc), _percent(row.auprc), better, alone, valid, f"{row.train_seconds:,.0f}",
             str(len(row.splits))]
        )  # fmt: skip
    notes = [f"- {row.model}: {config.variants[row.model].note}" for row in rows if config.variants[row.model].note]
    return "\n\n".join([markdown(head, lines), "\n".join(notes)])


def _live_text(name: str, live: Live) -> str:
    hours = ", ".join(
        f"{live.hours.auroc[hour - 1] / PERCENT:.1f} / {live.hours.auprc[hour - 1] / PERCENT:.1f} after {hour}"
        for hour in MARKED
    )
    parts = [f"## {name} in use, first split", f"AUROC / AUPRC with what was known by then: {hours} hours."]
    if live.replay is not None:
        one = live.replay
        parts.append(
            f"{one.stays:,} stays replayed event by event: {one.events:,} events with {one.observations:,} "
            f"observations in {one.event_seconds:.1f} s; after every hour a prediction for every stay, "
            f"{one.predictions:,} in {one.prediction_seconds:.1f} s; {_rate(one):,} events a second in all. Log odds "
            f"differ from those offline by {one.difference:.1g} at most."
        )
    if live.explained is not None:
        one = live.explained
        parts.append(
            f"Stay {one.stay}: log odds {one.log_odds:+.2f}; with ordinary values at the same stamps "
            f"{one.ordinary:+.2f}; the mean of all test stays is {one.usual:+.2f}."
        )
    clipped = [row for row in live.clipped if row.below or row.above]
    if clipped:
        parts += [
            "Observations of training stays beyond the limits of what is taken as it is:",
            markdown(
                ["variable", "observations", "below", "above"],
                [[row.channel, f"{row.observations:,}", f"{row.below:,}", f"{row.above:,}"] for row in clipped],
            ),
        ]
    return "\n\n".join(parts)


def _rate(replay: Replay) -> int:
    """Events a second, with a prediction for every stay after every hour."""
    return round(replay.events / (replay.event_seconds + replay.prediction_seconds))


def _percent(spread: Spread) -> str:
    return f"{spread.mean / PERCENT:.1f} ± {spread.std / PERCENT:.1f}"


def _without_stay(live: Live) -> dict:
    """The summary of online results; observations of the stay and probabilities are in the ledger."""
    found = {"hours": msgspec.to_builtins(live.hours)}
    if live.replay is not None:
        found["replay"] = msgspec.to_builtins(live.replay) | {"events_per_second": _rate(live.replay)}
    return found


def _draw(lives: Mapping[str, Live], folder: Path) -> None:
    if not lives:
        return
    figure = plot.figure_of(9, 3.4)
    left, right = figure.subplots(1, 2)
    for axes, area in ((left, "auroc"), (right, "auprc")):
        lines = {name: np.array(getattr(live.hours, area)) for name, live in lives.items()}
        plot.scores_over_time(axes, np.arange(1, 49), lines).set_ylabel(area.upper())
        axes.set_xlabel("hours since admission")
    plot.save(figure, folder / "hours.png")
    for name, live in lives.items():
        probable, died = np.array(live.probabilities), np.array(live.died, bool)
        figure = plot.figure_of(4, 4.4)
        top, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        plot.reliability(top, below, probable, died).set_ylabel("share that died")
        below.set_xlabel("probability of death")
        below.set_ylabel("stays")
        plot.save(figure, folder / f"reliability_{name}.png")
        if live.explained is not None:
            rows = live.explained.observations
            hour, amount = np.array([row.hour for row in rows]), np.array([row.amount for row in rows])
            figure = plot.figure_of(9, 6)
            axes = plot.attributions(figure.subplots(), hour, [row.channel for row in rows], amount)
            axes.set_xlabel("hours since admission")
            axes.set_xlim(-0.5, 48.5)
            plot.save(figure, folder / "attribution.png")
