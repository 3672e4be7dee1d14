"""Many files on one machine and on clusters of several nodes: `python -m benchmarks.cluster`.

One long table is written twice: as files of whole series, and as files of one hour each, so that every series is in
all of them. `logcde embed` makes a folder of log-signatures of each, in one process and on Ray clusters of one, two and
three nodes with one core each, and on one that is started for the command, all on this machine; Dask calls the same
plan for the files of whole series. All folders must be equal to the bit. Seconds are those of whole commands, from the
start of Python to its end. Each finished measurement is kept in `cluster.json`, so that an interrupted run goes on
where it was.
"""

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import logcde as lc
from logcde._files import write_whole
from logcde._machine import machine, versions

RESULTS = Path(__file__).parent / "cluster.json"
NAMES = ("id", "t", "name", "x")
CHANNELS = ("pulse", "temp", "pressure", "oxygen")
STORE = 1_000_000_000
"""Bytes of the object store of a node."""
GIGABYTE = 2**30
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's workers give way to all other processes, and the one process beside which they are measured does not.
    "RAY_worker_niceness": "0",
}


@dataclasses.dataclass(frozen=True)
class Size:
    """The table, and how it is cut."""

    rows: int = 20_000_000
    series: int = 40_000
    files: int = 40
    hours: int = 24
    every: float = 4.0
    seed: int = 0


def write_tables(size: Size, folder: Path) -> None:
    """Write the table by series and by hour, unless it is there."""
    import pyarrow
    import pyarrow.parquet

    if (folder / "written").exists():
        return
    rng, each = np.random.default_rng(size.seed), size.rows // size.series
    for name in ("clustered", "scattered"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        schema = pyarrow.schema(
            [("id", pyarrow.int64()), ("t", pyarrow.float64()), ("name", pyarrow.string()), ("x", pyarrow.float64())]
        )
        hours = [
            opened.enter_context(
                pyarrow.parquet.ParquetWriter(folder / "scattered" / f"hour-{hour:02}.parquet", schema)
            )
            for hour in range(size.hours)
        ]
        for number, ids in enumerate(np.array_split(np.arange(size.series), size.files)):
            times = np.sort(rng.uniform(0, size.hours, (len(ids), each)))
            codes = pyarrow.array(rng.integers(0, len(CHANNELS), times.size))
            names = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(CHANNELS)).cast(pyarrow.string())
            columns = [np.repeat(ids, each), times.ravel(), names, rng.normal(size=times.size)]
            table = pyarrow.Table.from_arrays([pyarrow.array(one) for one in columns], schema=schema)
            pyarrow.parquet.write_table(table, folder / "clustered" / f"{number:03}.parquet")
            hour = times.ravel().astype(np.int64)
            for one, writer in enumerate(hours):
                writer.write_table(table.filter(pyarrow.array(hour == one)))
    write_whole(folder / "written", "")


def embed_command(size: Size, source: Path, out: Path, *options: str) -> list[str]:
    """The command that makes the log-signatures of a folder."""
    columns = [word for option, name in zip(("series", "time", "channel", "value"), NAMES, strict=True)
               for word in (f"--{option}", name)]  # fmt: skip
    command = [sys.executable, "-c", "from logcde.cli import main; main()", "embed", str(source), *columns]
    return [*command, "--every", str(size.every), "-o", str(out), *options]


def dask_command(size: Size, source: Path, out: Path) -> list[str]:
    """The command by which Dask calls the plan for each file, in as many processes as there are cores."""
    return [sys.executable, "-m", "benchmarks.cluster", "--dask", str(source), str(out), "--every", str(size.every)]


def run_dask(source: str, out: str, every: float) -> None:
    """Write the log-signatures of files of whole series by way of Dask."""
    from dask.base import compute
    from dask.delayed import delayed

    from logcde._machine import cores
    from logcde.scale import Layout, plan

    made = plan(source, Layout.long(*NAMES), lc.Embedding(), lc.Partition.every(every), whole=True)
    Path(out).mkdir(parents=True)
    tasks = [delayed(write_part)(made, file, Path(out, file.name)) for file in sorted(Path(source).iterdir())]
    compute(*tasks, scheduler="processes", num_workers=cores())


