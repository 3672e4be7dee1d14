"""The table of `docs/speed.md`: the results of several machines side by side.

`python -m benchmarks.page` writes it from the files in `benchmarks/measured`, one for each machine: ratios between
libraries differ between machines by up to a factor of two, so one machine alone says little.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.report import duration
from benchmarks.results import CaseRecord, Results, Row
from logcde._files import write_whole

MEASURED = Path(__file__).parent / "measured"
PAGE = Path(__file__).parent.parent / "docs" / "speed.md"
BEGIN, END = "<!-- python -m benchmarks.page: from here -->\n", "<!-- to here -->\n"
SHOWN = ("A", "B1", "B2", "C", "D", "D3", "index")
"""Jobs of the table: log-signatures beside those of other libraries."""


def load(folder: Path = MEASURED) -> dict[str, Results]:
    """The results of each machine, by the name of its file."""
    return {path.stem: Results.load(path) for path in sorted(folder.glob("*.json"))}


def table(machines: Mapping[str, Results]) -> str:
    """A table of all cases, three columns for each machine, and what the machines are."""
    heads = [f"{name}: logcde | fastest other library | ratio" for name in machines]
    lines = [" | ".join(("| job, case", *heads)) + " |", "|---|" + "---|---|---|" * len(machines)]
    for job in SHOWN:
        for label in _labels(job, machines.values()):
            cells = [_cells(_find(results, job, label)) for results in machines.values()]
            lines.append(" | ".join((f"| {job}: {label}", *cells)) + " |")
    return "\n".join([*lines, "", *(_about(name, results) for name, results in machines.items())]) + "\n"


def replaced(page: str, text: str) -> str:
    """The page with another text between its marks.

    >>> replaced(f"a {BEGIN}old{END}b", "new") == f"a {BEGIN}new{END}b"
    True
    """
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{text}{END}{rest.split(END)[1]}"


def _labels(job: str, results: Iterable[Results]) -> list[str]:
    """Labels of the cases of a job that any machine measured, in order."""
    records = [one.jobs[job] for one in results if job in one.jobs]
    return list(dict.fromkeys(case.label for record in reversed(records) for case in record.cases))


def _find(results: Results, job: str, label: str) -> CaseRecord | None:
    cases = results.jobs[job].cases if job in results.jobs else ()
    return next((case for case in cases if case.label == label), None)


def _cells(case: CaseRecord | None) -> str:
    ours, rival = (None, None) if case is None else (case.ours(), case.fastest())
    if ours is None or rival is None or case is None:
        return "| |"
    assert ours.seconds is not None
    assert rival.seconds is not None
    ratio = rival.seconds / ours.seconds
    factor = f"{ratio:,.0f}" if ratio > 10 else f"{ratio:.2g}"
    return f"{_spread(ours)} / {case.unit} | {rival.name}, {_spread(rival)} | {factor} x"


def _spread(row: Row) -> str:
    """Median and quartiles for each unit, windows included."""
    assert row.run is not None
    assert row.seconds is not None
    cutting = row.seconds - row.run.median / row.items
    lower, upper = (duration(cutting + seconds / row.items) for seconds in (row.run.lower, row.run.upper))
    return f"{duration(row.seconds)} ({lower} to {upper})"


def _about(name: str, results: Results) -> str:
    about, machine = results.circumstances, results.circumstances["machine"]
    return (
        f"- {name}: {machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f} at the start, "
        f"{about['date'][:10]}, {about['rounds']} rounds, jax {about['versions']['jax']}, "
        f"numba {about['versions']['numba']}; "
        + ", ".join(f"{peer} {entry['version']}" for peer, entry in about["peers"].items() if entry["version"])
        + "."
    )


def main() -> int:
    """Write the table to the page. Returns an exit code."""
    write_whole(PAGE, replaced(PAGE.read_text(encoding="utf-8"), table(load())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
