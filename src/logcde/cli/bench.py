"""`logcde bench`: the same as `python -m logcde.bench`."""

import dataclasses

import tyro

from logcde.bench.options import Options


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure speed, side by side with every peer that is installed, and write results.json and scaling.png.

    Example: logcde bench --jobs B1 D --rounds 5 --out benchmarks
    """

    options: tyro.conf.OmitArgPrefixes[Options] = Options()

    def run(self) -> int:
        """Do it."""
        from logcde.bench.__main__ import measure

        return measure(self.options)
