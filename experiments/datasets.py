"""`python -m experiments datasets`: list the data sets of a folder, and check one of them."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import tyro

if TYPE_CHECKING:
    from experiments.archive import Lags
    from logcde.datasets import Classification


@dataclasses.dataclass(frozen=True)
class List:
    """List the data sets of a folder with their published sizes.

    Example: python -m experiments datasets list --data ~/uea
    """

    data: Path | None = None
    """Folder of data sets; by default the environment variable LOGCDE_DATA."""

    def run(self) -> int:
        """Print one line for each data set."""
        from rich.console import Console
        from rich.table import Table

        from experiments.archive import FACTS
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
        # A fixed width: in a narrow terminal Rich would wrap cells.
        console = Console(width=200, color_system=None, markup=False)
        with console.capture() as captured:
            console.print(table)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
        return 0


@dataclasses.dataclass(frozen=True)
class Check:
    """Check a data set: published sizes, duplicated series, channels that are lagged copies.

    Example: python -m experiments datasets check SelfRegulationSCP1 --data ~/uea
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Name of the data set, as in NAME.npz or NAME_TRAIN.ts."""
    data: Path | None = None
    """Folder of data sets; by default the environment variable LOGCDE_DATA."""

    def run(self) -> int:
        """Print the findings."""
        from experiments.archive import lagged
        from logcde.datasets import deduplicated, find, load

        files = find(self.name, self.data)
        data = load(self.name, self.data)
        copies = len(data) - len(deduplicated(data))
        lines = [
            f"{self.name}, from {' and '.join(map(str, files))}",
            *_contents(data),
            f"  published   {_compared(data)}",
            f"  copies      {f'{copies} of the series are exact copies of earlier ones' if copies else 'none'}",
            *_lags(data, lagged(data)),
        ]
        sys.stdout.write("\n".join(lines) + "\n")
        return 0


def _contents(data: "Classification") -> list[str]:
    shortest, train, test = data.lengths.min(), data.counts(False), data.counts(True)
    steps = f"{data.length}" if shortest == data.length else f"{shortest} to {data.length}"
    channels = len(data.streams.schema.channels)
    each = zip(data.classes, train, test, strict=True)
    return [
        f"  series      {sum(train)} + {sum(test)} (train + test), {channels} channels, {steps} steps",
        f"  classes     {', '.join(f'{name}: {one} + {two}' for name, one, two in each)}",
    ]


def _compared(data: "Classification") -> str:
    from experiments.archive import FACTS, differences

    if data.name not in FACTS:
        return "no sizes are known for a data set of this name"
    return f"DIFFERENT: {'; '.join(found)}" if (found := differences(data)) else "the same sizes"


def _lags(data: "Classification", lags: "Lags") -> list[str]:
    from experiments.archive import FACTS

    channels = len(data.streams.schema.channels)
    if not lags.pairs:
        return ["  lag         not defined for one channel, or for series with fewer steps than channels"]
    law = f"X[c + 1, t] = X[c, t + {channels}] for {lags.equal:,} of {lags.pairs:,} pairs ({_percent(lags.share)})"
    if not lags.lagged:
        return [f"  lag         none: {law}"]
    lines = [
        f"  lag         DEFECT: channels are lagged copies of one sequence, in {lags.lagged} of {lags.series} series:",
        f"              {law}.",
    ]
    if data.name in FACTS and FACTS[data.name].lagged:
        lines.append(
            "              The archive's own files have this defect, and published results are on these files."
        )
    if data.name in FACTS and FACTS[data.name].recorded:
        lines.append(f"              The recorded channels are the data set {FACTS[data.name].recorded}.")
    return lines


def _percent(share: float) -> str:
    """Format a share; only 0 and 1 themselves are shown as 0% and 100%."""
    return f"{share:.0%}" if share in (0, 1) else f"{min(max(share, 0.0001), 0.9999):.2%}"


Action: TypeAlias = (
    Annotated[List, tyro.conf.subcommand("list", prefix_name=False)]
    | Annotated[Check, tyro.conf.subcommand("check", prefix_name=False)]
)


@dataclasses.dataclass(frozen=True)
class Datasets:
    """List and check the data sets of the UEA archive.

    Example: python -m experiments datasets check SelfRegulationSCP1
    """

    action: tyro.conf.OmitArgPrefixes[Action]

    def run(self) -> int:
        """Run the chosen action."""
        return self.action.run()
