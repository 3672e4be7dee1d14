"""Tables of every contender of a case, a table of ratios with a line for each case, and curves of cost over size."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.cases import Point, Role
from benchmarks.results import CaseRecord, JobRecord, Row, Spread
from logcde._files import whole_file

TOLERANCE = 1e-3
"""Largest relative difference between results that counts as agreement; most are in single precision."""


def duration(seconds: float | None) -> str:
    """Format seconds in s, ms, µs or ns.

    >>> duration(0.00123), duration(4.5e-8), duration(None)
    ('1.23 ms', '45 ns', '')
    """
    if seconds is None:
        return ""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def case_table(job: JobRecord, case: CaseRecord) -> Table:
    """The contenders of a case that were measured; times are medians over the rounds."""
    table = Table(title=f"{job.name}: {case.label}", title_justify="left")
    for column in (
        "",
        "threads",
        "run",
        "quartiles",
        "windows",
        f"/ {case.unit}",
        "ratio",
        "first call",
        "memory",
        "differs",
    ):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    ours = case.ours()
    for row in case.rows:
        if row.run is not None:
            table.add_row(*_cells(row, row.run, ours), style="bold" if row.role is Role.OURS else None)
    return table


def absences(case: CaseRecord) -> list[str]:
    """The contenders that were not measured, with the reason."""
    return [f"{row.name}: {row.status}: {row.note}" for row in case.rows if row.run is None]


def _cells(row: Row, run: Spread, ours: Row | None) -> tuple[str, ...]:
    cutting = sum(part.median for part in (row.windows, row.load) if part is not None)
    agrees = row.difference is None or row.difference <= TOLERANCE
    gap = "" if row.difference is None else f"{row.difference:.0e}"
    return (
        row.name,
        str(row.threads),
        duration(run.median),
        f"{duration(run.lower)} - {duration(run.upper)}",
        duration(cutting or None),
        duration(row.seconds),
        _ratio(row.seconds, ours) if row.role in (Role.PEER, Role.BASELINE) else "",
        duration(row.first_call),
        "" if row.memory is None else f"{row.memory / 1e6:.3g} MB",
        gap if agrees else f"[red]{gap}[/]",
    )


def _ratio(seconds: float | None, ours: Row | None) -> str:
    if seconds is None or ours is None or ours.seconds is None:
        return ""
    return f"{seconds / ours.seconds:.2f} x"


def summary_table(jobs: Iterable[JobRecord]) -> Table:
    """One line for each case: ratio to the fastest rival, with and without the cost of its windows."""
    table = Table(title="logcde against the fastest rival", title_justify="left")
    for column in ("job", "case", "logcde", "fastest rival", "its time", "ratio", "windows given", "target", ""):
        table.add_column(column, justify="left" if column in ("job", "case", "fastest rival", "target") else "right")
    for job in jobs:
        for case in job.cases:
            ours, rival, bare = case.ours(), case.fastest(), case.fastest(bare=True)
            table.add_row(
                job.name,
                case.label,
                "" if ours is None else f"{duration(ours.seconds)} / {case.unit}",
                "" if rival is None else rival.name,
                "" if rival is None else f"{duration(rival.seconds)} / {case.unit}",
                "" if rival is None else _ratio(rival.seconds, ours),
                "" if bare is None else _ratio(bare.bare, ours),
                case.target,
                {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[case.met],
            )
    return table


def disagreements(jobs: Iterable[JobRecord]) -> list[str]:
    """A sentence for each result that differs from the reference of its case."""
    return [
        f"{job.name}: {case.label}: {row.name} differs from {case.reference} by {row.difference:.1e}."
        for job in jobs
        for case in job.cases
        for row in case.rows
        if row.difference is not None and not row.difference <= TOLERANCE
    ]


def scaling_plot(cases: Iterable[CaseRecord], path: Path) -> None:
    """Draw one panel for each sweep, with logarithmic axes and a grey line of slope 1."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    panels: dict[str, list[tuple[Point, CaseRecord]]] = {}
    for case in cases:
        if case.point is not None:
            panels.setdefault(case.point.panel, []).append((case.point, case))
    figure = Figure(figsize=(4.2 * len(panels), 4.4), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    shown: dict[str, Any] = {}
    for axes, (panel, records) in zip(grid, panels.items(), strict=True):
        for name, curve in _curves(records).items():
            style = {"color": "black", "lw": 2.5} if name == "logcde" else {"color": _colour(name, shown), "lw": 1.0}
            (line,) = axes.loglog(*zip(*curve, strict=True), marker="o", ms=3, label=name, **style)
            shown.setdefault(name, line)
        _guide(axes, records)
        axes.set(title=panel, xlabel=records[0][0].axis, ylabel="seconds")
        axes.title.set_fontsize(9)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True, which="major", alpha=0.3)
    figure.legend(handles=list(shown.values()), loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _curves(records: list[tuple[Point, CaseRecord]]) -> dict[str, list[tuple[float, float]]]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for point, case in records:
        for row in case.rows:
            if row.seconds is not None and row.role is not Role.PART:
                curves.setdefault(row.name, []).append((point.x, row.seconds * row.items))
    return curves


def _colour(name: str, shown: dict[str, Any]) -> str:
    """The same colour for a contender in all panels."""
    return shown[name].get_color() if name in shown else f"C{len(shown)}"


def _guide(axes: Any, records: list[tuple[Point, CaseRecord]]) -> None:
    """A grey line of slope 1 through this library's last point."""
    ours = [(point.x, row.seconds * row.items) for point, case in records if (row := case.ours()) and row.seconds]
    if ours:
        (first, _), (x, seconds) = ours[0], ours[-1]
        axes.loglog([first, x], [seconds * first / x, seconds], color="0.7", ls="--", lw=1, zorder=0)
