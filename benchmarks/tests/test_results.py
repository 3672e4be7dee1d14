import json

import pytest

from benchmarks.cases import Point, Role
from benchmarks.report import absences, case_table, disagreements, summary_table
from benchmarks.results import CaseRecord, JobRecord, Results, ResultsError, Row, Spread


def spread(*seconds):
    return Spread.of(list(seconds))


@pytest.fixture
def job():
    rows = (
        Row("peer", Role.PEER, 2, 10, "measured", "", 1e-7, 0.5, spread(3.0), spread(1.0), spread(2.0, 4.0, 3.0)),
        Row("bare", Role.PEER, 1, 10, "measured", "", 0.3, 0.5, spread(9.0), spread(0.0), spread(1.0)),
        Row("gone", Role.PEER, 2, 10, "not installed", "pip install gone"),
        Row("logcde", Role.OURS, 2, 10, "measured", "", 0.0, 0.5, None, None, spread(1.0)),
    )
    case = CaseRecord("case", "window", "≥ 3 x", True, Role.PEER, "peer", Point("panel", "size", 2.0), rows)
    return JobRecord("A", "title", 1.5, (case,))


def test_results_round_trip(tmp_path, job):
    path = tmp_path / "new" / "results.json"
    results = Results({"date": "today", "seed": 3}, {"A": job})
    results.save(path)
    assert Results.load(path) == results
    assert [file.name for file in path.parent.iterdir()] == ["results.json"]


def test_load_refuses_another_layout(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"version": 0, "jobs": []}))
    with pytest.raises(ResultsError, match="layout 0.* Move it away"):
        Results.load(path)


def test_fastest_rival_with_and_without_windows(job):
    (case,) = job.cases
    assert case.fastest().name == "peer"
    assert case.fastest(bare=True).name == "bare"
    assert case.fastest().seconds == pytest.approx(0.7)
    assert case.ours().seconds == pytest.approx(0.1)


def cells(table, column):
    return list(table.columns[column].cells)


def test_tables_show_ratios_and_verdicts(job):
    (case,) = job.cases
    table = case_table(job, case)
    assert cells(table, 0) == ["peer", "bare", "logcde"]
    assert cells(table, 6) == ["7.00 x", "10.00 x", ""]
    summary = summary_table([job])
    assert cells(summary, 3) == ["peer"]
    assert cells(summary, 5) == ["7.00 x"]
    assert cells(summary, 6) == ["1.00 x"]
    assert cells(summary, 8) == ["[green]met[/]"]


def test_absences_and_disagreements_are_sentences(job):
    assert absences(job.cases[0]) == ["gone: not installed: pip install gone"]
    assert disagreements([job]) == ["A: case: bare differs from peer by 3.0e-01."]
