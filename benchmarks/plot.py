"""Curves of cost against size, one panel for each sweep, everybody on them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.cases import Point
from benchmarks.contenders import Role
from benchmarks.results import CaseRecord


def scaling(cases: Iterable[CaseRecord], path: Path) -> None:
    """Write the panels of all cases that have a place on one; both axes are logarithmic, lines of slope 1 grey."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.stem}.tmp{path.suffix}")
    figure.savefig(temporary, dpi=150)
    temporary.replace(path)


def _curves(records: list[tuple[Point, CaseRecord]]) -> dict[str, list[tuple[float, float]]]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for point, case in records:
        for row in case.rows:
            if row.seconds is not None and row.role is not Role.PART:
                curves.setdefault(row.name, []).append((point.x, row.seconds * row.items))
    return curves


def _colour(name: str, shown: dict[str, Any]) -> str:
    """One colour for each contender in all panels."""
    return shown[name].get_color() if name in shown else f"C{len(shown)}"


def _guide(axes: Any, records: list[tuple[Point, CaseRecord]]) -> None:
    """A grey line of slope 1 through this library's last point."""
    ours = [(point.x, row.seconds * row.items) for point, case in records if (row := case.ours()) and row.seconds]
    if ours:
        (first, _), (x, seconds) = ours[0], ours[-1]
        axes.loglog([first, x], [seconds * first / x, seconds], color="0.7", ls="--", lw=1, zorder=0)
