"""`python -m experiments datasets`: which data sets are there, and whether they are what they should be."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import tyro

if TYPE_CHECKING:
    from experiments.lags import Lags
    from logcde.datasets import Classification


@dataclasses.dataclass(frozen=True)
class List:
    """Say which data sets are there, and what is published about them. Example: python -m experiments datasets list --data ~/uea"""

    data: Path | None = None
    """The folder of data sets; that of the environment variable LOGCDE_DATA if not given."""

    def run(self) -> int:
        """Do it."""
        from rich.console import Console
        from rich.table import Table

        from experiments.facts import FACTS
        from logcde.datasets import available

        there = available(self.data)
        table = Table(box=None, pad_edge=False, header_style="")
        for column in ("data set", "found as", "train + test", "channels", "steps", "classes", "known defect"):
            table.add_column(column, justify="left" if column in ("data set", "found as", "known defect") else "right")
        for name in (*FACTS, *(name for name in there if name not in FACTS)):
            row = [name, there[name][0].suffix if name in there else "not here"]
            if name in FACTS:
                facts = FACTS[name]
                steps = f"{facts.shortest} to {facts.length}" if facts.shortest else f"{facts.length}"
                row += [f"{sum(facts.train)} + {sum(facts.test)}", str(facts.channels), steps, str(facts.classes)]
                row += ["channels are lagged copies" if facts.lagged else ""]
            table.add_row(*row)
        # As wide as the table needs: a narrow terminal would break its lines in other places.
        console = Console(width=200, color_system=None, markup=False)
        with console.capture() as captured:
            console.print(table)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
        return 0


@dataclasses.dataclass(frozen=True)
class Check:
    """Read a data set and say whether it is as published, has copies of series, or has lagged copies of channels.

    Example: python -m experiments datasets check SelfRegulationSCP1 --data ~/uea
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The name of the data set, as in NAME.npz or NAME_TRAIN.ts."""
    data: Path | None = None
    """The folder of data sets; that of the environment variable LOGCDE_DATA if not given."""

    def run(self) -> int:
        """Do it."""
        from experiments.lags import lagged
        from logcde.datasets import deduplicated, find, load

        files = find(self.name, self.data)
        read = load(self.name, self.data)
        copies = len(read) - len(deduplicated(read))
        lines = [
            f"{self.name}, from {' and '.join(map(str, files))}",
            *_contents(read),
            f"  published   {_compared(read)}",
            f"  copies      {f'{copies} of the series are exact copies of earlier ones' if copies else 'none'}",
            *_lags(read, lagged(read)),
        ]
        sys.stdout.write("\n".join(lines) + "\n")
        return 0


def _contents(data: "Classification") -> list[str]:
    """What was read."""
    shortest, train, test = data.lengths.min(), data.counts(False), data.counts(True)
    steps = f"{data.length}" if shortest == data.length else f"{shortest} to {data.length}"
    channels = len(data.streams.schema.channels)
    each = zip(data.classes, train, test, strict=True)
    return [
        f"  series      {sum(train)} + {sum(test)} (train + test), {channels} channels, {steps} steps",
        f"  classes     {', '.join(f'{name}: {one} + {two}' for name, one, two in each)}",
    ]


def _compared(data: "Classification") -> str:
    from experiments.facts import FACTS, differences

    if data.name not in FACTS:
        return "nothing is known here about a data set of this name"
    return f"DIFFERENT: {'; '.join(found)}" if (found := differences(data)) else "the same sizes"


def _lags(data: "Classification", lags: "Lags") -> list[str]:
    """Whether each channel is the one before it, some steps later."""
    from experiments.facts import FACTS

    channels = len(data.streams.schema.channels)
    if not lags.pairs:
        return ["  lag         cannot be told of one channel, or of series with fewer steps than channels"]
    law = f"X[c + 1, t] = X[c, t + {channels}] for {lags.equal:,} of {lags.pairs:,} pairs ({_percent(lags.share)})"
    if not lags.lagged:
        return [f"  lag         none: {law}"]
    lines = [
        f"  lag         DEFECT: channels are lagged copies of one sequence, in {lags.lagged} of {lags.series} series:",
        f"              {law}.",
    ]
    if data.name in FACTS and FACTS[data.name].lagged:
        lines.append("              The archive's own files are so, and published results are of these files.")
    if data.name in FACTS and FACTS[data.name].recorded:
        lines.append(f"              The recorded channels are the data set {FACTS[data.name].recorded}.")
    return lines


def _percent(share: float) -> str:
    """A share that looks whole only if it is."""
    return f"{share:.0%}" if share in (0, 1) else f"{min(max(share, 0.0001), 0.9999):.2%}"


Action: TypeAlias = (
    Annotated[List, tyro.conf.subcommand("list", prefix_name=False)]
    | Annotated[Check, tyro.conf.subcommand("check", prefix_name=False)]
)


@dataclasses.dataclass(frozen=True)
class Datasets:
    """Data sets for classification: which are there, and whether they are what they should be.

    Example: python -m experiments datasets check SelfRegulationSCP1
    """

    action: tyro.conf.OmitArgPrefixes[Action]

    def run(self) -> int:
        """Do it."""
        return self.action.run()
