"""Peak memory of training on shards as the data grow: `python -m benchmarks.shards`.

The same model is trained for one epoch on more and more shards of equal size, each number of shards in a process of its
own; and on the most shards all in memory, by `fit`.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

import logcde as lc
from logcde._files import write_whole
from logcde._machine import machine, versions

RESULTS = Path(__file__).parent / "shards.json"
COUNTS = (2, 8, 32)
SERIES, INTERVALS, LETTERS = 2_000, 48, 9
MEGABYTE = 2**20


def part(number: int) -> tuple[lc.LogSignatures, np.ndarray]:
    """The log-signatures of one shard, and targets."""
    rng, basis = np.random.default_rng(number), lc.Basis.of_width(LETTERS, 2)
    values = rng.normal(size=(SERIES, INTERVALS, basis.dimension)).astype(np.float32)
    return lc.LogSignatures(values, np.full(SERIES, INTERVALS), basis), values[:, :, 0].sum(axis=1)


def peak(count: int, in_memory: bool) -> float:
    """Megabytes of this process after an epoch on so many shards."""
    model = lc.log_slice(lc.Basis.of_width(LETTERS, 2), hidden=8, block=4, outputs=1, key=jax.random.key(0))
    options = {"duration": lc.Epochs(1), "callbacks": (), "key": jax.random.key(1)}
    with tempfile.TemporaryDirectory() as folder:
        if in_memory:
            each = [part(number) for number in range(count)]
            values, targets = (np.concatenate(one) for one in zip(*((a.values, b) for a, b in each), strict=True))
            whole = lc.LogSignatures(values, np.full(len(values), INTERVALS), each[0][0].basis)
            lc.fit(model, whole, targets, selection=lc.train.Selection(validation=None), **options)
        else:
            parts: Iterator[tuple[lc.LogSignatures, np.ndarray]] = (part(number) for number in range(count))
            lc.train.fit_shards(model, lc.train.Shards.write(f"{folder}/shards", parts), **options)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shards", description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", type=int, help="only this number of shards, in this process")
    parser.add_argument("--in-memory", action="store_true")
    options = parser.parse_args(arguments)
    if options.one:
        sys.stdout.write(json.dumps(peak(options.one, options.in_memory)) + "\n")
        return 0
    size = part(0)[0].values.nbytes / MEGABYTE
    results = {"machine": machine(), "versions": versions(), "megabytes of a shard": round(size, 1), "peak": {}}
    runs = [(f"{count} shards", [str(count)]) for count in options.counts]
    runs.append((f"{max(options.counts)} shards in memory", [str(max(options.counts)), "--in-memory"]))
    for name, words in runs:
        command = [sys.executable, "-m", "benchmarks.shards", "--one", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        results["peak"][name] = round(json.loads(done.stdout.splitlines()[-1]))
        sys.stdout.write(f"{name:24} {results['peak'][name]:6,} MB\n")
    write_whole(options.out, json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