def write_part(plan: Callable[[Any], Any], file: Path, out: Path) -> None:
    """Write what a plan makes of one file."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(plan(pyarrow.parquet.read_table(file)), out)


def run_duckdb(size: Size, source: Path, out: Path) -> float:
    """Seconds in which DuckDB brings the rows of each bucket together, without an order in them."""
    import duckdb

    buckets = max(1, round(size.rows / 500_000))
    start = time.perf_counter()
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT *, hash(id) % {buckets} AS bucket FROM read_parquet('{source}/*.parquet')) "
            f"TO '{out}' (FORMAT parquet, PARTITION_BY (bucket))"
        )
    return time.perf_counter() - start


def run_gathering(size: Size, source: Path, out: Path) -> float:
    """Seconds in which `logcde` brings the rows of each bucket together, each series in order, and reads them again."""
    from logcde.scale import Layout, Plan, plan
    from logcde.scale.engines import Local
    from logcde.scale.parts import PartFile
    from logcde.scale.rows import AbstractRows

    class Nothing(AbstractRows):
        """Rows of nothing, so that only the gathering takes time."""

        def columns(self, series: str, schema: Any, text: bool) -> Any:
            import pyarrow

            return pyarrow.schema([(series, pyarrow.int64())])

        def tables(self, streams: Any, columns: Any, tally: Any) -> Iterator[Any]:
            return iter(())

    buckets = max(1, round(size.rows / 500_000))
    files = sorted(source.iterdir())
    known = plan(files, Layout.long(*NAMES), lc.Embedding())
    parts = {number: PartFile(out, f"{number}.parquet", "", str(number)) for number in range(buckets)}
    start = time.perf_counter()
    made = list(Local(out).gathered(Plan(known.reader, Nothing(), False), files, buckets, parts, 500_000))
    assert len(made) == buckets
    return time.perf_counter() - start


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """A Ray cluster with one core on each of its nodes; yields its address."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=1, object_store_memory=STORE)
        yield str(made.address)
    finally:
        made.shutdown()


def timed(command: Sequence[str]) -> dict[str, float]:
    """Seconds and peak memory of a command, which must end well."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}.")
    return {"seconds": round(seconds, 2), "gigabytes": round(used.ru_maxrss * 1024 / GIGABYTE, 3)}


def checksum(folder: Path) -> str:
    """A checksum of all rows of a folder of parts, in the order of series and intervals."""
    import polars

    frame = polars.concat([polars.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])
    digest = hashlib.sha256()
    for column in frame.sort("id", "start"):
        digest.update(np.ascontiguousarray(column.to_numpy()).tobytes())
    return digest.hexdigest()


def measurements(size: Size, folder: Path) -> dict[str, Callable[[Path], dict[str, Any]]]:
    """By the name of each measurement, a function that takes it into a folder."""
    found: dict[str, Callable[[Path], dict[str, Any]]] = {}
    for source in ("clustered", "scattered"):
        tables = folder / source
        found[f"{source}: one process"] = functools.partial(_embedded, size, tables)
        found[f"{source}: --ray local"] = functools.partial(_embedded, size, tables, address="local")
        for nodes in (1, 2, 3):
            found[f"{source}: Ray, {nodes} node{'s' * (nodes > 1)}"] = functools.partial(
                _on_cluster, size, tables, nodes
            )
    found["clustered: Dask"] = lambda out: timed(dask_command(size, folder / "clustered", out))
    return found


def _embedded(size: Size, tables: Path, out: Path, address: str = "") -> dict[str, Any]:
    return timed(embed_command(size, tables, out, *(["--ray", address] if address else [])))


def _on_cluster(size: Size, tables: Path, nodes: int, out: Path) -> dict[str, Any]:
    with cluster(nodes) as address:
        return _embedded(size, tables, out, address)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing in the results, and print all. Returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rows", type=int, default=Size.rows)
    parser.add_argument("--series", type=int, default=Size.series)
    parser.add_argument("--files", type=int, default=Size.files)
    parser.add_argument("--every", type=float, default=Size.every)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("out/cluster"), help="for tables, which are large")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--dask", nargs=2, metavar=("SOURCE", "OUT"), help="only run Dask")
    options = parser.parse_args(arguments)
    if options.dask:
        source, out = options.dask
        run_dask(source, out, options.every)
        return 0
    os.environ.update(SETTINGS)
    size = Size(options.rows, options.series, options.files, every=options.every)
    console = Console(width=100)
    write_tables(size, options.folder)
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    if results.get("size") != dataclasses.asdict(size):
        about = {"size": dataclasses.asdict(size), "versions": versions("ray", "dask", "duckdb"), "machine": machine()}
        results = {**about, "runs": {}, "gathering": {}}
    # One round after another, so that what else the machine does meets all alike.
    for done in range(options.rounds):
        for name, measure in measurements(size, options.folder).items():
            runs = results["runs"].setdefault(name, [])
            if len(runs) == done:
                with _emptied(options.folder / "result") as out:
                    found = measure(out)
                    runs.append({**found, "checksum": checksum(out), "load": machine()["load"]})
                write_whole(options.out, json.dumps(results, indent=1) + "\n")
    for name, runs in results["runs"].items():
        seconds = [run["seconds"] for run in runs]
        console.print(f"{name:28} {np.median(seconds):8.1f} s   {seconds}   {runs[0]['gigabytes']:.2f} GB")
    for name, gather in (("logcde", run_gathering), ("DuckDB", run_duckdb)):
        if name not in results["gathering"]:
            with _emptied(options.folder / "gathered") as out:
                results["gathering"][name] = round(gather(size, options.folder / "scattered", out), 2)
            write_whole(options.out, json.dumps(results, indent=1) + "\n")
        console.print(f"gathering by {name:15} {results['gathering'][name]:8.1f} s")
    alike = len({run["checksum"] for runs in results["runs"].values() for run in runs}) == 1
    console.print("All folders are equal to the bit." if alike else "FOLDERS DIFFER.")
    return 0 if alike else 1


@contextlib.contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """A place for a folder that does not exist, before or after."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
