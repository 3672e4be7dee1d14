"""A Ray cluster of several nodes on the loopback interface of this machine, and slow work to interrupt on it."""

import contextlib
import dataclasses
import os
import signal
import sys
import time
from pathlib import Path

import logcde as lc
from logcde.scale.driver import Job
from logcde.scale.ray import connected
from logcde.scale.rows import AbstractRows, FixedPartition, IntervalRows
from logcde.streams.file_summary import Layout
from logcde.streams.ingest import ReadOptions
from tests.scale.folders import CHANNELS

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 120
"""How long a test waits for anything."""
STORE = 80_000_000
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # By default workers give way to all other processes, such as other tests.
    "RAY_worker_niceness": "0",
    # The death of a node is found after a few seconds, and not after half a minute.
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "3",
}
ROWS = IntervalRows(lc.Embedding(), FixedPartition(lc.Partition.every(5.0)))


@dataclasses.dataclass(frozen=True)
class SlowRows(AbstractRows):
    """The same rows, each table of which takes some seconds."""

    rows: AbstractRows
    seconds: float

    def columns(self, series, schema, text):
        return self.rows.columns(series, schema, text)

    def tables(self, streams, columns, tally):
        time.sleep(self.seconds)
        yield from self.rows.tables(streams, columns, tally)


def slow_job(source, folder, seconds=0.3, group=10**6):
    """Embed the tables of a folder slowly. `seconds` are not in the key of what is made."""
    layout = Layout.long(*CHANNELS)
    rows = SlowRows(ROWS, seconds)
    return Job(source, lambda table: layout, ReadOptions(), None, lambda scan, first: rows, folder, {}, False, group)


@contextlib.contextmanager
def silent(word, rows):
    yield lambda more: None


def wait_for_parts(folder, count, running):
    """Wait until the folder has so many parts, while the job is running; no part is ever visible that is not whole."""
    began = time.monotonic()
    while len(visible_parts(folder)) < count:
        assert not running.done(), running.result()
        assert time.monotonic() < began + MOST_SECONDS, "too slow"
        time.sleep(0.05)


def visible_parts(folder):
    """The parts that are there, every one of which can be read."""
    import pyarrow.parquet

    found = sorted(folder.glob("[!.]*.parquet"))
    for file in found:
        pyarrow.parquet.ParquetFile(file).close()
    return found


@contextlib.contextmanager
def cluster(nodes):
    """A head without cores, and nodes with one core each. Yields the cluster and the nodes; ends all its processes."""
    from ray.cluster_utils import Cluster

    kept = {name: os.environ.get(name) for name in ("PYTHONPATH", *SETTINGS)}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [kept["PYTHONPATH"]])])
    os.environ.update(SETTINGS, PYTHONPATH=path)
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield made, [made.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(nodes)]
    finally:
        made.shutdown()
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def kill(node):
    """Kill a node as a power failure would."""
    for processes in node.all_processes.values():
        for one in processes:
            os.kill(one.process.pid, signal.SIGKILL)


if __name__ == "__main__":
    address, source, folder = sys.argv[1:]
    with connected(address) as engine:
        slow_job(Path(source), Path(folder), group=20_000).run(engine, silent)
