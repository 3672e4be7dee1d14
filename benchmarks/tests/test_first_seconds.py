"""`python -m benchmarks.first_seconds`: which caches its processes find, and what it shows."""

import io
from pathlib import Path

from rich.console import Console

from benchmarks import first_seconds
from benchmarks.first_seconds import STATES, measure, table


def test_measure_gives_each_state_its_caches(monkeypatch):
    seen = []

    def process(caches):
        (kind, folder), *more = caches.items()
        assert not more
        again = (kind, folder) in seen
        assert Path(folder).parent.is_dir()
        seen.append((kind, folder))
        return {"fit": {"seconds": 1.0 if again else 9.0, "cores": 2.0 if again else 10.0}}

    monkeypatch.setattr(first_seconds, "_process", process)
    found = measure(2)
    assert {state: [run["fit"]["seconds"] for run in found[state]] for state in STATES} == {
        "new machine": [9.0, 9.0],
        "kernels": [1.0, 1.0],
        "programs": [1.0, 1.0],
    }
    assert [kind for kind, _ in seen] == ["NUMBA_CACHE_DIR"] * 2 + ["LOGCDE_CACHE_DIR"] * 2 + [
        "NUMBA_CACHE_DIR"
    ] * 2 + ["LOGCDE_CACHE_DIR"] * 2
    assert len(set(seen)) == 4


def test_table_shows_medians_and_sums():
    def run(seconds):
        return {"import": {"seconds": 1.0, "cores": 1.5}, "fit": {"seconds": seconds, "cores": 2 * seconds}}

    found = {state: [run(5.0), run(2.0), run(3.0)] for state in STATES}
    stream = io.StringIO()
    Console(file=stream, width=120).print(table(found))
    rows = [line.strip("│ ").split("│") for line in stream.getvalue().splitlines() if "│" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["import", *["1.00 (1.50)"] * 3],
        ["fit", *["3.00 (6.00)"] * 3],
        ["all", *["4.00 (7.50)"] * 3],
    ]
