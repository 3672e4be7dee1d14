"""Means and standard deviations over seeds, and tables of them in Markdown and LaTeX."""

import re
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from experiments.runner.abstract import Claim


class Spread(msgspec.Struct, frozen=True):
    """Mean and population standard deviation (`ddof=0`) over seeds."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Summarise one value for each seed.

        >>> Spread.of([1.0, 3.0])
        Spread(mean=2.0, std=1.0)
        """
        found = np.array(list(values))
        return cls(float(found.mean()), float(found.std()))

    def text(self, unit: float = 1.0) -> str:
        """Both numbers in multiples of `unit`.

        >>> Spread(2.34e-3, 1.2e-4).text(1e-2)
        '0.234 ± 0.012'
        """
        return f"{self.mean / unit:.3g} ± {self.std / unit:.2g}"


def latex(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    r"""Format a LaTeX table.

    >>> print(latex(["Model", "SCP1"], [["LRU", "82.6 ± 3.4"]], "Accuracy in %."))
    \begin{table}
    \caption{Accuracy in \%.}
    \begin{tabular}{lc}
    \toprule
    Model & SCP1 \\
    \midrule
    LRU & $82.6 \pm 3.4$ \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    lines = [" & ".join(map(_latex_cell, cells)) + r" \\" for cells in (header, *rows)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_latex_cell(caption)}}}",
            rf"\begin{{tabular}}{{l{'c' * (len(header) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_cell(text: str) -> str:
    number = r"(\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)"
    return re.sub(number, r"$\1 \\pm \2$", text.replace("%", r"\%"))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table.

    >>> print(markdown(["m", "error"], [["2", "0.1"]]))
    | m | error |
    |---|---|
    | 2 | 0.1 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(cells) + "|" if number == 1 else "| " + " | ".join(cells) + " |"
                     for number, cells in enumerate(lines))  # fmt: skip


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Format claims as a Markdown table.

    >>> print(claims_markdown([Claim("Water is wet.", True, "it was")]))
    | claim | | evidence |
    |---|---|---|
    | Water is wet. | held | it was |
    """
    rows = [f"| {claim.text} | {'held' if claim.held else 'not held'} | {claim.evidence} |" for claim in claims]
    return "\n".join(["| claim | | evidence |", "|---|---|---|", *rows])
