"""Report of the Log-ODE experiment: the table of the paper, and speed-ups."""

from collections.abc import Mapping

from experiments.logode.cells import LogOdeCell, LogOdeOutcome
from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown

ROWS = {
    "ncde": ("NCDE", "no"),
    "log_ncde": ("NCDE", "yes"),
    "lncde": ("LNCDE", "no"),
    "log_lncde": ("LNCDE", "yes"),
    "bd_slice": ("BD-SLiCE", "no"),
    "log_bd_slice": ("BD-SLiCE", "yes"),
}
PAPER = {
    "ncde": (26.02, 3484, 75.0, 3.9),
    "log_ncde": (2.263, 3494, 85.6, 5.1),
    "lncde": (0.100, 13730, 87.2, 5.2),
    "log_lncde": (0.018, 3492, 88.3, 3.7),
    "bd_slice": (0.024, 3494, 81.1, 6.7),
    "log_bd_slice": (0.009, 3494, 86.1, 3.6),
}
"""Seconds a step and MB on an H100 at batch 1, accuracy in percent and its standard deviation."""
MIB = 2**20


def conclude(outcomes: Mapping[LogOdeCell, LogOdeOutcome]) -> Conclusion:
    """Write the table of each batch size and judge the claims."""
    accuracies: dict[str, list[float]] = {}
    for cell, outcome in outcomes.items():
        if outcome.classified is not None:
            accuracies.setdefault(cell.variant, []).append(100 * outcome.classified.accuracy)
    spreads = {name: Spread.of(found) for name, found in accuracies.items()}
    batches = sorted({cell.training.batch for cell, outcome in outcomes.items() if outcome.speed is not None})
    rows, claims, parts = [], [], ["# The effect of the Log-ODE method: results"]
    for batch in batches:
        speeds = {
            cell.variant: outcome.speed
            for cell, outcome in outcomes.items()
            if outcome.speed is not None and cell.training.batch == batch
        }
        mine = [_row(name, batch, speeds[name], spreads.get(name)) for name in ROWS if name in speeds]
        rows += mine
        claims += judge({row["model"]: row["seconds"] for row in mine}, batch)
        where = "EigenWorms" if all(row["real"] for row in mine) else "random walks of EigenWorms' shape"
        parts += [
            f"## Batch {batch}, on {where}",
            "Median seconds of a training step, compilation apart, and what the compiled program needs. The paper's "
            "numbers are of an H100 at batch 1; its memory is that of the whole process, data sets included.",
            _table(mine),
        ]
    if not spreads:
        parts.append(
            "Accuracies were not measured: EigenWorms is not available. See `python -m experiments datasets list`."
        )
    parts.append(claims_markdown(claims))
    return Conclusion({"rows": rows}, "\n\n".join(parts) + "\n", tuple(claims))


def judge(seconds: Mapping[str, float], batch: int) -> list[Claim]:
    """Judge whether each family is faster with the method, and the ratio of the first row to the last."""
    claims = []
    for name, (family, with_it) in ROWS.items():
        plain, log = seconds.get(name), seconds.get(f"log_{name}")
        if with_it == "no" and plain is not None and log is not None:
            text = f"Batch {batch}: {family} is faster with the Log-ODE method"
            claims.append(Claim(text, log < plain, f"{plain:.3g} s to {log:.3g} s, {plain / log:.1f} times"))
    if {"ncde", "log_bd_slice"} <= set(seconds):
        ratio = seconds["ncde"] / seconds["log_bd_slice"]
        text = f"Batch {batch}: from NCDE to BD-SLiCE with the method, a step is almost 3,000 times faster"
        claims.append(Claim(text, ratio > 2500, f"{ratio:,.0f} times"))
    return claims


def _row(name: str, batch: int, speed, accuracy: Spread | None) -> dict:
    paper_seconds, paper_memory, paper_mean, paper_std = PAPER[name]
    family, with_it = ROWS[name]
    return {
        "model": name,
        "family": family,
        "log_ode": with_it == "yes",
        "batch": batch,
        "seconds": speed.median,
        "steps": len(speed.seconds),
        "compile_seconds": speed.compile_seconds,
        "temporary_mib": speed.temporary_bytes / MIB,
        "argument_mib": speed.argument_bytes / MIB,
        "real": speed.real,
        "accuracy": None if accuracy is None else accuracy.mean,
        "accuracy_std": None if accuracy is None else accuracy.std,
        "paper_seconds": paper_seconds,
        "paper_memory_mb": paper_memory,
        "paper_accuracy": paper_mean,
        "paper_accuracy_std": paper_std,
    }


def _table(rows: list[dict]) -> str:
    header = [
        "model", "Log-ODE", "accuracy", "paper", "seconds a step", "paper", "memory beside data, MiB", "data, MiB",
        "paper, MB",
    ]  # fmt: skip
    return markdown(
        header,
        [
            [
                row["family"],
                "yes" if row["log_ode"] else "no",
                "not run" if row["accuracy"] is None else f"{row['accuracy']:.1f} ± {row['accuracy_std']:.1f}",
                f"{row['paper_accuracy']:.1f} ± {row['paper_accuracy_std']:.1f}",
                f"{row['seconds']:.3g}",
                f"{row['paper_seconds']:g}",
                f"{row['temporary_mib']:,.0f}",
                f"{row['argument_mib']:,.0f}",
                f"{row['paper_memory_mb']:,}",
            ]
            for row in rows
        ],
    )
