"""What an experiment is expected to show, and whether it did."""

import dataclasses
from collections.abc import Sequence

from rich.table import Table


@dataclasses.dataclass(frozen=True)
class Claim:
    """One sentence that is true of the results or is not, and the numbers that say so."""

    text: str
    held: bool
    evidence: str


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What an experiment came to: a summary for programs, a text for people, and claims."""

    summary: dict
    text: str
    claims: tuple[Claim, ...]


def claims_table(claims: Sequence[Claim]) -> Table:
    """The claims for a terminal."""
    table = Table("claim", "", "evidence", title="Claims", title_justify="left")
    for claim in claims:
        table.add_row(claim.text, "[green]held[/]" if claim.held else "[red]not held[/]", claim.evidence)
    return table


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The claims for a page.

    >>> print(claims_markdown([Claim("Water is wet.", True, "it was")]))
    | claim | | evidence |
    |---|---|---|
    | Water is wet. | held | it was |
    """
    rows = [f"| {claim.text} | {'held' if claim.held else 'not held'} | {claim.evidence} |" for claim in claims]
    return "\n".join(["| claim | | evidence |", "|---|---|---|", *rows])
