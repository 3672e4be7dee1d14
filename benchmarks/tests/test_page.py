from benchmarks import page
from benchmarks.cases import Role
from benchmarks.results import CaseRecord, JobRecord, Results, Row, Spread

ABOUT = {
    "date": "2026-01-02T03:04:05+00:00",
    "rounds": 3,
    "machine": {"processor": "a processor", "cores": 2, "load": 0.25},
    "versions": {"jax": "1", "numba": "2"},
    "peers": {"peer": {"version": "3.0"}, "gone": {"version": None}},
}


def machine(*jobs):
    return Results(ABOUT, {job.name: job for job in jobs})


def job(name, label, ours):
    rows = (
        Row("peer", Role.PEER, 2, 10, "measured", run=Spread.of([2e-5, 4e-5, 3e-5]), windows=Spread.of([1e-5])),
        Row("gone", Role.PEER, 2, 10, "not installed", "pip install gone"),
        Row("logcde", Role.OURS, 2, 10, "measured", run=Spread.of([ours])),
    )
    return JobRecord(name, "title", 1.5, (CaseRecord(label, "window", "", None, Role.PEER, "peer", None, rows),))


def test_table_shows_machines_side_by_side():
    first, second = machine(job("A", "few", 1e-5)), machine(job("A", "few", 2e-5), job("C", "one", 8e-5))
    text = page.table({"one": first, "two": second})
    head, rule, a, c, _, *about = text.splitlines()
    assert head.count("|") == rule.count("|") == a.count("|") == c.count("|") == 8
    peer = "peer, 4 µs (3.5 µs to 4.5 µs)"
    assert (
        a == f"| A: few | 1 µs (1 µs to 1 µs) / window | {peer} | 4 x | 2 µs (2 µs to 2 µs) / window | {peer} | 2 x |"
    )
    assert c == f"| C: one | | | | 8 µs (8 µs to 8 µs) / window | {peer} | 0.5 x |"
    assert about[0].startswith(
        "- one: a processor, 2 cores, load 0.2 at the start, 2026-01-02, 3 rounds, jax 1, numba 2"
    )
    assert about[1].endswith("peer 3.0.")


def test_page_has_the_table_of_the_committed_results():
    """Run `python -m benchmarks.page` after a change of the results."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert len(page.load()) >= 2
    assert page.replaced(text, page.table(page.load())) == text
