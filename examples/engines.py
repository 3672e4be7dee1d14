"""One plan, many engines: the same log-signatures by way of Dask, Spark, DuckDB and Polars.

A plan is a function from an Arrow table of whole series to an Arrow table. What an engine has to do is to bring the
rows of each series together, in the order of time, and to call it with many series at once. `logcde embed --ray` needs
no code. All engines that are installed give the same bits: `python -m examples.engines`.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow

import logcde as lc
from logcde.scale import Layout, Plan

PARTS = 4


def with_dask(plan: Plan, folder: Path) -> pyarrow.Table:
    """A task for each part of the frame; a shuffle by series comes first, since series cross files."""
    import dask.dataframe
    import pandas

    def part(rows: pandas.DataFrame) -> pandas.DataFrame:
        return plan(pyarrow.Table.from_pandas(rows.sort_values(["id", "t"]), preserve_index=False)).to_pandas()

    frame = dask.dataframe.from_map(pandas.read_parquet, sorted(folder.glob("*.parquet")))
    made = frame.shuffle("id", npartitions=PARTS).map_partitions(part, meta=plan.columns.empty_table().to_pandas())
    return pyarrow.Table.from_pandas(made.compute(), schema=plan.columns, preserve_index=False)


def with_spark(plan: Plan, folder: Path) -> pyarrow.Table:
    """Spark hands the batches of a partition to the function, which needs all of them at once."""
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]
    from pyspark.sql.pandas.types import from_arrow_schema  # pyright: ignore[reportMissingImports]

    def part(batches: Any) -> Any:
        rows = list(batches)
        return plan(pyarrow.Table.from_batches(rows)).to_batches() if rows else []

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need this library
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.read.parquet(str(folder)).repartition(PARTS, "id").sortWithinPartitions("id", "t")
    try:
        return frame.mapInArrow(part, from_arrow_schema(plan.columns)).toArrow().cast(plan.columns)
    finally:
        session.stop()


def with_duckdb(plan: Plan, folder: Path) -> pyarrow.Table:
    """A query for each bucket of series, which DuckDB answers on all cores and within its limit of memory."""
    import duckdb

    rows = duckdb.read_parquet(f"{folder}/*.parquet")
    buckets = (rows.filter(f"hash(id) % {PARTS} = {bucket}").order("id, t") for bucket in range(PARTS))
    return pyarrow.concat_tables([plan(bucket.to_arrow_table()) for bucket in buckets])


def with_polars(plan: Plan, folder: Path) -> pyarrow.Table:
    """A query for each bucket of series, by the streaming engine."""
    rows = polars.scan_parquet(folder / "*.parquet").sort("id", "t")
    buckets = (rows.filter(polars.col("id").hash() % PARTS == bucket) for bucket in range(PARTS))
    return pyarrow.concat_tables([plan(bucket.collect(engine="streaming").to_arrow()) for bucket in buckets])


ENGINES: dict[str, Callable[[Plan, Path], pyarrow.Table]] = {
    "dask": with_dask,
    "pyspark": with_spark,
    "duckdb": with_duckdb,
    "polars": with_polars,
}


def write_hours(folder: Path, series: int = 200) -> polars.DataFrame:
    """Write observations as a file for each hour, in each of which are all series; returns them in one frame."""
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 6, (series, 30)))
    frame = polars.DataFrame(
        {
            "id": np.repeat(np.arange(series), 30),
            "t": times.ravel(),
            "name": rng.choice(["pulse", "temp"], times.size),
            "x": rng.normal(size=times.size),
        }
    )
    for hour in range(6):
        frame.filter(polars.col("t").floor() == hour).sort("t").write_parquet(folder / f"{hour}.parquet")
    return frame


def installed(engine: str) -> bool:
    """Whether an engine can be used here; Spark needs Java."""
    return importlib.util.find_spec(engine) is not None and (engine != "pyspark" or shutil.which("java") is not None)


def main() -> int:
    """Compare the engines with one call of the plan. Returns an exit code."""
    with tempfile.TemporaryDirectory() as place:
        frame = write_hours(Path(place))
        layout = Layout.long("id", "t", "name", "x")
        plan = lc.scale.plan(f"{place}/*.parquet", layout, lc.Embedding(), lc.Partition.every(1.0))
        expected = plan(frame.to_arrow())
        alike = True
        for name in filter(installed, ENGINES):
            made = ENGINES[name](plan, Path(place)).sort_by([("id", "ascending"), ("start", "ascending")])
            same = made.combine_chunks().equals(expected)
            print(f"{name:8} {made.num_rows:,} rows, {'equal to the bit' if same else 'DIFFERENT'}")
            alike &= same
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
