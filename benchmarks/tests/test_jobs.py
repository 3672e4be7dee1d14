import dataclasses
import json

import jax
import numpy as np
import pytest

from benchmarks import peers
from benchmarks.jobs import (
    JOBS,
    Asynchronous,
    AsynchronousDeep,
    EqualWindows,
    Index,
    OneByOne,
    OwnWindows,
    Scaling,
    Scans,
    Serving,
    Training,
    WholePaths,
    training,
)
from benchmarks.jobs.scans import Shape
from benchmarks.report import TOLERANCE
from benchmarks.results import Results
from benchmarks.run import circumstances, run_job, run_jobs
from benchmarks.steps import contender
from benchmarks.timing import Clock

# Those that compile for every shape are tested by themselves, on few shapes.
PEERS = [peer for peer in peers.PEERS if peer.buckets != peers.Signax.buckets]
QUICK = Clock(rest=0.0, rounds=1, shortest=0.0, patience=5.0)
TINY = (
    WholePaths(paths=3, steps=5, grid=((2, 2), (3, 3))),
    EqualWindows(series=2, steps=11, width=3, every=4),
    OwnWindows(series=3, steps=12, width=2, intervals=3),
    OneByOne(events=6, block=4, width=3),
    Asynchronous(series=3, events=9, intervals=4, channels=2),
    AsynchronousDeep(series=2, events=7, intervals=3, channels=2),
    Scaling(series=2, intervals=2, events=4, observations=(3, 6), channels=3, observed=(1, 2), widths=((2, (1, 2)),)),
    Index(observations=60, queries=9, recomputed=4, channels=2),
    Training(batches=(1,), samples=20, channels=2, window=4, hidden=4, block=2),
    Scans(shapes=(Shape(2, 5, 4, 2),)),
    Serving(events=20, hidden=4, block=2),
)


def test_tiny_jobs_cover_all_jobs():
    assert [job.name for job in TINY] == list(JOBS)


@pytest.fixture
def _compiled_once(monkeypatch):
    """Some contenders of training steps are in several cases: they take the same step, so one serves them all."""
    made = {}

    def once(predict, model, inputs, classes, same):
        key = predict, jax.tree.structure(model), inputs.logsigs.shape
        if key not in made:
            made[key] = contender(predict, model, inputs, classes, same)
        return made[key]

    monkeypatch.setattr(training, "contender", once)


@pytest.fixture
def _comparable(monkeypatch):
    """Only cases whose contenders compute the same: the others are slow to compile, and have nothing to agree on."""
    every = Training.cases
    monkeypatch.setattr(
        Training,
        "cases",
        lambda *given: (case for case in every(*given) if not case.label.endswith("Log-ODE or not")),
    )


@pytest.mark.usefixtures("_compiled_once", "_comparable")
@pytest.mark.parametrize("job", TINY, ids=lambda job: job.name)
def test_contenders_agree(job):
    # Diffrax mixes precisions where the yardsticks of training steps call it.
    with jax.numpy_dtype_promotion("standard"):
        record = run_job(job, PEERS, QUICK, seed=0, tell=lambda what: None)
    for case in record.cases:
        assert not [(row.name, row.note) for row in case.rows if row.status == "failed"]
        assert case.ours() is not None
        differences = [row.difference for row in case.rows if row.difference is not None]
        assert max(differences, default=0.0) < TOLERANCE


def test_results_file_has_all_fields(tmp_path):
    path = tmp_path / "results.json"
    run_jobs(TINY[1:2], PEERS, QUICK, 5, path, resume=False, tell=lambda what: None, finished=lambda record: None)
    content = json.loads(path.read_text())
    assert content["version"] == 1
    assert content["seed"] == 5
    assert content["rounds"] == 1
    assert {"date", "machine", "versions", "peers"} <= content.keys()
    assert set(content["peers"]) == {peer.name for peer in PEERS}
    assert content["machine"]["cores"] >= 1
    (job,) = content["jobs"]
    (case,) = job["cases"]
    assert {"label", "unit", "target", "met", "rival", "reference", "point", "rows"} == case.keys()
    ours = next(row for row in case["rows"] if row["role"] == "logcde")
    assert {"name", "threads", "items", "status", "note", "difference", "first_call", "run"} <= ours.keys()
    assert ours["run"].keys() == {"median", "lower", "upper", "rounds"}


def test_run_jobs_resumes_after_an_interrupt(tmp_path):
    path = tmp_path / "results.json"
    first, second = TINY[0], TINY[1]
    started = []

    def tell(what):
        started.append(what[:2])
        if what.startswith(second.name) and len(set(started)) == 2 and not path.with_suffix(".again").exists():
            raise KeyboardInterrupt

    quiet = {"tell": tell, "finished": lambda record: None}
    with pytest.raises(KeyboardInterrupt):
        run_jobs((first, second), PEERS, QUICK, 0, path, resume=False, **quiet)
    kept = Results.load(path)
    assert list(kept.jobs) == [first.name]
    path.with_suffix(".again").touch()
    started.clear()
    resumed = run_jobs((first, second), PEERS, QUICK, 0, path, resume=True, **quiet)
    assert set(started) == {second.name}
    assert resumed.jobs[first.name] == kept.jobs[first.name]
    assert list(Results.load(path).jobs) == [first.name, second.name]


def test_circumstances_list_all_peers():
    listed = circumstances(peers.PEERS, seed=0, rounds=1)["peers"]
    assert {name: entry["version"] for name, entry in listed.items()} == {p.name: p.version for p in peers.PEERS}


def test_targets_of_all_jobs():
    batched = dataclasses.replace(TINY[8], batches=(1, 2))
    jobs = (*TINY[:8], batched, *TINY[9:])
    cases = [case for job in jobs for case in job.cases((), np.random.default_rng(0))]
    targets = [str(case.target) for case in cases if str(case.target)]
    windows, online = ["≥ 1 x", "≥ 1 x", "≥ 3 x", "≥ 4 x", "≥ 3 x"], ["≥ 10 x", "≤ 0.3 µs", "≥ 1 x"]
    embedding = [*windows, *online, "≥ 20 x", "≥ 5 x", "≥ 20 x"]
    training = ["≥ 15 x", "≥ 3 x", "≥ 1 x", "≥ 1 x", "≥ 1 x"]
    assert targets == [*embedding, *training, "≥ 3000 x", *training, "≥ 0.8 x", "≤ 20 µs"]
