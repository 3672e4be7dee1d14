"""Tables for a person: every contender of a case, and one line of ratios for each case."""

from collections.abc import Iterable

from rich.table import Table

from benchmarks.contenders import Role
from benchmarks.results import CaseRecord, JobRecord, Row, Spread

TOLERANCE = 1e-3
"""Largest relative difference between answers, most of them in single precision, that counts as agreement."""


def duration(seconds: float | None) -> str:
    """Seconds in a unit that reads well.

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
    """The contenders of one case that have a time; times are medians over the rounds."""
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
    """Who has no time in this case, and why."""
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
    """One line for each case: how many times faster than the fastest rival, with and without its windows."""
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
    """Sentences about answers that differ from the reference of their case."""
    return [
        f"{job.name}: {case.label}: {row.name} differs from {case.reference} by {row.difference:.1e}."
        for job in jobs
        for case in job.cases
        for row in case.rows
        if row.difference is not None and not row.difference <= TOLERANCE
    ]
