"""The whole first half of the data path on generated streams: embed, check against the realised path, decode, draw.

Run with `python -m logcde.demo`.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

import logcde as lc
from logcde import plot
from logcde.algebra import Basis, multiply_exp, project, unit
from logcde.algebra import log as tensor_log

HORIZON = 10.0


def generate(series: int, seed: int = 0) -> lc.Streams:
    """Sparse streams of three channels, each with a clock of its own: two waves and an event without a value.

    >>> generate(3).schema.channels
    ('pressure', 'pulse', 'spike')
    """
    rng = np.random.default_rng(seed)
    rates = {"pulse": 2.0, "pressure": 1.0, "spike": 0.6}
    events = []
    for number in range(series):
        phase, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.5)
        for name, rate in rates.items():
            for time in np.sort(rng.uniform(0, HORIZON, max(1, rng.poisson(rate * HORIZON)))):
                wave = np.sin(speed * time + phase)
                value = {
                    "pulse": wave + 0.1 * rng.normal(),
                    "pressure": 0.5 - wave + 0.2 * rng.normal(),
                    "spike": 1.0,  # always the same: only its count tells that it happened again
                }[name]
                events.append((f"patient {number}", float(time), {name: float(value)}))
    return lc.Streams.from_events(events, horizon=HORIZON, sort=True)


def log_signature(vertices: np.ndarray, basis: Basis) -> np.ndarray:
    """That of a piecewise-linear path, by multiplying the exponentials of its segments: slow and obvious."""
    total = unit(basis)
    for step in np.diff(vertices, axis=0):
        total = multiply_exp(total, jnp.asarray(step))
    return np.asarray(project(tensor_log(total)).coordinates)


def main() -> None:
    """Embed, check, decode and draw, with a line about each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/demo.png"), help="where to write the figure")
    parser.add_argument("--series", type=int, default=200, help="how many streams to generate")
    options = parser.parse_args()
    console = Console(highlight=False)
    say = console.print
    jax.config.update("jax_enable_x64", True)  # the check below is in double precision, as the embedding is

    streams = generate(options.series)
    say(streams.describe(), "\n", soft_wrap=True)

    embedding, partition = lc.Embedding(depth=2), lc.Partition.uniform(24)
    with console.status("Embedding; the very first time, kernels are compiled"):
        logsigs = embedding(streams, partition)
    say(f"[bold]Embedded[/bold]  {logsigs!r}")

    few = streams[:3]
    paths = lc.realise(few, embedding)
    worst = 0.0
    cuts = partition.cuts(streams)
    points = cuts.points[: cuts.offsets[1]]
    for number, path in enumerate(paths):
        for interval, (start, stop) in enumerate(pairwise(points)):
            expected = log_signature(path.between(float(start), float(stop)), logsigs.basis)
            got = logsigs.values[number, interval]
            worst = max(worst, float((np.abs(got - expected) / (1 + np.abs(expected).max())).max()))
    say(f"[bold]Checked[/bold]   against the realised path: largest relative difference {worst:.1e}")

    decoded = lc.decode(paths)
    same = "equal to what went in" if decoded == few else "NOT equal to what went in"
    say(f"[bold]Decoded[/bold]   {len(few)} series from their paths: {same}")
    say(f"[bold]Faithful[/bold]  {lc.check_faithful(streams, embedding, partition)}")

    target = plot.save(plot.overview(streams, cuts, logsigs, paths[0], lc.decode(paths[0])), options.out)
    say(f"[bold]Drawn[/bold]     {target}")
    if decoded != few or worst > 1e-9:
        raise SystemExit("The check failed: please report this as a bug.")


if __name__ == "__main__":
    main()
