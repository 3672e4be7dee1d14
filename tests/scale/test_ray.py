"""Ray: the same bits as on one machine, also when a node or the driver is killed. Real clusters on this machine."""

import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars
import pytest

from logcde.errors import TableError
from logcde.scale.engines import Local
from logcde.scale.ray import connected
from tests.cli.tables import COLUMNS, run, write
from tests.cli.training_tables import QUICK, vitals
from tests.scale.clusters import (
    MOST_SECONDS,
    ROOT,
    STORE,
    cluster,
    kill,
    silent,
    slow_job,
    visible_parts,
    wait_for_parts,
)
from tests.scale.folders import by_series, by_time, read_folder, with_dense_series

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: nothing that runs on a cluster is tested")

# Warnings of Ray itself.
pytestmark = pytest.mark.filterwarnings("ignore")
FILES, GROUP = 10, 20_000


@pytest.fixture(scope="module")
def nodes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cluster(2) as made:
            yield made


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Many rows, so that what is shuffled is kept by nodes and not by the driver."""
    folder, rng = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    count, series = 200_000, 60
    stamps = np.sort(rng.permutation(10 * count)[:count]) / 1000.0
    ids = [f"p{one}" for one in rng.integers(0, series, count)]
    names = rng.choice(["pulse", "temp"], count)
    frame = polars.DataFrame({"id": ids, "t": stamps, "name": names, "x": rng.normal(size=count)})
    frame = frame.sort("id", maintain_order=True)
    by_series(frame, folder / "clustered", FILES)
    by_time(frame, folder / "scattered", 4)
    for source in ("clustered", "scattered"):
        slow_job(folder / source, folder / f"{source}-out", 0.0, GROUP).run(Local(folder), silent)
    return folder


def test_a_node_is_killed_and_the_job_finishes_on_the_core_that_is_left(large, nodes, tmp_path):
    made, alive = nodes
    with connected(made.address) as engine, ThreadPoolExecutor(1) as thread:
        for source in ("clustered", "scattered"):
            out = tmp_path / source
            running = thread.submit(slow_job(large / source, out, group=GROUP).run, engine, silent)
            wait_for_parts(out, 2, running)
            kill(alive.pop())
            outcome = running.result(timeout=MOST_SECONDS)
            assert outcome.failures == []
            assert len(outcome.parts) == FILES
            assert read_folder(out).equals(read_folder(large / f"{source}-out"))
            assert not list(out.glob(".logcde-*"))
            alive.append(made.add_node(num_cpus=1, object_store_memory=STORE))


def test_the_driver_is_killed_and_the_next_one_makes_what_is_missing(large, nodes, tmp_path):
    made, _ = nodes
    source, out = "scattered", tmp_path / "out"
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    arguments = [sys.executable, "-m", "tests.scale.clusters", made.address, str(large / source), str(out)]
    with subprocess.Popen(arguments, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}) as driver:
        began = time.monotonic()
        while len(visible_parts(out)) < 2:
            assert driver.poll() is None
            assert time.monotonic() < began + MOST_SECONDS
            time.sleep(0.05)
        driver.kill()
    assert not (out / "manifest.json").exists()
    # What its tasks were writing may still appear, whole.
    before = {file: file.stat().st_mtime_ns for file in visible_parts(out)}
    with connected(made.address) as engine:
        outcome = slow_job(large / source, out, 0.0, GROUP).run(engine, silent)
    assert sum(part.reused for part in outcome.parts) >= 2
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert read_folder(out).equals(read_folder(large / f"{source}-out"))


def test_predictions_with_a_damaged_file(nodes, tmp_path, untrained, capsys):
    made, _ = nodes
    write(vitals().drop("extra"), tmp_path / "vitals.parquet")
    assert run("train", tmp_path / "vitals.parquet", *QUICK, "--target", "state", "-o", tmp_path / "model") == 0
    by_series(vitals().drop("extra"), tmp_path / "new", 2)
    (tmp_path / "new" / "9.parquet").write_bytes(b"no table at all")
    command = ("predict", tmp_path / "model", tmp_path / "new")
    assert run(*command, "-o", tmp_path / "here") == 1
    assert run(*command, "-o", tmp_path / "there", "--ray", made.address) == 1
    assert read_folder(tmp_path / "here").equals(read_folder(tmp_path / "there"))
    assert capsys.readouterr().err.count("9.parquet is not a Parquet file") == 2


def test_a_cluster_for_one_command_and_one_that_is_not_there(tmp_path):
    by_series(with_dense_series(), tmp_path / "in", 1)
    assert run("embed", tmp_path / "in", *COLUMNS, "-o", tmp_path / "out", "--ray", "local") == 0
    assert len(read_folder(tmp_path / "out")) == 32
    for address in ("127.0.0.1:9", "nonsense"):
        with pytest.raises(TableError, match=f"There is no Ray cluster at '{address}'"), connected(address):
            pass
